//! `GET /metrics`: what the server counts of itself, as Prometheus reads it.
//!
//! Labels are bounded in number: agents, states, kinds, routes by their template, and at most 64
//! models. No session, client or token is ever one.

mod text;
mod traffic;

use std::time::UNIX_EPOCH;

use agentwire_protocol::AgentType;
use agentwire_protocol::SessionState;
use agentwire_sessions::budget::{Budget, Pool};
use agentwire_sessions::metrics::{Figures, Spent};
use agentwire_sessions::{Hub, process};
use axum::extract::State;
use axum::response::IntoResponse as _;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use self::text::{Kind, Page};
pub(super) use self::traffic::{Connected, Stream, Traffic, Wire, observe};
use super::App;
use super::rest::Answer;

/// The text format that every Prometheus reads.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kernel counts time in hundredths of a second for programs, whatever its own clock.
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
    log(&mut page, app.hub().figures(), size.ok().flatten());
    large(&mut page, app.hub().log().budget());
    work(&mut page, app.hub().figures());
    clients(&mut page, &app);
    let headers = [(CONTENT_TYPE, FORMAT), (CACHE_CONTROL, "no-store")];
    Ok((headers, page.text()).into_response())
}

fn about(page: &mut Page, app: &App, own: &Own) {
    page.family("agentwire_build_info", Kind::Gauge, "Always 1; the labels say what runs.");
    page.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = app.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let help = "When the server began, in seconds since 1970.";
    page.single("process_start_time_seconds", Kind::Gauge, help, started.as_secs_f64());
    let help = "Processor time that the server has used, without its agents.";
    page.single("process_cpu_seconds_total", Kind::Counter, help, own.cpu);
    let help = "Memory that the server takes, without its agents.";
    page.single("process_resident_memory_bytes", Kind::Gauge, help, own.memory);
    let help = "Descriptors that the server has open.";
    page.single("process_open_fds", Kind::Gauge, help, own.descriptors);
    let help = "Descriptors that the server may have open.";
    page.single("process_max_fds", Kind::Gauge, help, own.most_descriptors);
}

/// States of a session that runs.
const STATES: [SessionState; 6] = [
    SessionState::Starting,
    SessionState::Idle,
    SessionState::Working,
    SessionState::WaitingPermission,
    SessionState::WaitingQuestion,
    SessionState::Stalled,
];

fn sessions(page: &mut Page, hub: &Hub) {
    let figures = hub.figures();
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
    let help = "Sessions that were begun or resumed in this server.";
    page.family("agentwire_sessions_started_total", Kind::Counter, help);
    for (agent, count) in figures.sessions_started.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let rare = figures.rare();
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
    let help = "Commands that wait for their sessions to take them.";
    page.single("agentwire_commands_waiting", Kind::Gauge, help, waiting);
}

fn log(page: &mut Page, figures: &Figures, size: Option<u64>) {
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
    let help =
        "How long a transaction took, from its being handed to the store to its being durable.";
    page.histogram("agentwire_commit_seconds", help, figures.commit_time.read(), NANOSECONDS);
    let help = "Events that one transaction made durable.";
    page.histogram("agentwire_commit_events", help, figures.commit_events.read(), 1.0);
    let help =
        "Transactions that the store did not take; they are tried again unless they never can be.";
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
    let help = "How long events were durable before a reader that keeps up took them for its client: \
                one value for each batch and reader. History that a reader asks for is not counted.";
    page.histogram("agentwire_delivery_seconds", help, figures.delivery.read(), NANOSECONDS);
    let help = "How often a reader that had kept up fell behind what is in memory and was served from \
                the store.";
    page.single("agentwire_readers_behind_total", Kind::Counter, help, figures.fell_behind.get());
    page.family("agentwire_store_bytes", Kind::Gauge, "What the store takes on disk.");
    if let Some(size) = size {
        page.sample(&[], size);
    }
}

/// What is large and in memory at once: `work` is what agents say, `clients` what
/// clients say, `read` what is on its way to readers.
fn large(page: &mut Page, budget: &Budget) {
    let pools = [("work", &budget.work), ("clients", &budget.clients), ("read", &budget.read)];
    let mut family = |name, kind, help, value: fn(&Pool) -> f64| {
        page.family(name, kind, help);
        for (pool, of) in pools {
            page.sample(&[("pool", pool)], value(of));
        }
    };
    let help =
        "What large messages, lines and events in memory at once take of the budget, in bytes.";
    family("agentwire_in_flight_bytes", Kind::Gauge, help, |pool| pool.used() as f64);
    let help = "How much they may take: in_flight of the settings.";
    family("agentwire_in_flight_limit_bytes", Kind::Gauge, help, |pool| pool.total() as f64);
    let help = "How many wait for a share of it.";
    family("agentwire_in_flight_waiting", Kind::Gauge, help, |pool| pool.waiting() as f64);
    let help = "How often something large had to wait for a share.";
    family("agentwire_in_flight_waits_total", Kind::Counter, help, |pool| pool.waits() as f64);
    let help = "How often it waited too long and was refused.";
    family("agentwire_in_flight_refused_total", Kind::Counter, help, |pool| pool.refusals() as f64);
}

fn work(page: &mut Page, figures: &Figures) {
    let rare = figures.rare();
    let help = "Requests of agents that wait for an answer, by kind.";
    page.family("agentwire_requests_open", Kind::Gauge, help);
    for (kind, count) in figures.open_requests.each() {
        page.sample(&[("kind", kind)], count.get());
    }
    let help = "Requests of agents that were settled, by kind, outcome and by whom.";
    page.family("agentwire_requests_settled_total", Kind::Counter, help);
    for ((kind, outcome, by), count) in &rare.settled {
        page.sample(&[("kind", kind), ("outcome", outcome), ("by", by)], *count);
    }
    let help = "Tokens that turns used, as agents tell at their end. The types do not overlap: what a \
                cache gave is not in input.";
    page.family("agentwire_tokens_total", Kind::Counter, help);
    type Part = fn(&Spent) -> u64;
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
    let help = "What turns cost in dollars: the agent's own figure, else by the prices that are set, \
                else nothing.";
    page.family("agentwire_cost_dollars_total", Kind::Counter, help);
    for ((agent, model), spent) in &rare.spent {
        page.sample(&[("agent", agent), ("model", model)], spent.dollars);
    }
    let help = "Processes of agents that run, by agent.";
    page.family("agentwire_agent_processes", Kind::Gauge, help);
    for (agent, count) in figures.processes.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let help = "Processes of agents that were started, by agent.";
    page.family("agentwire_agent_processes_started_total", Kind::Counter, help);
    for (agent, count) in figures.processes_started.each() {
        page.sample(&[("agent", agent)], count.get());
    }
    let help = "Keepers that run: one for each agent's process, until nothing is left of its tree.";
    page.single("agentwire_keepers", Kind::Gauge, help, process::keepers());
}

fn clients(page: &mut Page, app: &App) {
    let traffic = &app.traffic;
    let help = "Connections that are open, by the address they came to.";
    page.family("agentwire_connections", Kind::Gauge, help);
    for (listener, count) in traffic.connections() {
        page.sample(&[("listener", listener)], count);
    }
    let help = "Connections that were refused: limit, there are as many as may be; descriptors, the \
                system gave none.";
    page.family("agentwire_connections_refused_total", Kind::Counter, help);
    for (reason, count) in traffic.refused() {
        page.sample(&[("reason", reason)], count);
    }
    let help = "Streams that are open, by what is spoken: WebSockets, and sse.";
    page.family("agentwire_streams", Kind::Gauge, help);
    for (wire, count) in traffic.streams() {
        page.sample(&[("wire", wire)], count);
    }
    let help = "Bytes that wait for clients of WebSockets to take them.";
    page.single("agentwire_outgoing_bytes", Kind::Gauge, help, traffic.outgoing());
    let help = "Requests that were answered, by method, template of the route and status.";
    page.family("agentwire_http_requests_total", Kind::Counter, help);
    for (method, route, status, count) in traffic.answers() {
        page.sample(&[("method", method), ("route", route), ("status", &status)], count);
    }
    let spans = app.setup.spans.as_deref();
    let help = "Spans that the receiver of traces has taken.";
    let count = spans.map_or(0, |spans| spans.exported.get());
    page.single("agentwire_spans_exported_total", Kind::Counter, help, count);
    let help = "Spans that were given up: too many waited, or the receiver refused them.";
    let count = spans.map_or(0, |spans| spans.dropped.get());
    page.single("agentwire_spans_dropped_total", Kind::Counter, help, count);
}

/// What the kernel says of this process.
#[derive(Default)]
struct Own {
    cpu: f64,
    memory: u64,
    descriptors: usize,
    most_descriptors: u64,
}

impl Own {
    /// What cannot be read is nothing.
    fn look() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}"));
        let stat = read("stat").unwrap_or_default();
        // The name of the program may have spaces; it ends with the last parenthesis.
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
            // Without the one that lists them.
            descriptors: std::fs::read_dir("/proc/self/fd")
                .map_or(0, |entries| entries.count().saturating_sub(1)),
            most_descriptors: most.unwrap_or(0),
        }
    }
}
