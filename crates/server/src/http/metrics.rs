//! `GET /metrics`: the server's own metrics, for Prometheus.
//!
//! The number of label values is bounded: agents, states, kinds, route templates, and at most 64 models.
//! Sessions, clients and tokens are never labels.

mod prometheus_text;
mod traffic;

use std::time::UNIX_EPOCH;

use agentwire_protocol::AgentType;
use agentwire_protocol::SessionState;
use agentwire_sessions::budget::{Budget, Pool};
use agentwire_sessions::metrics::{Metrics, UsageTotal};
use agentwire_sessions::{Hub, process};
use axum::extract::State;
use axum::response::IntoResponse as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use self::prometheus_text::PrometheusText;
pub(super) use self::traffic::{ConnectionGuard, StreamGuard, Traffic, Wire, observe};
use super::App;
use super::rest::HttpResult;

/// The text format that every version of Prometheus reads.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kernel reports process times in hundredths of a second, whatever its own clock rate.
const TICKS: f64 = 100.0;

const NANOSECONDS: f64 = 1e9;

/// `GET /metrics`
pub(super) async fn metrics(State(app): State<App>) -> HttpResult {
    let store = app.hub().log().store().clone();
    let read = tokio::task::spawn_blocking(move || (store.size(), ProcessStats::read())).await;
    let (size, process_stats) = read.unwrap_or((Ok(None), ProcessStats::default()));
    let mut text = PrometheusText::default();
    about(&mut text, &app, &process_stats);
    sessions(&mut text, app.hub());
    log(&mut text, app.hub().metrics(), size.ok().flatten());
    large(&mut text, app.hub().log().budget());
    work(&mut text, app.hub().metrics());
    clients(&mut text, &app);
    let headers = [(CONTENT_TYPE, FORMAT), (CACHE_CONTROL, "no-store")];
    Ok((headers, text.into_text()).into_response())
}

fn about(text: &mut PrometheusText, app: &App, process_stats: &ProcessStats) {
    text.family("agentwire_build_info", "Always 1; the label is the version.");
    text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = app.started_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let help = "Start time of the server, in seconds since 1970.";
    text.single("process_start_time_seconds", help, started.as_secs_f64());
    let help = "CPU time used by the server, without its agents.";
    text.single("process_cpu_seconds_total", help, process_stats.cpu);
    let help = "Memory used by the server, without its agents.";
    text.single("process_resident_memory_bytes", help, process_stats.memory);
    let help = "File descriptors that the server has open.";
    text.single("process_open_fds", help, process_stats.descriptors);
    let help = "File descriptors that the server may have open.";
    text.single("process_max_fds", help, process_stats.most_descriptors);
}

/// The states of a running session.
const STATES: [SessionState; 6] = [
    SessionState::Starting,
    SessionState::Idle,
    SessionState::Working,
    SessionState::WaitingPermission,
    SessionState::WaitingQuestion,
    SessionState::Stalled,
];

fn sessions(text: &mut PrometheusText, hub: &Hub) {
    let figures = hub.metrics();
    let running = hub.running();
    let summaries: Vec<_> = running.iter().map(|session| session.summary()).collect();
    let help = "Sessions that run in this server, by agent and state.";
    text.family("agentwire_sessions", help);
    for agent in AgentType::ALL {
        for state in STATES {
            let fits = summaries.iter().filter(|it| it.agent_type == agent && it.state == state);
            text.sample(&[("agent", agent.as_str()), ("state", state.as_str())], fits.count());
        }
    }
    let help = "Sessions that were started or resumed in this server.";
    text.labeled(
        "agentwire_sessions_started_total",
        help,
        "agent",
        figures.sessions_started.each(),
    );
    let rare = figures.labeled();
    let help = "Sessions that ended in this server, by agent and reason.";
    text.family("agentwire_sessions_ended_total", help);
    for ((agent, reason), count) in &rare.ended {
        text.sample(&[("agent", agent), ("reason", reason)], *count);
    }
    let help = "Turns that ended, by agent and outcome.";
    text.family("agentwire_turns_total", help);
    for ((agent, outcome), count) in &rare.turns {
        text.sample(&[("agent", agent), ("outcome", outcome)], *count);
    }
    let waiting: usize = running.iter().map(|session| session.waiting()).sum();
    let help = "Commands that wait for their sessions to accept them.";
    text.single("agentwire_commands_waiting", help, waiting);
}

fn log(text: &mut PrometheusText, figures: &Metrics, size: Option<u64>) {
    let help = "Events that became durable, by agent.";
    text.labeled("agentwire_events_total", help, "agent", figures.events.each());
    let help = "Bytes of the events that became durable, by agent.";
    text.labeled("agentwire_event_bytes_total", help, "agent", figures.bytes.each());
    let help = "How long a transaction took, from handing it to the store until it was durable.";
    text.histogram("agentwire_commit_seconds", help, figures.commit_time.read(), NANOSECONDS);
    let help = "Events that one transaction made durable.";
    text.histogram("agentwire_commit_events", help, figures.commit_events.read(), 1.0);
    let help = "Transactions that the store did not accept; they are retried unless they can never succeed.";
    text.single("agentwire_commit_failures_total", help, figures.commit_failures.get());
    let help = "Events handed to the log that are not durable yet, in bytes.";
    text.single("agentwire_log_queue_bytes", help, figures.queue_bytes.get());
    let help = "Appends handed to the log that are not durable yet: at most one for each session.";
    text.single("agentwire_log_queue_appends", help, figures.queue_appends.get());
    let help = "How long events had been durable when a reader that keeps up took them for its \
                client: one value for each batch and reader. History that a reader asks for is not \
                counted.";
    text.histogram("agentwire_delivery_seconds", help, figures.delivery.read(), NANOSECONDS);
    let help = "How often a reader that had kept up fell behind what is in memory and was served from \
                the store.";
    text.single("agentwire_readers_behind_total", help, figures.fell_behind.get());
    text.family("agentwire_store_bytes", "Size of the store on disk.");
    if let Some(size) = size {
        text.sample(&[], size);
    }
}

/// Large data in memory: `work` is output of agents, `clients` is input from clients, `read` is on its way
/// to readers.
fn large(text: &mut PrometheusText, budget: &Budget) {
    let pools = [("work", &budget.work), ("clients", &budget.clients), ("read", &budget.read)];
    let mut family = |name, help, value: fn(&Pool) -> f64| {
        text.family(name, help);
        for (pool, of) in pools {
            text.sample(&[("pool", pool)], value(of));
        }
    };
    let help = "Bytes of the budget that large messages, lines and events in memory use.";
    family("agentwire_in_flight_bytes", help, |pool| pool.used() as f64);
    let help = "How many bytes they may use: in_flight in the settings.";
    family("agentwire_in_flight_limit_bytes", help, |pool| pool.total() as f64);
    let help = "How many of them wait for a budget share.";
    family("agentwire_in_flight_waiting", help, |pool| pool.waiting() as f64);
    let help = "How often one of them had to wait for a budget share.";
    family("agentwire_in_flight_waits_total", help, |pool| pool.waits() as f64);
    let help = "How often one of them waited too long and was refused.";
    family("agentwire_in_flight_refused_total", help, |pool| pool.refusals() as f64);
}

fn work(text: &mut PrometheusText, figures: &Metrics) {
    let rare = figures.labeled();
    let help = "Open requests of agents, by kind.";
    text.labeled("agentwire_requests_open", help, "kind", figures.open_requests.each());
    let help = "Settled requests of agents, by kind, outcome and who settled them.";
    text.family("agentwire_requests_settled_total", help);
    for ((kind, outcome, by), count) in &rare.settled {
        text.sample(&[("kind", kind), ("outcome", outcome), ("by", by)], *count);
    }
    let help = "Tokens that turns used, as agents report at the end of a turn. The types do not \
                overlap: input does not include tokens from a cache.";
    text.family("agentwire_tokens_total", help);
    type Part = fn(&UsageTotal) -> u64;
    let parts: [(&str, Part); 4] = [
        ("input", |spent| spent.input),
        ("output", |spent| spent.output),
        ("cache_read", |spent| spent.cache_read),
        ("cache_creation", |spent| spent.cache_creation),
    ];
    for ((agent, model), spent) in &rare.spent {
        for (name, part) in parts {
            text.sample(&[("agent", agent), ("model", model), ("type", name)], part(spent));
        }
    }
    let help = "Cost of turns in dollars: as the agent reports it, else computed from the configured \
                prices, else 0.";
    text.family("agentwire_cost_dollars_total", help);
    for ((agent, model), spent) in &rare.spent {
        text.sample(&[("agent", agent), ("model", model)], spent.dollars);
    }
    let help = "Running agent processes, by agent.";
    text.labeled("agentwire_agent_processes", help, "agent", figures.processes.each());
    let help = "Agent processes that were started, by agent.";
    text.labeled(
        "agentwire_agent_processes_started_total",
        help,
        "agent",
        figures.processes_started.each(),
    );
    let help = "Running keepers: one for each agent process, until its process tree is gone.";
    text.single("agentwire_keepers", help, process::keepers());
}

fn clients(text: &mut PrometheusText, app: &App) {
    let traffic = &app.traffic;
    let help = "Open connections, by listener.";
    text.labeled("agentwire_connections", help, "listener", traffic.connections());
    let help = "Connections that were refused: limit, the maximum number is connected; descriptors, \
                the system has no free file descriptor.";
    text.labeled("agentwire_connections_refused_total", help, "reason", traffic.refused());
    let help = "Open streams, by protocol: WebSockets, and sse.";
    text.labeled("agentwire_streams", help, "wire", traffic.streams());
    let help = "Bytes that wait for WebSocket clients to read them.";
    text.single("agentwire_outgoing_bytes", help, traffic.outgoing());
    let help = "Answered requests, by method, route template and status.";
    text.family("agentwire_http_requests_total", help);
    for (method, route, status, count) in traffic.responses() {
        text.sample(&[("method", method), ("route", route), ("status", &status)], count);
    }
    let spans = app.setup.spans.as_deref();
    let help = "Spans that the trace receiver has accepted.";
    let count = spans.map_or(0, |spans| spans.exported.get());
    text.single("agentwire_spans_exported_total", help, count);
    let help = "Discarded spans: too many waited, or the receiver refused them.";
    let count = spans.map_or(0, |spans| spans.dropped.get());
    text.single("agentwire_spans_dropped_total", help, count);
}

/// What the kernel reports about this process.
#[derive(Default)]
struct ProcessStats {
    cpu: f64,
    memory: u64,
    descriptors: usize,
    most_descriptors: u64,
}

impl ProcessStats {
    /// A value that cannot be read is 0.
    fn read() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}"));
        let stat = read("stat").unwrap_or_default();
        // The program name may contain spaces; it ends with the last parenthesis.
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|ticks| ticks.parse::<f64>().ok());
        let status = read("status").unwrap_or_default();
        let memory = status.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
        });
        let limits = read("limits").unwrap_or_default();
        let most = limits.lines().find_map(|line| {
            line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok()
        });
        Self {
            cpu: (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS,
            memory: memory.unwrap_or(0) * 1024,
            // Without the descriptor that reads the directory.
            descriptors: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |entries| entries.count().saturating_sub(1)),
            most_descriptors: most.unwrap_or(0),
        }
    }
}
