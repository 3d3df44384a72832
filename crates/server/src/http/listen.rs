//! The accept loop: how many clients may connect, how long they may take, and how the server stops.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_sessions::budget::Pool;
use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::idle_timeout::{ConnectionHold, IDLE, IdleTimeout};
use super::listen_policy::ListenPolicy;
use super::metrics::Traffic;
use super::server_full::{refuse, refuse_now};
use super::unauthenticated::{UnauthenticatedConnection, UnauthenticatedConnections};
use super::websocket_budget::WebSocketBudget;
use super::{App, Setup, routes, web_page};

/// The largest request head, in bytes.
const HEAD: usize = 16 << 10;

/// How long a request head may take, and before it the TLS handshake.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// How many clients can be told at the same time that the server is full.
const REFUSALS: usize = 64;

/// How long to wait when no connection can be accepted.
const NO_ROOM: Duration = Duration::from_millis(50);

/// How long to wait for the place of a client that was disconnected.
const MAKE_ROOM: Duration = Duration::from_secs(1);

/// How long clients have to receive the end of their streams when the server stops. Agents need time after
/// that.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Bound addresses, before any client is served.
pub struct Listener {
    http: TcpListener,
    insights: Option<TcpListener>,
    policy: ListenPolicy,
}

pub struct RunningServer {
    app: App,
    stopping: CancellationToken,
    connections: TaskTracker,
}

impl Listener {
    /// Binds the addresses, if the policy allows them; port 0 picks a free port.
    pub async fn bind(
        http: SocketAddr,
        insights: Option<SocketAddr>,
        policy: ListenPolicy,
    ) -> Result<Self, GatewayError> {
        let all: Vec<SocketAddr> = [http].into_iter().chain(insights).collect();
        policy.check(&all)?;
        let http = bind(http).await?;
        let insights = match insights {
            Some(at) => Some(bind(at).await?),
            None => None,
        };
        Ok(Self { http, insights, policy })
    }

    pub fn http(&self) -> io::Result<SocketAddr> {
        self.http.local_addr()
    }

    pub fn insights(&self) -> io::Result<Option<SocketAddr>> {
        self.insights.as_ref().map(TcpListener::local_addr).transpose()
    }

    pub fn serve(self, setup: Setup) -> io::Result<RunningServer> {
        let stopping = CancellationToken::new();
        let connections = TaskTracker::new();
        let places = places(self.policy.connections);
        let room = Arc::new(Semaphore::new(places));
        // The other half is reserved for clients with a token.
        let unauthenticated = UnauthenticatedConnections::new((places / 2).max(1));
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        let at = self.http()?;
        let tls = self.policy.tls.as_ref().map(|tls| tls.acceptor.clone());
        let app = App::new(setup, self.policy, at, stopping.clone());
        let acceptor = |listener, router, is_insights| Acceptor {
            listener,
            router,
            tls: tls.clone(),
            room: room.clone(),
            unauthenticated: unauthenticated.clone(),
            refusals: refusals.clone(),
            spare: spare(),
            traffic: app.traffic.clone(),
            pool: app.hub().log().budget().clients.clone(),
            readers: app.hub().log().budget().read.clone(),
            is_insights,
            stopping: stopping.clone(),
            connections: connections.clone(),
        };
        if let Some(listener) = self.insights {
            let app = app.at(listener.local_addr()?);
            connections.spawn(acceptor(listener, routes::insights(app), true).accept());
        }
        connections.spawn(acceptor(self.http, routes::main(app.clone()), false).accept());
        Ok(RunningServer { app, stopping, connections })
    }
}

async fn bind(at: SocketAddr) -> Result<TcpListener, GatewayError> {
    TcpListener::bind(at).await.map_err(|error| {
        let message = format!(
            "failed to listen on {at}: {error}; choose other addresses with --http and --insights"
        );
        GatewayError::new(ErrorCode::StartFailed, message)
    })
}

/// How many clients fit: at most half of the file descriptors, because agents and the store need some too.
fn places(wanted: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let half = limit.and_then(|limit| usize::try_from(limit / 2).ok()).unwrap_or(usize::MAX);
    wanted.min(half).min(Semaphore::MAX_PERMITS)
}

/// A file descriptor to give up when there are none left, so that one more client can be told.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

impl RunningServer {
    /// A ticket with which one browser signs in as the operator within 30 s; nothing if the server needs no
    /// tokens.
    pub fn sign_in(&self) -> Option<String> {
        web_page::ticket(&self.app)
    }

    /// Accepts no more clients, tells the connected ones, and waits a short time for them.
    pub async fn stop(self) {
        self.stopping.cancel();
        self.connections.close();
        let _ = tokio::time::timeout(FAREWELL, self.connections.wait()).await;
    }
}

struct Acceptor {
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    room: Arc<Semaphore>,
    unauthenticated: Arc<UnauthenticatedConnections>,
    refusals: Arc<Semaphore>,
    spare: Option<File>,
    stopping: CancellationToken,
    connections: TaskTracker,
    traffic: Arc<Traffic>,
    pool: Pool,
    readers: Pool,
    is_insights: bool,
}

impl Acceptor {
    async fn accept(mut self) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.admit(stream),
                // The client is already gone.
                Err(error) if is_of_client(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    self.without_descriptors(&error).await;
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        // A client that vanished acknowledges nothing.
        let idle = u32::try_from(IDLE.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, idle);
        let tls = self.tls.clone();
        let place = self.room.clone().try_acquire_owned().ok();
        if place.is_none() {
            self.traffic.over_limit();
        }
        // If there is no place, a client that has not shown a token loses its own.
        if place.is_some() || self.unauthenticated.disconnect_oldest() {
            let connected = self.traffic.connected(self.is_insights);
            let (room, token) = (self.room.clone(), self.connections.token());
            let (router, stopping) = (self.router.clone(), self.stopping.clone());
            let pending = self.unauthenticated.add();
            let (budget, readers) = (WebSocketBudget::new(self.pool.clone()), self.readers.clone());
            self.connections.spawn(async move {
                let place = match place {
                    Some(place) => Ok(Ok(place)),
                    None => tokio::time::timeout(MAKE_ROOM, room.acquire_owned()).await,
                };
                match place {
                    Ok(Ok(place)) => {
                        let hold = ConnectionHold::new(place, token, connected, readers);
                        start_connection(stream, tls, hold, (router, pending, budget), stopping)
                            .await;
                    }
                    Ok(Err(_)) | Err(_) => refuse(stream, tls).await,
                }
            });
            return;
        }
        if let Ok(turn) = self.refusals.clone().try_acquire_owned() {
            self.connections.spawn(async move {
                refuse(stream, tls).await;
                drop(turn);
            });
        } else if tls.is_none() {
            refuse_now(&stream);
        }
    }

    /// Tells one client that the server is full, using the spare file descriptor.
    async fn without_descriptors(&mut self, error: &io::Error) {
        self.traffic.no_descriptors();
        let is_full = matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
        if is_full && self.spare.take().is_some() {
            let accepted = tokio::time::timeout(NO_ROOM, self.listener.accept()).await;
            if let Ok(Ok((stream, _))) = accepted {
                tokio::select! {
                    () = refuse(stream, self.tls.clone()) => {}
                    () = self.stopping.cancelled() => {}
                }
            }
        } else {
            tokio::time::sleep(NO_ROOM).await;
        }
        self.spare = self.spare.take().or_else(spare);
    }
}

fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn start_connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    hold: ConnectionHold,
    (router, pending, budget): (Router, UnauthenticatedConnection, WebSocketBudget),
    stopping: CancellationToken,
) {
    let Some(tls) = tls else {
        let stream = IdleTimeout::new(stream, hold, budget.clone());
        return serve_http(stream, router, (pending, budget), stopping).await;
    };
    let handshake = tokio::select! {
        () = stopping.cancelled() => return,
        () = pending.disconnected() => return,
        handshake = tokio::time::timeout(HEAD_TIME, tls.accept(stream)) => handshake,
    };
    match handshake {
        Ok(Ok(stream)) => {
            let stream = IdleTimeout::new(stream, hold, budget.clone());
            serve_http(stream, router, (pending, budget), stopping).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: IdleTimeout<S>,
    router: Router,
    (pending, budget): (UnauthenticatedConnection, WebSocketBudget),
    stopping: CancellationToken,
) {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .serve_connection(
            TokioIo::new(stream),
            ConnectionService::new(router, pending.clone(), budget),
        )
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = pending.disconnected() => {
            tracing::debug!("closed an unauthenticated connection to make room");
            return;
        }
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// The routes for one connection: each request carries its authentication state and its budget.
struct ConnectionService {
    routes: TowerToHyperService<Router>,
    pending: UnauthenticatedConnection,
    budget: WebSocketBudget,
}

impl ConnectionService {
    fn new(router: Router, pending: UnauthenticatedConnection, budget: WebSocketBudget) -> Self {
        Self { routes: TowerToHyperService::new(router), pending, budget }
    }
}

impl Service<Request<Incoming>> for ConnectionService {
    type Response = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.pending.clone());
        request.extensions_mut().insert(self.budget.clone());
        self.routes.call(request)
    }
}
