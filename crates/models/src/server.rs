//! Accepts connections and passes each request to its API.

mod answer;
mod attempts;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::request_record::{RecordedRequest, RequestLog};
use crate::usage::Usage;
use attempts::Attempts;

/// How to start a server.
#[derive(Clone, Default)]
pub struct Options {
    /// The port on 127.0.0.1; 0 selects a free one.
    pub port: u16,
    /// Called for each request when its answer starts.
    pub watch: Option<Watch>,
}

type Watch = Arc<dyn Fn(&RecordedRequest) + Send + Sync>;

/// A running server. Dropping it ends the server and all its connections.
///
/// It runs on its own thread, so tests with and without a runtime can use it.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server; it accepts requests when this returns.
    pub fn start(options: Options) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared::new(options.watch));
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("model-server".to_owned()).spawn(move || {
                // Open connections end with the runtime.
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener, serving) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The last requests, oldest first. If they are very many or very large, only the newest are kept.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.record().requests()
    }

    /// Requests for paths that no API knows.
    pub fn unknown(&self) -> Vec<RecordedRequest> {
        self.shared.record().unknown()
    }

    /// The total usage reported to clients.
    pub fn reported(&self) -> Usage {
        self.shared.record().reported()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for ModelServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ModelServer").field("address", &self.address).finish()
    }
}

struct Shared {
    record: Mutex<RequestLog>,
    attempts: Mutex<Attempts>,
    watch: Option<Watch>,
    /// Makes ids different from those of earlier servers.
    salt: u64,
    count: AtomicU64,
}

impl Shared {
    fn new(watch: Option<Watch>) -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        Self {
            record: Mutex::default(),
            attempts: Mutex::default(),
            watch,
            salt: RandomState::new().hash_one(0),
            count: AtomicU64::new(0),
        }
    }

    fn record(&self) -> MutexGuard<'_, RequestLog> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self) -> String {
        format!("{:016x}{:06x}", self.salt, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors until other connections close.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let answer = service_fn(move |request| answer::answer(Arc::clone(&shared), request));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
