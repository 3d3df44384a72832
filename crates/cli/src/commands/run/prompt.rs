//! Reads the prompt: from the argument, stdin, or the terminal.

use std::io::{self, IsTerminal as _, Read as _};

use agentwire_dialects::program;
use agentwire_protocol::{AgentType, ErrorCode, GatewayError};

use crate::failure::Failure;
use crate::print;

pub(super) fn read(given: Option<&str>, agent: AgentType) -> Result<String, Failure> {
    let default = program(agent).default_prompt.filter(|_| given.is_none());
    let text = match given {
        Some("-") => from_stdin()?,
        Some(text) => text.to_owned(),
        None if !io::stdin().is_terminal() => from_stdin()?,
        None if default.is_some() => String::new(),
        None => print::ask_line(&format!("{}> ", agent.as_str()))?.unwrap_or_default(),
    };
    match (text.trim().is_empty(), default) {
        (false, _) => Ok(text),
        (true, Some(default)) => Ok(default.to_owned()),
        (true, None) => {
            Err(invalid("the prompt is empty; give it as an argument or on stdin").into())
        }
    }
}

pub(crate) fn from_stdin() -> Result<String, Failure> {
    let mut text = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut text);
    read.map_err(|error| {
        io::Error::new(error.kind(), format!("failed to read the prompt from stdin: {error}"))
    })?;
    let mut text = String::from_utf8(text)
        .map_err(|_| invalid("failed to read the prompt from stdin: it is not UTF-8"))?;
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}

fn invalid(message: &str) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message)
}
