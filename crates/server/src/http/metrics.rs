//! `GET /metrics`: the server's own metrics, for Prometheus.
//!
//! The number of label values is bounded: agents, states, kinds, route templates, and at most 64 models.
//! Sessions, clients and tokens are never labels.

mod text;
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

use self::text::{Kind, Page};
pub(super) use self::traffic::{Connected, Stream, Traffic, Wire, observe};
use super::App;
use super::rest::Answer;

/// The text format that every version of Prometheus reads.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kernel reports process times in hundredths of a second, whatever its own clock rate.
const TICKS: f64 = 100.0;

const NANOSECONDS: f64 = 1e9;

/// `GET /metrics`
pub(super) async fn metrics(State(app): State<App>) -> Answer {
    let store = app.hub().log().store().clone();
    let looked = tokio::task::spawn_blocking(move || (store.size(), Own::look())).await;
    let (size, own) = looked.unwrap_or((Ok(None), Own::default()));
    let mut page = Page::default();
    about(&mut page, &app, &own);
    sessions(&mut page, app.hub());
    log(&mut page, app.hub().metrics(), size.ok().flatten());
    large(&mut page, app.hub().log().budget());
    work(&mut page, app.hub().metrics());
    clients(&mut page, &app);
    let headers = [(CONTENT_TYPE, FORMAT), (CACHE_CONTROL, "no-store")];
    Ok((headers, page.text()).into_response())
}

fn about(page: &mut Page, app: &App, own: &Own) {
    page.family("agentwire_build_info", Kind::Gauge, "Always 1; the label is the version.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = app.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let help = "Start time of the server, in seconds since 1970.";
    page.single("process_start_time_seconds", Kind::Gauge, help, started.as_secs_f64());
    let help = "CPU time used by the server, without its agents.";
    page.single("process_cpu_seconds_total", Kind::Counter, help, own.cpu);
    let help = "Memory used by the server, without its agents.";
    page.single("process_resident_memory_bytes", Kind::Gauge, help, own.memory);
    let help = "File descriptors that the server has open.";
    page.single("process_open_fds", Kind::Gauge, help, own.descriptors);
    let help = "File descriptors that the server may have open.";
    page.single("process_max_fds", Kind::Gauge, help, own.most_descriptors);
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

fn sessions(page: &mut Page, hub: &Hub) {
    let figures = hub.metrics();
    let running = hub.running();
    let summaries: Vec<_> = running.iter().map(|session| session.summary()).collect();
    let help = "Sessions that run in this server, by agent and state.";
    page.family("agentwire_sessions", Kind::Gauge, help);
    for agent in AgentType::ALL {
        for state in STATES {
            let fits = summaries.iter().filter(|it| it.agent_type == agent && it.state == state);
            page.sample(&[("agent", agent.as_str()), ("state", state.as_str())], fits.count());
        }
    }
    let help = "Sessions that were started or resumed in this server.";
    page.family("agentwire_sessions_started_total", Kind::Counter, help);
    for (agent, count) in figures.sessions_started.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let rare = figures.labeled();
    let help = "Sessions that ended in this server, by agent and reason.";
    page.family("agentwire_sessions_ended_total", Kind::Counter, help);
    for ((agent, reason), count) in &rare.ended {
        page.sample(&[("agent", agent), ("reason", reason)], *count);
    }
    let help = "Turns that ended, by agent and outcome.";
    page.family("agentwire_turns_total", Kind::Counter, help);
    for ((agent, outcome), count) in &rare.turns {
        page.sample(&[("agent", agent), ("outcome", outcome)], *count);
    }
    let waiting: usize = running.iter().map(|session| session.waiting()).sum();
    let help = "Commands that wait for their sessions to accept them.";
    page.single("agentwire_commands_waiting", Kind::Gauge, help, waiting);
}

fn log(page: &mut Page, figures: &Metrics, size: Option<u64>) {
    let help = "Events that became durable, by agent.";
    page.family("agentwire_events_total", Kind::Counter, help);
    for (agent, count) in figures.events.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let help = "Bytes of the events that became durable, by agent.";
    page.family("agentwire_event_bytes_total", Kind::Counter, help);
    for (agent, count) in figures.bytes.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let help = "How long a transaction took, from handing it to the store until it was durable.";
    page.histogram("agentwire_commit_seconds", help, figures.commit_time.read(), NANOSECONDS);
    let help = "Events that one transaction made durable.";
    page.histogram("agentwire_commit_events", help, figures.commit_events.read(), 1.0);
    let help = "Transactions that the store did not accept; they are retried unless they can never succeed.";
    page.single(
        "agentwire_commit_failures_total",
        Kind::Counter,
        help,
        figures.commit_failures.get(),
    );
    let help = "Events handed to the log that are not durable yet, in bytes.";
    page.single("agentwire_log_queue_bytes", Kind::Gauge, help, figures.queue_bytes.get());
    let help = "Appends handed to the log that are not durable yet: at most one for each session.";
    page.single("agentwire_log_queue_appends", Kind::Gauge, help, figures.queue_appends.get());
    let help = "How long events had been durable when a reader that keeps up took them for its \
                client: one value for each batch and reader. History that a reader asks for is not \
                counted.";
    page.histogram("agentwire_delivery_seconds", help, figures.delivery.read(), NANOSECONDS);
    let help = "How often a reader that had kept up fell behind what is in memory and was served from \
                the store.";
    page.single("agentwire_readers_behind_total", Kind::Counter, help, figures.fell_behind.get());
    page.family("agentwire_store_bytes", Kind::Gauge, "Size of the store on disk.");
    if let Some(size) = size {
        page.sample(&[], size);
    }
}

/// Large data in memory: `work` is output of agents, `clients` is input from clients, `read` is on its way
/// to readers.
fn large(page: &mut Page, budget: &Budget) {
    let pools = [("work", &budget.work), ("clients", &budget.clients), ("read", &budget.read)];
    let mut family = |name, kind, help, value: fn(&Pool) -> f64| {
        page.family(name, kind, help);
        for (pool, of) in pools {
            page.sample(&[("pool", pool)], value(of));
        }
    };
    let help = "Bytes of the budget that large messages, lines and events in memory use.";
    family("agentwire_in_flight_bytes", Kind::Gauge, help, |pool| pool.used() as f64);
    let help = "How many bytes they may use: in_flight in the settings.";
    family("agentwire_in_flight_limit_bytes", Kind::Gauge, help, |pool| pool.total() as f64);
    let help = "How many of them wait for a budget share.";
    family("agentwire_in_flight_waiting", Kind::Gauge, help, |pool| pool.waiting() as f64);
    let help = "How often one of them had to wait for a budget share.";
    family("agentwire_in_flight_waits_total", Kind::Counter, help, |pool| pool.waits() as f64);
    let help = "How often one of them waited too long and was refused.";
    family("agentwire_in_flight_refused_total", Kind::Counter, help, |pool| pool.refusals() as f64);
}

fn work(page: &mut Page, figures: &Metrics) {
    let rare = figures.labeled();
    let help = "Open requests of agents, by kind.";
    page.family("agentwire_requests_open", Kind::Gauge, help);
    for (kind, count) in figures.open_requests.each() {
        page.sample(&[("kind", kind)], count.get());
    }
    let help = "Settled requests of agents, by kind, outcome and who settled them.";
    page.family("agentwire_requests_settled_total", Kind::Counter, help);
    for ((kind, outcome, by), count) in &rare.settled {
        page.sample(&[("kind", kind), ("outcome", outcome), ("by", by)], *count);
    }
    let help = "Tokens that turns used, as agents report at the end of a turn. The types do not \
                overlap: input does not include tokens from a cache.";
    page.family("agentwire_tokens_total", Kind::Counter, help);
    type Part = fn(&UsageTotal) -> u64;
    let parts: [(&str, Part); 4] = [
        ("input", |spent| spent.input),
        ("output", |spent| spent.output),
        ("cache_read", |spent| spent.cache_read),
        ("cache_creation", |spent| spent.cache_creation),
    ];
    for ((agent, model), spent) in &rare.spent {
        for (name, part) in parts {
            page.sample(&[("agent", agent), ("model", model), ("type", name)], part(spent));
        }
    }
    let help = "Cost of turns in dollars: as the agent reports it, else computed from the configured \
                prices, else 0.";
    page.family("agentwire_cost_dollars_total", Kind::Counter, help);
    for ((agent, model), spent) in &rare.spent {
        page.sample(&[("agent", agent), ("model", model)], spent.dollars);
    }
    let help = "Running agent processes, by agent.";
    page.family("agentwire_agent_processes", Kind::Gauge, help);
    for (agent, count) in figures.processes.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let help = "Agent processes that were started, by agent.";
    page.family("agentwire_agent_processes_started_total", Kind::Counter, help);
    for (agent, count) in figures.processes_started.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let help = "Running keepers: one for each agent process, until its process tree is gone.";
    page.single("agentwire_keepers", Kind::Gauge, help, process::keepers());
}

fn clients(page: &mut Page, app: &App) {
    let traffic = &app.traffic;
    let help = "Open connections, by listener.";
    page.family("agentwire_connections", Kind::Gauge, help);
    for (listener, count) in traffic.connections() {
        page.sample(&[("listener", listener)], count);
    }
    let help = "Connections that were refused: limit, the maximum number is connected; descriptors, \
                the system has no free file descriptor.";
    page.family("agentwire_connections_refused_total", Kind::Counter, help);
    for (reason, count) in traffic.refused() {
        page.sample(&[("reason", reason)], count);
    }
    let help = "Open streams, by protocol: WebSockets, and sse.";
    page.family("agentwire_streams", Kind::Gauge, help);
    for (wire, count) in traffic.streams() {
        page.sample(&[("wire", wire)], count);
    }
    let help = "Bytes that wait for WebSocket clients to read them.";
    page.single("agentwire_outgoing_bytes", Kind::Gauge, help, traffic.outgoing());
    let help = "Answered requests, by method, route template and status.";
    page.family("agentwire_http_requests_total", Kind::Counter, help);
    for (method, route, status, count) in traffic.answers() {
        page.sample(&[("method", method), ("route", route), ("status", &status)], count);
    }
    let spans = app.setup.spans.as_deref();
    let help = "Spans that the trace receiver has accepted.";
    let count = spans.map_or(0, |spans| spans.exported.get());
    page.single("agentwire_spans_exported_total", Kind::Counter, help, count);
    let help = "Discarded spans: too many waited, or the receiver refused them.";
    let count = spans.map_or(0, |spans| spans.dropped.get());
    page.single("agentwire_spans_dropped_total", Kind::Counter, help, count);
}

/// What the kernel reports about this process.
#[derive(Default)]
struct Own {
    cpu: f64,
    memory: u64,
    descriptors: usize,
    most_descriptors: u64,
}

impl Own {
    /// A value that cannot be read is 0.
    fn look() -> Self {
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
