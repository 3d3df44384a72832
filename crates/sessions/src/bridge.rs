//! MCP servers that the client hosts, for an agent that cannot reach them directly. The agent starts a
//! stdio server in place of each one: our own program ([`relay`]), which forwards every message to the
//! session.

mod listen;
mod outbox;
pub mod relay;
mod socket_dir;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentwire_protocol::session::McpServer;
use agentwire_protocol::{ErrorCode, GatewayError, Json};
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use uuid::Uuid;

use self::listen::RelayListener;
use self::outbox::Outbox;
use self::socket_dir::SocketDir;
use crate::budget::{Pool, Share};
use crate::process::own_path;

/// Maximum length of a message.
const LINE_LIMIT: usize = 64 << 20;

/// How many bytes may wait for a connection that does not read; beyond that, messages for it are refused.
const OUTGOING_LIMIT: usize = 64 << 20;

/// The hosted servers of one session. Dropping it ends all connections and removes the socket.
pub(crate) struct Bridge {
    servers: Vec<String>,
    connections: BTreeMap<u64, Connection>,
    /// Messages that wait for the client, by request id.
    open: BTreeMap<String, OpenRequest>,
    activity: mpsc::Receiver<RelayActivity>,
    _tasks: JoinSet<()>,
    _socket_dir: SocketDir,
}

struct OpenRequest {
    connection: u64,
    /// Released when the request is settled.
    _room: OwnedSemaphorePermit,
}

/// What happened at the socket.
pub(crate) enum RelayActivity {
    /// The agent started one of the servers.
    Opened { connection: u64, to: Connection },
    /// The agent sent a message to a server.
    Message {
        connection: u64,
        message: Json<'static>,
        room: OwnedSemaphorePermit,
        /// A large message's share of the budget, held until it is durable.
        share: Option<Arc<Share>>,
    },
    /// The agent ended a server.
    Closed { connection: u64 },
}

pub(crate) struct Connection {
    server: String,
    outbox: Outbox,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl Bridge {
    /// Listens for these servers and returns what the agent must start for each. Large messages take a
    /// share of `pool`; messages that cannot be forwarded yet wait in `directory`.
    pub(crate) async fn open(
        servers: Vec<String>,
        executable: &Path,
        pool: Pool,
        directory: PathBuf,
    ) -> Result<(Self, BTreeMap<String, McpServer>), GatewayError> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("failed to offer the MCP servers that the client hosts: {error}");
            GatewayError::new(ErrorCode::StartFailed, message)
        };
        let socket_dir = tokio::task::spawn_blocking(SocketDir::new).await;
        let socket_dir =
            socket_dir.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let listener = socket_dir.listen().and_then(UnixListener::from_std);
        let listener = listener.map_err(|error| failed(&error))?;
        let executable = own_path(executable).map_err(|error| failed(&error))?;
        let (Some(program), Some(socket)) = (executable.to_str(), socket_dir.socket().to_str())
        else {
            return Err(failed(&"a path is not UTF-8"));
        };
        let tokens: Vec<_> = servers.iter().map(|server| (token(), server.clone())).collect();
        let offer = |token: &String| McpServer {
            command: Some(program.to_owned()),
            args: vec![relay::VERB.to_owned(), socket.to_owned()],
            env: BTreeMap::from([(relay::TOKEN.to_owned(), token.clone())]),
            ..McpServer::default()
        };
        let offers = tokens.iter().map(|(token, server)| (server.clone(), offer(token))).collect();
        // One message at a time: the rest wait in the pipe.
        let (sender, activity) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(RelayListener::new(tokens, sender, pool, directory).open(listener));
        let bridge = Self {
            servers,
            connections: BTreeMap::new(),
            open: BTreeMap::new(),
            activity,
            _tasks: tasks,
            _socket_dir: socket_dir,
        };
        Ok((bridge, offers))
    }

    /// Waits for the next thing that happens. Cancel safe.
    pub(crate) async fn next(&mut self) -> RelayActivity {
        match self.activity.recv().await {
            Some(activity) => activity,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn opened(&mut self, connection: u64, to: Connection) {
        self.connections.insert(connection, to);
    }

    /// Removes a relay that has ended; returns the requests whose answers have no recipient any more.
    pub(crate) fn closed(&mut self, connection: u64) -> Vec<String> {
        self.connections.remove(&connection);
        self.of(connection).map(str::to_owned).collect()
    }

    /// The server that this relay represents.
    pub(crate) fn server(&self, connection: u64) -> Option<&str> {
        Some(&self.connections.get(&connection)?.server)
    }

    /// Records that a message became this request.
    pub(crate) fn raised(&mut self, request: String, connection: u64, room: OwnedSemaphorePermit) {
        self.open.insert(request, OpenRequest { connection, _room: room });
    }

    pub(crate) fn settled(&mut self, request: &str) {
        self.open.remove(request);
    }

    /// The connection that raised this request.
    pub(crate) fn asker(&self, request: &str) -> Option<u64> {
        self.open.get(request).map(|open| open.connection)
    }

    /// The open requests of a connection.
    pub(crate) fn of(&self, connection: u64) -> impl Iterator<Item = &str> {
        let open = self.open.iter().filter(move |(_, open)| open.connection == connection);
        open.map(|(request, _)| request.as_str())
    }

    /// The relays of a server, oldest first.
    pub(crate) fn relays(&self, server: &str) -> Result<Vec<u64>, GatewayError> {
        if !self.servers.iter().any(|hosted| hosted == server) {
            let message = format!("the client hosts no MCP server {server} in this session");
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        let relays = self.connections.iter().filter(|(_, relay)| relay.server == server);
        let relays: Vec<u64> = relays.map(|(connection, _)| *connection).collect();
        if relays.is_empty() {
            let message = format!("the agent has not started the MCP server {server}");
            return Err(GatewayError::new(ErrorCode::Conflict, message));
        }
        Ok(relays)
    }

    /// Refuses a message that would only pile up because the agent does not read.
    pub(crate) fn has_room(&self, connection: u64) -> Result<(), GatewayError> {
        match self.connections.get(&connection) {
            Some(relay) if relay.outbox.waiting() > OUTGOING_LIMIT => Err(GatewayError::new(
                ErrorCode::Overloaded,
                "the agent does not read messages from its MCP servers; interrupt or stop it",
            )),
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn send(&self, connection: u64, message: &Json<'_>) {
        if let Some(relay) = self.connections.get(&connection) {
            relay.outbox.push(message.get());
        }
    }
}

/// 244 random bits.
fn token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
