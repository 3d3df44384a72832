//! A client of the unified protocol. It reads every session twice: live and complete, then from the start
//! in profile `core`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agentwire_protocol::{Event, EventKind};
use serde_json::{Value, json};

use super::{Case, Heard, Row, Speaker, answers, mcp_answer};

pub(super) const ROW: Row = Row {
    name: "unified",
    args: &["unified"],
    sessions: 8,
    speaker: |_| Box::new(Unified::default()),
};

/// The specification's own events.
const CORE: [&str; 12] = [
    "sessionStarted",
    "sessionEnded",
    "turnStarted",
    "turnCompleted",
    "turnFailed",
    "textChunk",
    "toolStarted",
    "toolProgress",
    "toolCompleted",
    "toolFailed",
    "fileChanged",
    "error",
];

#[derive(Default)]
struct Unified {
    /// Calls without a reply so far.
    calls: BTreeMap<String, Asked>,
    next: usize,
    sessions: BTreeMap<String, Session>,
}

enum Asked {
    Start(usize),
    Prompt(usize),
    Finish,
    Settle(String, String),
    Again(String),
}

/// What was read of a session.
#[derive(Default)]
struct Session {
    number: usize,
    seq: u64,
    is_over: bool,
    /// This is the second reading, in profile `core`.
    is_again: bool,
    turns: usize,
    open_turns: usize,
    tools: BTreeSet<String>,
    requests: BTreeSet<String>,
}

impl Unified {
    fn call(&mut self, mut frame: Value, asked: Asked) -> Value {
        self.next += 1;
        let id = format!("call {}", self.next);
        frame["id"] = json!(id);
        self.calls.insert(id, asked);
        frame
    }

    fn session(&self, number: usize) -> &str {
        let found = self.sessions.iter().find(|(_, session)| session.number == number);
        found.map(|(id, _)| id).expect("the session has started")
    }

    fn reply(&mut self, frame: &Value, line: &str, heard: &mut Vec<Heard>) {
        let asked =
            self.calls.remove(frame["id"].as_str().expect(line)).expect("one reply per call");
        let error = frame.get("error").map(|error| {
            assert!(error["message"].is_string(), "{line}");
            error["code"].as_str().expect(line).to_owned()
        });
        assert!(error.is_some() != frame.get("reply").is_some(), "{line}");
        match (asked, error) {
            (Asked::Start(number), None) => {
                let id = frame["reply"]["id"].as_str().expect(line).to_owned();
                assert!(frame["reply"]["state"].is_string(), "{line}");
                self.sessions.insert(id, Session { number, ..Session::default() });
            }
            (Asked::Start(number), Some(_)) => heard.push(Heard::Refused(number, line.to_owned())),
            (Asked::Prompt(number), Some(_)) => heard.push(Heard::TurnOver(number)),
            (Asked::Settle(session, request), Some(code)) => match &*code {
                // Another client was first, or the agent is gone.
                "requestSettled" | "requestNotFound" | "sessionNotFound" | "agentFailed" => {}
                _ => {
                    let settle = json!({ "command": "settle", "sessionId": session,
                        "requestId": request, "behavior": "deny", "message": "cannot" });
                    let asked = Asked::Settle(session, request);
                    heard.push(Heard::Answer(self.call(settle, asked)));
                }
            },
            (Asked::Again(id), None) => {
                let session = self.sessions.get_mut(&id).expect("a session");
                assert_eq!(frame["reply"]["lastSeq"], session.seq, "{line}");
                *session = Session { number: session.number, is_again: true, ..Session::default() };
            }
            (Asked::Again(_), Some(_)) => panic!("{line}"),
            (Asked::Prompt(_) | Asked::Finish | Asked::Settle(..), None)
            | (Asked::Finish, Some(_)) => {}
        }
    }

    fn event(&mut self, frame: &Value, line: &str, heard: &mut Vec<Heard>) {
        let event = Event::from_json(line).expect("an event");
        let id = frame["sessionId"].as_str().expect(line).to_owned();
        let session = self.sessions.get_mut(&id).expect("an event of a known session");
        assert!(!session.is_over, "after the end: {line}");
        let seq = frame["seq"].as_u64().expect(line);
        assert!(seq == session.seq + 1 || session.is_again && seq > session.seq, "{line}");
        assert!(seq > 1 || frame["type"] == "sessionStarted", "{line}");
        session.seq = seq;
        for name in ["id", "timestamp", "agentId"] {
            assert!(frame[name].is_string(), "{name}: {line}");
        }
        if session.is_again {
            assert!(CORE.contains(&frame["type"].as_str().expect(line)), "{line}");
            assert!(frame.get("native").is_none(), "{line}");
            let fields = frame.as_object().expect(line);
            assert!(fields.values().all(|value| !value.is_null()), "{line}");
        }
        let text = |name: &str| frame[name].as_str().expect(line).to_owned();
        match event.kind {
            EventKind::TurnStarted(_) => session.open_turns += 1,
            EventKind::TurnCompleted(_) | EventKind::TurnFailed(_) => {
                session.open_turns =
                    session.open_turns.checked_sub(1).expect("a turn that has started");
                session.turns += 1;
                if !session.is_again {
                    heard.push(Heard::TurnOver(session.number));
                }
            }
            EventKind::ToolStarted(_) => {
                assert!(session.tools.insert(text("toolId")), "{line}");
            }
            EventKind::ToolCompleted(_) | EventKind::ToolFailed(_) => {
                // An agent may report the end of a tool call that never started.
                session.tools.remove(&text("toolId"));
            }
            EventKind::RequestRaised(_) => {
                assert!(session.requests.insert(text("requestId")), "{line}");
                let answer = self.answer(frame, &id);
                heard.push(Heard::Answer(answer));
            }
            EventKind::RequestSettled(_) => {
                assert!(session.requests.remove(&text("requestId")), "{line}");
            }
            EventKind::SessionEnded(_) => {
                session.is_over = true;
                let open = (session.open_turns, &session.tools, &session.requests);
                assert_eq!(open, (0, &BTreeSet::new(), &BTreeSet::new()), "{line}");
                if session.is_again {
                    heard.push(Heard::Over(session.number));
                } else {
                    let attach = json!({ "command": "attach", "sessionId": id, "profile": "core" });
                    heard.push(Heard::Answer(self.call(attach, Asked::Again(id))));
                }
            }
            EventKind::Unknown(_) => panic!("{line}"),
            EventKind::SessionStarted(_)
            | EventKind::TextChunk(_)
            | EventKind::ToolProgress(_)
            | EventKind::FileChanged(_)
            | EventKind::Error(_)
            | EventKind::ThinkingChunk(_)
            | EventKind::PlanUpdated(_)
            | EventKind::AgentSpawned(_)
            | EventKind::AgentFinished(_)
            | EventKind::StatusChanged(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_) => {}
        }
    }

    fn answer(&mut self, request: &Value, session: &str) -> Value {
        let id = &request["requestId"];
        let mut settle = json!({ "command": "settle", "sessionId": session, "requestId": id });
        match request["kind"].as_str().expect("a kind") {
            "permission" => settle["behavior"] = json!("allow"),
            "question" => {
                settle["behavior"] = json!("allow");
                settle["answers"] = answers(&request["questions"]);
            }
            "hook" | "other" => settle["hookOutput"] = json!({}),
            "mcp" => settle["hookOutput"] = mcp_answer(&request["input"]),
            kind => panic!("{kind} is not a request"),
        }
        let id = id.as_str().expect("an id").to_owned();
        self.call(settle, Asked::Settle(session.to_owned(), id))
    }
}

impl Speaker for Unified {
    fn start(&mut self, session: usize, case: &Case, place: &Path) -> Vec<Value> {
        let start = json!({ "command": "start", "agentType": case.agent.name,
            "prompt": case.prompts[0], "config": { "workingDirectory": place } });
        vec![self.call(start, Asked::Start(session))]
    }

    fn prompt(&mut self, session: usize, text: &str) -> Vec<Value> {
        let id = self.session(session);
        let prompt = json!({ "command": "prompt", "sessionId": id, "prompt": text });
        vec![self.call(prompt, Asked::Prompt(session))]
    }

    fn finish(&mut self, session: usize) -> Vec<Value> {
        let id = self.session(session);
        let stop = json!({ "command": "stop", "sessionId": id });
        vec![self.call(stop, Asked::Finish)]
    }

    fn hear(&mut self, line: &str, heard: &mut Vec<Heard>) {
        let frame: Value = serde_json::from_str(line).expect("a line is JSON");
        match frame.get("type").is_some() {
            true => self.event(&frame, line, heard),
            false => self.reply(&frame, line, heard),
        }
    }

    fn end(&mut self) -> i32 {
        assert!(self.calls.is_empty(), "without a reply: {:?}", self.calls.keys());
        0
    }
}
