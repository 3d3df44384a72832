//! A proxy with obstacles: it breaks connections, does not pass WebSockets on, or buffers streams.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Debug, Default)]
pub(crate) struct Obstacles {
    /// Closes each connection after this many bytes from the server.
    pub(crate) cut: Option<usize>,
    pub(crate) upgrades: Upgrades,
    /// Closes the connection of this many WebSocket upgrades.
    pub(crate) broken_upgrades: usize,
    /// Buffers event streams, so that they never arrive.
    pub(crate) collects_streams: bool,
    /// Refuses event streams.
    pub(crate) refuses_streams: bool,
    /// For each number, closes one connection in the middle of the event with that number.
    pub(crate) cut_before: Vec<u64>,
    /// Loses the replies to this many starts and prompts.
    pub(crate) lost_replies: usize,
}

/// What is left to do, by all connections together.
struct Left {
    obstacles: Obstacles,
    upgrades: AtomicUsize,
    cuts: Mutex<Vec<u64>>,
    replies: AtomicUsize,
}

impl Left {
    /// Whether the connection is cut where this text starts an event. Each cut happens once.
    fn cut(&self, text: &[u8]) -> Option<usize> {
        let mut cuts = self.cuts.lock().expect("no panic");
        let found = cuts.iter().enumerate().find_map(|(at, seq)| {
            let marker = format!("\"seq\":{seq},");
            let place = text.windows(marker.len()).position(|part| part == marker.as_bytes())?;
            Some((at, place + marker.len()))
        });
        found.map(|(at, place)| {
            cuts.remove(at);
            place
        })
    }

    fn loses_reply(&self, call: &str) -> bool {
        let is_start = call.starts_with("POST /v1/sessions ");
        let is_prompt = call.starts_with("POST ") && call.contains("/prompt HTTP/1.1");
        let less = |left: usize| left.checked_sub(1);
        (is_start || is_prompt)
            && self.replies.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
    }
}

/// What happens to WebSocket upgrades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Upgrades {
    #[default]
    Pass,
    /// They are refused.
    Refuse,
    /// They arrive as plain requests.
    Strip,
}

pub(crate) struct Proxy {
    /// Where clients connect.
    pub(crate) address: String,
    listener: TcpListener,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        Self { address, listener, connections: Arc::default() }
    }

    /// Forwards connections to this server.
    pub(crate) fn lead(self, to: &str, obstacles: Obstacles) {
        let to = to.to_owned();
        let left = Arc::new(Left {
            upgrades: AtomicUsize::new(0),
            cuts: Mutex::new(obstacles.cut_before.clone()),
            replies: AtomicUsize::new(obstacles.lost_replies),
            obstacles,
        });
        tokio::spawn(async move {
            while let Ok((client, _)) = self.listener.accept().await {
                self.connections.fetch_add(1, Ordering::SeqCst);
                if let Ok(server) = TcpStream::connect(&to).await {
                    tokio::spawn(pass(client, server, Arc::clone(&left)));
                }
            }
        });
    }
}

async fn pass(client: TcpStream, server: TcpStream, left: Arc<Left>) {
    let obstacles = &left.obstacles;
    let loses_reply = AtomicBool::new(false);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut buffer = vec![0; 65536];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let mut said = buffer.get(..read).unwrap_or_default().to_vec();
            let text = String::from_utf8_lossy(&said).into_owned();
            let is_upgrade = text.to_ascii_lowercase().contains("upgrade: websocket");
            if is_upgrade
                && left.upgrades.fetch_add(1, Ordering::SeqCst) < obstacles.broken_upgrades
            {
                return None;
            }
            if is_upgrade && obstacles.upgrades == Upgrades::Refuse {
                return Some("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
            }
            if is_upgrade && obstacles.upgrades == Upgrades::Strip {
                let keep = |line: &&str| {
                    let line = line.to_ascii_lowercase();
                    !line.starts_with("upgrade:") && !line.starts_with("connection:")
                };
                let lines: Vec<&str> = text.split("\r\n").filter(keep).collect();
                said = lines.join("\r\n").into_bytes();
            }
            let is_stream = text.contains("text/event-stream");
            if obstacles.refuses_streams && (is_stream || is_upgrade) {
                return Some("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
            }
            loses_reply.fetch_or(left.loses_reply(&text), Ordering::SeqCst);
            if obstacles.collects_streams && is_stream {
                std::future::pending::<()>().await;
            }
            if to_server.write_all(&said).await.is_err() {
                break;
            }
        }
        None
    };
    let down = async {
        let mut room = obstacles.cut.unwrap_or(usize::MAX);
        let mut buffer = vec![0; 8192];
        // The end of what was read before: a number may be split.
        let mut tail = Vec::new();
        while room > 0
            && let Ok(read @ 1..) = from_server.read(&mut buffer).await
            && !loses_reply.load(Ordering::SeqCst)
        {
            let mut count = read.min(room);
            let before = tail.len();
            tail.extend_from_slice(buffer.get(..count).unwrap_or_default());
            let cut = left.cut(&tail);
            if let Some(place) = cut {
                count = place.saturating_sub(before);
            }
            room -= count;
            let passed = to_client.write_all(buffer.get(..count).unwrap_or_default()).await;
            if passed.is_err() || cut.is_some() {
                break;
            }
            tail.drain(..tail.len().saturating_sub(32));
        }
    };
    let refusal = tokio::select! {
        refusal = up => refusal,
        () = down => None,
    };
    if let Some(refusal) = refusal {
        let _ = to_client.write_all(refusal.as_bytes()).await;
        let _ = to_client.shutdown().await;
    }
}
