//! Every recording, through the fronts: properties that hold for all and that scripts cannot express.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod backend;
mod board;
mod insights;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_dialects::claude::{ClaudeFront, FrontOptions};
use agentwire_dialects::front::{Effect, Front, GatewayReply, Outbox};
use agentwire_dialects::jsonrpc::JsonRpc;
use agentwire_protocol::{AgentType, Event, NewSession, SessionId};
use common::Case;
use serde_json::{Value, json};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

/// A front whose session runs after the client's first line.
struct Watched {
    front: Box<dyn Front>,
    out: Outbox,
    /// How many calls went to the gateway since the last check.
    asks: usize,
}

impl Watched {
    fn new(mut front: Box<dyn Front>, agent: AgentType, first: &str) -> Self {
        let mut out = Outbox::default();
        front.on_open(&mut out);
        front.on_line(first.as_bytes(), &mut out);
        let call = out.take().into_iter().find_map(|effect| match effect {
            Effect::Call(call, _) => Some(call),
            _ => None,
        });
        let session = json!({
            "id": SESSION, "agentType": agent, "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": 0, "turns": 0, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        });
        let session = Box::new(serde_json::from_value(session).expect("a session"));
        let started = GatewayReply::Started { session, after: 0 };
        front.on_reply(call.expect("a start"), Ok(started), &mut out);
        out.take();
        Self { front, out, asks: 0 }
    }

    /// What the front sends for an event.
    fn event(&mut self, event: &str) -> Vec<String> {
        self.front.on_event(&SessionId::from(SESSION), event, &mut self.out);
        self.front.on_pause(&SessionId::from(SESSION), &mut self.out);
        self.said()
    }

    fn end(&mut self) -> Vec<String> {
        self.front.on_end(&SessionId::from(SESSION), &mut self.out);
        self.said()
    }

    fn said(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        for effect in self.out.take() {
            match effect {
                Effect::Send(line) => said.push(String::from_utf8(line).expect("UTF-8")),
                Effect::Call(..) => self.asks += 1,
                _ => {}
            }
        }
        said
    }
}

fn events(case: &Case) -> Vec<String> {
    let events = common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
    events.iter().map(|event| event.trim_end().to_owned()).collect()
}

/// All lines are JSON-RPC, the messages are the renderer's byte for byte, and the run is answered once.
#[test]
fn every_agent_can_be_watched_over_json_rpc() {
    const RUN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"a","events":true,"options":{"include_partial_messages":true}}}"#;
    for case in common::cases() {
        let name = format!("{}/{}", case.dialect.name(), case.name);
        let mut client =
            Watched::new(Box::new(JsonRpc::new(AgentType::Demo)), AgentType::Codex, RUN);
        let mut renderer = Renderer::new(Options { partial: true });
        let mut replies = 0;
        for line in events(&case) {
            let mut said = client.event(&line).into_iter();
            assert_eq!(said.next(), Some(notification("event", &line)), "{name}");
            let event = Event::from_json(&line).expect("an event");
            renderer.event(&event, &mut |message| {
                if is_promised(message) {
                    // A lone surrogate would make the frame unreadable.
                    let message = agentwire_dialects::json::without_lone_surrogates(message);
                    assert_eq!(said.next(), Some(notification("message", &message)), "{name}");
                }
            });
            replies += said.filter(|said| is_reply(said, event.kind.name(), &name)).count();
        }
        replies += client.end().len();
        assert_eq!(replies, 1, "{name}");
    }
}

fn notification(name: &str, what: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"{name}","params":{{"sessionId":"{SESSION}","{name}":{what}}}}}"#
    )
}

/// Whether it is the reply to the run. Anything else that follows the messages of an event is checked.
fn is_reply(said: &str, kind: &str, name: &str) -> bool {
    let said = mended(said);
    let expected = match said["method"].as_str() {
        Some("message") => match said["params"]["message"]["subtype"].as_str() {
            Some("error") => "error",
            Some("warning") => "statusChanged",
            _ => panic!("{name}: {said}"),
        },
        Some("session/ended") => "sessionEnded",
        Some("request") => "requestRaised",
        Some("request/settled") => "requestSettled",
        Some(_) => panic!("{name}: {said}"),
        None => {
            assert_eq!(said["id"], 1, "{name}: {said}");
            let is_result = said["result"]["type"] == "result";
            assert!(is_result || said["error"]["code"] == -32000, "{name}: {said}");
            return true;
        }
    };
    assert_eq!(kind, expected, "{name}: {said}");
    false
}

/// Claude's other messages are in the events.
fn is_promised(message: &str) -> bool {
    let message = mended(message);
    let promised = ["assistant", "user", "system", "result", "stream_event"];
    promised.iter().any(|kind| message["type"] == *kind)
}

/// An agent's own text is passed on unchanged, even if parsers differ on it.
fn mended(text: &str) -> Value {
    let text = agentwire_dialects::json::repair(text).expect("JSON");
    serde_json::from_str(&text).expect("JSON")
}

/// A client on Claude's wire sees what the agent asks for now, whatever was shown of the call before.
#[test]
fn what_is_asked_for_is_shown_over_claudes_wire() {
    let mut seen = 0;
    for case in common::cases().into_iter().filter(|case| case.dialect.name() == "acp") {
        let options = FrontOptions {
            new: NewSession::of(AgentType::Codex),
            asks_client: true,
            partial: false,
            replays: false,
            may_bypass: false,
            pid: 7,
        };
        let first = r#"{"type":"user","message":{"content":"hi"}}"#;
        let mut client = Watched::new(Box::new(ClaudeFront::new(options)), AgentType::Codex, first);
        let said = events(&case).iter().flat_map(|event| client.event(event)).collect::<Vec<_>>();
        let said = said.iter().map(|said| mended(said));
        for asked in said.filter(|said| said["type"] == "control_request") {
            let input = &asked["request"]["input"];
            match case.name.as_str() {
                "edge-permission-for-other-input" => assert_eq!(input["command"], "rm -rf ~"),
                "real-write-nofs-allow" => {
                    assert_eq!(input["file_path"], "/workspace/project/new.txt");
                    assert_eq!(input["content"], "alpha\nbeta\n");
                }
                _ => continue,
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 2);
}
