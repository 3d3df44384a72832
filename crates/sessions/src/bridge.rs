//! MCP servers that the client hosts, for an agent that cannot host them: it is given a stdio server
//! in place of each, our own program ([`relay`]), which brings every message to the session.

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

use self::listen::Door;
use self::outbox::Outbox;
use self::socket_dir::Place;
use crate::budget::{Pool, Share};
use crate::process::own_path;

/// The longest message.
const LINE_LIMIT: usize = 64 << 20;

/// How much may wait for a connection that does not read; then no more is taken for it.
const OUTGOING_LIMIT: usize = 64 << 20;

/// The hosted servers of one session. Dropping it ends all connections and removes the socket.
pub(crate) struct Bridge {
    servers: Vec<String>,
    connections: BTreeMap<u64, Connection>,
    /// Messages that wait for the client, by their request's id.
    open: BTreeMap<String, OpenRequest>,
    heard: mpsc::Receiver<Heard>,
    _tasks: JoinSet<()>,
    _place: Place,
}

/// A message that waits for the client.
struct OpenRequest {
    connection: u64,
    /// Gives its room back when it is over.
    _room: OwnedSemaphorePermit,
}

/// What happened at the socket.
pub(crate) enum Heard {
    /// The agent started one of the servers.
    Opened { connection: u64, to: Connection },
    /// It said something to it.
    Message {
        connection: u64,
        message: Json<'static>,
        room: OwnedSemaphorePermit,
        /// What a large one takes of the budget until it is durable.
        share: Option<Arc<Share>>,
    },
    /// It ended it.
    Closed { connection: u64 },
}

/// One running relay.
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
    /// Listens for these servers; gives what the agent is to start for each. What is large takes a share of
    /// that pool; what cannot be handed on yet waits in that directory.
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
        let place = tokio::task::spawn_blocking(Place::new).await;
        let place = place.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let listener = place.listen().and_then(UnixListener::from_std);
        let listener = listener.map_err(|error| failed(&error))?;
        let executable = own_path(executable).map_err(|error| failed(&error))?;
        let (Some(program), Some(socket)) = (executable.to_str(), place.socket().to_str()) else {
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
        // One at a time: what waits, waits in the pipe.
        let (door, heard) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(Door::new(tokens, door, pool, directory).open(listener));
        let bridge = Self {
            servers,
            connections: BTreeMap::new(),
            open: BTreeMap::new(),
            heard,
            _tasks: tasks,
            _place: place,
        };
        Ok((bridge, offers))
    }

    /// The next that happens. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            None => std::future::pending().await,
        }
    }

    /// A relay runs.
    pub(crate) fn opened(&mut self, connection: u64, to: Connection) {
        self.connections.insert(connection, to);
    }

    /// A relay has ended; gives the requests that nobody waits for any more.
    pub(crate) fn closed(&mut self, connection: u64) -> Vec<String> {
        self.connections.remove(&connection);
        self.of(connection).map(str::to_owned).collect()
    }

    /// The server that a relay is for.
    pub(crate) fn server(&self, connection: u64) -> Option<&str> {
        Some(&self.connections.get(&connection)?.server)
    }

    /// A message became that request.
    pub(crate) fn raised(&mut self, request: String, connection: u64, room: OwnedSemaphorePermit) {
        self.open.insert(request, OpenRequest { connection, _room: room });
    }

    /// The request is over.
    pub(crate) fn settled(&mut self, request: &str) {
        self.open.remove(request);
    }

    /// Whence that request came.
    pub(crate) fn asker(&self, request: &str) -> Option<u64> {
        self.open.get(request).map(|open| open.connection)
    }

    /// The requests that came by that connection and are open.
    pub(crate) fn of(&self, connection: u64) -> impl Iterator<Item = &str> {
        let open = self.open.iter().filter(move |(_, open)| open.connection == connection);
        open.map(|(request, _)| request.as_str())
    }

    /// The relays of that server, oldest first.
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

    /// Refuses what an agent that does not read would only pile up.
    pub(crate) fn has_room(&self, connection: u64) -> Result<(), GatewayError> {
        match self.connections.get(&connection) {
            Some(relay) if relay.outbox.waiting() > OUTGOING_LIMIT => Err(GatewayError::new(
                ErrorCode::Overloaded,
                "the agent does not read what its MCP servers say; interrupt or stop it",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Sends a message.
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
