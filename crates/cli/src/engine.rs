//! Opens the engine for a verb.

use std::io;
use std::path::Path;

use agentwire_protocol::{AgentType, GatewayError};
use agentwire_sessions::{Hub, process};
use tokio::runtime::{Builder, Runtime};

use crate::args::Global;
use crate::failure::Failure;
use crate::settings::{self, Loaded};

/// Where sessions run.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// All sessions. What agents leave behind comes to us, and they cannot read our memory; where the
/// system does not grant that, the keepers still hold.
pub(crate) async fn hub(loaded: Loaded) -> Result<Hub, GatewayError> {
    if loaded.engine.keeper.is_some() {
        let _ = process::become_subreaper();
        let _ = process::hide_memory();
    }
    Hub::open(loaded.engine).await
}

/// The first agent that is installed.
pub(crate) fn installed(hub: &Hub) -> Option<AgentType> {
    let here = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_path_buf());
    let path = std::env::var_os("PATH");
    let is_installed = |agent: &AgentType| {
        let program = hub.settings().agent(*agent).program;
        let program = program.as_deref().unwrap_or(agent.as_str());
        process::resolve(program, path.as_deref(), &here).is_ok()
    };
    let known = [AgentType::Claude, AgentType::Codex, AgentType::Gemini];
    known.into_iter().find(is_installed)
}

/// Does something with sessions that starts no agent.
pub(crate) fn reading<T>(
    global: &Global,
    work: impl AsyncFnOnce(&Hub) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut loaded = settings::load(global)?;
    // Where nothing is started, nothing has to be contained.
    loaded.engine.keeper = None;
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let hub = hub(loaded).await?;
        let done = work(&hub).await;
        hub.shutdown().await;
        done
    })
}
