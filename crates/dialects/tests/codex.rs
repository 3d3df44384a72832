//! Codex: each command becomes its lines, each option its arguments, and what it cannot take is
//! refused by name.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::redundant_clone,
    reason = "a test that finds something else has failed"
)]

mod common;

use agentwire_dialects::agent as dialect;
use agentwire_dialects::agent::{Exit, Launch, Setup, Start, Stdin};
use agentwire_dialects::tape::{Action, Draft, Sink, Tape, Unasked};
use agentwire_protocol::command::Image;
use agentwire_protocol::{
    Call, CommandFrame, ErrorCode, GatewayError, Json, Prompt, SessionConfig,
};
use serde_json::{Value, json};

const THREAD: &str = "01a1e063-a453-7073-9c0a-6f8af3433c0c";

/// A session that is driven, and what came out of it since it was last asked.
struct Driven {
    tape: Tape,
    seen: Seen,
    calls: u64,
}

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    actions: Vec<Action>,
    replies: Vec<(u64, Result<Value, GatewayError>)>,
    unasked: Vec<Unasked>,
}

impl Sink for Seen {
    fn unasked(&mut self, call: Unasked) {
        self.unasked.push(call);
    }
    fn event(&mut self, draft: Draft<'_>) {
        self.events.push(serde_json::from_str(&common::stamped(draft, 1)).expect("an event"));
    }
    fn action(&mut self, action: Action) {
        self.actions.push(action);
    }
    fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        self.replies.push((call.0, result.map(|json| json.read().expect("JSON"))));
    }
}

impl Driven {
    fn new(name: &str, config: Value, resume: Option<&str>) -> Self {
        let config: SessionConfig = serde_json::from_value(config).expect("a config");
        let resume = resume.map(str::to_owned);
        Self::with(name, Setup { config, resume, ..Setup::default() })
    }

    /// Asked to go on in a copy of the thread.
    fn fork(name: &str) -> Self {
        let resume = Some(THREAD.to_owned());
        Self::with(name, Setup { resume, fork: true, ..Setup::default() })
    }

    fn with(name: &str, setup: Setup) -> Self {
        let tape = Tape::new(dialect_of(name), &setup);
        let mut driven = Self { tape, seen: Seen::default(), calls: 0 };
        driven.tape.start(&mut driven.seen);
        driven
    }

    /// An app server that has opened its thread.
    fn open(config: Value) -> Self {
        let mut driven = Self::new("codex", config, None);
        driven.opened(THREAD);
        driven.stdin();
        driven.events();
        driven
    }

    fn opened(&mut self, thread: &str) {
        self.says(&json!({"id": 1, "result": {"userAgent": "agentwire/0.166.0 (x)"}}));
        let thread = json!({"id": thread, "cliVersion": "0.166.0"});
        self.says(&json!({"id": 2, "result": {"thread": thread, "cwd": "/p", "approvalPolicy": "untrusted"}}));
    }

    /// An app server in the turn `u1`, whose request was `id` 3.
    fn working(config: Value) -> Self {
        let mut driven = Self::open(config);
        driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
        driven.says(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
        driven.says(&turn("turn/started", json!({"id": "u1", "rootTurnId": "u1"})));
        driven.stdin();
        driven.events();
        driven.seen.replies.clear();
        driven
    }

    fn says(&mut self, line: &Value) {
        self.tape.line(line.to_string().as_bytes(), &mut self.seen);
    }

    fn send(&mut self, command: &Value) -> Result<(), GatewayError> {
        let frame = CommandFrame::from_json(&command.to_string()).expect("a command");
        self.calls += 1;
        self.tape.command(Call(self.calls), &frame.command, &mut self.seen)
    }

    fn refused(&mut self, command: &Value) -> String {
        let error = self.send(command).expect_err("a refusal");
        assert!(self.seen.actions.is_empty(), "{command} is refused and sent");
        error.to_string()
    }

    fn stdin(&mut self) -> Vec<Value> {
        let written = self.seen.actions.drain(..).filter_map(|action| match action {
            Action::Write(line) => Some(serde_json::from_str(&line).expect("JSON")),
            Action::CloseStdin | Action::Signal(_) | Action::Judge(_) => None,
        });
        written.collect()
    }

    fn events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.seen.events)
    }

    fn kinds(&mut self) -> Vec<String> {
        self.events()
            .iter()
            .map(|event| event["type"].as_str().expect("a type").to_owned())
            .collect()
    }
}

fn dialect_of(name: &str) -> &'static dyn dialect::AgentDialect {
    agentwire_dialects::agent(name).expect("a dialect")
}

fn turn(method: &str, turn: Value) -> Value {
    json!({"method": method, "params": {"threadId": THREAD, "turn": turn}})
}

fn launch(name: &str, config: Value, resume: Option<&str>) -> Result<Launch, GatewayError> {
    let config: SessionConfig = serde_json::from_value(config).expect("a config");
    let start = Start {
        config: &config,
        resume,
        fork: false,
        native_session_id: None,
        prompt: Some(&Prompt::text("-hi")),
    };
    dialect_of(name).launch(&start)
}

fn pictured() -> Prompt {
    let image =
        |kind: &str, data: &str| Image { media_type: kind.to_owned(), data: data.to_owned() };
    let images = vec![image("image/png", "////"), image("image/jpeg", "Zg==")];
    Prompt { images, ..Prompt::text("hi") }
}

/// What `thread/start` is told of a config.
fn thread_start(config: Value) -> Value {
    let mut driven = Driven::new("codex", config, None);
    driven.says(&json!({"id": 1, "result": {}}));
    driven.stdin().pop().expect("thread/start")["params"].clone()
}

#[test]
fn options_become_words_of_thread_start() {
    // Whatever the mode is, Codex asks about everything, and asks us: the gateway decides.
    let of = |sandbox: &str| json!({"approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": sandbox});
    let (ask, all) = (of("workspace-write"), of("danger-full-access"));
    let with = |base: &Value, more: Value| {
        let mut base = base.clone();
        base.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
        base
    };
    let table = [
        (json!({}), ask.clone()),
        (json!({"approvalMode": "ask"}), ask.clone()),
        (json!({"approvalMode": "askDangerous"}), ask.clone()),
        (json!({"approvalMode": "autoEdit"}), ask.clone()),
        (json!({"approvalMode": "autoAll"}), all.clone()),
        (json!({"permissionMode": "default", "approvalMode": "autoAll"}), ask.clone()),
        (json!({"permissionMode": "on-request"}), ask.clone()),
        (json!({"permissionMode": "acceptEdits"}), ask.clone()),
        (json!({"permissionMode": "bypassPermissions"}), all.clone()),
        (json!({"permissionMode": "never"}), ask.clone()),
        (json!({"permissionMode": "plan"}), of("read-only")),
        (json!({"sandboxMode": "readOnly"}), with(&ask, json!({"sandbox": "read-only"}))),
        (
            json!({"sandboxMode": "fullAccess"}),
            with(&ask, json!({"sandbox": "danger-full-access"})),
        ),
        (
            json!({"sandboxMode": "workspaceWrite", "approvalMode": "autoAll"}),
            with(&all, json!({"sandbox": "workspace-write"})),
        ),
        (json!({"model": "-m"}), with(&ask, json!({"model": "-m"}))),
        (json!({"workingDirectory": "/p"}), with(&ask, json!({"cwd": "/p"}))),
        (json!({"systemPrompt": "Be"}), with(&ask, json!({"baseInstructions": "Be"}))),
        (
            json!({"systemPrompt": {"type": "preset", "preset": "x", "append": "Be"}}),
            with(&ask, json!({"developerInstructions": "Be"})),
        ),
        (
            json!({"additionalDirectories": ["/x"]}),
            with(&ask, json!({"config": {"sandbox_workspace_write.writable_roots": ["/x"]}})),
        ),
        (
            json!({"mcpServers": {"a": {"command": "c"}, "b": {"type": "http", "url": "u", "headers": {"h": "v"}}}}),
            with(
                &ask,
                json!({"config": {
                    "mcp_servers.a": {"command": "c", "args": [], "env": {}, "default_tools_approval_mode": "prompt"},
                    "mcp_servers.b": {"url": "u", "http_headers": {"h": "v"}, "default_tools_approval_mode": "prompt"},
                }}),
            ),
        ),
        (
            json!({"allowedTools": ["x"], "blockedTools": ["y"], "maxTurns": 3, "maxBudgetUsd": 1.0, "hooks": {}}),
            ask,
        ),
    ];
    for (config, expected) in table {
        assert_eq!(thread_start(config.clone()), expected, "{config}");
        let started = launch("codex", config, None).expect("a launch");
        assert_eq!(
            (started.program.as_str(), started.shown_args()),
            ("codex", vec!["app-server".to_owned()])
        );
        assert_eq!(started.stdin, Stdin::Open);
    }
}

#[test]
fn options_become_arguments_of_exec() {
    let always = ["exec", "--json", "--skip-git-repo-check"];
    let table: &[(Value, &[&str])] = &[
        (json!({}), &["--sandbox=read-only"]),
        (json!({"approvalMode": "askDangerous"}), &["--sandbox=workspace-write"]),
        (json!({"approvalMode": "autoEdit"}), &["--sandbox=workspace-write"]),
        (json!({"approvalMode": "autoAll"}), &["--dangerously-bypass-approvals-and-sandbox"]),
        (json!({"approvalMode": "autoAll", "sandboxMode": "readOnly"}), &["--sandbox=read-only"]),
        (json!({"sandboxMode": "fullAccess"}), &["--sandbox=danger-full-access"]),
        (json!({"permissionMode": "never"}), &["--sandbox=workspace-write"]),
        (json!({"model": "--help"}), &["--sandbox=read-only", "--model=--help"]),
        (
            json!({"additionalDirectories": ["-a", "/b"]}),
            &["--sandbox=read-only", "--add-dir=-a", "--add-dir=/b"],
        ),
        (
            json!({"outputFormat": {"type": "json_schema", "schema": {"type": "object"}}}),
            &["--sandbox=read-only", "--output-schema={file:schema.json}"],
        ),
        (
            json!({"systemPrompt": "Be"}),
            &["--sandbox=read-only", "--config=model_instructions_file={file:instructions.md}"],
        ),
        (
            json!({"mcpServers": {"b": {"type": "http", "url": "u\"]\u{7f}", "headers": {"h h": "secret"}}}}),
            &[
                "--sandbox=read-only",
                "--config=mcp_servers.b={\"env_http_headers\" = {\"h h\" = \"AGENTWIRE_MCP_SECRET_0\"}, \"url\" = \"u\\\"]\\u007f\"}",
            ],
        ),
        (
            json!({"mcpServers": {"a-1": {"command": "c", "args": ["secret"], "env": {"K": "secret"}}}}),
            &[
                "--sandbox=read-only",
                "--config=mcp_servers.a-1={\"command\" = \"/bin/sh\", \"args\" = [{quoted:mcp-a-1.sh}]}",
            ],
        ),
    ];
    for (config, expected) in table {
        let launch = launch("codex-exec", config.clone(), None).expect("a launch");
        assert_eq!(launch.shown_args(), [&always, *expected, &["-"]].concat(), "{config}");
        // Every user of the machine can read it.
        assert!(!launch.shown_args().concat().contains("secret"), "{config}");
        assert_eq!(launch.stdin, Stdin::Text("-hi".to_owned()));
    }
    let resumed = launch("codex-exec", json!({}), Some(THREAD)).expect("a launch");
    assert_eq!(resumed.shown_args()[3..], ["--sandbox=read-only", "resume", THREAD, "-"]);
    let error = launch("codex-exec", json!({}), Some("--last")).expect_err("no id");
    assert_eq!(error.code, ErrorCode::InvalidMessage);
    let schema = json!({"outputFormat": {"type": "json_schema", "schema": {"type": "object"}}});
    let files = launch("codex-exec", schema, None).expect("a launch").files;
    assert_eq!(files["schema.json"], br#"{"type":"object"}"#);
}

#[test]
fn what_cannot_be_taken_is_refused_by_name() {
    let table = [
        (json!({"maxThinkingTokens": 1}), "maxThinkingTokens"),
        (json!({"enableFileCheckpointing": true}), "enableFileCheckpointing"),
        (json!({"agents": {}}), "agents"),
        (json!({"sandbox": {}}), "sandbox"),
        (json!({"settingSources": []}), "settingSources"),
        (json!({"betas": []}), "betas"),
        (json!({"fallbackModel": "x"}), "fallbackModel"),
        (json!({"permissionMode": "dontAsk"}), "permissionMode dontAsk"),
        (json!({"mcpServers": {"a": {"type": "sse", "url": "u"}}}), "MCP server a of type sse"),
        (json!({"mcpServers": {"a": {"type": "sdk"}}}), "MCP server a of type sdk"),
        (json!({"mcpServers": {"a.b": {"command": "c"}}}), "`a.b`"),
    ];
    for (config, named) in table {
        for name in ["codex", "codex-exec"] {
            let error = launch(name, config.clone(), None).expect_err(named);
            assert_eq!(error.code, ErrorCode::Unsupported);
            assert!(error.message.contains(named), "{error}");
        }
    }
}

#[test]
fn a_thread_that_is_resumed_must_be_the_one_asked_for() {
    let mut driven = Driven::new("codex", json!({}), Some(THREAD));
    driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("it waits");
    driven.says(&json!({"id": 1, "result": {}}));
    let resume = driven.stdin().pop().expect("thread/resume");
    assert_eq!(resume["method"], "thread/resume");
    assert_eq!(resume["params"]["threadId"], THREAD);
    assert_eq!(resume["params"]["excludeTurns"], true);
    driven.events();
    driven.says(&json!({"id": 2, "result": {"thread": {"id": "another"}}}));
    assert_eq!(driven.kinds(), ["error", "turnStarted", "turnFailed"]);
    assert_eq!(driven.seen.actions, [Action::CloseStdin]);

    let mut exec = Driven::new("codex-exec", json!({}), Some(THREAD));
    exec.says(&json!({"type": "thread.started", "thread_id": "another"}));
    assert_eq!(exec.kinds(), ["statusChanged", "error"]);
    assert!(matches!(exec.seen.actions[..], [Action::Signal(_)]));
}

#[test]
fn a_fork_is_a_copy_of_the_thread_and_not_the_thread() {
    let copy = json!({"id": "copy", "forkedFromId": THREAD});
    let wrong = [json!({"id": THREAD}), json!({"id": "copy", "forkedFromId": "another"})];
    for (thread, is_right) in [(&copy, true), (&wrong[0], false), (&wrong[1], false)] {
        let mut driven = Driven::fork("codex");
        driven.says(&json!({"id": 1, "result": {}}));
        let fork = driven.stdin().pop().expect("thread/fork");
        assert_eq!(fork["method"], "thread/fork");
        assert_eq!(fork["params"]["threadId"], THREAD);
        driven.events();
        driven.says(&json!({"id": 2, "result": {"thread": thread}}));
        assert_eq!(driven.kinds(), [if is_right { "statusChanged" } else { "error" }], "{thread}");
        // The next process goes on with the copy.
        if is_right {
            driven.tape.end(Exit::Code(0), &mut driven.seen);
            driven.tape.start(&mut driven.seen);
            driven.says(&json!({"id": 3, "result": {}}));
            let resume = driven.stdin().pop().expect("thread/resume");
            assert_eq!(resume["method"], "thread/resume");
            assert_eq!(resume["params"]["threadId"], "copy");
        }
    }
    for (thread, kinds) in
        [("copy", &["statusChanged"][..]), (THREAD, &["statusChanged", "error"][..])]
    {
        let mut exec = Driven::fork("codex-exec");
        exec.says(&json!({"type": "thread.started", "thread_id": thread}));
        assert_eq!(exec.kinds(), kinds);
    }
    let config = SessionConfig::default();
    let start = Start {
        config: &config,
        resume: Some(THREAD),
        fork: true,
        native_session_id: Some("n"),
        prompt: Some(&pictured()),
    };
    let launch = dialect_of("codex-exec").launch(&start).expect("a launch");
    let images = ["--image={file:image-1.png}", "--image={file:image-2.jpg}"];
    let fork = ["fork", THREAD, "-"];
    assert_eq!(launch.shown_args()[3..], [&["--sandbox=read-only"], &images[..], &fork].concat());
    assert_eq!(launch.files["image-1.png"], b"\xff\xff\xff");
    assert_eq!(launch.files["image-2.jpg"], b"f");
}

#[test]
fn a_refused_handshake_fails_what_waits_for_it() {
    let mut driven = Driven::new("codex", json!({}), None);
    driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("it waits");
    driven.says(&json!({"id": 1, "result": {}}));
    driven.says(&json!({"id": 2, "error": {"code": -32600, "message": "no such model"}}));
    let events = driven.events();
    let failed = events.iter().find(|event| event["type"] == "turnFailed").expect("a failed turn");
    assert_eq!(failed["error"], "no such model");
    assert!(driven.seen.actions.contains(&Action::CloseStdin));
}

#[test]
fn prompts_wait_for_the_thread_and_for_the_turn() {
    let mut driven = Driven::new("codex", json!({}), None);
    driven.send(&json!({"command": "prompt", "prompt": "one"})).expect("it waits");
    driven.send(&json!({"command": "prompt", "prompt": "two"})).expect("it waits");
    assert_eq!(driven.seen.replies.len(), 2);
    driven.opened(THREAD);
    let texts = |lines: Vec<Value>| -> Vec<Value> {
        lines.iter().map(|line| line["params"]["input"][0]["text"].clone()).collect()
    };
    let sent = driven.stdin();
    assert_eq!(texts(sent)[3..], [json!("one")]);
    driven.says(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
    driven.says(&turn("turn/started", json!({"id": "u1"})));
    assert!(driven.stdin().is_empty());
    driven.events();
    driven.says(&turn("turn/completed", json!({"id": "u1", "status": "completed"})));
    assert_eq!(texts(driven.stdin()), [json!("two")]);
    // What the server refuses to start is a turn that failed.
    driven.says(&json!({"id": 4, "error": {"code": -32600, "message": "no"}}));
    let events = driven.events();
    let shown: Vec<_> =
        events.iter().map(|event| (&event["type"], &event["prompt"], &event["error"])).collect();
    assert_eq!(shown[1], (&json!("turnStarted"), &json!("two"), &Value::Null));
    assert_eq!(shown[2], (&json!("turnFailed"), &Value::Null, &json!("no")));
}

#[test]
fn delivery_joins_the_turn_or_cuts_it_off() {
    let mut driven = Driven::working(json!({}));
    let steer = json!({"command": "prompt", "prompt": "a", "delivery": "steer", "messageId": "m"});
    driven.send(&steer).expect("steer");
    let input = json!([{"type": "text", "text": "a"}]);
    let params = json!({"threadId": THREAD, "expectedTurnId": "u1", "input": input});
    assert_eq!(driven.stdin(), [json!({"id": 4, "method": "turn/steer", "params": params})]);
    assert!(driven.seen.replies.is_empty());
    // What comes too late for the turn is not lost: it waits for the next.
    driven.says(&json!({"id": 4, "error": {"code": -32600, "message": "no active turn to steer"}}));
    let (_, reply) = driven.seen.replies.pop().expect("a reply");
    assert_eq!(reply.expect("it was taken"), json!({ "messageId": "m" }));
    assert!(driven.stdin().is_empty());

    driven
        .send(&json!({"command": "prompt", "prompt": "later", "delivery": "queue"}))
        .expect("queue");
    assert!(driven.stdin().is_empty());
    driven.send(&json!({"command": "prompt", "prompt": "first", "delivery": "now"})).expect("now");
    let interrupt = json!({"id": 5, "method": "turn/interrupt", "params": {"threadId": THREAD, "turnId": "u1"}});
    assert_eq!(driven.stdin(), [interrupt]);
    driven.says(&turn("turn/completed", json!({"id": "u1", "status": "interrupted"})));
    let lines = driven.stdin();
    assert_eq!(lines[0]["method"], "thread/backgroundTerminals/clean");
    assert_eq!(lines[1]["params"]["input"][0]["text"], "first");
    for (turn_id, waiting) in [("u2", "a"), ("u3", "later")] {
        driven.says(&turn("turn/started", json!({"id": turn_id})));
        driven.says(&turn("turn/completed", json!({"id": turn_id, "status": "completed"})));
        assert_eq!(driven.stdin()[0]["params"]["input"][0]["text"], waiting);
    }
}

#[test]
fn an_interrupt_waits_for_the_id_of_its_turn() {
    let mut driven = Driven::open(json!({}));
    driven.send(&json!({"command": "interrupt"})).expect("nothing to do");
    assert!(driven.stdin().is_empty());
    driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
    driven.stdin();
    driven.send(&json!({"command": "interrupt"})).expect("an interrupt");
    assert!(driven.stdin().is_empty());
    assert_eq!(driven.seen.replies.len(), 3);
    driven.says(&json!({"id": 3, "result": {"turn": {"id": "u1"}}}));
    driven.says(&turn("turn/started", json!({"id": "u1"})));
    assert_eq!(driven.stdin()[0]["params"], json!({"threadId": THREAD, "turnId": "u1"}));
    let mut early = Driven::new("codex", json!({}), None);
    early.send(&json!({"command": "prompt", "prompt": "go"})).expect("it waits");
    early.send(&json!({"command": "interrupt"})).expect("an interrupt");
    early.opened(THREAD);
    early.stdin();
    early.says(&turn("turn/started", json!({"id": "u1"})));
    assert_eq!(early.stdin()[0]["method"], "turn/interrupt");
    driven.send(&json!({"command": "stop"})).expect("a stop");
    assert_eq!(driven.seen.actions, [Action::CloseStdin]);
    driven.events();
    driven.tape.end(Exit::Code(0), &mut driven.seen);
    assert_eq!(driven.events()[0]["reason"], "interrupted");
}

#[test]
fn model_and_mode_stand_in_the_next_turn() {
    let mut driven = Driven::open(json!({"additionalDirectories": ["/x"]}));
    driven
        .send(&json!({"command": "configure", "model": "m", "approvalMode": "askDangerous"}))
        .expect("taken");
    driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
    let params = driven.stdin()[0]["params"].clone();
    assert_eq!(params["model"], "m");
    assert_eq!(params["approvalPolicy"], "untrusted");
    assert_eq!(params["sandboxPolicy"]["type"], "workspaceWrite");
    assert_eq!(params["sandboxPolicy"]["writableRoots"], json!(["/x"]));
    let refused = [
        (json!({"command": "configure", "maxThinkingTokens": 9}), "maxThinkingTokens"),
        (json!({"command": "configure", "permissionMode": "dontAsk"}), "permissionMode dontAsk"),
        (json!({"command": "query", "method": "setPermissionMode", "args": ["auto"]}), "auto"),
    ];
    for (command, named) in refused {
        assert!(driven.refused(&command).contains(named));
    }
}

/// Neither Codex nor the wire says so: the change is told when it is taken.
#[test]
fn a_model_can_be_taken_back() {
    let reset = json!({"command": "configure", "model": null, "maxThinkingTokens": null});
    let own = json!({"command": "query", "method": "setModel", "args": [null]});
    let change = json!({"command": "configure", "model": "m", "approvalMode": "autoEdit"});
    for (config, first) in [(json!({"model": "old"}), "old"), (json!({}), "codex's own")] {
        for reset in [&reset, &own] {
            let mut driven = Driven::new("codex", config.clone(), None);
            driven.says(&json!({"id": 1, "result": {}}));
            let opened = json!({"thread": {"id": THREAD}, "model": "codex's own"});
            driven.says(&json!({"id": 2, "result": opened}));
            driven.events();
            driven.stdin();
            driven.send(&change).expect("taken");
            driven.send(reset).expect("taken");
            let told: Vec<_> = driven.events().iter().map(|told| told["message"].clone()).collect();
            assert_eq!(told, ["m", "acceptEdits", first]);
            driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
            assert_eq!(driven.stdin()[0]["params"]["model"], first);
        }
    }
    let mut exec = Driven::new("codex-exec", json!({"model": "old"}), None);
    exec.send(&change).expect("taken");
    exec.send(&reset).expect("taken");
    let told: Vec<_> = exec.events().iter().map(|told| told["message"].clone()).collect();
    assert_eq!(told, ["m", "acceptEdits", "old"]);
}

/// What was given up is told, and the turn that runs is the one that is interrupted.
#[test]
fn an_interrupt_may_give_up_what_waits() {
    let id = |n: u8| format!("00000000-0000-4000-8000-00000000000{n}");
    let prompt = |n: u8| json!({"command": "prompt", "prompt": "p", "messageId": id(n)});
    let cancelled = |driven: &mut Driven| -> Vec<String> {
        let events = driven.events().into_iter();
        let queue = events.filter(|event| event["status"] == "queue");
        queue
            .map(|event| format!("{} {}", event["message"], event["details"]["messageId"]))
            .map(|told| told.replace('"', ""))
            .collect()
    };
    let told = [2, 3].map(|n| format!("cancelled {}", id(n)));
    for name in ["codex", "codex-exec"] {
        let mut driven = match name {
            "codex" => Driven::working(json!({})),
            _ => {
                let mut exec = Driven::new(name, json!({}), None);
                exec.send(&prompt(1)).expect("taken");
                exec
            }
        };
        driven.events();
        for n in [2, 3] {
            driven.send(&prompt(n)).expect("it waits");
        }
        driven.send(&json!({"command": "interrupt", "cancelQueued": true})).expect("taken");
        assert_eq!(cancelled(&mut driven), told, "{name}");
    }
}

/// What the user's own settings say of approvals and the sandbox stays when only the model changes.
#[test]
fn a_change_of_model_leaves_the_mode_alone_and_the_other_way_round() {
    let model = json!({"command": "configure", "model": "m"});
    let mode = json!({"command": "configure", "approvalMode": "autoAll"});
    for (change, sent, kept) in [
        (&model, &["model"][..], &["approvalPolicy", "sandboxPolicy"][..]),
        (&mode, &["approvalPolicy", "sandboxPolicy"], &["model"]),
    ] {
        let mut driven = Driven::open(json!({"model": "old"}));
        driven.send(change).expect("taken");
        driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
        let params = driven.stdin()[0]["params"].clone();
        assert!(sent.iter().all(|name| params.get(name).is_some()), "{params}");
        assert!(kept.iter().all(|name| params.get(name).is_none()), "{params}");
    }
    // What is changed before the thread is opened stands in `thread/start` already.
    let mut driven = Driven::new("codex", json!({}), None);
    driven.send(&model).expect("taken");
    driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("it waits");
    driven.opened(THREAD);
    let lines = driven.stdin();
    assert_eq!(lines[2]["params"]["model"], "m");
    assert_eq!(lines[3]["method"], "turn/start");
    assert_eq!(lines[3]["params"].get("model"), None);
}

/// Codex asks questions in its plan mode alone, which a thread keeps from turn to turn and over a resume.
#[test]
fn a_thread_plans_as_long_as_the_session_does() {
    let settings = |mode: &str, effort: &str| {
        let mode = json!({"mode": mode, "settings": {"model": "m"}});
        let settings =
            json!({"approvalPolicy": "on-request", "effort": effort, "collaborationMode": mode});
        json!({"method": "thread/settings/updated", "params": {"threadId": THREAD, "threadSettings": settings}})
    };
    let next = |driven: &mut Driven| {
        driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
        let params = driven.stdin()[0]["params"].clone();
        driven.says(&turn("turn/started", json!({"id": "u"})));
        driven.says(&turn("turn/completed", json!({"id": "u", "status": "completed"})));
        params
    };
    let open = |driven: &mut Driven, more: Value| {
        driven.says(&json!({"id": 1, "result": {"userAgent": "agentwire/0.166.0 (x)"}}));
        let mut result = json!({"thread": {"id": THREAD, "cliVersion": "0.166.0"}, "model": "own", "cwd": "/p", "approvalPolicy": "untrusted", "reasoningEffort": "high"});
        result.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        driven.says(&json!({"id": 2, "result": result}));
    };
    let wanted = |mode: &str, model: &str, effort: &str| json!({"mode": mode, "settings": {"model": model, "reasoning_effort": effort, "developer_instructions": null}});
    let mut driven = Driven::new("codex", json!({"permissionMode": "plan"}), None);
    open(&mut driven, json!({}));
    let started = driven.stdin()[2]["params"].clone();
    assert_eq!(
        (&started["approvalPolicy"], &started["sandbox"]),
        (&json!("untrusted"), &json!("read-only"))
    );
    assert_eq!(driven.events().last().expect("one")["info"]["mode"], "plan");
    assert_eq!(next(&mut driven)["collaborationMode"], wanted("plan", "own", "high"));
    driven.says(&settings("plan", "high"));
    assert_eq!(driven.events().last().expect("one")["message"], "plan");
    assert_eq!(next(&mut driven).get("collaborationMode"), None, "it is in the mode already");
    // It goes back with the mode, and the model that is set then.
    driven
        .send(&json!({"command": "configure", "approvalMode": "ask", "model": "m"}))
        .expect("taken");
    let params = next(&mut driven);
    assert_eq!(params["collaborationMode"], wanted("default", "m", "high"));
    assert_eq!(params["sandboxPolicy"]["type"], "workspaceWrite");
    driven.says(&settings("default", "low"));
    assert_eq!(driven.events().last().expect("one")["message"], "on-request");
    assert_eq!(next(&mut driven).get("collaborationMode"), None);
    driven.send(&json!({"command": "configure", "permissionMode": "plan"})).expect("taken");
    assert_eq!(next(&mut driven)["collaborationMode"], wanted("plan", "m", "low"));
    // A thread that is resumed may be in the mode still.
    for (config, mode) in [(json!({"permissionMode": "plan"}), None), (json!({}), Some("default"))]
    {
        let mut driven = Driven::new("codex", config, Some(THREAD));
        open(
            &mut driven,
            json!({"collaborationMode": {"mode": "plan", "settings": {"model": "m"}}}),
        );
        driven.stdin();
        let wanted = mode.map(|mode| wanted(mode, "own", "high"));
        assert_eq!(next(&mut driven).get("collaborationMode"), wanted.as_ref());
    }
    let mut exec = Driven::new("codex-exec", json!({}), None);
    let refused = exec.refused(&json!({"command": "configure", "permissionMode": "plan"}));
    assert!(refused.contains("permissionMode plan"), "{refused}");
}

#[test]
fn an_interrupt_ends_with_the_turn_that_it_was_for() {
    let mut driven = Driven::open(json!({}));
    driven.send(&json!({"command": "prompt", "prompt": "one"})).expect("a prompt");
    driven.send(&json!({"command": "interrupt"})).expect("it waits");
    driven.says(&json!({"id": 3, "error": {"code": -32600, "message": "no"}}));
    driven.send(&json!({"command": "prompt", "prompt": "two"})).expect("a prompt");
    driven.send(&json!({"command": "interrupt"})).expect("it waits");
    driven.says(&turn("turn/completed", json!({"id": "u2", "status": "failed"})));
    driven.send(&json!({"command": "prompt", "prompt": "three"})).expect("a prompt");
    driven.stdin();
    driven.says(&turn("turn/started", json!({"id": "u3", "rootTurnId": "u3"})));
    assert!(driven.stdin().is_empty());
}

/// A process that ends before its turn begins fails the prompt that it had.
#[test]
fn a_prompt_without_a_turn_is_a_turn_that_failed() {
    let shown = |driven: &mut Driven| -> Vec<Value> {
        let events = driven.events();
        let turns =
            events.iter().filter(|event| event["type"].as_str().expect("one").starts_with("turn"));
        turns
            .map(|event| match event["type"].as_str() {
                Some("turnFailed") => json!([event["reason"], event["error"]]),
                _ => event["prompt"].clone(),
            })
            .collect()
    };
    let prompt = |text: &str| json!({"command": "prompt", "prompt": text});
    let mut exec = Driven::new("codex-exec", json!({}), None);
    exec.send(&prompt("one")).expect("a prompt");
    exec.says(&json!({"type": "error", "message": "no such model"}));
    exec.tape.end(Exit::Code(1), &mut exec.seen);
    assert_eq!(shown(&mut exec), [json!("one"), json!(["died", "no such model"])]);
    exec.tape.start(&mut exec.seen);
    exec.send(&prompt("two")).expect("a prompt");
    exec.send(&json!({"command": "stop"})).expect("a stop");
    exec.tape.end(Exit::Code(1), &mut exec.seen);
    assert_eq!(shown(&mut exec), [json!("two"), json!(["interrupted", "the process ended"])]);
    // The next turn has its own prompt, and one that came while it ran waits for its own process.
    exec.tape.start(&mut exec.seen);
    exec.send(&prompt("three")).expect("a prompt");
    exec.says(&json!({"type": "turn.started"}));
    exec.send(&prompt("four")).expect("a prompt");
    exec.says(&json!({"type": "turn.completed", "usage": {"input_tokens": 1}}));
    exec.tape.end(Exit::Code(0), &mut exec.seen);
    assert_eq!(shown(&mut exec), [json!("three"), Value::Null]);

    for (stops, reason) in [(false, "died"), (true, "interrupted")] {
        let mut app = Driven::new("codex", json!({}), None);
        app.send(&prompt("one")).expect("it waits");
        if stops {
            app.send(&json!({"command": "stop"})).expect("a stop");
        }
        app.tape.end(Exit::Code(1), &mut app.seen);
        assert_eq!(shown(&mut app), [json!("one"), json!([reason, "the process ended"])]);
    }
}

/// The first total of a thread that is older than the session is not this turn's.
#[test]
fn a_resumed_thread_of_exec_has_a_past() {
    let mut exec = Driven::new("codex-exec", json!({}), Some(THREAD));
    let done = |input: u64| json!({"type": "turn.completed", "usage": {"input_tokens": input, "output_tokens": 10}});
    exec.says(&json!({"type": "thread.started", "thread_id": THREAD}));
    exec.says(&json!({"type": "turn.started"}));
    exec.events();
    exec.says(&done(5000));
    let events = exec.events();
    assert_eq!(events[0]["type"], "usageReported");
    assert_eq!(events[0]["total"]["totalTokens"], 5010);
    assert_eq!(events[1]["usage"]["totalTokens"], 0);
    exec.tape.end(Exit::Code(0), &mut exec.seen);
    exec.tape.start(&mut exec.seen);
    exec.says(&json!({"type": "thread.started", "thread_id": THREAD}));
    exec.says(&json!({"type": "turn.started"}));
    exec.events();
    exec.says(&done(5030));
    assert_eq!(exec.events()[0]["usage"]["totalTokens"], 30);
}

#[test]
fn an_answer_that_follows_a_schema_is_given_as_such() {
    let schema = json!({"outputFormat": {"type": "json_schema", "schema": {"type": "object"}}});
    let mut driven = Driven::open(schema.clone());
    driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
    assert_eq!(driven.stdin()[0]["params"]["outputSchema"], json!({"type": "object"}));
    driven.says(&turn("turn/started", json!({"id": "u1"})));
    let item = json!({"type": "agentMessage", "id": "m", "text": "{\"n\":42}"});
    driven.says(&json!({"method": "item/completed", "params": {"threadId": THREAD, "turnId": "u1", "item": item}}));
    driven.says(&turn("turn/completed", json!({"id": "u1", "status": "completed"})));
    let last = driven.events().pop().expect("an event");
    assert_eq!(last["structuredOutput"], json!({"n": 42}));

    let mut exec = Driven::new("codex-exec", schema, None);
    exec.says(&json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "{\"n\":42}"}}));
    exec.says(&json!({"type": "turn.completed", "usage": {"input_tokens": 1}}));
    assert_eq!(exec.events().pop().expect("an event")["structuredOutput"], json!({"n": 42}));
}

/// The requests of the server, and which answer becomes which result.
#[test]
fn answers_become_results() {
    let command =
        ("item/commandExecution/requestApproval", json!({"itemId": "c", "command": "touch a"}));
    let file = ("item/fileChange/requestApproval", json!({"itemId": "c"}));
    let legacy = ("execCommandApproval", json!({"callId": "c", "command": ["rm"]}));
    let grant = (
        "item/permissions/requestApproval",
        json!({"itemId": "c", "permissions": {"network": {"enabled": true}}}),
    );
    let mcp = (
        "mcpServer/elicitation/request",
        json!({"serverName": "s", "_meta": {"codex_approval_kind": "mcp_tool_call", "persist": ["session"]}}),
    );
    let form = (
        "mcpServer/elicitation/request",
        json!({"serverName": "s", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}),
    );
    let ask = (
        "item/tool/requestUserInput",
        json!({"itemId": "c", "questions": [{"id": "q", "question": "Which?"}]}),
    );
    let tool = ("item/tool/call", json!({"callId": "c", "tool": "t", "arguments": {}}));
    let other = ("some/future/request", json!({"x": 1}));
    let allow = json!({"behavior": "allow"});
    let session = json!({"behavior": "allow", "remember": "session"});
    let deny = json!({"behavior": "deny", "message": "no"});
    let cancel = json!({"behavior": "deny", "interrupt": true});
    let amendment = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch"]}});
    // What holds from now on is the gateway's to remember: Codex is told "once".
    let content = |action: &str, content: Value, meta: Value| json!({"action": action, "content": content, "_meta": meta});
    let table = [
        (&command, allow.clone(), json!({"decision": "accept"}), false),
        (&command, session.clone(), json!({"decision": "accept"}), false),
        (&command, deny.clone(), json!({"decision": "decline"}), false),
        (&command, cancel.clone(), json!({"decision": "cancel"}), false),
        (&command, json!({"hookOutput": {"decision": "x"}}), json!({"decision": "x"}), false),
        (&file, allow.clone(), json!({"decision": "accept"}), false),
        (&file, cancel.clone(), json!({"decision": "cancel"}), false),
        (&legacy, allow.clone(), json!({"decision": "approved"}), false),
        (&legacy, session.clone(), json!({"decision": "approved"}), false),
        (&legacy, deny.clone(), json!({"decision": "denied"}), false),
        (&legacy, cancel.clone(), json!({"decision": "abort"}), false),
        (
            &grant,
            allow.clone(),
            json!({"permissions": {"network": {"enabled": true}}, "scope": "turn"}),
            false,
        ),
        (
            &grant,
            session.clone(),
            json!({"permissions": {"network": {"enabled": true}}, "scope": "turn"}),
            false,
        ),
        (&grant, cancel.clone(), json!({"permissions": {}, "scope": "turn"}), true),
        (&mcp, allow.clone(), content("accept", Value::Null, Value::Null), false),
        (&mcp, session.clone(), content("accept", Value::Null, Value::Null), false),
        (&file, session, json!({"decision": "accept"}), false),
        (&mcp, deny.clone(), content("decline", Value::Null, Value::Null), false),
        (&mcp, cancel, content("cancel", Value::Null, Value::Null), true),
        (
            &form,
            json!({"answers": {"name": "x"}}),
            content("accept", json!({"name": "x"}), Value::Null),
            false,
        ),
        (
            &form,
            json!({"behavior": "allow", "updatedInput": {"name": "y"}}),
            content("accept", json!({"name": "y"}), Value::Null),
            false,
        ),
        (&form, deny.clone(), content("decline", Value::Null, Value::Null), false),
        (
            &ask,
            json!({"answers": {"q": "Blue"}}),
            json!({"answers": {"q": {"answers": ["Blue"]}}}),
            false,
        ),
        (
            &ask,
            json!({"answers": {"Which?": ["a", "b"]}}),
            json!({"answers": {"q": {"answers": ["a", "b"]}}}),
            false,
        ),
        (&ask, deny.clone(), json!({"answers": {}}), false),
        (
            &tool,
            deny.clone(),
            json!({"contentItems": [{"type": "inputText", "text": "no"}], "success": false}),
            false,
        ),
        (&other, json!({"hookOutput": {"y": 2}}), json!({"y": 2}), false),
    ];
    for ((method, params), answer, expected, interrupts) in table {
        let mut driven = Driven::working(json!({}));
        let id = ask_it(&mut driven, method, params);
        let mut settle = json!({"command": "settle", "requestId": id});
        settle.as_object_mut().expect("one").extend(answer.as_object().expect("one").clone());
        driven.send(&settle).expect("an answer");
        let lines = driven.stdin();
        assert_eq!(lines[0], json!({"id": 0, "result": expected}), "{method} {answer}");
        assert_eq!(lines.len(), 1 + usize::from(interrupts), "{method} {answer}");
        // The session tells that it is settled; nobody can settle it again.
        assert!(driven.events().is_empty());
        let error = driven.send(&settle).expect_err("it is settled");
        assert_eq!(error.code, ErrorCode::RequestNotFound);
    }
    let mut driven = Driven::working(json!({}));
    let id = ask_it(&mut driven, other.0, &other.1);
    driven
        .send(&json!({"command": "settle", "requestId": id, "behavior": "deny", "message": "no"}))
        .expect("a denial");
    assert_eq!(driven.stdin(), [json!({"id": 0, "error": {"code": -32000, "message": "no"}})]);

    let refused = [
        (&command, json!({"behavior": "allow", "updatedInput": {}}), "updatedInput"),
        (
            &command,
            json!({"behavior": "allow", "updatedPermissions": [{"x": 1}]}),
            "updatedPermissions",
        ),
        (
            &command,
            json!({"behavior": "allow", "updatedPermissions": [amendment]}),
            "remember: session",
        ),
        (
            &command,
            json!({"behavior": "allow", "updatedPermissions": ["touch"]}),
            "updatedPermissions",
        ),
        (&file, json!({"behavior": "allow", "updatedPermissions": []}), "updatedPermissions"),
        (&grant, json!({"behavior": "allow", "updatedPermissions": []}), "updatedPermissions"),
        (&mcp, json!({"behavior": "allow", "updatedPermissions": []}), "updatedPermissions"),
        (&legacy, json!({"behavior": "allow", "updatedPermissions": []}), "updatedPermissions"),
        (&mcp, json!({"behavior": "allow", "updatedInput": {}}), "updatedInput"),
        (&ask, json!({"behavior": "allow"}), "answers"),
        (&ask, json!({"answers": {"unknown": "x"}}), "unknown"),
        (&tool, json!({"behavior": "allow"}), "hookOutput"),
        (&other, json!({"behavior": "allow"}), "hookOutput"),
        (&other, json!({"hookOutput": ["x"]}), "invalidMessage: hookOutput must be a JSON object"),
        (&command, json!({"hookOutput": "accept"}), "hookOutput must be a JSON object"),
    ];
    for ((method, params), answer, named) in refused {
        let mut driven = Driven::working(json!({}));
        let id = ask_it(&mut driven, method, params);
        let mut settle = json!({"command": "settle", "requestId": id});
        settle.as_object_mut().expect("one").extend(answer.as_object().expect("one").clone());
        let error = driven.refused(&settle);
        assert!(error.contains(named), "{error}");
        // It can still be answered.
        driven
            .send(&json!({"command": "settle", "requestId": id, "behavior": "deny"}))
            .expect("a denial");
    }
}

/// The program says that a call was declined; the words are those of whoever declined it.
#[test]
fn a_denial_keeps_its_words() {
    let mut driven = Driven::working(json!({}));
    let item = |method: &str, status: &str| {
        let item =
            json!({"type": "commandExecution", "id": "c", "command": "rm a", "status": status});
        json!({"method": method, "params": {"threadId": THREAD, "turnId": "u1", "item": item}})
    };
    driven.says(&item("item/started", "inProgress"));
    driven.events();
    let params = json!({"itemId": "c", "command": "rm a"});
    let id = ask_it(&mut driven, "item/commandExecution/requestApproval", &params);
    driven
        .send(&json!({"command": "settle", "requestId": id, "behavior": "deny", "message": "not that"}))
        .expect("a denial");
    driven.says(&item("item/completed", "declined"));
    let failed = driven.events().into_iter().find(|event| event["type"] == "toolFailed");
    assert_eq!(failed.expect("a failure")["error"], "not that");
}

fn ask_it(driven: &mut Driven, method: &str, params: &Value) -> String {
    let mut params = params.clone();
    params["threadId"] = json!(THREAD);
    params["turnId"] = json!("u1");
    driven.says(&json!({"id": 0, "method": method, "params": params}));
    let events = driven.events();
    assert_eq!(events[0]["type"], "requestRaised", "{method}");
    assert_eq!(events[0]["requestId"], "u1:0");
    "u1:0".to_owned()
}

/// The gateway's policy decides in every mode, with all that is known of the change.
#[test]
fn no_file_change_is_accepted_here() {
    let changes = json!([
        {"path": "/p/a.txt", "kind": {"type": "update", "move_path": "/p/b.txt"}, "diff": "x"},
        {"path": "/p/.git/config", "kind": {"type": "delete"}, "diff": "x"},
    ]);
    let item = json!({"type": "fileChange", "id": "c", "changes": changes, "status": "inProgress"});
    for mode in ["ask", "askDangerous", "autoEdit", "autoAll"] {
        for (item_id, more, input) in [
            ("c", json!({"reason": null, "grantRoot": null}), json!({"changes": changes})),
            (
                "c",
                json!({"reason": "outside", "grantRoot": "/", "later": [1]}),
                json!({"changes": changes, "reason": "outside", "grantRoot": "/", "later": [1]}),
            ),
            ("unknown", json!({}), Value::Null),
        ] {
            let config = json!({"approvalMode": mode, "workingDirectory": "/p"});
            let mut driven = Driven::working(config);
            let params = json!({"threadId": THREAD, "turnId": "u1", "item": item});
            driven.says(&json!({"method": "item/started", "params": params}));
            driven.events();
            let mut params = more;
            params["itemId"] = json!(item_id);
            params["threadId"] = json!(THREAD);
            params["turnId"] = json!("u1");
            let method = "item/fileChange/requestApproval";
            driven.says(&json!({"id": 0, "method": method, "params": params}));
            let events = driven.events();
            assert_eq!(events.len(), 1, "{mode}");
            assert_eq!((&events[0]["kind"], &events[0]["input"]), (&json!("permission"), &input));
            assert!(driven.stdin().is_empty(), "{mode}");
        }
    }
}

/// Settings of the machine win over what a client says: a thread that does not ask is none to work in.
#[test]
fn a_thread_that_does_not_ask_is_refused() {
    let thread = json!({"id": THREAD, "cliVersion": "0.166.0"});
    for (policy, reviewer, is_fine) in [
        (json!("untrusted"), json!("user"), true),
        (json!("untrusted"), json!(null), true),
        (json!("on-request"), json!("user"), false),
        (json!("never"), json!("user"), false),
        (json!({"granular": {}}), json!("user"), false),
        (json!("untrusted"), json!("auto_review"), false),
    ] {
        let mut driven = Driven::new("codex", json!({}), None);
        driven.send(&json!({"command": "prompt", "prompt": "go"})).expect("a prompt");
        driven.says(&json!({"id": 1, "result": {"userAgent": "x/0.166.0"}}));
        driven.stdin();
        driven.says(&json!({"id": 2, "result": {"thread": thread, "cwd": "/p",
            "approvalPolicy": policy, "approvalsReviewer": reviewer}}));
        let methods: Vec<Value> =
            driven.stdin().iter().map(|line| line["method"].clone()).collect();
        assert_eq!(methods.contains(&json!("turn/start")), is_fine, "{policy} {reviewer}");
        let events = driven.events();
        let failed = events.iter().find(|event| event["code"] == "startFailed");
        assert_eq!(failed.is_none(), is_fine, "{events:?}");
    }
}

/// R3: an answer binds to what was shown. A patch that changes while it is asked about is declined, and
/// nobody can allow it any more.
#[test]
fn a_patch_that_changes_while_it_is_asked_about_is_declined() {
    let changes = |text: &str| json!([{"path": "/p/a", "kind": {"type": "add"}, "diff": text}]);
    let item = |text: &str| json!({"type": "fileChange", "id": "c", "changes": changes(text), "status": "inProgress"});
    let of_turn = |mut params: Value| {
        params["threadId"] = json!(THREAD);
        params["turnId"] = json!("u1");
        params
    };
    let started = |text: &str| json!({"method": "item/started", "params": of_turn(json!({"item": item(text)}))});
    let updated = |text: &str| {
        let params = of_turn(json!({"itemId": "c", "changes": changes(text)}));
        json!({"method": "item/fileChange/patchUpdated", "params": params})
    };
    let ask = |id: u32| {
        let params = of_turn(json!({"itemId": "c"}));
        json!({"id": id, "method": "item/fileChange/requestApproval", "params": params})
    };
    let allow = |driven: &mut Driven, id: &Value| {
        driven.send(&json!({"command": "settle", "requestId": id, "behavior": "allow"}))
    };
    for change in [updated("two"), started("two")] {
        let mut driven = Driven::working(json!({"workingDirectory": "/p"}));
        // Before anybody is asked it may grow.
        driven.says(&started("o"));
        driven.says(&updated("one"));
        driven.says(&ask(0));
        let raised = driven.events().pop().expect("a request");
        assert_eq!(raised["input"]["changes"], changes("one"));
        // The same again is no change.
        driven.says(&updated("one"));
        assert!(driven.stdin().is_empty());
        driven.events();
        driven.says(&change);
        assert_eq!(driven.stdin(), [json!({"id": 0, "result": {"decision": "decline"}})]);
        let settled = driven.events();
        let settled = settled.iter().find(|event| event["type"] == "requestSettled");
        let settled = settled.expect("it is settled");
        assert_eq!(settled["outcome"], "denied");
        assert_eq!(settled["reason"], "the patch changed while it was asked about");
        assert!(allow(&mut driven, &raised["requestId"]).is_err());
        assert!(driven.stdin().is_empty());
        // What it is now can be asked about.
        driven.says(&ask(1));
        let raised = driven.events().pop().expect("a request");
        assert!(allow(&mut driven, &raised["requestId"]).is_ok());
        assert_eq!(driven.stdin(), [json!({"id": 1, "result": {"decision": "accept"}})]);
    }
}

/// What may widen a call is part of what is shown, digested and judged, whether it is known or not.
#[test]
fn all_that_a_request_asks_for_is_its_input() {
    let ids = json!({"itemId": "c", "startedAtMs": 1, "approvalId": "x", "environmentId": "local",
        "availableDecisions": ["accept", {"acceptWithExecpolicyAmendment": {}}, "acceptForSession", "cancel"]});
    let wide = json!({"kind": "command", "command": "ls", "cwd": "/p", "reason": "why",
        "additionalPermissions": {"fileSystem": {"write": ["/"]}},
        "networkApprovalContext": {"host": "h", "protocol": "https"},
        "proposedExecpolicyAmendment": ["ls"], "future\"field": {"a": [1.50]}});
    let raised = |extra: &Value| {
        let mut driven = Driven::working(json!({}));
        let mut params = ids.clone();
        params.as_object_mut().expect("one").extend(extra.as_object().expect("one").clone());
        params["threadId"] = json!(THREAD);
        params["turnId"] = json!("u1");
        let method = "item/commandExecution/requestApproval";
        driven.says(&json!({"id": 0, "method": method, "params": params}));
        driven.events().remove(0)
    };
    let all = raised(&wide);
    assert_eq!(all["input"], wide);
    let offered: Vec<_> = all["options"].as_array().expect("a list").iter().collect();
    let offered: Vec<_> = offered.iter().map(|option| option["id"].as_str()).collect();
    assert_eq!(offered, [Some("accept"), Some("acceptForSession"), Some("cancel")]);
    assert_eq!(all.get("suggestions"), None, "nothing that Codex would keep is offered");
    for name in wide.as_object().expect("one").keys() {
        let mut fewer = wide.clone();
        fewer.as_object_mut().expect("one").remove(name);
        assert_ne!(raised(&fewer)["inputDigest"], all["inputDigest"], "{name}");
    }
    let elsewhere = raised(&json!({"command": "ls", "environmentId": "cloud"}));
    assert_eq!(elsewhere["input"], json!({"command": "ls", "environmentId": "cloud"}));
    let permissions = json!({"permissions": {"fileSystem": {"write": ["/"]}}, "later": true});
    let mut driven = Driven::working(json!({}));
    let mut params = permissions.clone();
    params["itemId"] = json!("c");
    driven.says(&json!({"id": 0, "method": "item/permissions/requestApproval", "params": params}));
    assert_eq!(driven.events().remove(0)["input"], permissions);
}

/// What Codex does unasked is switched off, or the rule is refused by its name.
#[test]
fn a_rule_holds_or_is_refused() {
    let servers = json!({"tiny": {"command": "c"}, "a__b": {"command": "c"}});
    let off = json!({"command": "false", "enabled": false});
    let agents = json!({"features.multi_agent": false, "features.multi_agent_v2": false});
    let held = [
        ("Bash", json!({}), false),
        ("Bash(rm:*)", json!({}), false),
        ("Edit(secrets/**)", json!({}), false),
        ("file_change", json!({}), false),
        ("WebSearch", json!({"web_search": "disabled"}), true),
        ("WebFetch(domain:example.org)", json!({"web_search": "disabled"}), true),
        ("web_search", json!({"web_search": "disabled"}), true),
        ("Read(.env)", json!({"features.view_image": false}), false),
        ("image_view", json!({"features.view_image": false}), true),
        ("Task", agents, true),
        ("TodoWrite", json!({"tools.update_plan.enabled": false}), true),
        ("mcp__theirs", json!({"mcp_servers.theirs": off}), true),
        ("mcp__theirs__*", json!({"mcp_servers.theirs": off}), true),
        ("SlashCommand", json!({}), true),
    ];
    for (rule, expected, by_exec) in held {
        let config = json!({"blockedTools": [rule]});
        let told = thread_start(config.clone()).get("config").cloned().unwrap_or(json!({}));
        assert_eq!(told, expected, "{rule}");
        let exec = launch("codex-exec", config, None);
        assert_eq!(exec.is_ok(), by_exec, "{rule}");
        let Ok(exec) = exec else {
            assert!(exec.expect_err("a refusal").message.contains(rule), "{rule}");
            continue;
        };
        for key in expected.as_object().expect("one").keys() {
            let arg = format!("--config={key}=");
            assert!(exec.shown_args().iter().any(|word| word.starts_with(&arg)), "{rule}");
        }
    }
    let of = |rule: &str, server: &str| {
        let config = json!({"blockedTools": [rule], "mcpServers": servers});
        let told = thread_start(config.clone())["config"][format!("mcp_servers.{server}")].clone();
        assert_eq!(told["default_tools_approval_mode"], "prompt");
        let exec = launch("codex-exec", config, None).expect("a launch").shown_args();
        let begin = format!("--config=mcp_servers.{server}=");
        let word = exec.into_iter().find(|word| word.starts_with(&begin)).expect("the server");
        (told, word)
    };
    let (told, word) = of("mcp__tiny", "tiny");
    assert_eq!(told["enabled"], false);
    assert!(word.ends_with("], \"enabled\" = false}"), "{word}");
    // Codex asks for each call, and the policy denies it; exec does not have the tool.
    for (rule, server, tool) in [("mcp__tiny__x__y", "tiny", "x__y"), ("mcp__a__b__c", "a__b", "c")]
    {
        let (told, word) = of(rule, server);
        assert_eq!((told.get("enabled"), told.get("disabled_tools")), (None, None), "{rule}");
        assert!(word.ends_with(&format!("], \"disabled_tools\" = [\"{tool}\"]}}")), "{word}");
    }
    for rule in [
        "mcp__theirs__tool",
        "mcp__codex_apps",
        "ReadMcpResourceTool",
        "apply_patch",
        "exec_command",
    ] {
        for name in ["codex", "codex-exec"] {
            let config = json!({"blockedTools": ["WebSearch", rule]});
            let error = launch(name, config, None).expect_err(rule);
            assert_eq!(error.code, ErrorCode::Unsupported);
            assert!(
                error.message.contains(&format!("the rule {rule} in blockedTools: ")),
                "{error}"
            );
        }
    }
}

/// `codex exec` is told by files and variables what every user could read on its command line.
#[test]
fn secrets_of_exec_stand_in_private_files() {
    let odd = "it's $HOME `x` {file:schema.json}\n\"";
    let servers = json!({
        "run": {"command": "npx", "args": [odd], "env": {"KEY_1": odd}},
        "web": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer s"}},
    });
    let config = json!({"mcpServers": servers, "systemPrompt": "a secret plan"});
    let launch_of = |config: Value| launch("codex-exec", config, None);
    let started = launch_of(config).expect("a launch");
    let quoted = "'it'\\''s $HOME `x` {file:schema.json}\n\"'";
    let script = String::from_utf8(started.files["mcp-run.sh"].clone()).expect("text");
    assert_eq!(script, format!("export KEY_1={quoted}\nexec 'npx' {quoted}\n"));
    assert_eq!(started.files["instructions.md"], b"a secret plan");
    assert_eq!(started.env["AGENTWIRE_MCP_SECRET_0"], "Bearer s");
    let all = started.shown_args().concat();
    assert!(!all.contains("secret plan") && !all.contains("Bearer") && !all.contains("it's"));
    let append = json!({"type": "preset", "preset": "x", "append": "a secret"});
    for (config, named) in [
        (json!({"systemPrompt": append}), "systemPrompt with append"),
        (json!({"mcpServers": {"w": {"type": "http", "url": "https://h/?key=s"}}}), "server w"),
        (json!({"mcpServers": {"w": {"type": "http", "url": "https://u:s@h/"}}}), "server w"),
        (json!({"mcpServers": {"w": {"command": "c", "env": {"A-B": "s"}}}}), "`A-B`"),
    ] {
        let error = launch_of(config).expect_err(named);
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains(named), "{error}");
        assert!(error.message.contains("app-server") || named == "`A-B`", "{error}");
    }
}

#[test]
fn a_request_that_nobody_answered_is_withdrawn_or_resolved() {
    let mut driven = Driven::working(json!({}));
    ask_it(&mut driven, "item/commandExecution/requestApproval", &json!({"itemId": "c"}));
    driven.says(&json!({"method": "serverRequest/resolved", "params": {"threadId": THREAD, "requestId": 0}}));
    assert_eq!(driven.events()[0]["outcome"], "resolved");
    let mut driven = Driven::working(json!({}));
    ask_it(&mut driven, "item/commandExecution/requestApproval", &json!({"itemId": "c"}));
    driven.says(&turn("turn/completed", json!({"id": "u1", "status": "interrupted"})));
    assert_eq!(driven.events()[0]["outcome"], "withdrawn");
}

#[test]
fn queries_are_asked_and_their_results_given_on() {
    let mut driven = Driven::open(json!({"workingDirectory": "/p"}));
    let model = json!({"model": "m", "displayName": "M", "description": "d", "hidden": false});
    let skill = json!({"name": "s", "description": "d", "path": "/x"});
    let server = json!({"name": "tiny", "serverInfo": {"name": "tiny"}, "tools": {}});
    let table = [
        (
            "supportedModels",
            json!([]),
            "model/list",
            json!({}),
            json!({"data": [model]}),
            json!([{"value": "m", "displayName": "M", "description": "d"}]),
        ),
        (
            "supportedCommands",
            json!([]),
            "skills/list",
            json!({"cwds": ["/p"]}),
            json!({"data": [{"cwd": "/p", "skills": [skill]}]}),
            json!([{"name": "s", "description": "d", "argumentHint": ""}]),
        ),
        (
            "mcpServerStatus",
            json!([]),
            "mcpServerStatus/list",
            json!({}),
            json!({"data": [server]}),
            json!([{"name": "tiny", "status": "connected", "serverInfo": {"name": "tiny"}}]),
        ),
        (
            "accountInfo",
            json!([]),
            "account/read",
            json!({}),
            json!({"account": {"type": "apiKey"}}),
            json!({"type": "apiKey"}),
        ),
        ("accountInfo", json!([]), "account/read", json!({}), json!({"account": null}), json!({})),
        (
            "thread/read",
            json!([{"includeTurns": true}]),
            "thread/read",
            json!({"includeTurns": true, "threadId": THREAD}),
            json!({"thread": 1}),
            json!({"thread": 1}),
        ),
        (
            "thread/list",
            json!([]),
            "thread/list",
            json!({}),
            json!({"data": []}),
            json!({"data": []}),
        ),
    ];
    for (id, (method, args, sent, params, result, reply)) in (3..).zip(table) {
        driven.send(&json!({"command": "query", "method": method, "args": args})).expect("a query");
        assert_eq!(driven.stdin(), [json!({"id": id, "method": sent, "params": params})]);
        assert!(driven.seen.replies.is_empty());
        driven.says(&json!({"id": id, "result": result}));
        let (call, replied) = driven.seen.replies.pop().expect("a reply");
        assert_eq!((call, replied.expect("a result")), (driven.calls, reply), "{method}");
    }
    driven.send(&json!({"command": "query", "method": "setModel", "args": ["m"]})).expect("taken");
    driven
        .send(&json!({"command": "query", "method": "setPermissionMode", "args": ["never"]}))
        .expect("taken");
    driven.seen.replies.clear();
    let errors = [(-32001, ErrorCode::Overloaded), (-32600, ErrorCode::AgentFailed)];
    for (id, (code, expected)) in (10..).zip(errors) {
        driven.send(&json!({"command": "query", "method": "model/list"})).expect("a query");
        driven.says(&json!({"id": id, "error": {"code": code, "message": "no"}}));
        let (_, reply) = driven.seen.replies.pop().expect("a reply");
        assert_eq!(reply.expect_err("an error").code, expected);
    }
    driven.stdin();
    // A call that the process did not answer is answered at its end.
    driven.send(&json!({"command": "query", "method": "model/list"})).expect("a query");
    driven.tape.end(Exit::Code(1), &mut driven.seen);
    assert!(driven.seen.replies[0].1.is_err());
    driven.stdin();
    for method in
        ["setMaxThinkingTokens", "rewindFiles", "config/read", "thread/delete", "nonsense"]
    {
        let error = driven.refused(&json!({"command": "query", "method": method}));
        assert!(error.starts_with("unsupported") && error.contains(method), "{error}");
    }
    let rewind = json!({"command": "rewind", "messageId": "m"});
    assert!(driven.refused(&rewind).contains("rewind"));
}

#[test]
fn a_query_before_the_handshake_is_held() {
    let mut driven = Driven::new("codex", json!({}), None);
    driven.stdin();
    driven.send(&json!({"command": "query", "method": "supportedModels"})).expect("it waits");
    assert!(driven.stdin().is_empty());
    driven.says(&json!({"id": 1, "result": {}}));
    let methods: Vec<Value> = driven.stdin().iter().map(|line| line["method"].clone()).collect();
    assert_eq!(methods, ["initialized", "model/list", "thread/start"]);
}

#[test]
fn exec_takes_signals_and_the_next_process() {
    let mut exec = Driven::new("codex-exec", json!({}), None);
    exec.send(&json!({"command": "prompt", "prompt": "one"})).expect("a prompt");
    exec.says(&json!({"type": "thread.started", "thread_id": THREAD}));
    exec.says(&json!({"type": "turn.started"}));
    exec.says(&json!({"type": "item.completed", "item": {"id": "item_0", "type": "web_search", "query": "q"}}));
    exec.says(
        &json!({"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 10}}),
    );
    let events = exec.events();
    assert_eq!(events[1]["prompt"], "one");
    exec.tape.end(Exit::Code(0), &mut exec.seen);
    // The next process numbers its items anew and goes on with the thread's total.
    exec.tape.start(&mut exec.seen);
    exec.says(&json!({"type": "thread.started", "thread_id": THREAD}));
    exec.says(&json!({"type": "turn.started"}));
    exec.says(&json!({"type": "item.started", "item": {"id": "item_0", "type": "web_search", "query": "q"}}));
    exec.send(&json!({"command": "interrupt"})).expect("an interrupt");
    assert!(matches!(exec.seen.actions[..], [Action::Signal(_)]));
    exec.tape.end(Exit::Code(1), &mut exec.seen);
    let events = exec.events();
    assert!(events.iter().any(|event| event["toolId"] == "item_0.2"));
    assert_eq!(events.last().expect("an event")["reason"], "interrupted");
    exec.tape.start(&mut exec.seen);
    exec.says(
        &json!({"type": "turn.completed", "usage": {"input_tokens": 130, "output_tokens": 10}}),
    );
    assert_eq!(exec.events().pop().expect("an event")["usage"]["inputTokens"], 30);

    exec.seen.actions.clear();
    let refused = [
        (
            json!({"command": "prompt", "prompt": "x", "images": [{"mediaType": "i", "data": ""}]}),
            "`i`",
        ),
        (
            json!({"command": "prompt", "prompt": "x", "images": [{"mediaType": "image/png", "data": "."}]}),
            "base64",
        ),
        (json!({"command": "query", "method": "supportedModels"}), "supportedModels"),
        (json!({"command": "settle", "requestId": "r", "behavior": "allow"}), "r"),
        (json!({"command": "rewind", "messageId": "m"}), "rewind"),
        (json!({"command": "configure", "maxThinkingTokens": 1}), "maxThinkingTokens"),
    ];
    for (command, named) in refused {
        assert!(exec.refused(&command).contains(named), "{command}");
    }
    exec.send(&json!({"command": "configure", "model": "m"})).expect("the next process is told");
}

/// Subagents at depth two: every event carries the call that spawned its agent.
#[test]
fn subagents_nest() {
    let mut driven = Driven::working(json!({}));
    let item = |thread: &str, method: &str, item: Value| json!({"method": method, "params": {"threadId": thread, "turnId": "u", "item": item}});
    let spawn = |id: &str, receivers: &[&str]| json!({"type": "collabAgentToolCall", "id": id, "tool": "spawnAgent", "status": "x", "prompt": "p", "receiverThreadIds": receivers});
    driven.says(&item(THREAD, "item/started", spawn("call_a", &[])));
    driven.says(&item(THREAD, "item/completed", spawn("call_a", &["ta"])));
    driven.says(&item("ta", "item/started", spawn("call_b", &[])));
    let started = json!({"id": "ub", "rootTurnId": "u1"});
    driven.says(&json!({"method": "turn/started", "params": {"threadId": "tb", "turn": started}}));
    driven.says(&item("ta", "item/completed", spawn("call_b", &["tb"])));
    driven.events();
    let delta = json!({"threadId": "tb", "turnId": "ub", "itemId": "m", "delta": "hi"});
    driven.says(&json!({"method": "item/agentMessage/delta", "params": delta}));
    let ask = json!({"threadId": "tb", "turnId": "ub", "itemId": "c"});
    driven
        .says(&json!({"id": 7, "method": "item/commandExecution/requestApproval", "params": ask}));
    let ended = json!({"id": "ub", "status": "completed", "durationMs": 5});
    driven.says(&json!({"method": "turn/completed", "params": {"threadId": "tb", "turn": ended}}));
    let events = driven.events();
    let kinds: Vec<_> =
        events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(
        kinds,
        ["textChunk", "requestRaised", "textChunk", "requestSettled", "agentFinished"]
    );
    for event in events {
        assert_eq!(
            (&event["agentId"], &event["parentAgentId"]),
            (&json!("call_b"), &json!("call_a"))
        );
    }
}

/// Beyond what can be kept open, a request is denied at once: nobody would answer it.
#[test]
fn too_many_requests_are_denied() {
    let mut driven = Driven::working(json!({}));
    for id in 0..1025 {
        let params = json!({"threadId": THREAD, "turnId": "u1", "itemId": format!("c{id}"), "command": "ls"});
        driven.says(
            &json!({"id": id, "method": "item/commandExecution/requestApproval", "params": params}),
        );
    }
    let events = driven.events();
    let raised = events.iter().filter(|event| event["type"] == "requestRaised").count();
    assert_eq!(raised, 1024);
    assert_eq!(events.last().expect("an event")["code"], "overloaded");
    let written = driven.stdin();
    assert_eq!(written.len(), 1, "{written:?}");
    let answer = &written[0];
    assert_eq!((&answer["id"], answer["error"].is_object()), (&json!(1024), true), "{answer}");
}

/// An item of a call, and the notification that brings it.
fn item(method: &str, item: &Value) -> Value {
    json!({"method": method, "params": {"threadId": THREAD, "turnId": "u1", "item": item}})
}

fn with(base: &Value, more: Value) -> Value {
    let mut base = base.clone();
    base.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
    base
}

/// What runs is put to the session's rules, each thing once: by its end, by its output, at once where
/// Codex never waits, or by the end of the turn.
#[test]
fn what_runs_unasked_is_told() {
    let command = json!({"type": "commandExecution", "id": "c", "command": "rm x", "cwd": "/p", "status": "inProgress"});
    let change = json!({"type": "fileChange", "id": "c", "changes": [{"path": "/p/a", "kind": {"type": "add"}, "diff": ""}], "status": "inProgress"});
    let mcp = json!({"type": "mcpToolCall", "id": "c", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": "inProgress"});
    let done = json!({"status": "completed"});
    let over = turn("turn/completed", json!({"id": "u1", "status": "completed"}));
    let output = json!({"method": "item/commandExecution/outputDelta", "params": {"threadId": THREAD, "itemId": "c", "delta": "x"}});
    for (call, name) in [(&command, "command_execution"), (&change, "file_change"), (&mcp, "t")] {
        for (at, last) in
            [item("item/completed", &with(call, done.clone())), over.clone()].iter().enumerate()
        {
            for first in [true, false] {
                let mut driven = Driven::working(json!({}));
                if first || at == 1 {
                    driven.says(&item("item/started", call));
                    assert!(driven.seen.unasked.is_empty(), "{name} may still ask");
                }
                driven.says(last);
                driven.says(&item("item/completed", &with(call, done.clone())));
                let unasked = &driven.seen.unasked;
                assert_eq!(unasked.len(), 1, "{name}");
                assert_eq!(unasked[0].tool_name.as_deref(), Some(name));
            }
        }
    }
    let mut driven = Driven::working(json!({}));
    driven.says(&item("item/started", &command));
    driven.says(&output);
    driven.says(&output);
    driven.says(&item("item/completed", &with(&command, done.clone())));
    assert_eq!(driven.seen.unasked.len(), 1);
    let input: Value = driven.seen.unasked[0].input.as_ref().expect("one").read().expect("JSON");
    assert_eq!(input["command"], "rm x");
    // It ends as something else than it began.
    let mut driven = Driven::working(json!({}));
    driven.says(&item("item/started", &with(&command, json!({"command": "ls"}))));
    driven.says(&item("item/completed", &with(&command, done)));
    assert_eq!(driven.seen.unasked.len(), 2);
    for at_once in [
        with(&command, json!({"source": "unifiedExecStartup"})),
        json!({"type": "webSearch", "id": "c", "query": ""}),
        json!({"type": "imageView", "id": "c", "path": "/p/a.png"}),
        json!({"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent"}),
    ] {
        let mut driven = Driven::working(json!({}));
        driven.says(&item("item/started", &at_once));
        assert_eq!(driven.seen.unasked.len(), 1, "{at_once}");
    }
}

/// What was declined, refused or interrupted did not run.
#[test]
fn what_does_not_run_is_not_told() {
    let command = json!({"type": "commandExecution", "id": "c", "command": "rm x", "cwd": "/p", "status": "inProgress"});
    let asks = json!({"id": 0, "method": "item/commandExecution/requestApproval", "params": {"threadId": THREAD, "turnId": "u1", "itemId": "c", "command": "rm x", "cwd": "/p"}});
    let deny = json!({"command": "settle", "requestId": "u1:0", "behavior": "deny"});
    let ends = |more: Value| item("item/completed", &with(&command, more));
    for (end, ran) in [
        (ends(json!({"status": "declined"})), 0),
        (ends(json!({"status": "failed"})), 0),
        (ends(json!({"status": "declined", "exitCode": 0})), 1),
        (ends(json!({"status": "failed", "aggregatedOutput": "gone"})), 1),
        (ends(json!({"status": "completed"})), 1),
        (turn("turn/completed", json!({"id": "u1", "status": "completed"})), 0),
    ] {
        let mut driven = Driven::working(json!({}));
        driven.says(&item("item/started", &command));
        driven.says(&asks);
        driven.send(&deny).expect("an answer");
        driven.says(&end);
        assert_eq!(driven.seen.unasked.len(), ran, "{end}");
    }
    let mut driven = Driven::working(json!({}));
    driven.says(&item("item/started", &command));
    driven.says(&turn("turn/completed", json!({"id": "u1", "status": "interrupted"})));
    assert!(driven.seen.unasked.is_empty());
    // Two calls that are alike: which one is asked about is not known.
    let call = |id: &str| json!({"type": "mcpToolCall", "id": id, "server": "s", "tool": "t", "arguments": {}, "status": "inProgress"});
    let meta = json!({"codex_approval_kind": "mcp_tool_call", "tool_params": {}});
    let mut driven = Driven::working(json!({}));
    for id in ["c", "d"] {
        driven.says(&item("item/started", &call(id)));
    }
    driven.says(&json!({"id": 0, "method": "mcpServer/elicitation/request", "params": {"threadId": THREAD, "turnId": "u1", "serverName": "s", "mode": "form", "message": "Allow \"t\"?", "_meta": meta}}));
    driven.send(&deny).expect("an answer");
    for id in ["c", "d"] {
        let failed =
            json!({"status": "failed", "error": {"message": "user rejected MCP tool call"}});
        driven.says(&item("item/completed", &with(&call(id), failed)));
    }
    assert!(driven.seen.unasked.is_empty());
}

/// A request that is not for what its item said shows both.
#[test]
fn a_request_shows_what_its_call_started_as() {
    let asks = |method: &str, more: Value| {
        let params = json!({"threadId": THREAD, "turnId": "u1", "itemId": "c"});
        json!({"id": 0, "method": format!("item/{method}/requestApproval"), "params": with(&params, more)})
    };
    let command = json!({"type": "commandExecution", "id": "c", "command": "rm -rf x", "cwd": "/p", "status": "inProgress"});
    let change = json!({"type": "fileChange", "id": "c", "changes": [{"path": "/p/a", "kind": {"type": "add"}, "diff": ""}], "status": "inProgress"});
    let ls = json!({"command": "ls", "cwd": "/p"});
    for (call, request, differs) in [
        (&command, asks("commandExecution", json!({"command": "rm -rf x", "cwd": "/p"})), false),
        (&command, asks("commandExecution", ls.clone()), true),
        (&command, asks("commandExecution", with(&ls, json!({"startedAs": []}))), true),
        (&command, asks("commandExecution", json!({"command": "rm -rf x", "cwd": "/q"})), true),
        (&command, asks("commandExecution", json!({})), true),
        (&command, asks("fileChange", json!({})), true),
        (&change, asks("fileChange", json!({})), false),
        (&change, asks("fileChange", json!({"changes": []})), true),
        (&change, asks("commandExecution", ls.clone()), true),
    ] {
        let mut driven = Driven::working(json!({}));
        driven.says(&item("item/started", call));
        driven.says(&request);
        let raised = driven.events().pop().expect("a request");
        let beside = &raised["input"]["startedAs"];
        assert_eq!(beside.is_array(), differs, "{request} {raised}");
        if differs {
            let told = beside[0]["input"].to_string();
            assert!(told.contains("rm -rf x") || told.contains("/p/a"), "{raised}");
        }
    }
}
