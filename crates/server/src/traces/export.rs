//! Sends spans to their receiver, in batches. A batch that fails is retried; spans that do not fit into the
//! queue in the meantime are discarded.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::spans::Span;
use super::{Settings, SpanCounts, otlp};

/// How long to wait before a retry: at first, and at most.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

pub(super) struct Exporter {
    settings: Arc<Settings>,
    counts: Arc<SpanCounts>,
    /// The failure has been logged.
    is_failing: bool,
}

enum Failure {
    /// A retry may succeed.
    Passing(String),
    Final(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passing(why) | Self::Final(why) => f.write_str(why),
        }
    }
}

impl Exporter {
    pub(super) fn new(settings: Arc<Settings>, counts: Arc<SpanCounts>) -> Self {
        Self { settings, counts, is_failing: false }
    }

    /// Sends spans until the queue is closed and empty.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Span>) {
        while let Some(batch) = self.gather(&mut queue).await {
            let cost = batch.iter().map(Span::cost).sum();
            let mut delay = RETRY_DELAYS.0;
            loop {
                let sent = self.send(&batch).await;
                self.log_change(&sent);
                match sent {
                    Ok(()) => self.counts.exported.add(batch.len() as u64),
                    // Once the queue is closed, there is no time for a retry.
                    Err(Failure::Passing(_)) if !queue.is_closed() => {
                        sleep(delay).await;
                        delay = (delay * 2).min(RETRY_DELAYS.1);
                        continue;
                    }
                    Err(_) => self.counts.dropped.add(batch.len() as u64),
                }
                break;
            }
            // They were held until now, sent or not.
            self.counts.waiting.fetch_sub(cost, Ordering::Relaxed);
        }
    }

    /// The next batch; none at the end.
    async fn gather(&self, queue: &mut mpsc::Receiver<Span>) -> Option<Vec<Span>> {
        let mut batch = vec![queue.recv().await?];
        let until = Instant::now() + self.settings.delay;
        while batch.len() < self.settings.batch {
            let room = self.settings.batch - batch.len();
            match timeout_at(until, queue.recv_many(&mut batch, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        Some(batch)
    }

    /// Logs once that sending fails, and once that it works again.
    fn log_change(&mut self, sent: &Result<(), Failure>) {
        match sent {
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                tracing::warn!(%error, "failed to send traces; sessions continue without them");
            }
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                tracing::info!("traces are being sent again");
            }
            Ok(()) | Err(_) => {}
        }
    }

    async fn send(&self, batch: &[Span]) -> Result<(), Failure> {
        let (kind, body) = otlp::request(&self.settings, batch);
        match timeout(self.settings.timeout, self.post(kind, body)).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(
                status @ (StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT),
            )) => Err(Failure::Passing(format!("the receiver answered {status}"))),
            Ok(Ok(status)) => Err(Failure::Final(format!("the receiver answered {status}"))),
            Ok(Err(error)) => Err(Failure::Passing(format!("failed to send: {error}"))),
            Err(_) => {
                let seconds = self.settings.timeout.as_secs_f64();
                Err(Failure::Passing(format!("no answer within {seconds} s")))
            }
        }
    }

    /// Opens a connection for each batch: there is at most one batch every few seconds.
    async fn post(
        &self,
        kind: &'static str,
        body: Vec<u8>,
    ) -> Result<StatusCode, Box<dyn std::error::Error + Send + Sync>> {
        let endpoint = &self.settings.endpoint;
        let host = endpoint.host().unwrap_or_default();
        let port = endpoint.port_u16().unwrap_or(80);
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let path = endpoint.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::post(path).body(Full::new(Bytes::from(body)))?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&format!("{host}:{port}"))?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let agent = concat!("agentwire/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in &self.settings.headers {
            headers.insert(name, value.clone());
        }
        // Both end together, so that a timeout leaves no connection behind.
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(sender.send_request(request));
        tokio::select! {
            answer = &mut answer => Ok(answer?.status()),
            ended = &mut connection => match ended {
                Ok(()) => Ok(answer.await?.status()),
                Err(error) => Err(error.into()),
            },
        }
    }
}
