//! `agentwire unified` follows its schemas: every command, its reply, every event.

use std::collections::BTreeMap;

use agentwire_protocol::schema;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::every_front::program::start;
use crate::recording::DEMO;
use crate::shared::{Ended, Program};
use crate::speaker::front;

struct Wire {
    program: Program,
    command: Validator,
    reply: Validator,
    event: Validator,
    /// By command.
    replies: BTreeMap<String, Validator>,
    /// Commands that succeeded.
    done: Vec<String>,
    /// Events that have not been checked for yet.
    events: Vec<Value>,
    /// Changes of sessions.
    changes: Vec<Value>,
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).expect("a schema")
}

fn check(validator: &Validator, what: &str, value: &Value) {
    let errors: Vec<String> = validator.iter_errors(value).map(|it| it.to_string()).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}: {value}");
}

impl Wire {
    fn new() -> Self {
        let reply = schema::reply().to_value();
        let table = reply["$defs"]["Replies"]["properties"].as_object().expect("a table");
        let of = |name: &String| {
            let place = format!("#/$defs/Replies/properties/{name}");
            let schema = json!({ "$ref": place, "$defs": reply["$defs"] });
            (name.clone(), validator(&schema))
        };
        Self {
            program: start(front("unified").args, DEMO),
            command: validator(schema::command().as_value()),
            event: validator(schema::event().as_value()),
            replies: table.keys().map(of).collect(),
            reply: validator(&reply),
            done: Vec::new(),
            events: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Sends a command and returns its reply or error.
    fn ask(&mut self, command: &str, fields: Value) -> Result<Value, Value> {
        let mut frame = json!({ "id": command, "command": command });
        if let (Some(frame), Value::Object(fields)) = (frame.as_object_mut(), fields) {
            frame.extend(fields);
        }
        check(&self.command, command, &frame);
        self.program.say(frame);
        let told = loop {
            if let Some(told) = self.read() {
                break told;
            }
        };
        assert_eq!(told["id"], command);
        check(&self.reply, command, &told);
        match told.get("reply") {
            Some(reply) => {
                check(&self.replies[command], command, reply);
                self.done.push(command.to_owned());
                Ok(reply.clone())
            }
            None => Err(told["error"].clone()),
        }
    }

    /// Reads a line: returns a reply, stores an event.
    fn read(&mut self) -> Option<Value> {
        let line = self.program.line().expect("a line");
        let told: Value = serde_json::from_str(&line).expect("JSON");
        if told.get("watch").is_some() {
            check(&self.reply, "a change", &told);
            self.changes.push(told);
            return None;
        }
        if told.get("type").is_none() {
            return Some(told);
        }
        check(&self.event, "an event", &told);
        self.events.push(told);
        None
    }

    fn until(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["type"] == kind) {
                return self.events.drain(..=at).next_back().expect("it is there");
            }
            assert_eq!(self.read(), None);
        }
    }
}

#[test]
fn every_command_and_its_reply() {
    let mut wire = Wire::new();
    let start = json!({
        "agentType": "demo", "prompt": "/bash echo hi\n/ask Which? | red | blue",
        "config": { "approvalMode": "ask" }, "idempotencyKey": "k", "profile": "full",
    });
    let started = wire.ask("start", start).expect("it starts");
    let session = json!({ "sessionId": started["id"] });
    let with = |more: Value| {
        let mut fields = session.clone();
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            fields.extend(more);
        }
        fields
    };
    let asked = wire.until("requestRaised");
    let requests = wire.ask("requests", json!({})).expect("a list");
    assert_eq!(requests["requests"][0]["requestId"], asked["requestId"]);
    let allow = json!({ "requestId": asked["requestId"], "behavior": "allow" });
    wire.ask("settle", with(allow.clone())).expect("it is settled");
    let refused = wire.ask("settle", with(allow)).expect_err("it was settled");
    assert_eq!(refused["code"], "requestSettled");
    let asked = wire.until("requestRaised");
    let answers = json!({ "requestId": asked["requestId"], "answers": { "Which?": "red" } });
    wire.ask("settle", with(answers)).expect("it is answered");
    wire.until("turnCompleted");

    let id = "11111111-1111-4111-8111-111111111111";
    let prompt = with(json!({ "prompt": "/hang", "messageId": id }));
    assert_eq!(wire.ask("prompt", prompt.clone()), Ok(json!({ "messageId": id })));
    let again = json!({ "messageId": id, "repeated": true });
    assert_eq!(wire.ask("prompt", prompt), Ok(again));
    wire.until("turnStarted");
    wire.ask("prompt", with(json!({ "prompt": "/say later" }))).expect("it waits");
    let waits = wire.ask("prompt", with(json!({ "prompt": "/say never" }))).expect("it waits");
    let queue = wire.ask("queue", session.clone()).expect("a list");
    assert_eq!(queue["queued"][1]["messageId"], waits["messageId"]);
    let edit = with(json!({ "messageId": waits["messageId"], "prompt": "/say else" }));
    let refused = wire.ask("edit", edit).expect_err("the demo agent has it already");
    assert_eq!(refused["code"], "unsupported");
    let cancel = with(json!({ "messageId": waits["messageId"] }));
    wire.ask("cancel", cancel).expect("it is cancelled");
    wire.ask("interrupt", with(json!({ "cancelQueued": true }))).expect("it stops");
    wire.ask("configure", with(json!({ "approvalMode": "autoAll" }))).expect("it is changed");
    wire.ask("query", with(json!({ "method": "supportedModels" }))).expect("an answer");
    let rewind = with(json!({ "messageId": id, "dryRun": true }));
    let refused = wire.ask("rewind", rewind).expect_err("the demo agent stores no files");
    assert_eq!(refused["code"], "agentFailed");
    wire.ask("list", json!({ "live": true, "limit": 3 })).expect("a list");
    wire.ask("show", session.clone()).expect("the session");
    let named = wire.ask("label", with(json!({ "title": "A name" }))).expect("the session");
    assert_eq!(named["title"], "A name");
    let found = wire.ask("search", json!({ "q": "which", "limit": 5 })).expect("texts");
    assert_eq!(found["hits"][0]["sessionId"], started["id"]);
    let used = wire.ask("usage", json!({ "by": "agent" })).expect("rows");
    assert_eq!(used["rows"][0]["agent"], "demo");
    wire.ask("detach", session.clone()).expect("nothing");
    wire.ask("watch", json!({})).expect("changes");
    while !wire.changes.iter().any(|change| change["watch"]["ready"] == true) {
        assert_eq!(wire.read(), None);
    }
    wire.ask("unwatch", json!({})).expect("no more changes");
    wire.ask("attach", with(json!({ "after": 2, "profile": "core" }))).expect("the session");
    let missing = wire.ask("show", json!({ "sessionId": "none" })).expect_err("there is none");
    assert_eq!(missing["code"], "sessionNotFound");
    wire.ask("finish", session.clone()).expect("it ends");
    wire.until("sessionEnded");
    // An accepted prompt counts once, even after the session has ended.
    let taken = |id: &str| with(json!({ "prompt": "/hang", "messageId": id }));
    let again = json!({ "messageId": id, "repeated": true });
    assert_eq!(wire.ask("prompt", taken(id)), Ok(again));
    let late = wire.ask("prompt", taken("22222222-2222-4222-8222-222222222222"));
    let code = late.expect_err("it has ended")["code"].clone();
    assert!(code == "sessionNotFound" || code == "conflict", "{code}");
    let other = wire.ask("start", json!({ "agentType": "demo", "prompt": "" })).expect("another");
    wire.ask("stop", json!({ "sessionId": other["id"] })).expect("it stops");

    wire.done.sort_unstable();
    wire.done.dedup();
    let all: Vec<&String> =
        wire.replies.keys().filter(|name| !matches!(name.as_str(), "rewind" | "edit")).collect();
    assert_eq!(wire.done.iter().collect::<Vec<_>>(), all);
    wire.program.hang_up();
    while wire.program.line().is_some() {}
    assert_eq!(wire.program.end_alone(), Ended { code: Some(0), stderr: String::new() });
}
