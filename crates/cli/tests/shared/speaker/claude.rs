//! A client of Claude's wire, as strict as the strictest SDK.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agentwire_dialects::json::without_lone_surrogates;
use serde_json::{Value, json};

use super::{Case, Heard, Row, Speaker, answers, mcp_answer};
use crate::check::Checker;

pub(super) const ROW: Row = Row {
    name: "claude",
    args: &[
        "claude",
        "--output-format=stream-json",
        "--input-format=stream-json",
        "--verbose",
        "--permission-prompt-tool=stdio",
        "--include-partial-messages",
    ],
    sessions: 1,
    speaker: |cases| {
        let messages = Messages::of(cases[0]);
        let (calls, asked) = Default::default();
        Box::new(Claude { calls, asked, messages, prompts: 0 })
    },
};

struct Claude {
    /// Calls without a reply so far.
    calls: BTreeSet<String>,
    /// Requests so far.
    asked: BTreeSet<String>,
    messages: Messages,
    prompts: usize,
}

/// The messages of one session in Claude's format, on any wire.
pub(crate) struct Messages {
    who: Who,
    turns: usize,
    pub(crate) results: usize,
    pub(crate) last_failed: Option<bool>,
}

impl Messages {
    pub(crate) fn of(case: &Case) -> Self {
        let who = match (case.agent.name, &case.recording) {
            ("claude", Some(recording)) => {
                let mut own = BTreeMap::new();
                for line in String::from_utf8_lossy(recording).lines() {
                    let entry: Value = serde_json::from_str(line).unwrap_or_default();
                    let raw = entry["raw"].as_str().unwrap_or(line);
                    *own.entry(shown(raw)).or_default() += 1;
                }
                Who::Claude(own)
            }
            ("demo" | "claude", _) => Who::Demo,
            _ => Who::Other(Box::default()),
        };
        Self { who, turns: 0, results: 0, last_failed: None }
    }

    /// For messages in frames of another wire, which must not contain lone surrogates.
    pub(crate) fn framed(mut self) -> Self {
        if let Who::Claude(own) = &mut self.who {
            for (line, count) in std::mem::take(own) {
                *own.entry(without_lone_surrogates(&line).into_owned()).or_default() += count;
            }
        }
        self
    }

    fn is_claude(&self) -> bool {
        !matches!(self.who, Who::Other(_))
    }

    /// Checks at the end of the session that every turn has exactly one result.
    pub(crate) fn end(&self) {
        if let Who::Other(checker) = &self.who {
            checker.end(self.turns, "the session");
        }
    }

    /// Claude's own lines need not be valid JSON for every parser.
    fn read(&self, line: &str) -> Value {
        let read = serde_json::from_str(line);
        match &self.who {
            Who::Claude(own) if own.contains_key(line) => read.unwrap_or_default(),
            Who::Claude(_) | Who::Demo | Who::Other(_) => read.expect("a line is JSON"),
        }
    }

    /// Checks a message. Returns true if it ends a turn.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let message = self.read(line);
        match &mut self.who {
            Who::Claude(own) => {
                let left = own.get_mut(line).filter(|left| **left > 0);
                let is_own = left.map(|left| *left -= 1).is_some();
                // A line that is not Claude's must mark the start or end of a turn that Claude did not
                // mark.
                let version = message["uuid"].as_str().map(|uuid| &uuid[14..15]);
                let is_ours = version == Some("8") || is_refusal(&message);
                assert!(is_own || is_ours, "not what Claude said: {line}");
            }
            Who::Demo => check_required(&message, line),
            Who::Other(_) if is_refusal(&message) => check_required(&message, line),
            Who::Other(checker) => {
                checker.line(line);
                self.turns += usize::from(message["type"] == "result");
            }
        }
        let is_result = message["type"] == "result";
        if is_result {
            self.results += 1;
            self.last_failed = Some(message["is_error"] == true);
        }
        is_result
    }
}

/// The speaker. Claude's own lines arrive unchanged; those of other agents are generated.
enum Who {
    /// Its lines, and how often each occurs.
    Claude(BTreeMap<String, usize>),
    Demo,
    Other(Box<Checker>),
}

/// Whether it is the result of a prompt that never became a turn.
fn is_refusal(message: &Value) -> bool {
    message["type"] == "result" && message["terminal_reason"].is_null()
}

/// Checks the fields that the SDKs require.
fn check_required(message: &Value, line: &str) {
    let strings = |names: &[&str]| {
        for name in names {
            assert!(message[name].is_string(), "{name}: {line}");
        }
    };
    strings(&["uuid", "session_id"]);
    match message["type"].as_str().expect(line) {
        "system" => strings(&["subtype"]),
        "assistant" => {
            assert!(message["message"]["model"].is_string(), "{line}");
            assert!(message["message"]["content"].is_array(), "{line}");
            assert!(message.get("parent_tool_use_id").is_some(), "{line}");
        }
        "user" => assert!(message["message"].get("content").is_some(), "{line}"),
        "stream_event" => assert!(message["event"]["type"].is_string(), "{line}"),
        "result" => {
            strings(&["subtype"]);
            for name in ["duration_ms", "duration_api_ms", "num_turns"] {
                assert!(message[name].is_u64(), "{name}: {line}");
            }
            assert!(message["is_error"].is_boolean() && message["total_cost_usd"].is_number());
            let is_success = message["subtype"] == "success";
            assert_eq!(message["result"].is_string(), is_success, "{line}");
            assert_eq!(message["errors"].is_array(), !is_success, "{line}");
        }
        _ => panic!("{line}"),
    }
}

/// A line of Claude as a client receives it.
fn shown(line: &str) -> String {
    let line = line.trim_start_matches('\u{FEFF}').trim_matches([' ', '\t', '\r']);
    line.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

impl Claude {
    fn control(&mut self, frame: &Value, line: &str, heard: &mut Vec<Heard>) {
        let id = frame["request_id"].as_str().expect(line);
        assert!(self.asked.insert(id.to_owned()), "asked twice: {line}");
        let request = &frame["request"];
        let response = match request["subtype"].as_str().expect(line) {
            "can_use_tool" => {
                let has_all = request["tool_name"].is_string()
                    && request["input"].is_object()
                    && request["tool_use_id"].is_string();
                // Claude's own requests arrive unchanged, even incomplete ones of a hostile Claude.
                assert!(has_all || self.messages.is_claude(), "{line}");
                let mut input = request["input"].clone();
                if input.is_object() && request["tool_name"] == "AskUserQuestion" {
                    input["answers"] = answers(&input["questions"]);
                }
                json!({ "behavior": "allow", "updatedInput": input })
            }
            "hook_callback" => {
                assert!(request["callback_id"].is_string(), "{line}");
                json!({})
            }
            "mcp_message" => {
                assert!(request["server_name"].is_string(), "{line}");
                mcp_answer(&request["message"])
            }
            "elicitation" => json!({ "action": "decline" }),
            "request_user_dialog" => json!({ "behavior": "cancelled" }),
            // Claude may send its host requests that no other client knows.
            subtype => {
                assert!(self.messages.is_claude(), "{subtype} is not a request: {line}");
                json!({})
            }
        };
        heard.push(Heard::Answer(json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": id, "response": response,
        } })));
    }
}

impl Speaker for Claude {
    fn start(&mut self, session: usize, case: &Case, _place: &Path) -> Vec<Value> {
        self.calls.insert("init".to_owned());
        let initialize = json!({ "type": "control_request", "request_id": "init",
            "request": { "subtype": "initialize", "hooks": null } });
        let mut frames = vec![initialize];
        frames.extend(self.prompt(session, &case.prompts[0]));
        frames
    }

    fn prompt(&mut self, _session: usize, text: &str) -> Vec<Value> {
        self.prompts += 1;
        vec![json!({ "type": "user", "message": { "role": "user", "content": text },
            "parent_tool_use_id": null, "session_id": "" })]
    }

    fn finish(&mut self, _session: usize) -> Vec<Value> {
        Vec::new()
    }

    fn hear(&mut self, line: &str, heard: &mut Vec<Heard>) {
        let frame: Value = self.messages.read(line);
        match frame["type"].as_str().unwrap_or_default() {
            "control_response" => {
                let response = &frame["response"];
                let id = response["request_id"].as_str().expect(line);
                assert!(self.calls.remove(id), "one reply per call: {line}");
                match response["subtype"].as_str().expect(line) {
                    "success" => assert!(response["response"]["commands"].is_array(), "{line}"),
                    "error" => assert!(response["error"].is_string(), "{line}"),
                    _ => panic!("{line}"),
                }
            }
            "control_request" => self.control(&frame, line, heard),
            "control_cancel_request" => {
                let id = frame["request_id"].as_str().expect(line);
                assert!(self.asked.contains(id), "never asked: {line}");
            }
            _ => {
                if self.messages.line(line) {
                    heard.push(Heard::TurnOver(0));
                }
            }
        }
    }

    fn end(&mut self) -> i32 {
        assert!(self.calls.is_empty(), "without a reply: {:?}", self.calls);
        // An agent may also start turns by itself.
        assert!(self.messages.results >= self.prompts, "a result for every prompt");
        self.messages.end();
        i32::from(self.messages.last_failed != Some(false))
    }
}
