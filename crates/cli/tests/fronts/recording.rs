//! Turns a fixture into a conversation: what the agent wrote, and where its client must have sent
//! something.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// An agent and the driver to use with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    pub(crate) driver: Option<&'static str>,
}

pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) agent: Agent,
    /// The prompts it has answers for.
    pub(crate) prompts: Vec<String>,
    /// The input of `agentwire play`.
    pub(crate) text: Vec<u8>,
}

const CLAUDE: Agent = Agent { name: "claude", driver: None };
const APP_SERVER: Agent = Agent { name: "codex", driver: None };
const EXEC: Agent = Agent { name: "codex", driver: Some("exec") };
const GEMINI: Agent = Agent { name: "gemini", driver: Some("stream-json") };
pub(crate) const DEMO: Agent = Agent { name: "demo", driver: None };
const ACP: Agent = Agent { name: "acp", driver: None };

pub(crate) fn recordings(folder: &str) -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures").join(folder);
    let cases = fs::read_dir(root).expect("a folder of fixtures");
    let mut all: Vec<Recording> = cases
        .map(|case| {
            let case = case.expect("a case");
            let name = format!("{folder}/{}", case.file_name().to_string_lossy());
            let bytes = fs::read(case.path().join("agent.jsonl")).expect("what the agent wrote");
            recording(name, folder, bytes)
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(all.len() > 40, "the fixtures are missing");
    all
}

fn recording(name: String, folder: &str, bytes: Vec<u8>) -> Recording {
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let messages: Vec<Line<'_>> =
        text.lines().filter(|line| !line.trim().is_empty()).map(Line::new).collect();
    let is_exec = |line: &Line<'_>| line.message["type"].as_str().is_some_and(|t| t.contains('.'));
    let (agent, conversation) = match folder {
        "claude" => (CLAUDE, Some(claude(&messages))),
        "codex" if messages.iter().any(is_exec) || name.contains("exec") => (EXEC, None),
        "codex" => (APP_SERVER, Some(app_server(&messages))),
        "gemini" => (GEMINI, None),
        "acp" => (ACP, Some(acp(&messages))),
        _ => panic!("{folder} belongs to no agent"),
    };
    let mut told = messages.iter().filter_map(prompt_of);
    let mut words = |count: usize| {
        (1..=count).map(|turn| told.next().unwrap_or(format!("prompt {turn}"))).collect()
    };
    match conversation {
        Some(Script { entries, prompts }) if !text.is_empty() => {
            Recording { name, agent, prompts: words(prompts), text: entries.into_bytes() }
        }
        // These agents run one process per turn; or the fixture is not text and can only be played as it
        // is.
        Some(_) | None => Recording { name, agent, prompts: words(1), text: bytes },
    }
}

/// The prompt that the agent repeats, verbatim.
fn prompt_of(line: &Line<'_>) -> Option<String> {
    let (message, item) = (&line.message, &line.message["params"]["item"]);
    let text = match (message["type"].as_str(), message["method"].as_str()) {
        (Some("message"), _) if message["role"] == "user" => &message["content"],
        (_, Some("item/started")) if item["type"] == "userMessage" => &item["content"][0]["text"],
        _ => return None,
    };
    text.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

struct Line<'l> {
    text: &'l str,
    message: Value,
}

impl<'l> Line<'l> {
    fn new(text: &'l str) -> Self {
        Self { text, message: serde_json::from_str(text).unwrap_or_default() }
    }

    /// Whether it answers a call of the client.
    fn is_reply(&self) -> bool {
        self.message.get("id").is_some() && self.message.get("method").is_none()
    }

    /// Whether it is a request that waits for the client.
    fn is_call(&self) -> bool {
        self.message.get("id").is_some() && self.message.get("method").is_some()
    }

    fn result(&self, name: &str) -> bool {
        self.is_reply() && self.message["result"].get(name).is_some()
    }
}

/// A transcript under construction.
#[derive(Default)]
struct Script {
    entries: String,
    prompts: usize,
}

impl Script {
    fn agent(&mut self, line: &str) {
        self.entries += &format!("{}\n", json!({ "dir": "out", "raw": line }));
    }

    fn client(&mut self, line: &Value) {
        self.entries += &format!("{}\n", json!({ "dir": "in", "line": line }));
    }

    /// A call of the client and the agent's reply.
    fn call(&mut self, method: &str, reply: &Line<'_>) {
        self.client(&json!({ "id": reply.message["id"], "method": method }));
        self.agent(reply.text);
    }

    /// The agent exits while its client is still connected.
    fn exit(&mut self) {
        self.entries += "{\"dir\":\"exit\",\"code\":0}\n";
    }
}

fn claude(lines: &[Line<'_>]) -> Script {
    let mut script = Script::default();
    let kind = |line: &Line<'_>| line.message["type"].as_str().unwrap_or_default().to_owned();
    let greets = |line: &&Line<'_>| line.message["response"]["response"].get("commands").is_some();
    let greeting = lines.iter().find(greets);
    let id = greeting.map_or(json!("init"), |line| line.message["response"]["request_id"].clone());
    script.client(&json!({ "type": "control_request", "request_id": id,
        "request": { "subtype": "initialize" } }));
    match greeting {
        Some(greeting) => script.agent(greeting.text),
        None => script.agent(
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"init","response":{"commands":[],"models":[]}}}"#,
        ),
    }
    // A turn that Claude started by itself has an origin.
    let is_asked = |line: &&Line<'_>| kind(line) == "result" && line.message["origin"].is_null();
    let mut results = lines.iter().filter(is_asked).count();
    let ends = lines.iter().any(|line| kind(line) == "result");
    let prompt = |script: &mut Script| {
        script.client(&json!({ "type": "user" }));
        script.prompts += 1;
    };
    prompt(&mut script);
    for line in lines.iter().filter(|line| !greets(line)) {
        script.agent(line.text);
        match &*kind(line) {
            "control_request" => {
                let id = &line.message["request_id"];
                script.client(
                    &json!({ "type": "control_response", "response": { "request_id": id } }),
                );
            }
            "result" if is_asked(&line) => {
                results -= 1;
                if results > 0 {
                    prompt(&mut script);
                }
            }
            _ => {}
        }
    }
    if !ends {
        script.exit();
    }
    script
}

fn app_server(lines: &[Line<'_>]) -> Script {
    let mut script = Script::default();
    let thread = lines.iter().find_map(|line| line.message["params"]["threadId"].as_str());
    let thread = thread.unwrap_or("thread-1");
    let turn = lines.iter().find_map(|line| line.message["params"]["turnId"].as_str());
    let opening = BTreeMap::from([
        ("userAgent", json!({ "id": 901, "result": { "userAgent": "codex/0.166.0 (x)" } })),
        ("thread", json!({ "id": 902, "result": { "thread": { "id": thread }, "model": "m" } })),
        (
            "turn",
            json!({ "id": 903, "result": { "turn": {
            "id": turn.unwrap_or("turn-1"), "items": [], "status": "inProgress", "error": null,
        } } }),
        ),
    ]);
    let has = |name: &str| lines.iter().any(|line| line.result(name));
    let (has_thread, has_turns) = (has("thread"), has("turn"));
    let mut is_threaded = false;
    // The running turn.
    let mut open = None;
    let begin = |script: &mut Script, reply: &Line<'_>| {
        script.call("turn/start", reply);
        script.prompts += 1;
        Some(reply.message["result"]["turn"]["id"].clone())
    };
    let unrecorded = |name: &str| opening[name].to_string();
    if !has("userAgent") {
        script.call("initialize", &Line::new(&unrecorded("userAgent")));
    }
    for line in std::iter::once(None).chain(lines.iter().map(Some)) {
        // Unrecorded messages get typical content and are sent as early as possible.
        let is_greeted = !has("userAgent") || line.is_some_and(|line| line.result("userAgent"));
        match line {
            Some(line) if line.result("userAgent") => script.call("initialize", line),
            Some(line) if line.result("thread") && !is_threaded => {
                is_threaded = true;
                script.call("thread/start", &Line::new(&asking(line.text)));
                if !has_turns {
                    open = begin(&mut script, &Line::new(&unrecorded("turn")));
                }
            }
            Some(line) if line.result("turn") && open.is_none() => open = begin(&mut script, line),
            Some(line) => {
                script.agent(line.text);
                if line.is_call() {
                    script.client(&json!({ "id": line.message["id"], "result": {} }));
                }
                let ended = &line.message["params"]["turn"]["id"];
                open.take_if(|id| line.message["method"] == "turn/completed" && id == ended);
            }
            None => {}
        }
        if is_greeted && !has_thread && !is_threaded {
            is_threaded = true;
            script.call("thread/start", &Line::new(&unrecorded("thread")));
            if !has_turns {
                open = begin(&mut script, &Line::new(&unrecorded("turn")));
            }
        }
    }
    if open.is_some() {
        script.exit();
    }
    script
}

/// Replaces the recorded approval policy with the one that agentwire requires.
fn asking(text: &str) -> String {
    ["on-request", "never"].iter().fold(text.to_owned(), |text, policy| {
        let recorded = format!(r#""approvalPolicy":"{policy}""#);
        text.replace(&recorded, r#""approvalPolicy":"untrusted""#)
    })
}

fn acp(lines: &[Line<'_>]) -> Script {
    let mut script = Script::default();
    let session = lines.iter().find_map(|line| line.message["params"]["sessionId"].as_str());
    let session = session.unwrap_or("session-1");
    let creates = |line: &Line<'_>| line.result("sessionId");
    let greeting = lines.iter().find(|line| line.result("protocolVersion") || creates(line));
    let greeting = greeting.filter(|line| !creates(line)).map(|line| line.text);
    let opens = |line: &Line<'_>| greeting == Some(line.text);
    if !lines.iter().any(opens) {
        let reply = json!({ "jsonrpc": "2.0", "id": 901, "result": { "protocolVersion": 1, "agentCapabilities": {} } });
        script.call("initialize", &Line::new(&reply.to_string()));
    }
    let ends = |line: &Line<'_>| {
        line.result("stopReason") || line.is_reply() && line.message.get("error").is_some()
    };
    let mut is_created = false;
    if !lines.iter().any(creates) && !lines.iter().any(opens) {
        let reply = json!({ "jsonrpc": "2.0", "id": 902, "result": { "sessionId": session } });
        script.call("session/new", &Line::new(&reply.to_string()));
        is_created = true;
    }
    let has_session = lines.iter().any(creates);
    let mut prompted = None;
    let prompt = |script: &mut Script, rest: &[Line<'_>]| {
        let reply = rest.iter().find(|line| ends(line));
        let id = reply.map_or(json!(903), |line| line.message["id"].clone());
        script.client(&json!({ "id": id, "method": "session/prompt" }));
        script.prompts += 1;
        Some(id)
    };
    for (at, line) in lines.iter().enumerate() {
        let rest = &lines[at..];
        if opens(line) {
            script.call("initialize", line);
            continue;
        }
        // The recorded client had asked for these modes. Ours never does, and ends an agent that enters
        // one.
        if ["autoEdit", "yolo"]
            .iter()
            .any(|mode| line.text.contains(&format!("[MODE_UPDATE] {mode}")))
        {
            continue;
        }
        let is_created_here = match has_session {
            true => creates(line),
            false => line.is_reply(),
        };
        if !is_created && is_created_here {
            is_created = true;
            script.call("session/new", line);
            continue;
        }
        if is_created && prompted.is_none() {
            prompted = prompt(&mut script, rest);
        }
        script.agent(line.text);
        if line.is_call() {
            script.client(&json!({ "id": line.message["id"], "result": {} }));
        }
        if ends(line) {
            prompted = None;
        }
    }
    if script.prompts == 0 {
        prompted = prompt(&mut script, &[]);
    }
    if let Some(id) = prompted {
        let reply = json!({ "jsonrpc": "2.0", "id": id, "result": { "stopReason": "end_turn" } });
        script.agent(&reply.to_string());
    }
    script
}
