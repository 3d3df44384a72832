//! The HTTP server: its setup, and the state that all requests share.

mod auth;
mod authorization;
mod board;
mod body;
mod events;
mod idle_timeout;
mod inbox;
mod listen;
mod listen_policy;
mod metrics;
mod openapi;
mod problem;
mod queue;
mod reports;
mod rest;
mod routes;
mod server_full;
mod socket;
mod tls;
mod unauthenticated;
mod watch;
mod web_page;
mod websocket_budget;

pub(crate) use self::reports::PATIENCE as REPORT_PATIENCE;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use agentwire_protocol::{AgentType, Json, Price};
use agentwire_sessions::Hub;
use tokio_util::sync::CancellationToken;

use self::auth::Hosts;
use self::metrics::Traffic;
use crate::tokens::{Caller, Tickets};
use crate::traces::SpanCounts;

pub use self::listen::{Listener, RunningServer};
pub use self::listen_policy::{CONNECTIONS, ListenPolicy, PublicUrl};
pub use self::openapi::openapi;
pub use self::tls::Tls;

pub struct Setup {
    pub hub: Hub,
    /// The agent for sessions that name none.
    pub agent: AgentType,
    pub projects: BTreeMap<String, PathBuf>,
    /// The working directory for requests that name none.
    pub directory: PathBuf,
    pub prices: BTreeMap<String, Price>,
    /// Statistics of trace spans, if tracing is on.
    pub spans: Option<Arc<SpanCounts>>,
    pub agents: Box<dyn Fn() -> AgentsFuture + Send + Sync>,
}

pub type AgentsFuture = Pin<Box<dyn Future<Output = Json<'static>> + Send>>;

/// The state that every request sees.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
    pub(crate) hosts: Arc<Hosts>,
    /// It serves the main address.
    pub(crate) is_main: bool,
}

pub(crate) struct Shared {
    pub(crate) setup: Setup,
    pub(crate) policy: ListenPolicy,
    pub(crate) tickets: Tickets,
    /// Tickets with which the operator's own browser signs in.
    pub(crate) sign_ins: Tickets,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    pub(crate) traffic: Arc<Traffic>,
    /// The installed agents, and when they were looked up.
    pub(crate) agents: tokio::sync::Mutex<Option<(Instant, Json<'static>)>>,
    /// The server is stopping: streams close.
    pub(crate) stopping: CancellationToken,
    pub(crate) board_sessions: board::BoardSessions,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl App {
    pub(crate) fn new(
        setup: Setup,
        policy: ListenPolicy,
        at: SocketAddr,
        stopping: CancellationToken,
    ) -> Self {
        let hosts = Arc::new(Hosts::of(at, &policy));
        let shared = Shared {
            setup,
            policy,
            tickets: Tickets::default(),
            sign_ins: Tickets::default(),
            started: Instant::now(),
            started_at: SystemTime::now(),
            traffic: Arc::new(Traffic::new()),
            agents: tokio::sync::Mutex::default(),
            stopping,
            board_sessions: board::BoardSessions::default(),
        };
        Self { shared: Arc::new(shared), hosts, is_main: true }
    }

    /// The same state for another address.
    pub(crate) fn at(&self, at: SocketAddr) -> Self {
        let hosts = Arc::new(Hosts::of(at, &self.policy));
        Self { shared: self.shared.clone(), hosts, is_main: false }
    }

    /// Whether a connected client may stay.
    pub(crate) fn allows(&self, caller: &Caller) -> bool {
        self.policy.tokens.as_ref().is_none_or(|tokens| tokens.knows(caller))
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.setup.hub
    }
}
