//! Which server a verb talks to: the one that is named, or the one on this machine.

use std::path::Path;

use agentwire_client::{AgentClient, Error, Server};
use agentwire_protocol::{ErrorCode, GatewayError};

use crate::args::At;
use crate::failure::Failure;
use crate::print;

/// The server that a flag or the environment names.
pub(crate) fn named(at: &At) -> Result<Option<AgentClient>, Failure> {
    let Some(url) = at.url.as_deref().map(str::trim).filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let server = with_flags(Server::new(url)?, at)?;
    if server.is_exposed() {
        print::note(&format!("agentwire: what is said to {url} can be read on the way; use https"));
    }
    Ok(Some(AgentClient::new(server)))
}

/// The server on this machine, if it runs.
pub(crate) fn local(data_dir: &Path, at: &At) -> Result<AgentClient, Error> {
    match at.token_file.is_some() || at.ca_file.is_some() || token().is_some() {
        true => Ok(AgentClient::new(with_flags(Server::find(data_dir)?, at)?)),
        false => AgentClient::discover(data_dir),
    }
}

fn with_flags(server: Server, at: &At) -> Result<Server, Error> {
    let server = match &at.ca_file {
        Some(path) => server.trusting(path),
        None => server,
    };
    match (&at.token_file, token()) {
        (Some(path), _) => server.with_token_file(path),
        (None, Some(token)) => server.with_token(&token),
        (None, None) => Ok(server),
    }
}

/// A flag would show it to everyone who lists processes.
fn token() -> Option<String> {
    std::env::var("AGENTWIRE_TOKEN").ok().filter(|token| !token.trim().is_empty())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Refused(error) => return Self::Gateway(error),
            Error::Invalid(_) => ErrorCode::InvalidMessage,
            Error::NoServer { .. }
            | Error::Gone { .. }
            | Error::Unreachable { .. }
            | Error::TimedOut { .. }
            | Error::Broken { .. } => ErrorCode::Internal,
        };
        GatewayError::new(code, error.to_string()).into()
    }
}
