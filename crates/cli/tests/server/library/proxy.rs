//! A proxy with obstacles: it breaks connections, does not pass WebSockets on, or buffers streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Obstacles {
    /// Closes each connection after this many bytes from the server.
    pub(crate) cut: Option<usize>,
    pub(crate) upgrades: Upgrades,
    /// Closes the connection of this many WebSocket upgrades.
    pub(crate) broken_upgrades: usize,
    /// Buffers event streams, so that they never arrive.
    pub(crate) collects_streams: bool,
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
        let upgrades = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((client, _)) = self.listener.accept().await {
                self.connections.fetch_add(1, Ordering::SeqCst);
                if let Ok(server) = TcpStream::connect(&to).await {
                    tokio::spawn(pass(client, server, obstacles, Arc::clone(&upgrades)));
                }
            }
        });
    }
}

async fn pass(
    client: TcpStream,
    server: TcpStream,
    obstacles: Obstacles,
    upgrades: Arc<AtomicUsize>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut buffer = vec![0; 65536];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let mut said = buffer.get(..read).unwrap_or_default().to_vec();
            let text = String::from_utf8_lossy(&said).into_owned();
            let is_upgrade = text.to_ascii_lowercase().contains("upgrade: websocket");
            if is_upgrade && upgrades.fetch_add(1, Ordering::SeqCst) < obstacles.broken_upgrades {
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
            if obstacles.collects_streams && text.contains("text/event-stream") {
                std::future::pending::<()>().await;
            }
            if to_server.write_all(&said).await.is_err() {
                break;
            }
        }
        None
    };
    let down = async {
        let mut left = obstacles.cut.unwrap_or(usize::MAX);
        let mut buffer = vec![0; 8192];
        while left > 0
            && let Ok(read @ 1..) = from_server.read(&mut buffer).await
        {
            let count = read.min(left);
            left -= count;
            if to_client.write_all(buffer.get(..count).unwrap_or_default()).await.is_err() {
                break;
            }
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
