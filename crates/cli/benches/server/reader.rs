//! A client that reads a WebSocket as fast as it can and looks only for the marks of lines.

use std::time::Duration;

use memchr::memmem::Finder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::agent;

/// Longer than anything here takes: lines that arrive later count as lost.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Reader {
    stream: TcpStream,
    finder: Finder<'static>,
    buffer: Vec<u8>,
    next: u64,
    pub bytes: u64,
}

/// What a reader saw of one order.
#[derive(Default)]
pub struct Seen {
    /// Lines that were lost, doubled or out of order.
    pub faults: u64,
    /// Microseconds between the writing and the reading of each line.
    pub ages: Vec<f64>,
}

impl Reader {
    pub async fn open(address: &str, path: &str, token: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nupgrade: \
             websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: \
             MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut buffer = Vec::with_capacity(256 << 10);
        let rest = loop {
            assert!(stream.read_buf(&mut buffer).await.unwrap() > 0, "the socket was refused");
            if let Some(end) = memchr::memmem::find(&buffer, b"\r\n\r\n") {
                assert!(
                    buffer.starts_with(b"HTTP/1.1 101"),
                    "{}",
                    String::from_utf8_lossy(&buffer)
                );
                break end + 4;
            }
        };
        buffer.drain(..rest);
        Self { stream, finder: agent::finder(), buffer, next: 0, bytes: 0 }
    }

    /// Reads this many lines, all of one order.
    pub async fn read(&mut self, lines: u64) -> Seen {
        let mut seen = Seen::default();
        self.next = 0;
        loop {
            let now = agent::now();
            let mut done = 0;
            for at in self.finder.find_iter(&self.buffer) {
                let Some((number, written)) = agent::mark(&self.buffer[at..]) else { break };
                seen.faults += u64::from(number != self.next);
                self.next = number + 1;
                seen.ages.push(now.saturating_sub(written) as f64 / 1000.0);
                done = at + agent::WHOLE;
                if self.next >= lines {
                    break;
                }
            }
            if self.next >= lines {
                // The rest belongs to the next order.
                self.buffer.drain(..done);
                return seen;
            }
            // A mark that is cut off is found once the rest arrives.
            let kept = done.max(self.buffer.len().saturating_sub(agent::WHOLE));
            self.buffer.drain(..kept);
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await;
            match read {
                Ok(Ok(count)) if count > 0 => self.bytes += count as u64,
                _ => {
                    seen.faults += lines - self.next;
                    return seen;
                }
            }
        }
    }
}
