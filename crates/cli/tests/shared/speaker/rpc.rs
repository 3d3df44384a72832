//! A client of JSON-RPC 2.0.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agentwire_dialects::json::repair;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::claude::Messages;
use super::{Case, Heard, Row, Speaker, answers, mcp_answer};

pub(super) const ROW: Row = Row {
    name: "rpc",
    args: &["rpc"],
    sessions: 8,
    speaker: |cases| {
        let messages = cases.iter().map(|case| Some(Messages::of(case).framed())).collect();
        Box::new(Rpc { messages, ..Rpc::default() })
    },
};

#[derive(Default)]
struct Rpc {
    /// Calls without a reply so far.
    calls: BTreeMap<u64, Asked>,
    next: u64,
    /// The expected messages of each session, until its id is known.
    messages: Vec<Option<Messages>>,
    sessions: BTreeMap<String, Session>,
}

enum Asked {
    Create(usize, String),
    Run(String),
    Kill(usize),
    Settle(String, Value),
}

struct Session {
    number: usize,
    messages: Messages,
    requests: BTreeSet<String>,
    runs: usize,
    last: Option<Value>,
}

#[derive(Deserialize)]
struct Frame<'f> {
    jsonrpc: String,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'f RawValue>,
    id: Option<u64>,
    result: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'f> {
    session_id: String,
    #[serde(borrow)]
    message: Option<&'f RawValue>,
    request: Option<Value>,
    request_id: Option<String>,
}

impl Rpc {
    fn call(&mut self, method: &str, params: &Value, asked: Asked) -> Value {
        self.next += 1;
        self.calls.insert(self.next, asked);
        json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })
    }

    fn id(&self, number: usize) -> String {
        let found = self.sessions.iter().find(|(_, session)| session.number == number);
        found.map(|(id, _)| id.clone()).expect("the session has started")
    }

    fn run(&mut self, id: String, prompt: &str) -> Value {
        let params = json!({ "sessionId": id, "prompt": prompt });
        self.call("run", &params, Asked::Run(id))
    }

    fn reply(&mut self, frame: Frame<'_>, line: &str, heard: &mut Vec<Heard>) {
        let asked = self.calls.remove(&frame.id.expect(line)).expect("one reply per call");
        let reply = match (frame.result, frame.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => {
                assert!(error["message"].is_string() && error["code"].is_i64(), "{line}");
                Err(error["data"]["code"].as_str().expect(line).to_owned())
            }
            _ => panic!("{line}"),
        };
        match (asked, reply) {
            (Asked::Create(number, prompt), Ok(created)) => {
                let id = created["sessionId"].as_str().expect(line).to_owned();
                let messages = self.messages[number].take().expect("created once");
                let session =
                    Session { number, messages, requests: BTreeSet::new(), runs: 0, last: None };
                assert!(self.sessions.insert(id.clone(), session).is_none(), "{line}");
                let run = self.run(id, &prompt);
                heard.push(Heard::Answer(run));
            }
            (Asked::Create(number, _), Err(_)) => {
                heard.push(Heard::Refused(number, line.to_owned()));
            }
            (Asked::Run(id), reply) => {
                let session = self.sessions.get_mut(&id).expect("a session");
                session.runs += 1;
                if let Ok(mut result) = reply {
                    assert_eq!(result["sessionId"], *id, "{line}");
                    result.as_object_mut().expect(line).remove("sessionId");
                    assert_eq!(session.last, Some(result), "the reply is the turn's result");
                }
                heard.push(Heard::TurnOver(session.number));
            }
            (Asked::Kill(number), _) => heard.push(Heard::Over(number)),
            (Asked::Settle(id, mut settle), Err(code)) => match &*code {
                "requestSettled" | "requestNotFound" | "sessionNotFound" | "agentFailed" => {}
                _ => {
                    settle = json!({ "sessionId": id, "requestId": settle["requestId"],
                        "behavior": "deny", "message": "cannot" });
                    let asked = Asked::Settle(id, settle.clone());
                    heard.push(Heard::Answer(self.call("request/settle", &settle, asked)));
                }
            },
            (Asked::Settle(..), Ok(_)) => {}
        }
    }

    fn request(&mut self, id: &str, request: &Value, line: &str) -> Value {
        let session = self.sessions.get_mut(id).expect("a session");
        let request_id = request["requestId"].as_str().expect(line);
        assert!(session.requests.insert(request_id.to_owned()), "{line}");
        let mut settle = json!({ "sessionId": id, "requestId": request_id });
        match request["kind"].as_str().expect(line) {
            "permission" => settle["behavior"] = json!("allow"),
            "question" => settle["answers"] = answers(&request["questions"]),
            "hook" | "other" => settle["hookOutput"] = json!({}),
            "mcp" => settle["hookOutput"] = mcp_answer(&request["input"]),
            _ => panic!("{line}"),
        }
        self.call("request/settle", &settle, Asked::Settle(id.to_owned(), settle.clone()))
    }
}

impl Speaker for Rpc {
    fn start(&mut self, session: usize, case: &Case, place: &Path) -> Vec<Value> {
        let params = json!({ "agent": case.agent.name, "cwd": place,
            "options": { "includePartialMessages": true } });
        vec![self.call("session/create", &params, Asked::Create(session, case.prompts[0].clone()))]
    }

    fn prompt(&mut self, session: usize, text: &str) -> Vec<Value> {
        vec![self.run(self.id(session), text)]
    }

    fn finish(&mut self, session: usize) -> Vec<Value> {
        let params = json!({ "sessionId": self.id(session) });
        vec![self.call("session/kill", &params, Asked::Kill(session))]
    }

    fn hear(&mut self, line: &str, heard: &mut Vec<Heard>) {
        // Claude's own numbers may be too large for a parser.
        let mended = repair(line).expect(line);
        let frame: Result<Frame<'_>, _> = serde_json::from_str(line);
        let frame = frame.or_else(|_| serde_json::from_str(&mended)).expect(line);
        assert_eq!(frame.jsonrpc, "2.0");
        let Some(method) = frame.method else { return self.reply(frame, line, heard) };
        assert!(frame.id.is_none(), "{line}");
        let params: Params<'_> =
            serde_json::from_str(frame.params.expect(line).get()).expect("params");
        let id = params.session_id;
        let session = self.sessions.get_mut(&id).expect("a session that was created");
        match (&*method, params.message, params.request, params.request_id) {
            ("message", Some(message), None, None) => {
                let read = repair(message.get()).expect(line);
                let read: Value = serde_json::from_str(&read).expect(line);
                let kind = read["type"].as_str().expect(line).to_owned();
                let promised = ["assistant", "user", "system", "result", "stream_event"];
                assert!(promised.contains(&&*kind), "{line}");
                session.messages.line(message.get());
                if kind == "result" {
                    session.last = Some(read);
                }
            }
            ("session/ended", None, None, None) => {}
            ("request", None, Some(request), None) => {
                let answer = self.request(&id, &request, line);
                heard.push(Heard::Answer(answer));
            }
            ("request/settled", None, None, Some(request)) => {
                assert!(session.requests.remove(&request), "settled, but never raised: {line}");
            }
            _ => panic!("{line}"),
        }
    }

    fn end(&mut self) -> i32 {
        assert!(self.calls.is_empty(), "without a reply: {:?}", self.calls.keys());
        for session in self.sessions.values() {
            assert!(session.requests.is_empty(), "never settled: {:?}", session.requests);
            session.messages.end();
        }
        0
    }
}
