//! Client traffic: connections, streams and responses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use agentwire_sessions::metrics::{Counter, Gauge};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::StatusCode;

use super::super::App;
use super::super::routes::ROUTES;
use crate::connection::Outgoing;

/// The statuses that are counted separately.
const STATUSES: [u16; 20] = [
    101, 200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 500, 502, 503, 504,
    507,
];

/// The label for everything that is not counted separately.
const OTHER: &str = "other";

pub(crate) struct Traffic {
    http: Gauge,
    insights: Gauge,
    over_limit: Counter,
    no_descriptors: Counter,
    streams: [Gauge; Wire::ALL.len()],
    /// The output of each socket.
    outgoing: Mutex<(u64, BTreeMap<u64, Outgoing>)>,
    responses: Vec<ResponseCounts>,
}

struct ResponseCounts {
    method: &'static str,
    route: &'static str,
    by_status: [Counter; STATUSES.len()],
    other: Counter,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Unified,
    Rpc,
    Insights,
    Board,
    Sse,
}

impl Wire {
    const ALL: [Self; 5] = [Self::Unified, Self::Rpc, Self::Insights, Self::Board, Self::Sse];

    fn as_str(self) -> &'static str {
        match self {
            Self::Unified => "unified",
            Self::Rpc => "rpc",
            Self::Insights => "insights",
            Self::Board => "board",
            Self::Sse => "sse",
        }
    }
}

pub(crate) struct ConnectionGuard {
    traffic: Arc<Traffic>,
    is_insights: bool,
}

pub(crate) struct StreamGuard {
    traffic: Arc<Traffic>,
    wire: Wire,
    key: Option<u64>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let row = |method, route| ResponseCounts {
            method,
            route,
            by_status: std::array::from_fn(|_| Counter::default()),
            other: Counter::default(),
        };
        let mut responses = Vec::new();
        for route in ROUTES {
            responses
                .extend(route.operations.iter().map(|operation| row(operation.method, route.path)));
            responses.push(row(OTHER, route.path));
        }
        responses.push(row(OTHER, OTHER));
        Self {
            http: Gauge::default(),
            insights: Gauge::default(),
            over_limit: Counter::default(),
            no_descriptors: Counter::default(),
            streams: Default::default(),
            outgoing: Mutex::default(),
            responses,
        }
    }

    /// Counts a client as connected until the returned value is dropped.
    pub(crate) fn connected(self: &Arc<Self>, is_insights: bool) -> ConnectionGuard {
        self.listener(is_insights).add(1);
        ConnectionGuard { traffic: Arc::clone(self), is_insights }
    }

    pub(crate) fn over_limit(&self) {
        self.over_limit.add(1);
    }

    pub(crate) fn no_descriptors(&self) {
        self.no_descriptors.add(1);
    }

    /// Counts a stream as open until the returned value is dropped.
    pub(crate) fn stream(self: &Arc<Self>, wire: Wire, outgoing: Option<&Outgoing>) -> StreamGuard {
        self.wire(wire).add(1);
        let key = outgoing.map(|outgoing| {
            let mut waiting = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.0 += 1;
            let key = waiting.0;
            waiting.1.insert(key, outgoing.clone());
            key
        });
        StreamGuard { traffic: Arc::clone(self), wire, key }
    }

    pub(super) fn connections(&self) -> [(&'static str, i64); 2] {
        [("http", self.http.get()), ("insights", self.insights.get())]
    }

    pub(super) fn refused(&self) -> [(&'static str, u64); 2] {
        [("limit", self.over_limit.get()), ("descriptors", self.no_descriptors.get())]
    }

    pub(super) fn streams(&self) -> [(&'static str, i64); 5] {
        Wire::ALL.map(|wire| (wire.as_str(), self.wire(wire).get()))
    }

    pub(super) fn outgoing(&self) -> usize {
        let waiting = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.1.values().map(Outgoing::waiting).sum()
    }

    /// Method, route, status and count, without those that are 0.
    pub(super) fn responses(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, String, u64)> {
        self.responses.iter().flat_map(|row| {
            let known = STATUSES.iter().zip(&row.by_status);
            let known = known.map(|(status, count)| (status.to_string(), count.get()));
            let all = known.chain([(OTHER.to_owned(), row.other.get())]);
            all.filter(|(_, count)| *count > 0)
                .map(|(status, count)| (row.method, row.route, status, count))
        })
    }

    fn count_response(&self, method: &str, route: &str, status: StatusCode) {
        let same = |row: &&ResponseCounts| row.route == route;
        let rows = || self.responses.iter().filter(same);
        let row = rows().find(|row| row.method.eq_ignore_ascii_case(method));
        let row = row.or_else(|| rows().find(|row| row.method == OTHER));
        let Some(row) = row.or_else(|| self.responses.last()) else { return };
        let index = STATUSES.iter().position(|known| *known == status.as_u16());
        index.and_then(|index| row.by_status.get(index)).unwrap_or(&row.other).add(1);
    }

    fn listener(&self, is_insights: bool) -> &Gauge {
        if is_insights { &self.insights } else { &self.http }
    }

    #[expect(clippy::indexing_slicing, reason = "there is one for each wire")]
    fn wire(&self, wire: Wire) -> &Gauge {
        &self.streams[wire as usize]
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.traffic.listener(self.is_insights).add(-1);
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.traffic.wire(self.wire).add(-1);
        if let Some(key) = self.key {
            self.traffic.outgoing.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&key);
        }
    }
}

/// Counts and logs every request with its response.
pub(crate) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let route = route.as_ref().map_or(OTHER, MatchedPath::as_str);
    let status = response.status();
    app.traffic.count_response(method.as_str(), route, status);
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::debug!(method = method.as_str(), route, status = status.as_u16(), ms, "request");
    response
}
