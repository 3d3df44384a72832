//! A client of the `claude` program, served without any program: what it says and what it is told.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::claude::{ClaudeFront, FrontOptions};
use agentwire_dialects::front::{Ask, Effect, Front, Outbox, Reply};
use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::{
    Question, QuestionOption, RequestKind, RequestOutcome, RequestRaised, RequestSettled,
    SettledBy, Status, StatusChanged, TurnCompleted, TurnStarted,
};
use agentwire_protocol::{
    AgentType, Call, Command, Configure, ErrorCode, Event, EventKind, GatewayError, Json, Lines,
    Native, NativeLine, NewSession, Prompt, SessionId, SessionState, SessionSummary, Settlement,
    Stream, Text,
};
use serde_json::{Value, json};

const ID: &str = "9b2f7c1e-0000-4000-8000-000000000001";

/// The front, and what it has asked for.
struct Wire {
    front: ClaudeFront,
    out: Outbox,
    seq: u64,
}

fn options(asks_client: bool) -> FrontOptions {
    let new = NewSession::of(AgentType::Demo);
    FrontOptions { new, asks_client, partial: false, replays: false, may_bypass: false, pid: 7 }
}

fn summary(state: SessionState) -> Box<SessionSummary> {
    let summary = json!({
        "id": ID, "agentType": "demo", "state": state, "createdAt": "t", "updatedAt": "t",
        "lastSeq": 0, "turns": 0, "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        "openRequests": 0,
    });
    Box::new(serde_json::from_value(summary).expect("a summary"))
}

impl Wire {
    fn new(options: FrontOptions) -> Self {
        let mut wire = Self { front: ClaudeFront::new(options), out: Outbox::default(), seq: 0 };
        wire.front.on_open(&mut wire.out);
        wire
    }

    /// A session that runs.
    fn running(asks_client: bool) -> Self {
        let mut wire = Self::new(options(asks_client));
        let effects = wire.line(&json!({ "type": "user", "message": { "content": "hi" } }));
        let (call, _) = asked(&effects);
        wire.reply(call, Ok(started(SessionState::Idle)));
        wire
    }

    fn line(&mut self, line: &Value) -> Vec<Effect> {
        self.bytes(line.to_string().as_bytes())
    }

    fn bytes(&mut self, line: &[u8]) -> Vec<Effect> {
        self.front.on_line(line, &mut self.out);
        self.out.take()
    }

    fn reply(&mut self, call: Call, reply: Result<Reply, GatewayError>) -> Vec<Effect> {
        self.front.on_reply(call, reply, &mut self.out);
        self.out.take()
    }

    fn event(&mut self, kind: impl Into<EventKind<'static>>, native: Option<&str>) -> Vec<Effect> {
        self.show(kind, native);
        self.front.on_pause(&SessionId::from(ID), &mut self.out);
        self.out.take()
    }

    /// An event with which others became durable.
    fn show(&mut self, kind: impl Into<EventKind<'static>>, native: Option<&str>) {
        self.seq += 1;
        let native = native.map(|line| Native {
            dialect: "claude".into(),
            stream: Stream::Stdout,
            line: NativeLine::Json(Json::parse(line).expect("JSON")),
            unterminated: false,
        });
        let event = Event {
            id: format!("{ID}-{}", self.seq).into(),
            session_id: ID.into(),
            seq: self.seq,
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            kind: kind.into(),
            agent_id: Text::from("main"),
            parent_agent_id: None,
            native: Lines::Owned(native.into_iter().collect()),
        };
        let text = serde_json::to_string(&event).expect("an event");
        self.front.on_event(&SessionId::from(ID), &text, &mut self.out);
    }

    fn settled(&mut self, id: &'static str, by: SettledBy) -> Vec<Effect> {
        let settled = RequestSettled {
            request_id: Text::from(id),
            outcome: RequestOutcome::Denied,
            by,
            client: None,
            reason: None,
            updated_input: None,
        };
        self.event(settled, None)
    }
}

fn started(state: SessionState) -> Reply {
    Reply::Started { session: summary(state), after: 0 }
}

fn request(kind: RequestKind, id: &'static str, input: Option<Value>) -> RequestRaised<'static> {
    let input = input.map(|input| Json::of(&input));
    RequestRaised {
        tool_name: Some(Text::from("Bash")),
        tool_use_id: Some(Text::from("toolu_1")),
        ..RequestRaised::new(id, kind, input)
    }
}

fn said(effects: &[Effect]) -> Vec<Value> {
    let said = effects.iter().filter_map(|effect| match effect {
        Effect::Say(line) => Some(serde_json::from_slice(line).expect("JSON")),
        _ => None,
    });
    said.collect()
}

fn asked(effects: &[Effect]) -> (Call, Ask) {
    let mut asked = effects.iter().filter_map(|effect| match effect {
        Effect::Ask(call, ask) => Some((*call, ask.clone())),
        _ => None,
    });
    let first = asked.next().expect("a call");
    assert_eq!(asked.next(), None, "one call");
    first
}

fn settlement(effects: &[Effect]) -> Settlement {
    match asked(effects).1 {
        Ask::Command(_, Command::Settle(settlement)) => settlement,
        other => panic!("{other:?}"),
    }
}

fn control(id: &str, request: &Value) -> Value {
    json!({ "type": "control_request", "request_id": id, "request": request })
}

fn response(id: &str, response: &Value) -> Value {
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    json!({ "type": "control_response", "response": response })
}

/// A client waits a minute for its greeting, and a session may have to wait longer before it goes on.
#[test]
fn a_greeting_does_not_wait_for_an_agent_that_starts_later() {
    let mut wire = Wire::new(options(false));
    let (start, _) = asked(&wire.line(&control("r1", &json!({ "subtype": "initialize" }))));
    let (query, _) = asked(&wire.reply(start, Ok(started(SessionState::Starting))));
    let waits = || Err(GatewayError::new(ErrorCode::Conflict, "gemini has not started yet"));
    for effect in wire.reply(query, waits()) {
        let Effect::Ask(call, _) = effect else { panic!("{effect:?}") };
        assert!(wire.reply(call, waits()).is_empty(), "nobody knows what it is");
    }
    let told = said(&wire.event(StatusChanged::new(Status::Waiting), None));
    assert!(told.iter().any(|line| line["response"]["request_id"] == "r1"), "{told:?}");
}

#[test]
fn initialize_and_the_first_prompt_may_come_at_once() {
    let mut wire = Wire::new(options(false));
    let hooks = json!({ "PreToolUse": [{ "matcher": null, "hookCallbackIds": ["hook_9"], "timeout": 2.5 }], "Stop": null });
    let request = json!({
        "subtype": "initialize", "hooks": hooks, "systemPrompt": ["be brief"],
        "sdkMcpServers": ["srv"], "jsonSchema": { "type": "object" }, "title": "t", "skills": null,
    });
    let (start, ask) = asked(&wire.line(&control("r1", &request)));
    let Ask::Start(new) = ask else { panic!("no start") };
    let config = serde_json::to_value(&new.config).expect("a configuration");
    assert_eq!(config["hooks"]["PreToolUse"][0]["hookCallbackIds"], json!(["hook_9"]));
    assert_eq!(config["hooks"]["PreToolUse"][0]["timeout"], 3);
    assert_eq!(config["hooks"].get("Stop"), None);
    assert_eq!(config["systemPrompt"], "be brief");
    assert_eq!(config["mcpServers"]["srv"]["type"], "sdk");
    assert_eq!(config["outputFormat"]["schema"], json!({ "type": "object" }));
    assert_eq!(config["nativeOptions"], json!({ "title": "t" }));
    assert!(wire.line(&json!({ "type": "user", "message": { "content": "one" } })).is_empty());
    let again = wire.line(&control("r2", &json!({ "subtype": "initialize" })));
    assert_eq!(said(&again)[0]["response"]["subtype"], "error");

    let effects = wire.reply(start, Ok(started(SessionState::Starting)));
    let calls: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Ask(call, Ask::Command(_, command)) => Some((*call, command.name())),
            _ => None,
        })
        .collect();
    assert_eq!(calls.iter().map(|call| call.1).collect::<Vec<_>>(), ["query", "prompt"]);
    assert!(effects.contains(&Effect::Follow(SessionId::from(ID), 0)));
    let greeting = Json::checked(r#"{"commands":[],"models":[]}"#);
    let told = said(&wire.reply(calls[0].0, Ok(Reply::Done(greeting))));
    assert_eq!(told[0]["response"]["request_id"], "r1");
    assert_eq!(told[0]["response"]["response"]["hook_on_failure_supported"], true);
}

#[test]
fn an_agent_without_a_greeting_is_waited_for_until_it_is_ready() {
    let mut wire = Wire::new(options(false));
    let (start, _) = asked(&wire.line(&control("r1", &json!({ "subtype": "initialize" }))));
    let (query, _) = asked(&wire.reply(start, Ok(started(SessionState::Starting))));
    let unsupported = || Err(GatewayError::unsupported("codex", "the query initialization"));
    for effect in wire.reply(query, unsupported()) {
        let Effect::Ask(call, _) = effect else { panic!("{effect:?}") };
        assert!(wire.reply(call, unsupported()).is_empty());
    }
    let status: EventKind<'_> = serde_json::from_value::<agentwire_protocol::event::StatusChanged<'_>>(
        json!({ "status": "ready", "info": { "models": [{ "id": "m1", "description": "d" }], "commands": [{ "name": "c" }] } }),
    )
    .expect("a status")
    .into();
    let told = said(&wire.event(status, None));
    let greeting = &told[0]["response"]["response"];
    assert_eq!(greeting["models"][0]["value"], "m1");
    assert_eq!(greeting["commands"][0]["argumentHint"], "");
    for field in ["account", "agents", "output_style", "available_output_styles", "pid"] {
        assert!(greeting.get(field).is_some(), "{field}");
    }
}

#[test]
fn claudes_own_question_passes_as_it_is_and_its_answer_comes_back() {
    let line = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls  -l"},"tool_use_id":"toolu_1"}}"#;
    let mut wire = Wire::running(true);
    let raise = || request(RequestKind::Permission, "q1", Some(json!({ "command": "ls  -l" })));
    let effects = wire.event(raise(), Some(line));
    assert_eq!(effects, [Effect::Say(line.into())]);
    let answer = json!({ "behavior": "allow", "updatedInput": { "command": "ls" }, "updatedPermissions": [{ "type": "addRules" }] });
    let settlement = settlement(&wire.line(&response("q1", &answer)));
    assert_eq!(settlement.updated_input.expect("input").get(), r#"{"command":"ls"}"#);
    assert!(settlement.updated_permissions.is_some());
    assert_eq!(said(&wire.settled("q1", SettledBy::Client)), [] as [Value; 0]);
    // What is over is passed over.
    assert!(wire.line(&response("q1", &answer)).is_empty());

    wire.event(raise(), Some(line));
    let told = said(&wire.settled("q1", SettledBy::Gateway));
    assert_eq!(told, [json!({ "type": "control_cancel_request", "request_id": "q1" })]);
}

#[test]
fn a_client_that_answers_no_permissions_is_not_asked() {
    let mut wire = Wire::running(false);
    let effects = wire.event(request(RequestKind::Permission, "q1", Some(json!({}))), None);
    assert!(said(&effects).is_empty());
    let settlement = settlement(&effects);
    assert_eq!(
        settlement.message.expect("words"),
        "Claude requested permissions to use Bash, but you haven't granted it yet."
    );
    // Hooks were asked for by name.
    let hook = RequestRaised {
        callback_id: Some(Text::from("hook_3")),
        ..request(RequestKind::Hook, "h1", Some(json!({ "hook_event_name": "Stop" })))
    };
    let told = said(&wire.event(hook, None));
    assert_eq!(told[0]["request"]["callback_id"], "hook_3");
    assert_eq!(told[0]["request"]["input"]["hook_event_name"], "Stop");
}

#[test]
fn answers_become_what_they_mean() {
    let mut wire = Wire::running(true);
    let input = json!({ "command": "ls" });
    let mut answer = |kind: RequestKind, line: &dyn Fn(&str) -> Value| {
        wire.event(request(kind, "q1", Some(input.clone())), None);
        let settlement = settlement(&wire.line(&line("q1")));
        wire.settled("q1", SettledBy::Client);
        settlement
    };
    let deny = answer(RequestKind::Permission, &|id| {
        response(id, &json!({ "behavior": "deny", "message": "no", "interrupt": true }))
    });
    assert_eq!((deny.message.as_deref(), deny.interrupt), (Some("no"), Some(true)));
    let unchanged = answer(RequestKind::Permission, &|id| {
        response(id, &json!({ "behavior": "allow", "updatedInput": { "command": "ls" } }))
    });
    assert_eq!(unchanged.updated_input, None, "nothing is changed");
    let silent = answer(RequestKind::Permission, &|id| response(id, &json!({})));
    assert!(silent.error.is_some() && silent.behavior.is_none(), "silence never allows");
    let raised = answer(
        RequestKind::Hook,
        &|id| json!({ "type": "control_response", "response": { "subtype": "error", "request_id": id, "error": "boom" } }),
    );
    assert_eq!(raised.error.as_deref(), Some("boom"));
    let mcp = answer(RequestKind::Mcp, &|id| response(id, &json!({ "mcp_response": { "id": 1 } })));
    assert_eq!(mcp.hook_output.expect("output").get(), r#"{"mcp_response":{"id":1}}"#);
    let callback = answer(
        RequestKind::Permission,
        &|id| json!({ "type": "callback.response", "id": id, "payload": { "behavior": "allow", "updated_input": { "command": "pwd" } } }),
    );
    assert_eq!(callback.updated_input.expect("input").get(), r#"{"command":"pwd"}"#);
}

#[test]
fn a_question_of_any_agent_is_a_tool_of_claudes() {
    let mut wire = Wire::running(true);
    let question = Question {
        question: Text::from("Which?"),
        id: Some(Text::from("k1")),
        header: None,
        options: vec![QuestionOption { label: Text::from("A"), description: None }],
        multi_select: false,
        is_secret: false,
    };
    let raise = RequestRaised {
        questions: vec![question],
        ..request(RequestKind::Question, "q1", Some(json!({ "other": "words" })))
    };
    let told = said(&wire.event(raise, None));
    assert_eq!(told[0]["request"]["tool_name"], "AskUserQuestion");
    assert_eq!(told[0]["request"]["input"]["questions"][0]["options"][0]["label"], "A");
    let answer = json!({ "behavior": "allow", "updatedInput": { "questions": [], "answers": { "Which?": "A" } } });
    let answers = settlement(&wire.line(&response("q1", &answer))).answers.expect("answers");
    assert_eq!(answers["k1"].get(), "\"A\"");
}

#[test]
fn whoever_speaks_the_specifications_words_hears_them() {
    let mut wire = Wire::new(options(true));
    let request_line = json!({ "subtype": "initialize", "system_prompt": { "type": "preset", "preset": "claude_code" }, "mcp_servers": {}, "agents": {}, "hooks": {} });
    let (start, _) = asked(&wire.line(&control("r1", &request_line)));
    wire.reply(start, Ok(started(SessionState::Idle)));
    let told =
        said(&wire.event(
            request(RequestKind::Permission, "cb-1", Some(json!({ "command": "ls" }))),
            None,
        ));
    assert_eq!(told[0]["type"], "callback.request");
    assert_eq!(told[0]["id"], "cb-1");
    assert_eq!(told[0]["session_id"], ID);
    assert_eq!(told[0]["payload"]["callback_type"], "can_use_tool");
    assert_eq!(told[0]["payload"]["tool_input"]["command"], "ls");
}

#[test]
fn a_bad_line_gets_an_error_with_its_id_and_nothing_else_happens() {
    let mut wire = Wire::running(false);
    for (line, id) in [
        (&b"{\"type\":"[..], ""),
        (b"\xff\xfe", ""),
        (b"[1,2]", ""),
        (b"{\"no\":\"type\"}", ""),
        (b"{\"type\":\"control_request\",\"request_id\":\"r7\"}", "r7"),
        (b"{\"type\":\"control_request\",\"request_id\":\"r8\",\"request\":{}}", "r8"),
        (b"{\"type\":\"control_response\",\"response\":{}}", ""),
    ] {
        let effects = wire.bytes(line);
        let told = said(&effects);
        assert_eq!(effects.len(), 1, "{}", line.escape_ascii());
        assert_eq!(told[0]["response"]["subtype"], "error");
        assert_eq!(told[0]["response"]["request_id"], id);
    }
    for line in [&b""[..], b"  ", b"{\"type\":\"keep_alive\"}", b"{\"type\":\"novel\"}"] {
        assert!(wire.bytes(line).is_empty());
    }
    // Somebody waits for the result of what was to be a prompt.
    for line in [
        &b"{\"type\":\"user\",\"message\":{}}"[..],
        b"{\"type\":\"user\",\"message\":{\"content\":7}}",
    ] {
        let told = said(&wire.bytes(line));
        assert_eq!((&told[0]["type"], &told[0]["is_error"]), (&"result".into(), &true.into()));
    }
    wire.front.on_end(&SessionId::from(ID), &mut wire.out);
    assert_eq!(wire.out.take(), [Effect::Close(1)]);
    wire.front.on_overlong(1 << 40, &mut wire.out);
    assert_eq!(said(&wire.out.take())[0]["response"]["subtype"], "error");
}

#[test]
fn what_is_asked_while_a_turn_runs_is_answered() {
    let mut wire = Wire::running(false);
    let (call, ask) = asked(&wire.line(&control("r1", &json!({ "subtype": "interrupt" }))));
    assert_eq!(ask, Ask::Command(SessionId::from(ID), Command::Interrupt { cancel_queued: false }));
    let told = said(&wire.reply(call, Ok(Reply::Done(Json::checked("{}")))));
    assert_eq!(told[0]["response"]["response"], json!({ "still_queued": [] }));

    let cancel = json!({ "subtype": "interrupt", "cancel_queued": true });
    let (call, ask) = asked(&wire.line(&control("r1", &cancel)));
    assert_eq!(ask, Ask::Command(SessionId::from(ID), Command::Interrupt { cancel_queued: true }));
    let done = Json::checked(r#"{"stillQueued":["a"],"cancelled":["b","c"]}"#);
    let told = said(&wire.reply(call, Ok(Reply::Done(done))));
    let expected = json!({ "still_queued": ["a"], "cancelled": ["b", "c"] });
    assert_eq!(told[0]["response"]["response"], expected);

    let (call, _) =
        asked(&wire.line(&control("r2", &json!({ "subtype": "set_model", "model": "m" }))));
    let told = said(&wire.reply(call, Ok(Reply::Done(Json::checked("{}")))));
    assert_eq!(told[0]["response"]["response"], json!({ "model": "m" }));
    for model in [json!({}), json!({ "model": null }), json!({ "model": "default" })] {
        let mut request = json!({ "subtype": "set_model" });
        request
            .as_object_mut()
            .expect("an object")
            .extend(model.as_object().cloned().expect("one"));
        let (_, ask) = asked(&wire.line(&control("r2", &request)));
        let change = Configure { model: Some(None), ..Configure::default() };
        assert_eq!(ask, Ask::Command(SessionId::from(ID), Command::Configure(change)), "{request}");
    }
    for tokens in [None, Some(7)] {
        let request =
            json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": tokens });
        let (_, ask) = asked(&wire.line(&control("r2", &request)));
        let change = Configure { max_thinking_tokens: Some(tokens), ..Configure::default() };
        assert_eq!(ask, Ask::Command(SessionId::from(ID), Command::Configure(change)));
    }

    let (call, ask) = asked(&wire.line(&control("r3", &json!({ "subtype": "get_settings" }))));
    let Ask::Command(_, Command::Query { method, args }) = ask else { panic!("no query") };
    assert_eq!((method.as_str(), args[0].get()), ("control", r#"{"subtype":"get_settings"}"#));
    let told =
        said(&wire.reply(call, Err(GatewayError::unsupported("codex", "the query control"))));
    assert_eq!(told[0]["response"]["subtype"], "error");

    let (call, _) = asked(&wire.line(&control("r4", &json!({ "subtype": "mcp_status" }))));
    let told = said(&wire.reply(call, Err(GatewayError::unsupported("codex", "that"))));
    assert_eq!(told[0]["response"]["response"], json!({ "mcpServers": [] }));
}

#[test]
fn messages_of_any_form_become_prompts() {
    let mut wire = Wire::running(false);
    let mut prompt = |content: Value| {
        let line = json!({ "type": "user", "session_id": "default", "message": { "role": "user", "content": content } });
        match asked(&wire.line(&line)).1 {
            Ask::Command(_, Command::Prompt(prompt)) => prompt,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(prompt(json!("a")), Prompt::text("a"));
    assert_eq!(prompt(json!([{ "type": "text", "text": "a" }])), Prompt::text("a"));
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA" } });
    let pictured = prompt(json!([{ "type": "text", "text": "a" }, image]));
    assert_eq!((pictured.images.len(), pictured.content), (1, None));
    let document =
        prompt(json!([{ "type": "text", "text": "a" }, { "type": "document", "source": {} }]));
    assert_eq!(document.text, "a");
    assert!(document.content.is_some());
}

#[test]
fn what_a_message_has_beside_its_text_is_kept() {
    let mut wire = Wire::running(false);
    let mut prompt = |line: &str| match asked(&wire.bytes(line.as_bytes())).1 {
        Ask::Command(_, Command::Prompt(prompt)) => prompt,
        other => panic!("{other:?}"),
    };
    let kept = prompt(
        r#"{"type":"user","session_id":"","parent_tool_use_id":null,"shouldQuery":false,"priority":"later","origin":{"kind":"human"},"message":{"role":"user","content":"a"}}"#,
    );
    assert!(!kept.wants_answer());
    let native: Value = kept.native.expect("fields").read().expect("JSON");
    let expected =
        json!({ "shouldQuery": false, "priority": "later", "origin": { "kind": "human" } });
    assert_eq!(native, expected);
    let cached = prompt(
        r#"{"type":"user","message":{"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}}"#,
    );
    assert!(cached.content.is_some() && cached.native.is_none());
    let halved = prompt(r#"{"type":"user","message":{"content":"a\ud83d"}}"#);
    assert_eq!(halved.text, "a\u{FFFD}");
}

/// What the session is started with may come after other requests.
#[test]
fn requests_before_initialize_wait_for_it() {
    let mut wire = Wire::new(options(false));
    assert!(wire.line(&control("r1", &json!({ "subtype": "mcp_status" }))).is_empty());
    let request =
        json!({ "subtype": "initialize", "systemPrompt": ["x"], "appendSystemPrompt": "y" });
    let (start, ask) = asked(&wire.line(&control("r2", &request)));
    let Ask::Start(new) = ask else { panic!("no start") };
    let config = serde_json::to_value(&new.config).expect("a configuration");
    assert_eq!(config["systemPrompt"], "x\n\ny");
    let effects = wire.reply(start, Ok(started(SessionState::Idle)));
    let queries = effects.iter().filter(|effect| matches!(effect, Effect::Ask(..)));
    assert_eq!(queries.count(), 2);

    let mut wire = Wire::new(options(false));
    wire.line(&control("r1", &json!({ "subtype": "mcp_status" })));
    wire.front.on_close(&mut wire.out);
    let (start, _) = asked(&wire.out.take());
    wire.reply(start, Ok(started(SessionState::Idle)));
    wire.front.on_end(&SessionId::from(ID), &mut wire.out);
    assert_eq!(wire.out.take(), [Effect::Close(0)], "nothing was to be answered by a turn");
}

#[test]
fn what_waits_for_the_session_is_bounded() {
    let mut wire = Wire::new(options(false));
    let line = control("r", &json!({ "subtype": "get_settings", "x": "x".repeat(1 << 20) }));
    let told: Vec<Value> = (0..70).flat_map(|_| said(&wire.line(&line))).collect();
    assert!((4..10).contains(&told.len()), "{}", told.len());
    assert!(told.iter().all(|told| told["response"]["subtype"] == "error"));
}

fn other_agent() -> Wire {
    let mut options = options(true);
    options.new.agent = AgentType::Codex;
    let mut wire = Wire::new(options);
    let (call, _) = asked(&wire.line(&json!({ "type": "user", "message": { "content": "hi" } })));
    wire.reply(call, Ok(started(SessionState::Idle)));
    wire
}

/// Only what was suggested is remembered, and a rule that denies is never taken for one that allows.
#[test]
fn rules_in_an_answer_mean_what_they_say() {
    let mut wire = other_agent();
    let mut answer = |rules: Value| {
        wire.event(request(RequestKind::Permission, "q1", Some(json!({ "command": "ls" }))), None);
        let effects = wire
            .line(&response("q1", &json!({ "behavior": "allow", "updatedPermissions": rules })));
        wire.settled("q1", SettledBy::Client);
        effects
    };
    let rule = |behavior: &str, content: &str| {
        json!([{ "type": "addRules", "behavior": behavior, "destination": "session",
            "rules": [{ "toolName": "Bash", "ruleContent": content }] }])
    };
    let kept = settlement(&answer(rule("allow", "ls")));
    assert_eq!((kept.remember, kept.error), (Some(Remember::Session), None));
    for wrong in [
        rule("deny", "ls"),
        rule("allow", "rm"),
        json!([{ "type": "addRules", "behavior": "allow", "rules": [{ "toolName": "Bash" }] }]),
        json!([{ "type": "addDirectories", "directories": ["/"] }]),
    ] {
        let settlement = settlement(&answer(wrong.clone()));
        assert!(settlement.error.is_some() && settlement.behavior.is_none(), "{wrong}");
        assert_eq!(settlement.remember, None);
    }
    let effects =
        answer(json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }]));
    let asks: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            Effect::Ask(_, Ask::Command(_, command)) => command.name(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(asks, ["configure", "settle"]);
    let bypass = answer(json!([{ "type": "setMode", "mode": "bypassPermissions" }]));
    assert!(settlement(&bypass).error.is_some());
}

/// A client is asked for what the agent asks, whatever was shown of the call before.
#[test]
fn what_is_asked_for_is_shown() {
    let mut seen = 0;
    for case in common::cases().into_iter().filter(|case| case.dialect.name() == "acp") {
        let mut wire = other_agent();
        for line in common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown)) {
            wire.front.on_event(&SessionId::from(ID), &line, &mut wire.out);
            wire.front.on_pause(&SessionId::from(ID), &mut wire.out);
            let told = said(&wire.out.take());
            let asked = told.iter().filter(|told| told["type"] == "control_request");
            for input in asked.map(|asked| &asked["request"]["input"]) {
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
    }
    assert_eq!(seen, 2);
}

#[test]
fn a_mode_that_asks_nothing_must_be_allowed_from_the_start() {
    let mode =
        control("r", &json!({ "subtype": "set_permission_mode", "mode": "bypassPermissions" }));
    for mut wire in [other_agent(), Wire::running(false)] {
        let told = said(&wire.line(&mode));
        assert_eq!(told[0]["response"]["error_code"], "bypass_not_launched");
    }
}

#[test]
fn an_agent_is_asked_for_what_its_greeting_lacks() {
    let mut wire = Wire::new(options(false));
    let (start, _) = asked(&wire.line(&control("r1", &json!({ "subtype": "initialize" }))));
    let (query, _) = asked(&wire.reply(start, Ok(started(SessionState::Idle))));
    let unsupported = || Err(GatewayError::unsupported("codex", "the query"));
    let effects = wire.reply(query, unsupported());
    let calls: Vec<Call> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Ask(call, _) => Some(*call),
            _ => None,
        })
        .collect();
    let [models, commands, account] = calls.as_slice() else { panic!("{effects:?}") };
    let list = Json::checked(r#"[{"value":"m1","displayName":"M"}]"#);
    assert!(wire.reply(*models, Ok(Reply::Done(list))).is_empty());
    assert!(wire.reply(*commands, unsupported()).is_empty());
    let told = said(&wire.reply(*account, Ok(Reply::Done(Json::checked(r#"{"email":"a@b"}"#)))));
    let greeting = &told[0]["response"]["response"];
    assert_eq!(
        (&greeting["models"][0]["value"], &greeting["account"]["email"]),
        (&"m1".into(), &"a@b".into())
    );
}

/// Each agent lists its models in its own form; some name a model twice.
#[test]
fn models_are_listed_whoever_has_them() {
    for (told, wanted) in [
        (
            json!([{ "id": "gpt", "model": "gpt", "displayName": "GPT", "description": "d" }]),
            json!([{ "value": "gpt", "displayName": "GPT", "description": "d" }]),
        ),
        (
            json!({ "currentModelId": "auto", "availableModels": [
                { "modelId": "auto", "name": "Auto", "description": "d" }, { "modelId": "pro", "name": "Pro" },
            ] }),
            json!([
                { "value": "auto", "displayName": "Auto", "description": "d" },
                { "value": "pro", "displayName": "Pro", "description": "" },
            ]),
        ),
        (
            json!({ "id": "model", "currentValue": "a", "options": [
                { "value": "a", "name": "A" },
                { "name": "more", "options": [{ "value": "b", "name": "B" }] },
            ] }),
            json!([
                { "value": "a", "displayName": "A", "description": "" },
                { "value": "b", "displayName": "B", "description": "" },
            ]),
        ),
    ] {
        let mut wire = Wire::new(options(false));
        let (start, _) = asked(&wire.line(&control("r1", &json!({ "subtype": "initialize" }))));
        let (query, _) = asked(&wire.reply(start, Ok(started(SessionState::Idle))));
        let unsupported = || Err(GatewayError::unsupported("codex", "the query"));
        let mut said_last = Vec::new();
        for (at, effect) in wire.reply(query, unsupported()).into_iter().enumerate() {
            let Effect::Ask(call, _) = effect else { panic!("{effect:?}") };
            let list = || Ok(Reply::Done(Json::of(&told)));
            said_last = said(&wire.reply(call, if at == 0 { list() } else { unsupported() }));
        }
        assert_eq!(said_last[0]["response"]["response"]["models"], wanted);
    }
}

#[test]
fn the_end_has_the_exit_code_of_the_last_result() {
    let mut wire = Wire::new(options(false));
    wire.front.on_close(&mut wire.out);
    assert_eq!(wire.out.take(), [Effect::Close(0)], "nothing was asked");

    for (is_error, code) in [(false, 0), (true, 1)] {
        let mut wire = Wire::running(false);
        let result = json!({ "type": "result", "subtype": "success", "is_error": is_error, "result": "x", "session_id": ID });
        let other = agentwire_protocol::event::Other::named("result");
        wire.event(other, Some(&result.to_string()));
        wire.front.on_close(&mut wire.out);
        assert_eq!(wire.out.take(), []);
        wire.front.on_end(&SessionId::from(ID), &mut wire.out);
        assert_eq!(wire.out.take(), [Effect::Close(code)]);
    }
}

#[test]
fn a_session_that_does_not_start_is_told_to_all_who_wait() {
    let mut wire = Wire::new(options(false));
    let (start, _) = asked(&wire.line(&control("r1", &json!({ "subtype": "initialize" }))));
    let error = GatewayError::new(ErrorCode::AgentUnavailable, "codex is not installed");
    let effects = wire.reply(start, Err(error));
    let told = said(&effects);
    assert_eq!(told[0]["response"]["error"], "codex is not installed");
    assert_eq!(told[1]["type"], "result");
    assert_eq!(told[1]["errors"], json!(["codex is not installed"]));
    for field in
        ["subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id"]
    {
        assert!(told[1].get(field).is_some(), "{field}");
    }
    assert_eq!(effects.last(), Some(&Effect::Close(1)));
    assert_eq!(wire.front.failure(), Some("codex is not installed"));
}

#[test]
fn what_is_asked_is_asked_before_the_result() {
    let mut wire = Wire::running(true);
    let turn = json!({ "turnNumber": 1, "origin": "prompt" });
    let started: TurnStarted<'static> = serde_json::from_value(turn).expect("a turn");
    wire.show(started, None);
    let hook = request(RequestKind::Hook, "h1", Some(json!({ "hook_event_name": "Stop" })));
    wire.show(hook, None);
    let usage = json!({ "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 });
    let turn = json!({ "turnNumber": 1, "usage": usage });
    let completed: TurnCompleted<'static> = serde_json::from_value(turn).expect("a turn");
    wire.show(completed, None);
    let told = said(&wire.out.take());
    let place = |kind: &str| told.iter().position(|line| line["type"] == kind).expect("a line");
    assert!(place("control_request") < place("result"), "{told:?}");
}

#[test]
fn an_answer_that_cannot_be_taken_denies() {
    for kind in [RequestKind::Hook, RequestKind::Permission] {
        let mut wire = Wire::running(true);
        wire.event(request(kind, "q1", Some(json!({}))), None);
        let effects = wire.line(&response("q1", &json!({ "behavior": "allow", "decision": "no" })));
        let (call, _) = asked(&effects);
        let refusal = GatewayError::new(ErrorCode::InvalidMessage, "no such word");
        let settlement = settlement(&wire.reply(call, Err(refusal)));
        assert_eq!(settlement.behavior, Some(Behavior::Deny));
        assert_eq!(settlement.message.as_deref(), Some("no such word"));
    }
}
