//! What every client must survive (`clients/scenarios.json`): plays a scenario against a real server behind a
//! proxy, and checks what the client reports by the law: each event once and in order, and every gap.

pub(crate) mod proxy;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use self::proxy::{Obstacles, Proxy};
use crate::shared::{Home, PATIENCE, Server};

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scenario {
    name: String,
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    client: Plan,
    #[serde(default)]
    proxy: InTheWay,
    #[serde(default)]
    before: Vec<Step>,
    steps: Vec<Step>,
    #[serde(default)]
    gaps: usize,
    #[serde(default)]
    streaming: Option<String>,
    #[serde(default)]
    turns: Option<u64>,
}

/// What the client does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Plan {
    #[serde(default)]
    pub(crate) after: u64,
    #[serde(default)]
    pub(crate) profile: Option<String>,
    #[serde(default)]
    pub(crate) pause_at: Option<u64>,
    #[serde(default)]
    pub(crate) creates: Option<String>,
    #[serde(default)]
    pub(crate) prompts: Vec<String>,
    #[serde(default)]
    ways: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct InTheWay {
    cut_before: Vec<u64>,
    cut_bytes: Option<usize>,
    refuses_streams: bool,
    collects_streams: bool,
    lost_replies: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Step {
    Named(Named),
    Wait { wait: String },
    Turn { turn: u64 },
    Prompt { prompt: String },
    Resume { resume: String },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Named {
    Stop,
    Deny,
    Go,
    Kill,
    Serve,
    Save,
    Restore,
}

/// What a client gets at its start.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) url: String,
    pub(crate) token: String,
    /// `socket`, `events` or `polling`.
    pub(crate) way: &'static str,
    /// The session to read; none if the client creates it.
    pub(crate) session: Option<String>,
    pub(crate) directory: String,
    pub(crate) plan: Plan,
}

/// A client at work. It reports `{"session"}`, `{"seq","type"}`, `{"gap":[from,to]}`, `{"streaming"}`, and at last
/// `{"end":true}` or `{"error"}`.
pub(crate) struct Reader {
    pub(crate) reports: UnboundedReceiver<Value>,
    /// Lets a paused client continue.
    pub(crate) go: Box<dyn FnMut() + Send + Sync>,
}

/// How many scenarios are played at once. They mostly wait.
const AT_ONCE: usize = 4;

/// Plays every scenario with a client, in each of these ways of receiving events.
pub(crate) async fn play_all(ways: &[&'static str], start: fn(Task) -> Reader) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/scenarios.json");
    let text = std::fs::read_to_string(path).expect("the table");
    let table: Vec<Scenario> = serde_json::from_str(&text).expect("scenarios");
    assert!(table.len() > 15, "only {} scenarios", table.len());
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut plays = JoinSet::new();
    for scenario in table {
        for &way in ways {
            let (scenario, places) = (scenario.clone(), Arc::clone(&places));
            plays.spawn(async move {
                let _place = places.acquire().await.expect("a place");
                play(&scenario, way, start).await;
            });
        }
    }
    while let Some(played) = plays.join_next().await {
        if let Err(failure) = played {
            std::panic::resume_unwind(failure.into_panic());
        }
    }
}

/// Plays one scenario with a client that receives events in one way.
async fn play(scenario: &Scenario, way: &'static str, start: fn(Task) -> Reader) {
    let is_left_out = |ways: &Vec<String>| !ways.iter().any(|one| one == way);
    if scenario.client.ways.as_ref().is_some_and(is_left_out) {
        return;
    }
    let proxy = Proxy::new().await;
    let home = Home::new();
    let address = proxy.address.clone();
    let server = Server::at(&home, &["--host", &address]);
    let url = format!("http://{address}");
    let (http, token) = (server.http.clone(), server.token.clone());
    let mut stage = Stage {
        name: format!("{} ({way})", scenario.name),
        home,
        http,
        host: address,
        server: Some(server),
        session: String::new(),
        reader: None,
        seen: Vec::new(),
        waited: 0,
    };
    let InTheWay { cut_before, cut_bytes, refuses_streams, collects_streams, lost_replies } =
        scenario.proxy.clone();
    let obstacles = Obstacles {
        cut: cut_bytes,
        cut_before,
        refuses_streams,
        collects_streams,
        lost_replies,
        ..Obstacles::default()
    };
    proxy.lead(&stage.http, obstacles);
    if let Some(prompt) = &scenario.prompt {
        stage.session = stage.server().session(prompt);
    }
    for step in &scenario.before {
        stage.step(step).await;
    }
    let session = scenario.prompt.is_some().then(|| stage.session.clone());
    let directory = stage.home.path("work").display().to_string();
    let plan = scenario.client.clone();
    stage.reader = Some(start(Task { url, token, way, session, directory, plan }));
    for step in &scenario.steps {
        stage.step(step).await;
    }
    stage.until(|report| report["end"] == true).await;
    stage.check(scenario);
}

struct Stage {
    name: String,
    home: Home,
    http: String,
    host: String,
    server: Option<Server>,
    session: String,
    reader: Option<Reader>,
    seen: Vec<Value>,
    /// How many of the reports the steps have waited for.
    waited: usize,
}

impl Stage {
    fn server(&self) -> &Server {
        self.server.as_ref().expect("a server")
    }

    async fn step(&mut self, step: &Step) {
        let path = format!("/v1/sessions/{}", self.session);
        match step {
            Step::Wait { wait } => {
                self.until(|report| report["type"] == **wait || !report[wait].is_null()).await;
            }
            Step::Turn { turn } => self.until_turn(*turn).await,
            Step::Prompt { prompt } => {
                self.server().post(&format!("{path}/prompt"), &json!({ "prompt": prompt }));
            }
            Step::Resume { resume } => {
                let body =
                    json!({ "agentType": "demo", "sessionId": self.session, "prompt": resume });
                self.server().post("/v1/sessions", &body);
            }
            Step::Named(named) => self.named(*named, &path),
        }
    }

    fn named(&mut self, step: Named, path: &str) {
        let (data, saved) = (self.home.data(), self.home.path("saved"));
        match step {
            Named::Stop => {
                self.server().post(&format!("{path}/stop"), &json!({}));
            }
            Named::Deny => {
                let open = self.server().get("/v1/requests?state=open");
                let id = open["requests"][0]["requestId"].as_str().expect("a request");
                let body = json!({ "behavior": "deny", "message": "no" });
                self.server().post(&format!("{path}/requests/{id}"), &body);
            }
            Named::Go => (self.reader.as_mut().expect("a client").go)(),
            Named::Kill => {
                self.server.take().expect("a server").kill();
            }
            Named::Serve => {
                let args = ["--http", &self.http, "--host", &self.host];
                self.server = Some(Server::at(&self.home, &args));
            }
            Named::Save => copy(&data, &saved),
            Named::Restore => {
                // The next server of any test removes the token of a directory without this file.
                let kept = "operator.json";
                std::fs::remove_file(saved.join(kept)).expect("it is removed");
                for entry in std::fs::read_dir(&data).expect("a directory") {
                    let path = entry.expect("an entry").path();
                    match path.is_dir() {
                        true => std::fs::remove_dir_all(&path).expect("it is removed"),
                        false if path.ends_with(kept) => {}
                        false => std::fs::remove_file(&path).expect("it is removed"),
                    }
                }
                copy(&saved.join("."), &data);
            }
        }
    }

    /// Waits for a report that no step has waited for.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) {
        loop {
            while let Some(report) = self.seen.get(self.waited) {
                self.waited += 1;
                if fits(report) {
                    return;
                }
            }
            let reports = &mut self.reader.as_mut().expect("a client").reports;
            let report = tokio::time::timeout(PATIENCE, reports.recv()).await;
            let name = &self.name;
            let report =
                report.unwrap_or_else(|_| panic!("{name}: nothing after {:?}", self.seen.last()));
            let report =
                report.unwrap_or_else(|| panic!("{name}: it ended after {:?}", self.seen.last()));
            assert!(report["error"].is_null(), "{name}: {report} after {:?}", self.seen.last());
            self.seen.push(report);
        }
    }

    async fn until_turn(&self, turn: u64) {
        let begun = Instant::now();
        loop {
            let shown = self.server().get(&format!("/v1/sessions/{}", self.session));
            let is_over = !shown["lastTurn"].is_null() && shown["state"] != "working";
            if shown["turns"].as_u64() >= Some(turn) && is_over {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{}: turn {turn} never ends: {shown}", self.name);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The law: from its start on, the client has each event once and in order, or a gap that it reported, up to the
    /// end of the log.
    fn check(&self, scenario: &Scenario) {
        let name = &self.name;
        let session = self.seen.iter().find_map(|report| report["session"].as_str());
        let session = session.unwrap_or(&self.session);
        let profile = scenario.client.profile.as_deref().unwrap_or("full");
        let log = self.log(session, profile);
        let is_dense = profile != "core";
        let (mut position, mut gaps, mut read) = (scenario.client.after, 0, Vec::new());
        for report in &self.seen {
            if let Some(seq) = report["seq"].as_u64() {
                let follows = if is_dense { seq == position + 1 } else { seq > position };
                assert!(follows, "{name}: {seq} after {position}");
                position = seq;
                read.push((seq, report["type"].clone()));
            }
            if let Some([from, to]) = report["gap"].as_array().map(Vec::as_slice) {
                let (from, to) = (from.as_u64().expect("a number"), to.as_u64().expect("a number"));
                assert!(from <= to && to == position, "{name}: {report} at {position}");
                position = from - 1;
                read.retain(|(seq, _)| *seq < from);
                gaps += 1;
            }
        }
        assert_eq!(gaps, scenario.gaps, "{name}: {:?}", self.seen);
        let first = read.first().map_or(u64::MAX, |(seq, _)| *seq);
        let expected: Vec<_> = log.iter().filter(|(seq, _)| *seq >= first).cloned().collect();
        assert_eq!(read.last(), expected.last(), "{name}: it stopped early");
        assert!(read == expected, "{name}: {} of {} events", read.len(), expected.len());
        if gaps == 0 {
            let start = scenario.client.after;
            assert_eq!(read.len(), log.iter().filter(|(seq, _)| *seq > start).count(), "{name}");
        }
        if let Some(streaming) = &scenario.streaming {
            let used = self.seen.iter().rev().find_map(|report| report["streaming"].as_str());
            assert_eq!(used, Some(streaming.as_str()), "{name}");
        }
        if let Some(turns) = scenario.turns {
            let list = self.server().get("/v1/sessions");
            let sessions = list["sessions"].as_array().expect("a list");
            assert_eq!(sessions.len(), 1, "{name}: {list}");
            assert_eq!(sessions[0]["turns"], turns, "{name}: {list}");
        }
    }

    /// The numbers and types of all events, as the server has them.
    fn log(&self, session: &str, profile: &str) -> Vec<(u64, Value)> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let path =
                format!("/v1/sessions/{session}/events?after={after}&limit=1000&profile={profile}");
            let page = self.server().get(&path);
            for event in page["events"].as_array().expect("events") {
                all.push((event["seq"].as_u64().expect("a number"), event["type"].clone()));
            }
            after = page["next"].as_u64().expect("a number");
            if page["last"].as_u64() <= Some(after) {
                return all;
            }
        }
    }
}

/// Copies a directory, with links as they are.
fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp runs").success());
}
