//! The server that a command talks to: a named one, or the one on this machine.

use std::path::Path;

use agentwire_client::{AgentClient, AgentError, HttpTransport, Server};

use crate::args::At;
use crate::failure::Failure;
use crate::print;

pub(crate) fn named(at: &At) -> Result<Option<AgentClient>, Failure> {
    let Some(url) = at.url.as_deref().map(str::trim).filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let server = with_flags(Server::new(url)?, at)?;
    if server.is_exposed() {
        print::note(&format!("agentwire: traffic to {url} is not encrypted; use https"));
    }
    Ok(Some(AgentClient::over(HttpTransport::new(server))))
}

#[derive(Clone)]
pub(crate) struct Local {
    pub(crate) client: AgentClient,
    transport: HttpTransport,
}

impl Local {
    pub(crate) fn pid(&self) -> Result<Option<u32>, AgentError> {
        Ok(self.transport.server()?.pid())
    }
}

/// The server on this machine, if it runs.
pub(crate) fn local(data_dir: &Path, at: &At) -> Result<Local, AgentError> {
    let transport = match at.token_file.is_some() || at.ca_file.is_some() || token().is_some() {
        true => HttpTransport::new(with_flags(Server::find(data_dir)?, at)?),
        false => HttpTransport::discover(data_dir)?,
    };
    Ok(Local { client: AgentClient::over(transport.clone()), transport })
}

fn with_flags(server: Server, at: &At) -> Result<Server, AgentError> {
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

/// Not a flag: it would show in the process list.
fn token() -> Option<String> {
    std::env::var("AGENTWIRE_TOKEN").ok().filter(|token| !token.trim().is_empty())
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        Self::Gateway(error.into())
    }
}
