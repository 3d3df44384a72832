//! The verbs that speak a protocol on stdin and stdout.

use std::time::Duration;

use agentwire_dialects::backend::Backend;
use agentwire_dialects::front::Front;
use agentwire_dialects::jsonrpc::JsonRpc;
use agentwire_dialects::unified::Unified;
use agentwire_protocol::AgentType;
use agentwire_server::{Closing, Connection, serve};

use crate::args::Global;
use crate::drive::Signals;
use crate::failure::Failure;
use crate::{engine, settings};

/// How long sessions may go on once stdin has ended. Nobody can answer or prompt any more.
const LINGER: Duration = Duration::from_secs(3);

/// `agentwire unified`
pub(crate) fn unified(global: &Global) -> Result<(), Failure> {
    speak(global, |_| Unified::default())
}

/// `agentwire rpc`
pub(crate) fn rpc(global: &Global) -> Result<(), Failure> {
    speak(global, JsonRpc::new)
}

/// `agentwire backend`
pub(crate) fn backend(global: &Global) -> Result<(), Failure> {
    speak(global, Backend::new)
}

/// Serves one client. Where it names no agent, it gets the one that the front is made with.
fn speak<F: Front>(global: &Global, front: impl FnOnce(AgentType) -> F) -> Result<(), Failure> {
    let loaded = settings::load(global)?;
    let named = loaded.agent;
    let runtime = engine::runtime()?;
    let result = runtime.block_on(async {
        let hub = engine::hub(loaded).await?;
        let agent = named.or_else(|| engine::installed(hub.settings())).unwrap_or(AgentType::Demo);
        let mut front = front(agent);
        let mut signals = Signals::new()?;
        let connection = Connection::lines(tokio::io::stdin(), tokio::io::stdout());
        let closing = Closing { linger: Some(LINGER) };
        serve(&hub, connection, &mut front, closing, signals.end()).await;
        hub.shutdown().await;
        Ok(())
    });
    // A thread that waits for stdin must not keep the program from ending.
    runtime.shutdown_background();
    result
}
