//! The commands that speak a protocol on stdin and stdout.

use std::time::Duration;

use agentwire_dialects::backend::Backend;
use agentwire_dialects::front::Front;
use agentwire_dialects::jsonrpc::JsonRpc;
use agentwire_dialects::unified::Unified;
use agentwire_protocol::AgentType;
use agentwire_server::{Connection, Terms, serve};
use agentwire_sessions::Settings;

use crate::args::Global;
use crate::drive::Signals;
use crate::failure::Failure;
use crate::{engine, settings};

/// How long sessions may run after stdin has ended. There is no client to answer or prompt.
const LINGER: Duration = Duration::from_secs(3);

/// `agentwire unified`
pub(crate) fn unified(global: &Global) -> Result<(), Failure> {
    speak(global, |_, _| Unified::default())
}

/// `agentwire rpc`
pub(crate) fn rpc(global: &Global) -> Result<(), Failure> {
    speak(global, |named, settings| JsonRpc::new(agent(named, settings)))
}

/// `agentwire backend`
pub(crate) fn backend(global: &Global) -> Result<(), Failure> {
    speak(global, |named, settings| Backend::new(agent(named, settings)))
}

/// The default agent.
fn agent(named: Option<AgentType>, settings: &Settings) -> AgentType {
    named.unwrap_or_else(|| engine::default_of_front(settings))
}

/// Serves one client.
fn speak<F: Front>(
    global: &Global,
    front: impl FnOnce(Option<AgentType>, &Settings) -> F,
) -> Result<(), Failure> {
    let loaded = settings::load(global)?;
    let named = loaded.agent;
    let runtime = engine::runtime()?;
    let result = runtime.block_on(async {
        let hub = engine::hub(loaded).await?;
        let mut front = front(named, hub.settings());
        let mut signals = Signals::new()?;
        let pool = hub.log().budget().clients.clone();
        let connection = Connection::lines(tokio::io::stdin(), tokio::io::stdout(), pool);
        let terms = Terms::of_parent(Some(LINGER));
        serve(&hub, connection, &mut front, terms, signals.end()).await;
        hub.shutdown().await;
        Ok(())
    });
    // A thread that waits for stdin must not keep the program from ending.
    runtime.shutdown_background();
    result
}
