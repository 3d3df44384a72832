//! The socket's side of a bridge: who may speak, and how much at once.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentwire_dialects::json::{Fault, Scanner, repair};
use agentwire_dialects::mcp::failure;
use agentwire_protocol::Json;
use agentwire_protocol::json::on_one_line;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Connection, Heard, LINE_LIMIT, OUTGOING_QUEUE};

/// How many relays may run at once; an agent may start each server once for each of its threads.
const CONNECTIONS: usize = 256;

/// What waits for the client is counted in pieces of this size, and of those there are as many as
/// the longest message has.
const PIECE: usize = 64 << 10;

/// Of messages that are longer, one is read at a time.
const LARGE: usize = 1 << 20;

/// How long a relay may take to say its token.
const GREETING: Duration = Duration::from_secs(10);

/// How long to wait where a connection could not be taken, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Who may speak, and how much at once.
pub(super) struct Door {
    /// The token of each server.
    tokens: Vec<(String, String)>,
    heard: mpsc::Sender<Heard>,
    room: Arc<Semaphore>,
    large: Semaphore,
}

impl Door {
    pub(super) fn new(tokens: Vec<(String, String)>, heard: mpsc::Sender<Heard>) -> Self {
        let room = Arc::new(Semaphore::new(LINE_LIMIT / PIECE + 1));
        Self { tokens, heard, room, large: Semaphore::new(1) }
    }

    /// Takes connections until nobody listens.
    pub(super) async fn open(self, listener: UnixListener) {
        let door = Arc::new(self);
        let mut relays = JoinSet::new();
        for number in 1.. {
            while relays.try_join_next().is_some() {}
            if relays.len() >= CONNECTIONS {
                relays.join_next().await;
            }
            match listener.accept().await {
                Ok((stream, _)) => {
                    let door = Arc::clone(&door);
                    relays.spawn(async move { door.serve(number, stream).await });
                }
                Err(error) => {
                    tracing::warn!(%error, "an MCP relay could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, connection: u64, stream: UnixStream) {
        let (read, write) = stream.into_split();
        let mut read = BufReader::with_capacity(PIECE, read);
        let greeting = timeout(GREETING, self.line(&mut read, PIECE)).await;
        let said = greeting.ok().and_then(Result::ok).flatten().map(|(line, _)| line);
        let Some(server) = said.and_then(|said| self.server(&said)) else {
            tracing::warn!("an MCP relay came without the session's token: refused");
            return;
        };
        let (outbox, inbox) = mpsc::channel(OUTGOING_QUEUE);
        let waiting = Arc::new(AtomicUsize::new(0));
        let refusals = Refusals { outbox: outbox.downgrade(), waiting: Arc::clone(&waiting) };
        let to = Connection { server, outbox, waiting: Arc::clone(&waiting) };
        if self.heard.send(Heard::Opened { connection, to }).await.is_err() {
            return;
        }
        // Either end is the end of both.
        let ended = tokio::select! {
            ended = self.listen(connection, read, &refusals) => ended,
            ended = speak(write, inbox, &waiting) => ended,
        };
        if let Err(error) = ended {
            tracing::warn!(%error, "an MCP relay is given up");
        }
        let _ = self.heard.send(Heard::Closed { connection }).await;
    }

    /// The server whose token that is. How long this takes says nothing of how much was right.
    fn server(&self, said: &[u8]) -> Option<String> {
        let differs = |token: &str| {
            let pairs = token.bytes().zip(said.iter());
            token.len() != said.len() || pairs.fold(0, |all, (a, b)| all | (a ^ b)) != 0
        };
        let (_, server) = self.tokens.iter().find(|(token, _)| !differs(token))?;
        Some(server.clone())
    }

    /// Hands on what the agent says. Each message holds its room until the client has answered it.
    async fn listen(
        &self,
        connection: u64,
        mut read: impl AsyncBufRead + Unpin,
        refusals: &Refusals,
    ) -> io::Result<()> {
        let mut scanner = Scanner::new();
        while let Some((line, _large)) = self.line(&mut read, LINE_LIMIT).await? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let message = match message(&mut scanner, &line) {
                Ok(message) => message,
                Err((code, why)) => {
                    refusals.send(code, why).await;
                    continue;
                }
            };
            let pieces = u32::try_from(line.len() / PIECE + 1).unwrap_or(u32::MAX);
            drop(line);
            let room = Arc::clone(&self.room).acquire_many_owned(pieces).await;
            let Ok(room) = room else { break };
            let heard = Heard::Message { connection, message, room };
            if self.heard.send(heard).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The next line. Half a line at the end is none.
    async fn line(
        &self,
        read: &mut (impl AsyncBufRead + Unpin),
        limit: usize,
    ) -> io::Result<Option<(Vec<u8>, Option<SemaphorePermit<'_>>)>> {
        let (mut line, mut large) = (Vec::new(), None);
        loop {
            let bytes = read.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', bytes);
            line.extend_from_slice(end.and_then(|end| bytes.get(..end)).unwrap_or(bytes));
            let taken = end.map_or(bytes.len(), |end| end + 1);
            read.consume(taken);
            if line.len() > limit {
                let message = format!("a message is longer than {limit} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if end.is_some() {
                return Ok(Some((line, large)));
            }
            if line.len() > LARGE && large.is_none() {
                large = self.large.acquire().await.ok();
            }
        }
    }
}

/// Answers what is no message, without the session. The connection is the session's to close.
struct Refusals {
    outbox: mpsc::WeakSender<String>,
    waiting: Arc<AtomicUsize>,
}

impl Refusals {
    async fn send(&self, code: i32, why: &str) {
        let line = format!("{}\n", failure(Json::checked("null"), code, why).get());
        if let Some(outbox) = self.outbox.upgrade() {
            self.waiting.fetch_add(line.len(), Ordering::Relaxed);
            let _ = outbox.send(line).await;
        }
    }
}

async fn speak(
    mut write: OwnedWriteHalf,
    mut inbox: mpsc::Receiver<String>,
    waiting: &AtomicUsize,
) -> io::Result<()> {
    while let Some(line) = inbox.recv().await {
        write.write_all(line.as_bytes()).await?;
        waiting.fetch_sub(line.len(), Ordering::Relaxed);
    }
    Ok(())
}

/// The message on that line, or the JSON-RPC error that it deserves. What some strict parser would
/// not take is mended, as on an agent's own lines.
fn message(scanner: &mut Scanner, line: &[u8]) -> Result<Json<'static>, (i32, &'static str)> {
    let broken = (-32700, "this is not JSON");
    let text = std::str::from_utf8(line).map_err(|_| broken)?.trim_ascii();
    let text = match scanner.scan(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(Fault::Loose) => repair(text).map(Cow::Owned).map_err(|_| broken)?,
        Err(Fault::Syntax) => return Err(broken),
    };
    if !scanner.scan(&text).is_ok_and(|document| document.root().is_object()) {
        return Err((-32600, "a message is one JSON object"));
    }
    Ok(Json::checked(on_one_line(&text).into_owned()))
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
