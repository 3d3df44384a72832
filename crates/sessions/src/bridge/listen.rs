//! The socket side of a bridge: who may connect, and how much may be in flight.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::json::{Fault, Scanner, repair};
use agentwire_dialects::mcp::failure;
use agentwire_protocol::Json;
use agentwire_protocol::json::on_one_line;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::outbox::Outbox;
use super::{Connection, LINE_LIMIT, OUTGOING_LIMIT, RelayActivity};
use crate::blocking::{blocking, blocking_if_long};
use crate::budget::{Pool, SMALL, Share, WORK};
use crate::session::LongLine;

/// How many relays may run at once; an agent may start each server once per thread.
const CONNECTIONS: usize = 256;

/// Messages that wait for the client are counted in pieces of this size. There are as many pieces as the
/// longest message needs.
const PIECE: usize = 64 << 10;

/// How long a relay may take to send its token.
const GREETING: Duration = Duration::from_secs(10);

/// How long to wait after a connection could not be accepted, for example because descriptors ran out.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct RelayListener {
    /// Token and name of each server.
    tokens: Vec<(String, String)>,
    activity: mpsc::Sender<RelayActivity>,
    room: Arc<Semaphore>,
    /// Large messages take a share of it.
    pool: Pool,
    /// Where large messages wait until they are complete, or until the relay reads them.
    directory: PathBuf,
}

enum Line {
    Short(Vec<u8>),
    Long(LongLine),
}

impl RelayListener {
    pub(super) fn new(
        tokens: Vec<(String, String)>,
        activity: mpsc::Sender<RelayActivity>,
        pool: Pool,
        directory: PathBuf,
    ) -> Self {
        let room = Arc::new(Semaphore::new(LINE_LIMIT / PIECE + 1));
        Self { tokens, activity, room, pool, directory }
    }

    /// Accepts connections until the task is aborted.
    pub(super) async fn open(self, listener: UnixListener) {
        let shared = Arc::new(self);
        let mut relays = JoinSet::new();
        for number in 1.. {
            while relays.try_join_next().is_some() {}
            if relays.len() >= CONNECTIONS {
                relays.join_next().await;
            }
            match listener.accept().await {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&shared);
                    relays.spawn(async move { shared.serve(number, stream).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept an MCP relay");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, connection: u64, stream: UnixStream) {
        let (read, write) = stream.into_split();
        let mut read = BufReader::with_capacity(PIECE, read);
        let greeting = timeout(GREETING, self.line(&mut read, PIECE)).await;
        let Ok(Ok(Some(Line::Short(said)))) = greeting else {
            tracing::warn!("refused an MCP relay: it sent no token");
            return;
        };
        let Some(server) = self.server(&said) else {
            tracing::warn!("refused an MCP relay: its token is wrong");
            return;
        };
        let outbox = Outbox::new(self.directory.clone());
        let to = Connection { server, outbox: outbox.clone() };
        if self.activity.send(RelayActivity::Opened { connection, to }).await.is_err() {
            return;
        }
        // If either direction ends, both do.
        let ended = tokio::select! {
            ended = self.listen(connection, read, &outbox) => ended,
            ended = outbox.write_to(write) => ended,
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "closed an MCP relay");
        }
        let _ = self.activity.send(RelayActivity::Closed { connection }).await;
    }

    /// The server with this token. How long the comparison takes does not depend on how much of the token
    /// is right.
    fn server(&self, said: &[u8]) -> Option<String> {
        let differs = |token: &str| {
            let pairs = token.bytes().zip(said.iter());
            token.len() != said.len() || pairs.fold(0, |all, (a, b)| all | (a ^ b)) != 0
        };
        let (_, server) = self.tokens.iter().find(|(token, _)| !differs(token))?;
        Some(server.clone())
    }

    /// Forwards the agent's messages. Each message holds its room until the client has answered it, and a
    /// large one holds its share until it is durable. Only a message that has room waits for a share.
    async fn listen(
        &self,
        connection: u64,
        mut read: impl AsyncBufRead + Unpin,
        outbox: &Outbox,
    ) -> io::Result<()> {
        let mut scanner = Scanner::new();
        while let Some(line) = self.line(&mut read, LINE_LIMIT).await? {
            let pieces = u32::try_from(line.length() / PIECE + 1).unwrap_or(u32::MAX);
            let room = Arc::clone(&self.room).acquire_many_owned(pieces).await;
            let Ok(room) = room else { break };
            let (line, share) = self.read_complete(line).await?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let read = blocking_if_long(line.len(), || message(&mut scanner, &line));
            drop(line);
            match read {
                Ok(message) => {
                    let activity = RelayActivity::Message { connection, message, room, share };
                    if self.activity.send(activity).await.is_err() {
                        break;
                    }
                }
                Err((code, why)) => refuse(outbox, code, why)?,
            }
        }
        Ok(())
    }

    /// The next line. An incomplete line at the end is ignored.
    async fn line(
        &self,
        read: &mut (impl AsyncBufRead + Unpin),
        limit: usize,
    ) -> io::Result<Option<Line>> {
        let mut line = Line::Short(Vec::new());
        loop {
            let bytes = read.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', bytes);
            let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
            if line.length() + text.len() > limit {
                let message = format!("a message is longer than {limit} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            match &mut line {
                Line::Short(line) => line.extend_from_slice(text),
                Line::Long(long) => {
                    // The limit checked above is within that of a long line.
                    let _ = long.push(text);
                    blocking(|| long.write(&self.directory))?;
                }
            }
            let taken = text.len() + usize::from(end.is_some());
            read.consume(taken);
            if end.is_some() {
                return Ok(Some(line));
            }
            if let Line::Short(short) = &mut line
                && short.len() > SMALL
            {
                line = Line::Long(LongLine::new(std::mem::take(short)));
            }
        }
    }

    /// The whole line, in memory; a long one is read once it has its share.
    async fn read_complete(&self, line: Line) -> io::Result<(Vec<u8>, Option<Arc<Share>>)> {
        match line {
            Line::Short(line) => Ok((line, None)),
            Line::Long(long) => {
                let share = self.pool.take(long.length().saturating_mul(WORK)).await;
                Ok((blocking(|| long.take())?, Some(Arc::new(share))))
            }
        }
    }
}

impl Line {
    fn length(&self) -> usize {
        match self {
            Self::Short(line) => line.len(),
            Self::Long(long) => long.length(),
        }
    }
}

/// Answers an invalid message directly, without the session. A relay that sends many of them and reads
/// nothing is dropped.
fn refuse(outbox: &Outbox, code: i32, why: &str) -> io::Result<()> {
    if outbox.waiting() > OUTGOING_LIMIT {
        return Err(io::Error::other("it does not read the errors for its messages"));
    }
    outbox.push(failure(Json::trusted("null"), code, why).get());
    Ok(())
}

/// The message on this line, or the JSON-RPC error for it. JSON that some strict parsers would reject is
/// repaired, as on an agent's own lines.
fn message(scanner: &mut Scanner, line: &[u8]) -> Result<Json<'static>, (i32, &'static str)> {
    let broken = (-32700, "the message is not valid JSON");
    let text = std::str::from_utf8(line).map_err(|_| broken)?.trim_ascii();
    let text = match scanner.scan(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(Fault::Loose) => repair(text).map(Cow::Owned).map_err(|_| broken)?,
        Err(Fault::Syntax) => return Err(broken),
    };
    if !scanner.scan(&text).is_ok_and(|document| document.root().is_object()) {
        return Err((-32600, "a message must be a JSON object"));
    }
    Ok(Json::trusted(on_one_line(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_kept_as_it_came_or_refused() {
        let mut scanner = Scanner::new();
        let mut read = |line: &[u8]| message(&mut scanner, line).map(|json| json.get().to_owned());
        let exact = r#"{"id":9007199254740993, "method":"x","params":{"b":1.50,"a":null}}"#;
        assert_eq!(read(format!("{exact}\r").as_bytes()).as_deref(), Ok(exact));
        assert!(read(br#"{"id":1,"id":2,"s":"\ud83d"}"#).is_ok());
        for (line, code) in [
            (&b"rubbish"[..], -32700),
            (b"{\"a\":\xff}", -32700),
            (b"{} {}", -32700),
            (b"[{\"id\":1}]", -32600),
            (b"3", -32600),
        ] {
            assert_eq!(read(line).expect_err("a refusal").0, code, "{line:?}");
        }
    }
}
