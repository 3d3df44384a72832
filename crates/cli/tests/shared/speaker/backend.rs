//! A client of the NDJSON backend.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::claude::Messages;
use super::{Case, Heard, Row, Speaker, answers};

pub(super) const ROW: Row = Row {
    name: "backend",
    args: &["backend"],
    sessions: 8,
    speaker: |cases| {
        let messages = cases.iter().map(|case| Some(Messages::of(case))).collect();
        Box::new(Backend { messages, ..Backend::default() })
    },
};

#[derive(Default)]
struct Backend {
    /// Calls without a reply so far.
    calls: BTreeMap<String, Asked>,
    next: usize,
    /// The expected messages of each session, until its id is known.
    messages: Vec<Option<Messages>>,
    sessions: BTreeMap<String, (usize, Messages)>,
    /// Requests so far, of all sessions.
    asked: BTreeSet<String>,
}

enum Asked {
    Create(usize),
    Send(usize),
    Kill(usize),
}

#[derive(Deserialize)]
struct Frame<'f> {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    session_id: Option<String>,
    #[serde(borrow)]
    payload: &'f RawValue,
}

impl Backend {
    fn call(&mut self, kind: &str, session: Option<&str>, payload: &Value, asked: Asked) -> Value {
        self.next += 1;
        let id = format!("call-{}", self.next);
        let mut frame = json!({ "type": kind, "id": id, "payload": payload });
        if let Some(session) = session {
            frame["session_id"] = json!(session);
        }
        self.calls.insert(id, asked);
        frame
    }

    fn id(&self, number: usize) -> String {
        let found = self.sessions.iter().find(|(_, (known, _))| *known == number);
        found.map(|(id, _)| id.clone()).expect("the session has started")
    }

    fn callback(&mut self, frame: &Frame<'_>, line: &str) -> Value {
        let id = frame.id.as_deref().expect(line);
        assert!(self.asked.insert(id.to_owned()), "asked twice: {line}");
        let payload: Value = serde_json::from_str(frame.payload.get()).expect(line);
        let answer = match payload["callback_type"].as_str().expect(line) {
            "can_use_tool" => {
                assert!(payload["tool_name"].is_string(), "{line}");
                let mut input = payload["tool_input"].clone();
                assert!(input.is_object(), "{line}");
                if payload["tool_name"] == "AskUserQuestion" {
                    input["answers"] = answers(&input["questions"]);
                }
                json!({ "behavior": "allow", "updated_input": input })
            }
            "hook" => {
                assert!(payload["hook_event"].is_string(), "{line}");
                assert!(payload["hook_input"].is_object(), "{line}");
                json!({ "continue": true })
            }
            _ => panic!("{line}"),
        };
        json!({ "type": "callback.response", "id": id, "session_id": frame.session_id,
            "payload": answer })
    }
}

impl Speaker for Backend {
    fn start(&mut self, session: usize, case: &Case, place: &Path) -> Vec<Value> {
        let payload = json!({ "prompt": case.prompts[0], "cwd": place,
            "options": { "include_partial_messages": true } });
        vec![self.call("session.create", None, &payload, Asked::Create(session))]
    }

    fn prompt(&mut self, session: usize, text: &str) -> Vec<Value> {
        let id = self.id(session);
        vec![self.call(
            "session.send",
            Some(&id),
            &json!({ "message": text }),
            Asked::Send(session),
        )]
    }

    fn finish(&mut self, session: usize) -> Vec<Value> {
        let id = self.id(session);
        vec![self.call("session.kill", Some(&id), &json!({}), Asked::Kill(session))]
    }

    fn hear(&mut self, line: &str, heard: &mut Vec<Heard>) {
        let frame: Frame<'_> = serde_json::from_str(line).expect(line);
        let asked = frame.id.as_ref().and_then(|id| self.calls.remove(id));
        match (&*frame.kind, asked) {
            ("session.created", Some(Asked::Create(number))) => {
                let id = frame.session_id.expect(line);
                let payload: Value = serde_json::from_str(frame.payload.get()).expect(line);
                assert!(payload["sdk_session_id"].is_string(), "{line}");
                let messages = self.messages[number].take().expect("created once");
                assert!(self.sessions.insert(id, (number, messages)).is_none(), "{line}");
            }
            ("sdk.message", None) => {
                let id = frame.session_id.expect(line);
                let (number, messages) = self.sessions.get_mut(&id).expect("a session");
                if messages.line(frame.payload.get()) {
                    heard.push(Heard::TurnOver(*number));
                }
            }
            ("callback.request", None) => {
                let answer = self.callback(&frame, line);
                heard.push(Heard::Answer(answer));
            }
            ("session.killed", Some(Asked::Kill(number))) => heard.push(Heard::Over(number)),
            ("error", asked) => {
                let payload: Value = serde_json::from_str(frame.payload.get()).expect(line);
                assert!(payload["message"].is_string(), "{line}");
                match (asked, payload["code"].as_str().expect(line)) {
                    (Some(Asked::Create(number)), _) => {
                        heard.push(Heard::Refused(number, line.to_owned()));
                    }
                    (Some(Asked::Send(number)), _) => heard.push(Heard::TurnOver(number)),
                    (Some(Asked::Kill(number)), _) => heard.push(Heard::Over(number)),
                    // Another client settled it, or its agent is gone.
                    (None, "CALLBACK_NOT_FOUND" | "SESSION_NOT_FOUND") => {
                        let id = frame.id.expect(line);
                        assert!(self.asked.contains(&id), "{line}");
                    }
                    // If the agent does not support the answer, deny instead.
                    (None, "INVALID_MESSAGE")
                        if frame.id.as_ref().is_some_and(|id| self.asked.contains(id)) =>
                    {
                        heard.push(Heard::Answer(json!({ "type": "callback.response",
                            "id": frame.id, "session_id": frame.session_id,
                            "payload": { "behavior": "deny", "message": "cannot" } })));
                    }
                    (None, "SDK_ERROR" | "CALLBACK_TIMEOUT") => {}
                    _ => panic!("{line}"),
                }
            }
            _ => panic!("{line}"),
        }
    }

    fn end(&mut self) -> i32 {
        // A message gets a reply only if it fails.
        self.calls.retain(|_, asked| !matches!(asked, Asked::Send(_)));
        assert!(self.calls.is_empty(), "without a reply: {:?}", self.calls.keys());
        self.sessions.values().for_each(|(_, messages)| messages.end());
        0
    }
}
