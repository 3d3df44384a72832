//! Reads the prompt: from the argument and stdin, or from the terminal.

use std::io::{self, IsTerminal as _, Read as _};

use agentwire_dialects::program;
use agentwire_protocol::{AgentType, ErrorCode, GatewayError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use crate::failure::Failure;
use crate::print;

/// How many seconds a pipe on stdin may stay silent if there is a prompt already; the `claude` program
/// waits as long.
const PATIENCE: i64 = 3;

/// The prompt for a new process of this agent, which may have a default one.
pub(super) fn read_for(agent: AgentType, given: Option<&str>) -> Result<String, Failure> {
    let default = program(agent).default_prompt.filter(|_| given.is_none());
    read(given, &format!("{}> ", agent.as_str()), default)
}

/// The prompt as given, else from stdin or the terminal, else the default.
pub(crate) fn read(
    given: Option<&str>,
    question: &str,
    default: Option<&str>,
) -> Result<String, Failure> {
    let text = match given {
        Some("-") => from_stdin()?,
        Some(text) => with_stdin(text)?,
        None if !io::stdin().is_terminal() => from_stdin()?,
        None if default.is_some() => String::new(),
        None => print::ask_line(question)?.unwrap_or_default(),
    };
    match (text.trim().is_empty(), default) {
        (false, _) => Ok(text),
        (true, Some(default)) => Ok(default.to_owned()),
        (true, None) => {
            Err(invalid("the prompt is empty; give it as an argument or on stdin").into())
        }
    }
}

/// The prompt, and what is piped in after a blank line.
fn with_stdin(prompt: &str) -> Result<String, Failure> {
    if !is_piped()? {
        return Ok(prompt.to_owned());
    }
    if !has_input()? {
        print::note(&format!(
            "agentwire: nothing on stdin for {PATIENCE} s; going on without it (`</dev/null` skips the wait)"
        ));
        return Ok(prompt.to_owned());
    }
    let piped = from_stdin()?;
    let parts = [prompt, &piped].into_iter().filter(|part| !part.trim().is_empty());
    Ok(parts.collect::<Vec<_>>().join("\n\n"))
}

/// Whether stdin is a file, a pipe or a socket. A terminal and `/dev/null` are not.
fn is_piped() -> io::Result<bool> {
    let mode = rustix::fs::fstat(io::stdin())?.st_mode;
    Ok(match FileType::from_raw_mode(mode) {
        FileType::RegularFile | FileType::Fifo | FileType::Socket => true,
        FileType::Directory
        | FileType::Symlink
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => false,
    })
}

/// Waits a little for the first byte, or the end, of stdin. A program that starts us may leave a pipe
/// open and never write to it.
pub(crate) fn has_input() -> io::Result<bool> {
    let stdin = io::stdin();
    let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    Ok(rustix::io::retry_on_intr(|| poll(&mut fds, Some(&patience)))? > 0)
}

fn from_stdin() -> Result<String, Failure> {
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
