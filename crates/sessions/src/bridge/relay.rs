//! The relay: the stdio MCP server that an agent starts in place of one that the client hosts. It is this
//! same program, started again. It copies lines between its stdio and the session's socket, and ends when
//! either does.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use crate::process::hide_memory;

/// The first argument that makes this program a relay; the second is the socket.
pub const VERB: &str = "mcp-bridge";

/// The environment variable that holds the server's token.
pub const TOKEN: &str = "AGENTWIRE_MCP_TOKEN";

/// How much is copied at once.
const BUFFER: usize = 64 << 10;

/// Relays until either end is closed.
pub fn run(socket: Option<&OsStr>) -> io::Result<()> {
    let (Some(socket), Some(token)) = (socket, std::env::var_os(TOKEN)) else {
        return Err(io::Error::other(
            "mcp-bridge is started by the agents that agentwire runs, to reach an MCP server that a \
             client hosts; do not start it yourself",
        ));
    };
    // The token is in our environment.
    let _ = hide_memory();
    let failed = |error: io::Error| {
        let message = format!("failed to reach the session at {}: {error}", socket.display());
        io::Error::new(error.kind(), message)
    };
    let session = UnixStream::connect(socket).map_err(failed)?;
    let mut greeting = token.into_encoded_bytes();
    greeting.push(b'\n');
    (&session).write_all(&greeting).map_err(failed)?;
    let up = session.try_clone().map_err(failed)?;
    thread::Builder::new().spawn(move || {
        let _ = copy(io::stdin().lock(), &up);
        let _ = up.shutdown(Shutdown::Both);
    })?;
    // If our stdout is closed, the agent has ended us.
    let _ = copy(&session, io::stdout().lock());
    Ok(())
}

/// Copies data as soon as it arrives. `io::copy` may splice, which holds back a short line.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count?,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        to.write_all(bytes)?;
        to.flush()?;
    }
}
