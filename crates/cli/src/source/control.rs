//! How to send commands to a session: through the server that runs it, or that can resume it. A
//! session of another process takes commands there only.

use std::path::Path;

use agentwire_client::Session;
use agentwire_protocol::{ErrorCode, GatewayError, SessionId, SessionState, SessionSummary};
use agentwire_sessions::owner;

use super::Source;
use crate::failure::Failure;
use crate::format;

/// The verbs that run sessions, as they appear in a process list.
const RUNNERS: [&str; 7] = ["run", "serve", "unified", "rpc", "backend", "claude", "acp"];

pub(crate) enum ControlPath {
    Server(Box<Session>),
    /// It cannot be reached from here; the error says why and what to do.
    Not(GatewayError),
}

impl ControlPath {
    pub(crate) fn session(self) -> Result<Session, GatewayError> {
        match self {
            Self::Server(session) => Ok(*session),
            Self::Not(error) => Err(error),
        }
    }
}

impl Source {
    pub(crate) async fn reach(&self, id: &SessionId) -> Result<ControlPath, Failure> {
        let (hub, server) = match self {
            Self::There(client) => {
                return Ok(ControlPath::Server(Box::new(client.attach(id.clone()).await?)));
            }
            Self::Here { hub, server } => (hub, server),
        };
        let record = hub.record(id).await?;
        let is_over = record.summary.state == SessionState::Ended;
        let data_dir = &hub.settings().data_dir;
        let owner = record.owner.as_deref().and_then(|name| owner::pid(data_dir, name));
        Ok(match server {
            Ok(server) if is_over || server.pid()? == owner => {
                ControlPath::Server(Box::new(server.client.attach(id.clone()).await?))
            }
            // There is a server, but it cannot be used.
            Err(error) if !error.is_retryable() => {
                ControlPath::Not(GatewayError::new(ErrorCode::Internal, error.message()))
            }
            Err(error) if is_over => {
                let short = format::short(id.as_str());
                let message = format!(
                    "session {short} has ended, and {error}; or resume it here: agentwire run \
                     --resume {short}"
                );
                ControlPath::Not(GatewayError::new(ErrorCode::Conflict, message))
            }
            Ok(_) | Err(_) => ControlPath::Not(elsewhere(&record.summary, owner)),
        })
    }
}

fn elsewhere(session: &SessionSummary, owner: Option<u32>) -> GatewayError {
    let short = format::short(session.id.as_str());
    let process = match owner {
        Some(pid) => format!("process {pid}{}", program(pid).unwrap_or_default()),
        None => "another process".to_owned(),
    };
    let message = format!("session {short} runs in {process}: prompt, answer or stop it there");
    GatewayError::new(ErrorCode::Conflict, message)
}

/// The program and verb of that process.
fn program(pid: u32) -> Option<String> {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let name = Path::new(&**words.first()?).file_name()?.to_string_lossy().into_owned();
    let verb = words.iter().skip(1).find(|word| RUNNERS.contains(&&***word));
    let verb = verb.map(|verb| format!(" {verb}")).unwrap_or_default();
    Some(format!(" ({}{verb})", format::line(&name)))
}
