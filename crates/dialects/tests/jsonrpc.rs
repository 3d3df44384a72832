//! The JSON-RPC front: lines, replies and events in, lines and asks out.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::VecDeque;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_dialects::front::{Ask, Effect, Front as _, Outbox, Reply};
use agentwire_dialects::jsonrpc::JsonRpc;
use agentwire_protocol::{
    AgentType, Call, Command, Configure, ErrorCode, Event, GatewayError, Json, Resume, SessionId,
    SessionSummary,
};
use serde_json::{Value, json};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

/// A client and the gateway at its other side.
struct Wire {
    front: JsonRpc,
    out: Outbox,
    /// What was said and not looked at.
    said: VecDeque<String>,
    asks: VecDeque<(Call, Ask)>,
    follows: Vec<(SessionId, u64)>,
    /// The prompts that were given, and their ids.
    prompts: VecDeque<(String, String)>,
    seq: u64,
}

impl Wire {
    fn new() -> Self {
        Self {
            front: JsonRpc::new(AgentType::Demo),
            out: Outbox::default(),
            said: VecDeque::new(),
            asks: VecDeque::new(),
            follows: Vec::new(),
            prompts: VecDeque::new(),
            seq: 0,
        }
    }

    /// One whose session runs, made by that call.
    fn running(call: &str) -> Self {
        let mut wire = Self::new();
        wire.line(call);
        wire.start(0);
        wire
    }

    fn take(&mut self) {
        for effect in self.out.take() {
            match effect {
                Effect::Say(line) => {
                    let line = String::from_utf8(line).expect("UTF-8");
                    assert!(!line.contains(['\n', '\u{2028}', '\u{2029}']), "{line}");
                    self.said.push_back(line);
                }
                Effect::Ask(call, ask) => {
                    let prompt = match &ask {
                        Ask::Start(new) => new.prompt.as_ref(),
                        Ask::Command(_, Command::Prompt(prompt)) => Some(prompt),
                        _ => None,
                    };
                    let named = prompt.and_then(|prompt| prompt.message_id.clone());
                    self.prompts.extend(named.zip(prompt).map(|(id, it)| (it.text.clone(), id)));
                    self.asks.push_back((call, ask));
                }
                Effect::Follow(session, after) => self.follows.push((session, after)),
                Effect::Leave(session) => self.follows.retain(|(id, _)| *id != session),
                effect @ (Effect::Await(..) | Effect::Finish(_) | Effect::Close(_)) => {
                    panic!("{effect:?}")
                }
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.bytes(line.as_bytes());
    }

    fn bytes(&mut self, line: &[u8]) {
        self.front.on_line(line, &mut self.out);
        self.take();
    }

    fn ask(&mut self) -> (Call, Ask) {
        self.asks.pop_front().expect("the gateway is asked")
    }

    fn command(&mut self) -> (Call, Command) {
        match self.ask() {
            (call, Ask::Command(session, command)) => {
                assert_eq!(session.as_str(), SESSION);
                (call, command)
            }
            (_, ask) => panic!("{ask:?}"),
        }
    }

    fn reply(&mut self, call: Call, reply: Result<Reply, GatewayError>) {
        self.front.on_reply(call, reply, &mut self.out);
        self.take();
    }

    fn done(&mut self, call: Call, value: &Value) {
        self.reply(call, Ok(Reply::Done(Json::of(value))));
    }

    /// The session that is asked for starts.
    fn start(&mut self, after: u64) -> Ask {
        let (call, ask) = self.ask();
        assert!(matches!(ask, Ask::Start(_)), "{ask:?}");
        self.seq = after;
        self.reply(call, Ok(Reply::Started { session: summary("idle", after), after }));
        ask
    }

    fn event(&mut self, mut fields: Value) {
        self.seq += 1;
        fields["id"] = json!(format!("evt_{}", self.seq));
        fields["sessionId"] = json!(SESSION);
        fields["seq"] = json!(self.seq);
        fields["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        self.feed(&fields.to_string());
    }

    fn feed(&mut self, event: &str) {
        self.front.on_event(&SessionId::from(SESSION), event, &mut self.out);
        self.take();
    }

    fn end(&mut self) {
        self.front.on_end(&SessionId::from(SESSION), &mut self.out);
        self.take();
    }

    fn turn(&mut self, prompt: &str, answer: &str) {
        self.turn_starts(prompt);
        self.turn_ends(answer);
    }

    /// A turn that works on the oldest prompt with that text, if there is one.
    fn turn_starts(&mut self, prompt: &str) {
        let ids: Vec<String> = self.id_of(prompt).into_iter().collect();
        self.turn_starts_with(&ids);
    }

    fn turn_starts_with(&mut self, ids: &[String]) {
        // How an agent tells what it was given is its own matter.
        self.event(json!({
            "type": "turnStarted", "turnNumber": 1, "prompt": "in other words", "messageIds": ids,
        }));
    }

    fn id_of(&mut self, prompt: &str) -> Option<String> {
        let at = self.prompts.iter().position(|(text, _)| text == prompt)?;
        self.prompts.remove(at).map(|(_, id)| id)
    }

    fn pause(&mut self) {
        self.front.on_pause(&SessionId::from(SESSION), &mut self.out);
        self.take();
    }

    fn turn_ends(&mut self, answer: &str) {
        let usage = json!({ "inputTokens": 1, "outputTokens": 1, "totalTokens": 2 });
        self.event(json!({
            "type": "turnCompleted", "turnNumber": 1, "usage": usage, "result": answer,
        }));
    }

    /// The next that was said.
    fn next(&mut self) -> Value {
        let line = self.said.pop_front().expect("something is said");
        serde_json::from_str(&line).expect("JSON")
    }

    /// The next reply; messages before it are passed over.
    fn answer(&mut self) -> Value {
        loop {
            let said = self.next();
            if said["method"] != "message" {
                return said;
            }
        }
    }

    fn error(&mut self) -> (Value, i64, String) {
        let said = self.answer();
        let code = said["error"]["code"].as_i64().unwrap_or_else(|| panic!("{said}"));
        let data = said["error"]["data"]["code"].as_str().expect("a code").to_owned();
        (said["id"].clone(), code, data)
    }

    /// Nothing is left unread.
    fn is_quiet(&self) {
        assert!(self.said.is_empty(), "{:?}", self.said);
        assert!(self.asks.is_empty(), "{:?}", self.asks);
    }
}

fn summary(state: &str, last_seq: u64) -> Box<SessionSummary> {
    let usage = json!({ "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 });
    let summary = json!({
        "id": SESSION, "agentType": "codex", "state": state, "createdAt": "", "updatedAt": "",
        "lastSeq": last_seq, "turns": 0, "usage": usage, "openRequests": 0,
    });
    Box::new(serde_json::from_value(summary).expect("a summary"))
}

fn call(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn run(id: u64, prompt: &str) -> String {
    call(id, "run", &json!({ "sessionId": SESSION, "prompt": prompt }))
}

const FIRST: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"run","params":{"agent":"codex","prompt":"a"}}"#;

#[test]
fn ids_come_back_byte_for_byte() {
    for id in ["1", "-0.50", "1e400", "123456789012345678901234567890", r#""\u0061\ud83d""#, "null"]
    {
        let mut wire = Wire::new();
        wire.line(&format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"session/list"}}"#));
        let (call, ask) = wire.ask();
        assert_eq!(ask, Ask::Sessions { limit: 100 });
        wire.reply(call, Ok(Reply::Sessions(Vec::new())));
        let said = wire.said.pop_front().expect("a reply");
        assert_eq!(said, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"sessions":[]}}}}"#));
        wire.is_quiet();
    }
}

#[test]
fn what_is_no_request_is_refused_with_the_id_that_can_be_read() {
    let cases: &[(&[u8], Value, i64)] = &[
        (b"{", json!(null), -32700),
        (b"\xff", json!(null), -32700),
        (br#"{"jsonrpc":"2.0","method":"foobar, "params":"bar","baz]"#, json!(null), -32700),
        (b"1", json!(null), -32600),
        (b"[]", json!(null), -32600),
        (b"{}", json!(null), -32600),
        (br#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#, json!(null), -32600),
        (br#"{"jsonrpc":"1.0","id":7,"method":"run"}"#, json!(7), -32600),
        (br#"{"id":7,"method":"run"}"#, json!(7), -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"run"}"#, json!(null), -32600),
        (br#"{"jsonrpc":"2.0","id":true,"method":"run"}"#, json!(null), -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"run","params":"x"}"#, json!(7), -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"run","params":null}"#, json!(7), -32600),
        (br#"{"jsonrpc":"2.0","id":7,"method":"fly"}"#, json!(7), -32601),
        (br#"{"jsonrpc":"2.0","id":7,"method":"run","params":["hi"]}"#, json!(7), -32602),
        (br#"{"jsonrpc":"2.0","id":7,"method":"run"}"#, json!(7), -32602),
    ];
    for (line, id, code) in cases {
        let mut wire = Wire::new();
        wire.bytes(line);
        let (said_id, said_code, _) = wire.error();
        assert_eq!((&said_id, said_code), (id, *code), "{}", String::from_utf8_lossy(line));
        wire.is_quiet();
    }
    let mut wire = Wire::new();
    wire.front.on_overlong(1 << 30, &mut wire.out);
    wire.take();
    assert_eq!(wire.error(), (json!(null), -32600, "invalidMessage".to_owned()));
}

#[test]
fn wrong_parameters_are_named() {
    let cases = [
        ("run", json!({ "prompt": "x", "promt": "y" }), "promt"),
        ("run", json!({ "prompt": 7 }), "integer `7`"),
        ("run", json!({ "prompt": "" }), "neither text nor image"),
        ("run", json!({ "prompt": "x", "message": { "content": "y" } }), "not both"),
        ("run", json!({ "prompt": "x", "agent": "bob" }), "bob"),
        ("run", json!({ "prompt": "x", "options": { "modle": "y" } }), "modle"),
        ("run", json!({ "prompt": "x", "options": { "agentType": "bob" } }), "agentType"),
        ("session/send", json!({ "sessionId": SESSION }), "prompt"),
        ("session/interrupt", json!({}), "sessionId"),
        ("session/events", json!({ "sessionId": SESSION, "limit": 0 }), "limit"),
        ("session/configure", json!({ "sessionId": SESSION, "mode": "x" }), "mode"),
        ("request/settle", json!({ "sessionId": SESSION, "requestId": "r", "allow": 1 }), "allow"),
        ("request/settle", json!({ "requestId": "r" }), "sessionId"),
        (
            "control",
            json!({ "sessionId": SESSION, "request": { "subtype": "rewind_files" } }),
            "user_message_id",
        ),
    ];
    for (method, params, named) in cases {
        let mut wire = Wire::new();
        wire.line(&call(1, method, &params));
        let said = wire.next();
        assert_eq!(said["error"]["code"], -32602, "{said}");
        let message = said["error"]["message"].as_str().expect("a message");
        assert!(message.contains(named) && !message.contains(" at line"), "{message}");
        wire.is_quiet();
    }
}

#[test]
fn a_notification_is_never_answered() {
    let mut wire = Wire::new();
    wire.line(r#"{"jsonrpc":"2.0","method":"fly"}"#);
    wire.line(r#"{"jsonrpc":"2.0","method":"run","params":{}}"#);
    wire.line("  ");
    wire.line(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    wire.line(r#"[{"jsonrpc":"2.0","method":"fly"},{"jsonrpc":"2.0","id":9,"error":{}}]"#);
    wire.is_quiet();
    wire.line(r#"{"jsonrpc":"2.0","method":"session/list"}"#);
    let (call, _) = wire.ask();
    wire.reply(call, Err(GatewayError::new(ErrorCode::Internal, "no")));
    wire.is_quiet();
}

#[test]
fn a_batch_is_answered_at_once_when_all_is_there() {
    let mut wire = Wire::new();
    let list = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "session/list" });
    let note = json!({ "jsonrpc": "2.0", "method": "session/list" });
    wire.line(&json!([list(1), note, 7, list(2)]).to_string());
    let calls: Vec<Call> = (0..3).map(|_| wire.ask().0).collect();
    for call in [calls[2], calls[1]] {
        wire.reply(call, Ok(Reply::Sessions(Vec::new())));
        wire.is_quiet();
    }
    wire.reply(calls[0], Ok(Reply::Sessions(Vec::new())));
    let said = wire.next();
    let ids: Vec<&Value> = said.as_array().expect("an array").iter().map(|r| &r["id"]).collect();
    assert_eq!(ids, [&json!(null), &json!(2), &json!(1)]);
    wire.is_quiet();
}

#[test]
fn a_run_is_answered_by_its_turn() {
    let mut wire = Wire::running(FIRST);
    assert_eq!(wire.follows, [(SessionId::from(SESSION), 0)]);
    wire.turn("a", "done");
    let said: Vec<Value> =
        std::iter::from_fn(|| (!wire.said.is_empty()).then(|| wire.next())).collect();
    let (reply, messages) = said.split_last().expect("a reply");
    let shown: Vec<&str> = messages
        .iter()
        .map(|said| said["params"]["message"]["type"].as_str().expect("a message"))
        .collect();
    assert_eq!(shown.first(), Some(&"system"));
    assert_eq!(shown.last(), Some(&"result"));
    assert!(messages.iter().all(|said| said["params"]["sessionId"] == SESSION));
    assert_eq!((&reply["id"], &reply["result"]["result"]), (&json!(1), &json!("done")));
    let mut result = messages[messages.len() - 1]["params"]["message"].clone();
    result["sessionId"] = json!(SESSION);
    assert_eq!(reply["result"], result);
}

#[test]
fn each_run_gets_the_result_of_its_own_turn() {
    let mut wire = Wire::running(FIRST);
    let first = wire.id_of("a");
    wire.line(&call(2, "session/send", &json!({ "sessionId": SESSION, "prompt": "a" })));
    wire.line(&run(3, "a"));
    let (sent, ran) = (wire.command().0, wire.command().0);
    let second = wire.id_of("a");
    wire.done(sent, &json!({ "messageId": "m2" }));
    assert_eq!(wire.answer()["result"], json!({ "messageId": "m2" }));
    wire.done(ran, &json!({ "messageId": second }));
    let sent = Some("m2".to_owned());
    for (turn, id, result) in
        [(first, Some(1), "one"), (sent, None, "two"), (second, Some(3), "three")]
    {
        wire.turn_starts_with(&turn.into_iter().collect::<Vec<_>>());
        wire.turn_ends(result);
        if let Some(id) = id {
            let reply = wire.answer();
            assert_eq!((&reply["id"], &reply["result"]["result"]), (&json!(id), &json!(result)));
        }
    }
    // A prompt of somebody else, and a turn of the agent's own.
    wire.line(&run(4, "b"));
    wire.command();
    wire.turn("other", "five");
    wire.event(json!({ "type": "turnStarted", "turnNumber": 5, "origin": "agent" }));
    wire.turn_ends("six");
    wire.turn("b", "seven");
    assert_eq!(wire.answer()["result"]["result"], "seven");
}

#[test]
fn runs_that_the_agent_folds_share_a_result() {
    let mut wire = Wire::running(FIRST);
    for (id, prompt) in [(2, "b"), (3, "c\n\nd"), (4, "e")] {
        wire.line(&run(id, prompt));
        wire.command();
    }
    let folded: Vec<String> =
        ["a", "b", "c\n\nd"].into_iter().filter_map(|prompt| wire.id_of(prompt)).collect();
    assert_eq!(folded.len(), 3);
    wire.turn_starts_with(&folded);
    // What the agent only repeats is no further prompt; one that comes while the turn runs is.
    wire.event(json!({ "type": "statusChanged", "status": "prompted", "message": "a" }));
    let joined = json!({ "messageId": wire.id_of("e") });
    wire.event(json!({
        "type": "statusChanged", "status": "prompted", "message": "e", "details": joined,
    }));
    wire.turn_ends("all");
    for id in [1, 2, 3, 4] {
        let reply = wire.answer();
        assert_eq!((&reply["id"], &reply["result"]["result"]), (&json!(id), &json!("all")));
    }
    wire.is_quiet();
}

#[test]
fn a_run_whose_session_dies_is_told() {
    let mut wire = Wire::running(FIRST);
    for id in [2, 3] {
        wire.line(&run(id, "b"));
    }
    wire.command();
    let refused = wire.command().0;
    wire.turn_starts("a");
    wire.event(json!({ "type": "turnFailed", "turnNumber": 1, "error": "gone", "reason": "died" }));
    assert_eq!(wire.error(), (json!(1), -32000, "agentFailed".to_owned()));
    wire.reply(refused, Err(GatewayError::new(ErrorCode::Overloaded, "full")));
    assert_eq!(wire.error(), (json!(3), -32001, "overloaded".to_owned()));
    wire.event(json!({ "type": "error", "message": "it broke", "code": "agentFailed" }));
    let mut told = wire.next()["params"]["message"].clone();
    assert!(told.as_object_mut().expect("a message").remove("uuid").is_some());
    let error = json!({
        "type": "system", "subtype": "error", "message": "it broke", "code": "agentFailed",
        "session_id": SESSION,
    });
    assert_eq!(told, error);
    wire.event(json!({ "type": "sessionEnded", "reason": "failed", "error": "code 3" }));
    let ended = json!({ "sessionId": SESSION, "reason": "failed", "error": "code 3" });
    let said = wire.next();
    assert_eq!((&said["method"], &said["params"]), (&json!("session/ended"), &ended));
    wire.end();
    let said = wire.answer();
    assert_eq!((&said["id"], &said["error"]["message"]), (&json!(2), &json!("code 3")));
    wire.is_quiet();
}

#[test]
fn a_cancelled_prompt_ends_its_run() {
    let mut wire = Wire::running(FIRST);
    wire.line(&run(2, "b"));
    let call = wire.command().0;
    let details = json!({ "messageId": wire.id_of("b") });
    wire.done(call, &details);
    wire.event(json!({
        "type": "statusChanged", "status": "queue", "message": "cancelled", "details": details,
    }));
    assert_eq!(wire.error(), (json!(2), -32000, "conflict".to_owned()));
}

/// Who cannot see the question whether to go on past a limit does not wait for its answer.
#[test]
fn at_a_limit_the_turn_fails_unless_the_client_sees_the_question() {
    use agentwire_dialects::unified::Unified;
    use agentwire_protocol::session::OnLimit;
    let limits = |options: &Value| {
        let mut wire = Wire::new();
        wire.line(&call(1, "run", &json!({ "agent": "demo", "prompt": "a", "options": options })));
        match wire.ask() {
            (_, Ask::Start(new)) => new.config.on_limit,
            (_, ask) => panic!("{ask:?}"),
        }
    };
    assert_eq!(limits(&json!({ "max_turns": 1 })), Some(OnLimit::Fail));
    assert_eq!(limits(&json!({ "max_turns": 1, "on_limit": "ask" })), Some(OnLimit::Ask));
    assert_eq!(limits(&json!({})), None);
    for (profile, expected) in [("core", Some(OnLimit::Fail)), ("full", None)] {
        let (mut front, mut out) = (Unified::default(), Outbox::default());
        let start = json!({ "id": 1, "command": "start", "agentType": "demo", "prompt": "a",
            "profile": profile, "config": { "maxBudgetUsd": 1.0 } });
        front.on_line(start.to_string().as_bytes(), &mut out);
        match out.take().as_slice() {
            [Effect::Ask(_, Ask::Start(new))] => assert_eq!(new.config.on_limit, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_session_that_is_over_is_resumed_and_what_follows_waits() {
    let mut wire = Wire::new();
    wire.line(&run(1, "a"));
    wire.line(&run(2, "b"));
    wire.line(&call(3, "session/interrupt", &json!({ "sessionId": SESSION })));
    let (found, ask) = wire.ask();
    assert_eq!(ask, Ask::Session(SessionId::from(SESSION)));
    wire.is_quiet();
    wire.reply(found, Ok(Reply::Session(summary("ended", 2))));
    let Ask::Start(new) = wire.start(2) else { panic!("no start") };
    assert_eq!((new.agent, new.resume), (AgentType::Codex, Some(SessionId::from(SESSION))));
    for prompt in ["a", "b"] {
        assert!(matches!(wire.command().1, Command::Prompt(given) if given.text == prompt));
    }
    assert_eq!(wire.command().1, Command::Interrupt { cancel_queued: false });
    // What was before is learned from, not shown.
    wire.seq = 0;
    wire.turn_starts_with(&[]);
    wire.turn_ends("old");
    wire.is_quiet();
    wire.turn("a", "new");
    wire.turn("b", "newer");
    assert_eq!(wire.answer()["result"]["result"], "new");
    assert_eq!(wire.answer()["result"]["result"], "newer");
}

#[test]
fn a_run_on_a_session_that_has_just_died_resumes_it_after_its_end() {
    let mut wire = Wire::running(FIRST);
    wire.turn("a", "one");
    wire.answer();
    wire.line(&run(2, "b"));
    let call = wire.command().0;
    wire.reply(call, Err(GatewayError::new(ErrorCode::Conflict, "it is over")));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("ended", 3))));
    wire.is_quiet();
    wire.event(json!({ "type": "sessionEnded", "reason": "failed" }));
    assert_eq!(wire.answer()["method"], "session/ended");
    wire.end();
    wire.start(3);
    wire.command();
    wire.turn("b", "two");
    let reply = wire.answer();
    assert_eq!((&reply["id"], &reply["result"]["result"]), (&json!(2), &json!("two")));
    // One that is refused though it runs is told why.
    wire.line(&run(3, "c"));
    let call = wire.command().0;
    wire.reply(call, Err(GatewayError::new(ErrorCode::Conflict, "it is being stopped")));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("working", 9))));
    assert_eq!(wire.error(), (json!(3), -32000, "conflict".to_owned()));
    wire.is_quiet();
}

#[test]
fn options_of_a_session_that_runs_are_refused() {
    let mut wire = Wire::running(FIRST);
    wire.turn("a", "one");
    wire.answer();
    let params = json!({ "sessionId": SESSION, "prompt": "b", "options": { "model": "m" } });
    wire.line(&call(2, "run", &params));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("idle", 2))));
    assert_eq!(wire.error(), (json!(2), -32000, "conflict".to_owned()));
    wire.is_quiet();
}

#[test]
fn the_same_options_again_are_no_change() {
    let options = json!({ "max_turns": 3 });
    let first = json!({ "agent": "codex", "cwd": ".", "options": options, "prompt": "a" });
    let mut wire = Wire::running(&call(1, "run", &first));
    wire.turn("a", "one");
    wire.answer();
    for (cwd, options) in [(".", options), ("/work", json!({ "model": "m" }))] {
        let again = json!({ "sessionId": SESSION, "agent": "codex", "cwd": cwd,
            "options": options, "prompt": "b" });
        wire.line(&call(2, "run", &again));
        let (found, _) = wire.ask();
        let mut session = summary("idle", 2);
        session.working_directory = Some("/work".to_owned());
        session.model = Some("m".to_owned());
        wire.reply(found, Ok(Reply::Session(session)));
        assert!(matches!(wire.command().1, Command::Prompt(_)));
        wire.turn("b", "two");
        assert_eq!(wire.answer()["result"]["result"], "two");
    }
    wire.is_quiet();
}

#[test]
fn a_message_that_was_taken_before_is_answered_at_once() {
    let mut wire = Wire::running(FIRST);
    wire.turn("a", "one");
    wire.answer();
    let message = json!({ "role": "user", "content": "b" });
    let again = json!({ "sessionId": SESSION, "message": message, "messageId": "m1" });
    wire.line(&call(2, "run", &again));
    let (prompt, command) = wire.command();
    assert!(matches!(command, Command::Prompt(p) if p.message_id.as_deref() == Some("m1")));
    wire.done(prompt, &json!({ "messageId": "m1", "repeated": true }));
    let said = wire.answer();
    assert_eq!((&said["id"], &said["error"]["data"]["code"]), (&json!(2), &json!("conflict")));
    assert!(said["error"]["message"].as_str().expect("words").contains("m1"), "{said}");
    wire.turn("other", "two");
    wire.said.clear();
    wire.is_quiet();
}

#[test]
fn a_session_of_another_process_is_not_watched_for_a_run_that_it_refused() {
    let mut wire = Wire::new();
    wire.line(&run(1, "a"));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("idle", 4))));
    assert_eq!(wire.follows.len(), 1);
    let (prompt, _) = wire.command();
    wire.reply(prompt, Err(GatewayError::new(ErrorCode::SessionNotFound, "not here")));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("idle", 4))));
    let said = wire.answer();
    assert_eq!(said["error"]["code"], -32002);
    assert!(said["error"]["message"].as_str().expect("words").contains("another process"));
    assert!(wire.follows.is_empty(), "it is left alone");
    wire.is_quiet();
}

#[test]
fn a_run_after_a_kill_resumes_the_session() {
    let mut wire = Wire::running(FIRST);
    wire.turn("a", "one");
    wire.answer();
    wire.line(&call(2, "session/kill", &json!({ "sessionId": SESSION })));
    wire.line(&run(3, "b"));
    let (stop, _) = wire.command();
    wire.done(stop, &json!({}));
    wire.is_quiet();
    wire.end();
    assert_eq!(wire.answer()["id"], 2);
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("ended", 2))));
    wire.start(2);
    wire.command();
    wire.turn("b", "two");
    assert_eq!(wire.answer()["result"]["result"], "two");
    wire.is_quiet();
}

#[test]
fn what_is_still_asked_is_shown_to_whoever_comes_later() {
    let mut wire = Wire::new();
    wire.line(&call(1, "session/attach", &json!({ "sessionId": SESSION, "after": 4 })));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("waitingPermission", 4))));
    wire.answer();
    let raised = |id: &str| {
        json!({ "type": "requestRaised", "requestId": id, "kind": "permission", "inputDigest": "d",
            "agentId": "toolu_1", "parentAgentId": "main" })
    };
    let settled = |id: &str| json!({ "type": "requestSettled", "requestId": id, "outcome": "allowed", "by": "client" });
    wire.turn_starts("a");
    wire.event(raised("over"));
    wire.pause();
    wire.event(settled("over"));
    wire.event(raised("open"));
    wire.is_quiet();
    wire.pause();
    let shown = wire.next();
    assert_eq!(
        (&shown["method"], &shown["params"]["request"]["requestId"]),
        (&json!("request"), &json!("open"))
    );
    let agents = (&shown["params"]["agentId"], &shown["params"]["parentAgentId"]);
    assert_eq!(agents, (&json!("toolu_1"), &json!("main")));
    wire.event(settled("open"));
    let over = wire.next();
    assert_eq!(
        (&over["method"], &over["params"]["agentId"]),
        (&json!("request/settled"), &json!("main"))
    );
    wire.is_quiet();
}

#[test]
fn pages_that_make_a_batch_too_long_are_refused() {
    let mut wire = Wire::new();
    let page = |id: u64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "session/events",
            "params": { "sessionId": SESSION } })
    };
    wire.line(&json!([page(1), page(2), page(3)]).to_string());
    for _ in 0..3 {
        let (call, _) = wire.ask();
        let events = vec![format!("\"{}\"", "x".repeat(8 << 20))];
        wire.reply(call, Ok(Reply::Events { events, next: 1, resume: Resume::Exact }));
    }
    let said = wire.next();
    let codes: Vec<&Value> =
        said.as_array().expect("replies").iter().map(|r| &r["error"]["code"]).collect();
    assert_eq!(codes, [&json!(null), &json!(-32001), &json!(-32001)]);
    // The next batch has room again.
    wire.line(&json!([page(4)]).to_string());
    let (call, _) = wire.ask();
    wire.reply(call, Ok(Reply::Events { events: Vec::new(), next: 0, resume: Resume::Exact }));
    assert!(wire.next()[0]["result"].is_object());
    wire.is_quiet();
}

#[test]
fn a_kill_is_answered_by_the_end() {
    let mut wire = Wire::running(FIRST);
    wire.line(&call(2, "session/kill", &json!({ "sessionId": SESSION })));
    let (stop, command) = wire.command();
    assert_eq!(command, Command::Stop);
    wire.done(stop, &json!({}));
    wire.is_quiet();
    wire.end();
    assert_eq!(wire.error().0, 1);
    assert_eq!(wire.answer(), json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));

    // One that nobody watches: only its end is waited for.
    wire.line(&call(3, "session/kill", &json!({ "sessionId": SESSION })));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("idle", 9))));
    assert_eq!(wire.follows.last(), Some(&(SessionId::from(SESSION), 9)));
    let (stop, _) = wire.command();
    wire.reply(stop, Err(GatewayError::new(ErrorCode::SessionNotFound, "it runs elsewhere")));
    assert_eq!(wire.error(), (json!(3), -32002, "sessionNotFound".to_owned()));
    assert!(wire.follows.is_empty(), "it is left alone");
    wire.is_quiet();
}

#[test]
fn requests_are_shown_and_settled() {
    let mut wire = Wire::running(FIRST);
    wire.turn_starts("a");
    wire.event(json!({
        "type": "requestRaised", "requestId": "r1", "kind": "permission", "inputDigest": "d",
        "toolName": "Bash", "input": { "command": "ls" },
    }));
    // One that a rule settles is nobody's matter.
    wire.event(json!({
        "type": "requestRaised", "requestId": "r0", "kind": "permission", "inputDigest": "d",
    }));
    wire.event(json!({
        "type": "requestSettled", "requestId": "r0", "outcome": "allowed", "by": "policy",
    }));
    wire.pause();
    let shown = wire.answer();
    assert_eq!(shown["method"], "request");
    assert_eq!(
        shown["params"],
        json!({ "sessionId": SESSION, "agentId": "main", "request": {
        "requestId": "r1", "kind": "permission", "inputDigest": "d", "toolName": "Bash",
        "input": { "command": "ls" },
    } })
    );
    let params = json!({ "sessionId": SESSION, "requestId": "r1", "behavior": "allow" });
    for (id, code) in [(2, ErrorCode::RequestSettled), (3, ErrorCode::RequestNotFound)] {
        wire.line(&call(id, "request/settle", &params));
        let (settle, command) = wire.command();
        assert!(
            matches!(command, Command::Settle(settlement) if settlement.request_id.as_str() == "r1")
        );
        wire.reply(settle, Err(GatewayError::new(code, "late")));
    }
    assert_eq!(wire.error(), (json!(2), -32005, "requestSettled".to_owned()));
    assert_eq!(wire.error(), (json!(3), -32004, "requestNotFound".to_owned()));
    wire.event(json!({
        "type": "requestSettled", "requestId": "r1", "outcome": "denied", "by": "policy", "reason": "no",
    }));
    let over = wire.answer();
    assert_eq!(over["method"], "request/settled");
    assert_eq!(
        over["params"],
        json!({
            "sessionId": SESSION, "agentId": "main", "requestId": "r1", "outcome": "denied",
            "by": "policy", "reason": "no",
        })
    );
    wire.is_quiet();
}

#[test]
fn whoever_knows_more_than_there_is_hears_what_comes() {
    let mut wire = Wire::new();
    let params = json!({ "sessionId": SESSION, "after": 99, "events": true });
    wire.line(&call(1, "session/attach", &params));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("idle", 1))));
    let missing = json!({ "missing": { "from": 2, "to": 99 } });
    assert_eq!(wire.answer()["result"]["resume"], missing);
    wire.turn("anything", "done");
    let said: Vec<Value> =
        std::iter::from_fn(|| (!wire.said.is_empty()).then(|| wire.next())).collect();
    let events = said.iter().filter(|said| said["method"] == "event");
    assert_eq!(events.map(|said| &said["params"]["event"]["seq"]).collect::<Vec<_>>(), [2]);
}

#[test]
fn attaching_again_shows_again_and_counts_once() {
    let mut wire = Wire::running(FIRST);
    wire.turn_starts("a");
    wire.said.clear();
    wire.line(&call(2, "session/attach", &json!({ "sessionId": SESSION, "events": true })));
    let (found, _) = wire.ask();
    wire.reply(found, Ok(Reply::Session(summary("working", 1))));
    let reply = wire.answer();
    assert_eq!(
        (&reply["result"]["sessionId"], &reply["result"]["session"]["state"]),
        (&json!(SESSION), &json!("working"))
    );
    wire.seq = 0;
    wire.turn("anything", "done");
    let said: Vec<Value> =
        std::iter::from_fn(|| (!wire.said.is_empty()).then(|| wire.next())).collect();
    assert_eq!(said.iter().filter(|said| said["method"] == "event").count(), 2);
    assert_eq!(said.iter().filter(|said| said["id"] == 1).count(), 1);
}

#[test]
fn control_requests_are_commands() {
    let control = |request: Value| {
        let mut wire = Wire::new();
        wire.line(&call(1, "control", &json!({ "sessionId": SESSION, "request": request })));
        wire
    };
    let command = |request: Value| control(request).command().1;
    for cancel_queued in [false, true] {
        assert_eq!(
            command(json!({ "subtype": "interrupt", "cancel_queued": cancel_queued })),
            Command::Interrupt { cancel_queued }
        );
    }
    for (asked, model) in
        [(json!("m"), Some("m".to_owned())), (json!(null), None), (json!("default"), None)]
    {
        let change = Configure { model: Some(model), ..Configure::default() };
        let request = json!({ "subtype": "set_model", "model": asked });
        assert_eq!(command(request), Command::Configure(change));
    }
    let Command::Configure(change) =
        command(json!({ "subtype": "set_permission_mode", "mode": "plan" }))
    else {
        panic!("no change");
    };
    assert_eq!(change.permission_mode.as_deref(), Some("plan"));
    assert_eq!(
        command(json!({ "subtype": "rewind_files", "user_message_id": "u" })),
        Command::Rewind { message_id: "u".to_owned(), dry_run: false }
    );
    let Command::Query { method, args } = command(json!({ "subtype": "mcp_status" })) else {
        panic!("no query");
    };
    assert_eq!((method.as_str(), args[0].get()), ("control", r#"{"subtype":"mcp_status"}"#));
    let hooks = json!({ "Stop": [{ "hookCallbackIds": ["h"] }] });
    let mut wire = control(json!({ "subtype": "initialize", "hooks": hooks }));
    assert_eq!(wire.error(), (json!(1), -32000, "unsupported".to_owned()));
    let mut wire = control(json!({ "subtype": "initialize" }));
    assert_eq!(wire.error(), (json!(1), -32002, "sessionNotFound".to_owned()));
}

#[test]
fn initialize_is_answered_by_what_the_agent_has_said_of_itself() {
    let mut wire = Wire::running(FIRST);
    let info = json!({ "commands": [{ "name": "help" }], "models": ["m"], "mode": "default" });
    wire.event(json!({ "type": "statusChanged", "status": "ready", "info": info }));
    let request = json!({ "subtype": "initialize", "hooks": {} });
    wire.line(&call(2, "control", &json!({ "sessionId": SESSION, "request": request })));
    let result = json!({ "commands": [{ "name": "help" }], "models": ["m"] });
    assert_eq!(wire.answer()["result"], result);
}

#[test]
fn too_many_calls_are_refused_but_not_those_that_help() {
    let mut wire = Wire::new();
    for id in 0..256 {
        wire.line(&call(id, "session/list", &json!({})));
    }
    assert!(wire.said.is_empty());
    wire.line(&call(256, "session/list", &json!({})));
    assert_eq!(wire.error(), (json!(256), -32001, "overloaded".to_owned()));
    wire.line(&call(257, "session/interrupt", &json!({ "sessionId": SESSION })));
    assert!(wire.said.is_empty());
    let (list, _) = wire.ask();
    wire.reply(list, Ok(Reply::Sessions(Vec::new())));
    assert_eq!(wire.answer()["id"], 0);
    wire.asks.clear();
    wire.line(&call(258, "session/interrupt", &json!({ "sessionId": SESSION })));
    let (interrupt, _) = wire.ask();
    wire.done(interrupt, &json!({}));
    assert_eq!(wire.answer()["id"], 258);
    wire.line(&call(259, "session/list", &json!({})));
    assert!(wire.said.is_empty() || wire.error().1 == -32001);
}

#[test]
fn a_page_of_events_is_embedded_as_it_is() {
    let mut wire = Wire::new();
    wire.line(&call(1, "session/events", &json!({ "sessionId": SESSION, "after": 4, "limit": 2 })));
    let (call, ask) = wire.ask();
    assert_eq!(ask, Ask::Events { session: SessionId::from(SESSION), after: 4, limit: 2 });
    let events = vec![r#"{"seq": 5, "n":1e400}"#.to_owned(), "{}".to_owned()];
    wire.reply(call, Ok(Reply::Events { events, next: 6, resume: Resume::Exact }));
    assert_eq!(
        wire.said.pop_front().expect("a reply"),
        r#"{"jsonrpc":"2.0","id":1,"result":{"events":[{"seq": 5, "n":1e400},{}],"next":6,"resume":"exact"}}"#
    );
}

#[test]
fn every_code_has_its_number() {
    let number = |code: ErrorCode| {
        let mut wire = Wire::new();
        wire.line(r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#);
        let (call, _) = wire.ask();
        let details = Some(Json::checked(r#"{"a":1}"#));
        wire.reply(call, Err(GatewayError { details, ..GatewayError::new(code, "no") }));
        let said = wire.next();
        assert_eq!(said["error"]["data"], json!({ "code": code.as_str(), "details": { "a": 1 } }));
        said["error"]["code"].as_i64().expect("a number")
    };
    let numbers: Vec<i64> = ErrorCode::ALL.into_iter().map(number).collect();
    assert_eq!(
        numbers,
        [
            -32700, -32602, -32601, -32000, -32000, -32002, -32003, -32000, -32000, -32004, -32005,
            -32000, -32000, -32001, -32000, -32000, -32603,
        ]
    );
}

/// Over every recording of every agent: all lines are JSON-RPC, the messages are the renderer's byte for
/// byte, and the run is answered once.
#[test]
fn every_agent_can_be_watched() {
    for case in common::cases() {
        let name = format!("{}/{}", case.dialect.name(), case.name);
        let events = common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
        let mut wire = Wire::running(
            r#"{"jsonrpc":"2.0","id":1,"method":"run","params":{"prompt":"a","events":true,"options":{"include_partial_messages":true}}}"#,
        );
        let mut renderer = Renderer::new(Options { partial: true });
        let mut replies = 0;
        for line in &events {
            let line = line.trim_end();
            wire.feed(line);
            let said = wire.said.pop_front().expect("the event");
            let head = format!(
                r#"{{"jsonrpc":"2.0","method":"event","params":{{"sessionId":"{SESSION}","event":"#
            );
            assert_eq!(said, format!("{head}{line}}}}}"), "{name}");
            let event = Event::from_json(line).expect("an event");
            renderer.event(&event, &mut |message| {
                if !is_promised(message) {
                    return;
                }
                let said = wire.said.pop_front().expect("a message");
                let head = format!(r#"{{"jsonrpc":"2.0","method":"message","params":{{"sessionId":"{SESSION}","message":"#);
                // A lone surrogate would make the frame unreadable.
                let message = agentwire_dialects::json::without_lone_surrogates(message);
                assert_eq!(said, format!("{head}{message}}}}}"), "{name}");
            });
            while let Some(said) = wire.said.pop_front() {
                let said = mended(&said);
                match said["method"].as_str() {
                    Some("message") => {
                        let subtype = said["params"]["message"]["subtype"].as_str();
                        let kind = event.kind.name();
                        let is_told = match subtype {
                            Some("error") => kind == "error",
                            _ => subtype == Some("warning") && kind == "statusChanged",
                        };
                        assert!(is_told, "{name}: {said}");
                    }
                    Some(method) => {
                        let kind = match method {
                            "session/ended" => "sessionEnded",
                            _ => "requestSettled",
                        };
                        assert_eq!(event.kind.name(), kind, "{name}: {said}");
                    }
                    None => {
                        replies += 1;
                        assert_eq!(said["id"], 1, "{name}: {said}");
                        let is_result = said["result"]["type"] == "result";
                        assert!(is_result || said["error"]["code"] == -32000, "{name}: {said}");
                    }
                }
            }
        }
        wire.end();
        replies += wire.said.len();
        assert_eq!(replies, 1, "{name}");
    }
}

/// The rest of what Claude says is in the events.
fn is_promised(message: &str) -> bool {
    let message = mended(message);
    let promised = ["assistant", "user", "system", "result", "stream_event"];
    promised.iter().any(|kind| message["type"] == *kind)
}

/// An agent's own text stands as it is, also where parsers differ on it.
fn mended(text: &str) -> Value {
    let text = agentwire_dialects::json::repair(text).expect("JSON");
    serde_json::from_str(&text).expect("JSON")
}
