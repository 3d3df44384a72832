//! The server's metrics, and the documents that list them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::shared::{PATIENCE, Server};

/// Metrics, read by a strict parser of the format.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Type by family.
    pub(crate) families: BTreeMap<String, String>,
    /// Value by name and labels, as written.
    pub(crate) samples: BTreeMap<String, f64>,
}

impl Figures {
    pub(crate) fn of(server: &Server) -> Self {
        let answer = server.ask("GET", "/metrics", None);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        Self::read(&answer.text)
    }

    fn read(text: &str) -> Self {
        let mut figures = Self::default();
        let mut family = String::new();
        let mut helped = String::new();
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a name and a text");
                assert!(is_name(name) && help.ends_with('.'), "{line}");
                helped = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a kind");
                assert_eq!(name, helped, "TYPE follows HELP");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                family = name.to_owned();
                let before = figures.families.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} appears twice");
            } else {
                let (name, value) = sample(line);
                let bare = name.split('{').next().expect("a name");
                let fits = match figures.families[&family].as_str() {
                    "histogram" => ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|end| bare.strip_suffix(end) == Some(&family)),
                    _ => bare == family,
                };
                assert!(fits, "{line} is under {family}");
                assert_eq!(figures.samples.insert(name, value), None, "{line} appears twice");
            }
        }
        figures.check_histograms();
        figures
    }

    fn check_histograms(&self) {
        for (family, _) in self.families.iter().filter(|(_, kind)| *kind == "histogram") {
            let start = format!("{family}_bucket{{le=\"");
            let mut buckets: Vec<(f64, f64)> = self
                .samples
                .iter()
                .filter_map(|(name, count)| {
                    let bound = name.strip_prefix(&start)?.strip_suffix("\"}")?;
                    Some((bound.replace("+Inf", "inf").parse().expect("a bound"), *count))
                })
                .collect();
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.len() > 5, "{family}");
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{family}: {buckets:?}");
            let (last, all) = *buckets.last().expect("a bucket");
            assert!(last.is_infinite());
            assert_eq!(all, self.samples[&format!("{family}_count")], "{family}");
            assert!(self.samples[&format!("{family}_sum")] >= 0.0);
        }
    }

    pub(crate) fn get(&self, name: &str) -> f64 {
        self.samples.get(name).copied().unwrap_or(0.0)
    }

    /// The sum of all samples whose name starts like this.
    fn sum(&self, start: &str) -> f64 {
        self.samples.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, it)| it).sum()
    }

    /// Label names by family.
    fn labels(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for sample in self.samples.keys() {
            let (name, rest) = sample.split_once('{').unwrap_or((sample, ""));
            let names = rest.split("\",").filter_map(|pair| Some(pair.split_once("=\"")?.0));
            let family = name.strip_suffix("_bucket").unwrap_or(name).to_owned();
            let names = names.filter(|name| *name != "le").map(str::to_owned);
            labels.entry(family).or_default().extend(names);
        }
        labels
    }
}

/// Parses `name{label="value",…} number`, and nothing else.
fn sample(line: &str) -> (String, f64) {
    let (name, value) = line.rsplit_once(' ').expect("a value");
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
    assert!(value.is_finite(), "{line}");
    let (bare, labels) = match name.split_once('{') {
        Some((bare, labels)) => (bare, labels.strip_suffix('}').expect("a closing brace")),
        None => (name, ""),
    };
    assert!(is_name(bare), "{line}");
    let mut rest = labels;
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
        assert!(is_name(label), "{line}");
        let mut escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        rest = &after[end.unwrap_or_else(|| panic!("{line}")) + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name.to_owned(), value)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Waits until the metrics fit: the last counts may lag a moment behind what clients see.
fn until(server: &Server, fits: impl Fn(&Figures) -> bool) -> Figures {
    let begun = Instant::now();
    loop {
        let figures = Figures::of(server);
        if fits(&figures) {
            return figures;
        }
        assert!(begun.elapsed() < PATIENCE, "{figures:#?}");
    }
}

fn settle(server: &Server, session: &str, answer: &Value) {
    let request = server.until(session, "requestRaised").pop().expect("a request");
    let id = request["requestId"].as_str().expect("an id");
    server.post(&format!("/v1/sessions/{session}/requests/{id}"), answer);
}

#[test]
fn figures_are_those_of_what_was_done() {
    let server = Server::start();
    let figures = Figures::of(&server);
    assert_eq!(figures.get("agentwire_events_total{agent=\"demo\"}"), 0.0);
    assert_eq!(figures.get("agentwire_sessions{agent=\"demo\",state=\"idle\"}"), 0.0);
    let session = server.session("/usage 1000 200 30 4\n/bash true\n/ask Which? | a | b\n/say x");
    // A permission request is open.
    let request = server.until(&session, "requestRaised").pop().expect("a request");
    let figures = until(&server, |figures| {
        figures.get("agentwire_sessions{agent=\"demo\",state=\"waitingPermission\"}") == 1.0
    });
    for (name, value) in [
        ("agentwire_requests_open{kind=\"permission\"}", 1.0),
        ("agentwire_requests_open{kind=\"question\"}", 0.0),
        ("agentwire_sessions_started_total{agent=\"demo\"}", 1.0),
        ("agentwire_sessions_started_total{agent=\"claude\"}", 0.0),
        ("agentwire_agent_processes{agent=\"demo\"}", 1.0),
        ("agentwire_agent_processes_started_total{agent=\"demo\"}", 1.0),
        ("agentwire_keepers", 1.0),
        ("agentwire_sessions{agent=\"demo\",state=\"working\"}", 0.0),
    ] {
        assert_eq!(figures.get(name), value, "{name}: {figures:#?}");
    }
    let id = request["requestId"].as_str().expect("an id");
    let place = format!("/v1/sessions/{session}/requests/{id}");
    // A stream is open, and another client is refused.
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.until(|frame| frame["type"] == "requestRaised");
    assert_eq!(Figures::of(&server).get("agentwire_streams{wire=\"unified\"}"), 1.0);
    assert_eq!(server.ask_as("x", "GET", "/v1/status", None).status, 401);
    server.post(&place, &json!({ "behavior": "allow" }));
    let asked =
        socket.until(|frame| frame["type"] == "requestRaised" && frame["kind"] == "question");
    drop(socket);
    let id = asked["requestId"].as_str().expect("an id");
    let place = format!("/v1/sessions/{session}/requests/{id}");
    server.post(&place, &json!({ "behavior": "allow", "answers": { "Which?": "a" } }));
    let events = server.until(&session, "turnCompleted");
    let turn = events.last().expect("its end");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let events = server.until(&session, "sessionEnded");
    let figures = until(&server, |figures| {
        figures.get("agentwire_agent_processes{agent=\"demo\"}") == 0.0
            && figures.get("agentwire_keepers") == 0.0
            && figures.get("agentwire_streams{wire=\"unified\"}") == 0.0
            && figures.get("agentwire_events_total{agent=\"demo\"}") == events.len() as f64
    });
    let model = turn["models"][0]["model"].as_str().expect("a model");
    let spent = |kind: &str| {
        format!("agentwire_tokens_total{{agent=\"demo\",model=\"{model}\",type=\"{kind}\"}}")
    };
    let settled = |kind: &str, outcome: &str| {
        format!(
            "agentwire_requests_settled_total{{kind=\"{kind}\",outcome=\"{outcome}\",by=\"client\"}}"
        )
    };
    let cost = turn["costUsd"].as_f64().expect("a cost");
    assert_eq!(cost, (1000.0 * 300.0 + 200.0 * 1500.0 + 30.0 * 30.0 + 4.0 * 375.0) / 1e8);
    let bytes = figures.get("agentwire_event_bytes_total{agent=\"demo\"}");
    let kept: usize = events.iter().map(|event| event.to_string().len() + 1).sum();
    // The log keeps the order of fields and the agent's own spelling, which a `Value` does not.
    assert!(bytes > 0.5 * kept as f64 && bytes < 2.0 * kept as f64, "{bytes} of {kept}");
    for (name, value) in [
        (spent("input").as_str(), 1000.0),
        (&spent("output"), 200.0),
        (&spent("cache_read"), 30.0),
        (&spent("cache_creation"), 4.0),
        (&format!("agentwire_cost_dollars_total{{agent=\"demo\",model=\"{model}\"}}"), cost),
        (&settled("permission", "allowed"), 1.0),
        (&settled("question", "answered"), 1.0),
        ("agentwire_turns_total{agent=\"demo\",outcome=\"completed\"}", 1.0),
        ("agentwire_sessions_ended_total{agent=\"demo\",reason=\"completed\"}", 1.0),
        ("agentwire_requests_open{kind=\"permission\"}", 0.0),
        ("agentwire_requests_open{kind=\"question\"}", 0.0),
        ("agentwire_agent_processes_started_total{agent=\"demo\"}", 1.0),
        ("agentwire_log_queue_bytes", 0.0),
        ("agentwire_log_queue_appends", 0.0),
        ("agentwire_commands_waiting", 0.0),
        ("agentwire_in_flight_bytes{pool=\"work\"}", 0.0),
        ("agentwire_in_flight_bytes{pool=\"read\"}", 0.0),
        ("agentwire_in_flight_waits_total{pool=\"work\"}", 0.0),
        ("agentwire_outgoing_bytes", 0.0),
        ("agentwire_commit_failures_total", 0.0),
        ("agentwire_commit_events_sum", events.len() as f64),
        (
            "agentwire_http_requests_total{method=\"post\",route=\"/v1/sessions\",status=\"201\"}",
            1.0,
        ),
        ("agentwire_http_requests_total{method=\"get\",route=\"/v1/status\",status=\"401\"}", 1.0),
        (
            "agentwire_http_requests_total{method=\"get\",route=\"/v1/sessions/{id}/ws\",status=\"101\"}",
            1.0,
        ),
    ] {
        assert_eq!(figures.get(name), value, "{name}: {figures:#?}");
    }
    assert!(figures.get("agentwire_commit_seconds_count") >= 3.0);
    // The WebSocket waited for the events after the permission.
    assert!(figures.get("agentwire_delivery_seconds_count") >= 1.0, "{figures:#?}");
    for name in [
        "agentwire_store_bytes",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
        "agentwire_connections{listener=\"http\"}",
        "agentwire_build_info{version=\"0.1.0\"}",
    ] {
        assert!(figures.get(name) >= 1.0, "{name}: {figures:#?}");
    }
    let text = server.ask("GET", "/metrics", None).text;
    assert!(!text.contains(&session) && !text.contains(&server.token));
}

/// A session that is cut off leaves nothing counted as open.
#[test]
fn what_is_open_is_counted_down_however_it_ends() {
    let server = Server::start();
    for ending in ["/exit 3", "/fail no", "/hang"] {
        let session = server.session(&format!("/bash true\n{ending}"));
        settle(&server, &session, &json!({ "behavior": "allow" }));
        match ending {
            "/exit 3" => drop(server.until(&session, "sessionEnded")),
            "/fail no" => drop(server.until(&session, "turnFailed")),
            _ => drop(server.until(&session, "toolCompleted")),
        }
    }
    let asking = server.session("/bash true");
    server.until(&asking, "requestRaised");
    for session in server.get("/v1/sessions?live=true")["sessions"].as_array().expect("sessions") {
        let id = session["id"].as_str().expect("an id");
        server.post(&format!("/v1/sessions/{id}/stop"), &json!({}));
    }
    let figures = until(&server, |figures| {
        figures.get("agentwire_requests_open{kind=\"permission\"}") == 0.0
            && figures.get("agentwire_agent_processes{agent=\"demo\"}") == 0.0
            && figures.get("agentwire_keepers") == 0.0
            && figures.sum("agentwire_sessions{") == 0.0
    });
    assert_eq!(figures.get("agentwire_sessions_started_total{agent=\"demo\"}"), 4.0);
    assert_eq!(figures.sum("agentwire_sessions_ended_total{"), 4.0, "{figures:#?}");
}

/// The table in docs/operations.md lists exactly what the server reports.
#[test]
fn the_table_of_figures_is_true() {
    let server = Server::start();
    let session = server.session("/usage 1 1 1 1\n/bash true");
    settle(&server, &session, &json!({ "behavior": "allow" }));
    server.until(&session, "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    server.until(&session, "sessionEnded");
    let figures = Figures::of(&server);
    let labels = figures.labels();
    let given: BTreeMap<String, (String, BTreeSet<String>)> = figures
        .families
        .iter()
        .map(|(name, kind)| {
            let labels = labels.get(name).cloned().unwrap_or_default();
            (name.clone(), (kind.clone(), labels))
        })
        .collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let table = page.split("## Metrics").nth(1).expect("the part").split("\n## ").next();
    let rows = table.expect("the table").lines().filter(|line| line.starts_with("| `"));
    let told: BTreeMap<String, (String, BTreeSet<String>)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let words = |cell: &str| -> BTreeSet<String> {
                cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
            };
            let name = cells[1].trim_matches('`').to_owned();
            (name, (cells[2].to_owned(), words(cells[3])))
        })
        .collect();
    assert_eq!(told, given);
}
