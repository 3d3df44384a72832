//! ACP, live: each command and answer as lines on the agent's stdin, and each option of a start.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test that meets what it does not expect shall fail"
)]

mod common;

use agentwire_dialects::acp::{ACP, Acp};
use agentwire_dialects::agent::{AgentDialect, Exit, Setup, Start, Stdin};
use agentwire_dialects::gemini::OVER_ACP as GEMINI;
use agentwire_dialects::tape::{Action, Draft, Sink, Tape, Unasked};
use agentwire_protocol::{Call, CommandFrame, ErrorCode, GatewayError, Json, SessionConfig};
use serde_json::{Value, json};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true},"mcpCapabilities":{"http":true},"sessionCapabilities":{"list":{},"close":{},"additionalDirectories":{},"systemPrompt":{}}},"authMethods":[{"id":"key","name":"Key"}],"agentInfo":{"name":"some-agent","version":"1"}}}"#;
const BARE: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#;
const GEMINI_CLI: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"gemini-cli","version":"0.61.0"},"agentCapabilities":{"loadSession":true}}}"#;
const OPENED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"autoEdit"},{"id":"yolo"},{"id":"plan"}]},"models":{"currentModelId":"a","availableModels":[{"modelId":"a"},{"modelId":"b"}]}}}"#;
const OPTIONS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","configOptions":[{"id":"m","category":"model","currentValue":"a","options":[{"value":"a"},{"group":"g","options":[{"value":"b"}]}]},{"id":"p","category":"mode","currentValue":"ask","options":[{"value":"ask"},{"value":"acceptEdits"}]}]}}"#;
const PERMISSION: &str = r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"touch x","kind":"execute"},"options":[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}"#;
const FORM: &str = r#"{"jsonrpc":"2.0","id":"f-1","method":"elicitation/create","params":{"sessionId":"s","toolCallId":"t","mode":"form","message":"Where?","requestedSchema":{"type":"object","properties":{"env":{"type":"string","enum":["dev","prod"],"description":"Which one?"},"dry":{"type":"boolean"},"n":{"type":"integer"},"all":{"type":"array","items":{"enum":["x","y"]}}}}}}"#;
const LINK: &str = r#"{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"mode":"url","message":"Sign in","elicitationId":"el","url":"https://example.com"}}"#;
const READ: &str = r#"{"jsonrpc":"2.0","id":3,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}"#;
const DONE: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#;

/// A live session, and what has come out of it since it was last asked.
struct Live {
    tape: Tape,
    seen: Seen,
    calls: u64,
}

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    stdin: Vec<String>,
    actions: Vec<Action>,
    replies: Vec<(u64, Result<String, GatewayError>)>,
    unasked: Vec<Unasked>,
    broken: Vec<String>,
}

impl Sink for Seen {
    fn unasked(&mut self, call: Unasked) {
        self.unasked.push(call);
    }
    fn broken(&mut self, message: String) {
        self.broken.push(message);
    }
    fn event(&mut self, draft: Draft<'_>) {
        let event = common::stamped(draft, 1);
        self.events.push(serde_json::from_str(&event).expect("an event"));
    }
    fn action(&mut self, action: Action) {
        match action {
            Action::Write(line) => self.stdin.push(line),
            other => self.actions.push(other),
        }
    }
    fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        self.replies.push((call.0, result.map(|json| json.get().to_owned())));
    }
}

impl Live {
    /// The process has started, and nothing more.
    fn start(dialect: Acp, config: Value, resume: Option<&str>) -> Self {
        Self::open(dialect, config, resume, false)
    }

    fn open(dialect: Acp, mut config: Value, resume: Option<&str>, fork: bool) -> Self {
        config["workingDirectory"] = "/w".into();
        let config: SessionConfig = serde_json::from_value(config).expect("a config");
        let setup = Setup { config, resume: resume.map(str::to_owned), fork, ..Setup::default() };
        let mut live = Self { tape: Tape::new(&dialect, &setup), seen: Seen::default(), calls: 0 };
        live.tape.start(&mut live.seen);
        live
    }

    /// A session that takes prompts.
    fn ready() -> Self {
        let mut live = Self::start(ACP, json!({}), None);
        live.says(INITIALIZE).says(OPENED).forget();
        live
    }

    /// A session with a turn that runs.
    fn busy() -> Self {
        let mut live = Self::ready();
        live.does(json!({"command":"prompt","prompt":"hi"})).forget();
        live
    }

    fn says(&mut self, line: &str) -> &mut Self {
        self.tape.line(line.as_bytes(), &mut self.seen);
        self
    }

    fn tries(&mut self, command: Value) -> Result<(), GatewayError> {
        let frame = CommandFrame::from_json(&command.to_string()).expect("a command");
        self.calls += 1;
        self.tape.command(Call(self.calls), &frame.command, &mut self.seen)
    }

    fn does(&mut self, command: Value) -> &mut Self {
        self.tries(command.clone()).unwrap_or_else(|error| panic!("{command}: {error}"));
        self
    }

    fn refuses(&mut self, command: Value) -> (ErrorCode, String) {
        let error = self.tries(command.clone()).expect_err(&command.to_string());
        assert_eq!(self.stdin(), [""; 0], "{command}");
        (error.code, error.message)
    }

    fn forget(&mut self) {
        self.seen = Seen::default();
    }

    fn stdin(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen.stdin)
    }

    fn replies(&mut self) -> Vec<String> {
        let replies = std::mem::take(&mut self.seen.replies);
        replies
            .into_iter()
            .map(|(_, reply)| reply.unwrap_or_else(|error| error.to_string()))
            .collect()
    }

    /// The events, each by its type and the fields that tell most.
    fn events(&mut self) -> Vec<String> {
        let brief = |event: &Value| {
            let mut words = vec![event["type"].as_str().expect("a type").to_owned()];
            let fields = [
                "status", "name", "reason", "outcome", "by", "content", "prompt", "message",
                "error",
            ];
            words
                .extend(fields.iter().filter_map(|field| event[field].as_str().map(str::to_owned)));
            words.join(" ")
        };
        std::mem::take(&mut self.seen.events).iter().map(brief).collect()
    }
}

fn result(id: &str, result: Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn update(update: Value) -> String {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":update}})
        .to_string()
}

fn text(text: &str) -> String {
    update(json!({"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":text}}))
}

#[test]
fn a_session_opens_in_steps() {
    let mut live = Live::start(ACP, json!({}), None);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        live.stdin(),
        [format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"clientCapabilities":{{"_meta":{{"subagent-transcript":true}},"elicitation":{{"form":{{}},"url":{{}}}},"fs":{{"readTextFile":false,"writeTextFile":false}},"terminal":false}},"clientInfo":{{"name":"agentwire","title":"agentwire","version":"{version}"}},"protocolVersion":1}}}}"#
        )]
    );
    live.does(json!({"command":"prompt","prompt":"early"}));
    assert_eq!(live.stdin(), [""; 0]);
    live.says(INITIALIZE);
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#
        ]
    );
    live.says(OPENED);
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"prompt":[{"text":"early","type":"text"}],"sessionId":"s"}}"#
        ]
    );
    assert_eq!(live.events(), ["statusChanged ready", "statusChanged ready", "turnStarted early"]);
}

#[test]
fn a_session_opens_as_it_is_configured() {
    let stdio = json!({"mcpServers":{"demo":{"command":"srv","args":["-x"],"env":{"K":"v"}}}});
    let http = json!({"mcpServers":{"web":{"type":"http","url":"http://h","headers":{"A":"b"}}}});
    for (config, params) in [
        (
            stdio,
            r#"{"cwd":"/w","mcpServers":[{"args":["-x"],"command":"srv","env":[{"name":"K","value":"v"}],"name":"demo"}]}"#,
        ),
        (
            http,
            r#"{"cwd":"/w","mcpServers":[{"headers":[{"name":"A","value":"b"}],"name":"web","type":"http","url":"http://h"}]}"#,
        ),
        (
            json!({"additionalDirectories":["/x"]}),
            r#"{"additionalDirectories":["/x"],"cwd":"/w","mcpServers":[]}"#,
        ),
        (
            json!({"systemPrompt":"Be brief"}),
            r#"{"_meta":{"systemPrompt":"Be brief"},"cwd":"/w","mcpServers":[]}"#,
        ),
        (
            json!({"systemPrompt":{"type":"preset","preset":"claude_code","append":"More"}}),
            r#"{"_meta":{"systemPrompt":{"append":"More"}},"cwd":"/w","mcpServers":[]}"#,
        ),
    ] {
        let mut live = Live::start(ACP, config, None);
        live.forget();
        live.says(INITIALIZE);
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{params}}}"#);
        assert_eq!(live.stdin(), [line]);
    }
}

#[test]
fn what_the_agent_does_not_announce_is_refused_by_name() {
    let refused = |config: Value, resume: Option<&str>, initialized: &str, name: &str| {
        let mut live = Live::start(ACP, config, resume);
        live.does(json!({"command":"prompt","prompt":"hi"})).forget();
        live.says(initialized);
        assert_eq!(live.stdin(), [""; 0], "{name}");
        let events = live.events();
        assert!(events[1].starts_with("error") && events[1].contains(name), "{events:?}");
        assert!(
            events[2..] == ["turnStarted hi".to_owned(), events[3].clone(),]
                && events[3].starts_with("turnFailed error"),
            "{events:?}"
        );
        let (code, message) = live.refuses(json!({"command":"prompt","prompt":"again"}));
        assert_eq!(code, ErrorCode::Unsupported);
        assert!(message.contains(name), "{message}");
    };
    refused(json!({"additionalDirectories":["/x"]}), None, BARE, "additionalDirectories");
    refused(json!({"systemPrompt":"x"}), None, BARE, "systemPrompt");
    refused(
        json!({"mcpServers":{"w":{"type":"sse","url":"u"}}}),
        None,
        INITIALIZE,
        "server w of type sse",
    );
    refused(json!({}), Some("old"), BARE, "resuming");
    let two = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}"#;
    refused(json!({}), None, two, "version 1 of ACP, it speaks 2");
}

/// What the agent has no option for stands before the first prompt, and is reported with it.
#[test]
fn a_further_system_prompt_stands_before_the_first_prompt() {
    let append =
        json!({"systemPrompt":{"type":"preset","preset":"claude_code","append":"Be brief."}});
    for dialect in [ACP, GEMINI] {
        let mut live = Live::start(dialect, append.clone(), None);
        live.says(BARE);
        live.says(r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#).forget();
        // A command of the agent's own is left alone.
        live.does(json!({"command":"prompt","prompt":"/help"}));
        live.says(r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}"#);
        live.does(json!({"command":"prompt","prompt":"one"}));
        live.says(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#);
        live.does(json!({"command":"prompt","prompt":"two"}));
        let lines = live.stdin();
        let prompts = lines.iter().map(|line| serde_json::from_str(line).expect("JSON"));
        let prompts: Vec<String> = prompts
            .map(|line: Value| {
                line["params"]["prompt"][0]["text"].as_str().expect("text").to_owned()
            })
            .collect();
        assert_eq!((&*prompts[0], &*prompts[2]), ("/help", "two"));
        assert!(prompts[1].contains("agentwire added") && prompts[1].ends_with("one"));
        assert!(prompts[1].contains("Be brief."), "{}", prompts[1]);
        let told = live.events().into_iter().filter(|event| event.starts_with("turnStarted"));
        assert_eq!(told.collect::<Vec<_>>()[1], format!("turnStarted {}", prompts[1]));
    }
}

#[test]
fn mode_and_model_are_set_before_the_first_prompt() {
    let set = |config: Value, opened: &str| {
        let mut live = Live::start(ACP, config, None);
        live.does(json!({"command":"prompt","prompt":"hi"}));
        live.says(INITIALIZE).forget();
        live.says(opened);
        live.stdin().join("\n")
    };
    for (config, opened, line) in [
        (
            json!({"permissionMode":"plan"}),
            OPENED,
            r#"{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"modeId":"plan","sessionId":"s"}}"#,
        ),
        (
            json!({"model":"b"}),
            OPENED,
            r#"{"jsonrpc":"2.0","id":2,"method":"session/set_model","params":{"modelId":"b","sessionId":"s"}}"#,
        ),
        (
            json!({"model":"b"}),
            OPTIONS,
            r#"{"jsonrpc":"2.0","id":2,"method":"session/set_config_option","params":{"configId":"m","sessionId":"s","value":"b"}}"#,
        ),
    ] {
        assert_eq!(set(config, opened), line);
    }
    // What is so already is not asked for: the prompt goes.
    for config in [
        json!({"approvalMode":"ask"}),
        json!({"model":"a"}),
        json!({}),
        // The agent goes on to ask; the gateway answers.
        json!({"approvalMode":"autoEdit"}),
        json!({"approvalMode":"autoAll"}),
        json!({"permissionMode":"acceptEdits"}),
        json!({"permissionMode":"bypassPermissions"}),
    ] {
        assert!(set(config.clone(), OPENED).contains("session/prompt"), "{config}");
        let config = json!({"permissionMode":config["permissionMode"],"model":"a"});
        assert!(set(config.clone(), OPTIONS).contains("session/prompt"), "{config}");
    }

    let mut live = Live::start(ACP, json!({"permissionMode":"plan"}), None);
    live.does(json!({"command":"prompt","prompt":"hi"}));
    live.says(INITIALIZE).says(OPENED).forget();
    live.says(&result("2", json!({})));
    assert_eq!(live.events(), ["statusChanged mode plan", "turnStarted hi"]);

    // A session that is not in the mode asked for runs nothing.
    let mut live = Live::start(ACP, json!({"permissionMode":"plan"}), None);
    live.says(INITIALIZE).says(OPENED).forget();
    live.says(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}"#);
    assert_eq!(live.refuses(json!({"command":"prompt","prompt":"x"})).0, ErrorCode::AgentFailed);
}

#[test]
fn a_session_is_resumed_as_the_agent_can() {
    let mut live = Live::start(ACP, json!({}), Some("old"));
    live.forget();
    live.says(INITIALIZE);
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"cwd":"/w","mcpServers":[],"sessionId":"old"}}"#
        ]
    );
    let replayed = text("before").replace("\"s\"", "\"old\"");
    live.says(&replayed).says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(live.events(), ["statusChanged ready", "other replay", "statusChanged ready"]);
    live.does(json!({"command":"prompt","prompt":"go"}));
    assert!(live.stdin()[0].contains(r#""sessionId":"old""#));

    let mut live = Live::start(ACP, json!({}), Some("old"));
    live.forget();
    live.says(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}}"#);
    assert!(live.stdin()[0].contains("session/resume"));
}

#[test]
fn a_session_is_forked_where_the_agent_can() {
    let can = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"fork":{}}}}}"#;
    let fork = || {
        let mut live = Live::open(ACP, json!({}), Some("old"), true);
        live.forget();
        live
    };
    let mut live = fork();
    live.says(can);
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"session/fork","params":{"cwd":"/w","mcpServers":[],"sessionId":"old"}}"#
        ]
    );
    live.says(r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"copy"}}"#);
    live.does(json!({"command":"prompt","prompt":"go"}));
    assert!(live.stdin()[0].contains(r#""sessionId":"copy""#));
    // Without a name the copy cannot be told from the session itself.
    let mut live = fork();
    live.says(can).says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let error = "error the agent did not name the copy of its session";
    assert_eq!(live.events(), ["statusChanged ready", error]);
    let mut live = fork();
    live.says(INITIALIZE);
    let error = "error the ACP agent cannot take the option fork";
    assert_eq!(live.events(), ["statusChanged ready", error]);
    assert_eq!(live.stdin(), [""; 0]);
}

/// Gemini's replay goes on after the result of `session/load`; its commands end it.
#[test]
fn gemini_replays_late() {
    let mut live = Live::start(GEMINI, json!({}), Some("s"));
    live.does(json!({"command":"prompt","prompt":"go"}));
    live.says(GEMINI_CLI).says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).forget();
    live.says(&text("old"));
    assert_eq!((live.events(), live.stdin()), (vec!["other replay".to_owned()], vec![]));
    live.says(&update(json!({"sessionUpdate":"available_commands_update","availableCommands":[]})));
    live.says(&text("new"));
    assert_eq!(
        live.events(),
        ["statusChanged commands availableCommands", "turnStarted go", "textChunk new"]
    );
    assert!(live.stdin()[0].contains("session/prompt"));
}

#[test]
fn prompts_wait_for_their_turn() {
    let mut live = Live::busy();
    live.does(json!({"command":"prompt","prompt":"two","images":[{"mediaType":"image/png","data":"AA=="}]}));
    assert_eq!((live.stdin(), live.replies()), (vec![], vec!["{}".to_owned()]));
    live.says(DONE);
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"prompt":[{"text":"two","type":"text"},{"data":"AA==","mimeType":"image/png","type":"image"}],"sessionId":"s"}}"#
        ]
    );
    assert_eq!(
        live.events(),
        [
            "statusChanged warning the turn ended without an answer",
            "turnCompleted",
            "turnStarted two"
        ]
    );
}

#[test]
fn a_prompt_can_cut_the_turn_off_but_not_join_it() {
    let mut live = Live::busy();
    let steer = live.refuses(json!({"command":"prompt","prompt":"x","delivery":"steer"}));
    assert_eq!(steer, (ErrorCode::Unsupported, "the ACP agent cannot take delivery steer".into()));
    live.does(json!({"command":"prompt","prompt":"later"}));
    live.does(json!({"command":"prompt","prompt":"now","delivery":"now"}));
    assert_eq!(
        live.stdin(),
        [r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#]
    );
    live.says(&result("2", json!({"stopReason":"cancelled"})));
    assert_eq!(live.events(), ["turnFailed interrupted cancelled", "turnStarted now"]);
}

#[test]
fn images_are_refused_where_they_are_not_taken() {
    let prompt =
        json!({"command":"prompt","prompt":"x","images":[{"mediaType":"image/png","data":"AA=="}]});
    let mut live = Live::start(ACP, json!({}), None);
    live.does(prompt.clone());
    live.says(BARE).says(OPENED);
    let events = live.events();
    assert!(events.last().unwrap().contains("cannot take images in a prompt"), "{events:?}");
    live.forget();
    assert_eq!(live.refuses(prompt).0, ErrorCode::Unsupported);
}

#[test]
fn interrupt_answers_what_is_open() {
    let mut live = Live::busy();
    live.says(PERMISSION).says(FORM).says(READ).forget();
    live.does(json!({"command":"interrupt"}));
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}"#,
            r#"{"jsonrpc":"2.0","id":"f-1","result":{"action":"cancel"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"interrupted"}}"#,
        ]
    );
    assert_eq!(live.events(), ["requestSettled interrupted denied gateway"; 3]);
    live.says(&result("2", json!({"stopReason":"cancelled"})));
    assert_eq!(
        live.events(),
        [
            "toolFailed interrupted the turn ended without its result",
            "turnFailed interrupted cancelled"
        ]
    );

    // When nothing runs there is nothing to cancel; what waits to run will not.
    let mut live = Live::ready();
    live.does(json!({"command":"interrupt"}));
    assert_eq!((live.stdin(), live.events()), (vec![], vec![]));
    let mut live = Live::start(ACP, json!({}), None);
    live.does(json!({"command":"prompt","prompt":"hi"})).forget();
    live.does(json!({"command":"interrupt"}));
    assert_eq!(
        live.events(),
        ["turnStarted hi", "turnFailed interrupted interrupted before it was sent"]
    );
}

#[test]
fn stop_cancels_closes_and_ends_stdin() {
    let mut live = Live::busy();
    live.does(json!({"command":"stop"}));
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":"s"}}"#,
        ]
    );
    assert_eq!(live.seen.actions, [Action::CloseStdin]);
    live.tape.end(Exit::Code(0), &mut live.seen);
    assert_eq!(live.events(), ["turnFailed interrupted interrupted"]);
}

#[test]
fn permissions_are_settled_by_the_kind_of_the_option() {
    let selected = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":0,"result":{{"outcome":{{"optionId":"{id}","outcome":"selected"}}}}}}"#
        )
    };
    let cancelled =
        r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}"#.to_owned();
    let cancel =
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#.to_owned();
    let denied = |words: &str| vec![format!("toolFailed denied {words}")];
    for (answer, stdin, events) in [
        (json!({"behavior":"allow"}), vec![selected("once")], vec![]),
        // What holds from now on, the gateway keeps.
        (json!({"behavior":"allow","remember":"session"}), vec![selected("once")], vec![]),
        (
            json!({"behavior":"deny","remember":"session"}),
            vec![selected("no")],
            denied("permission was refused"),
        ),
        (json!({"behavior":"deny"}), vec![selected("no")], denied("permission was refused")),
        (json!({"behavior":"deny","message":"not now"}), vec![selected("no")], denied("not now")),
        (
            json!({"behavior":"deny","interrupt":true}),
            vec![cancelled, cancel],
            denied("permission was refused"),
        ),
        (json!({"hookOutput":{"optionId":"once"}}), vec![selected("once")], vec![]),
        (
            json!({"hookOutput":{"optionId":"no"}}),
            vec![selected("no")],
            denied("permission was refused"),
        ),
    ] {
        let mut live = Live::busy();
        live.says(PERMISSION);
        assert_eq!(live.events(), ["toolStarted", "requestRaised"]);
        let mut command = answer.clone();
        command["command"] = "settle".into();
        command["requestId"] = "t:0".into();
        live.does(command.clone());
        assert_eq!((live.stdin(), live.events()), (stdin, events), "{answer}");
        assert_eq!(live.replies(), ["{}"]);
        assert_eq!(live.refuses(command).0, ErrorCode::RequestNotFound);
    }
}

#[test]
fn permissions_refuse_what_they_cannot_say() {
    let mut live = Live::busy();
    live.says(PERMISSION).forget();
    for (answer, code, name) in [
        (json!({"behavior":"allow","updatedInput":{}}), ErrorCode::Unsupported, "updatedInput"),
        (
            json!({"behavior":"allow","updatedPermissions":[]}),
            ErrorCode::Unsupported,
            "updatedPermissions",
        ),
        (json!({"answers":{"a":"b"}}), ErrorCode::Unsupported, "answers"),
        (json!({"hookOutput":{"optionId":"other"}}), ErrorCode::InvalidMessage, "optionId"),
        (json!({"hookOutput":{"optionId":"always"}}), ErrorCode::Unsupported, "the option always"),
        (json!({}), ErrorCode::InvalidMessage, "behavior"),
    ] {
        let mut command = answer;
        command["command"] = "settle".into();
        command["requestId"] = "t:0".into();
        let (refused, message) = live.refuses(command);
        assert_eq!((refused, message.contains(name)), (code, true), "{message}");
    }
    // Nothing wider than what was asked for is chosen, and a refusal is always to be had.
    let mut live = Live::busy();
    live.says(
        &PERMISSION.replace("allow_once", "allow_always").replace("reject_once", "reject_always"),
    );
    live.forget();
    for allow in [
        json!({"command":"settle","requestId":"t:0","behavior":"allow"}),
        json!({"command":"settle","requestId":"t:0","behavior":"allow","remember":"session"}),
        json!({"command":"settle","requestId":"t:0","hookOutput":{"optionId":"once"}}),
    ] {
        assert_eq!(live.refuses(allow).0, ErrorCode::Unsupported);
    }
    live.does(json!({"command":"settle","requestId":"t:0","behavior":"deny"}));
    assert_eq!(
        live.stdin(),
        [r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}"#]
    );
}

#[test]
fn questions_and_other_requests_are_settled() {
    let settle = |line: &str, id: &str, answer: Value| {
        let mut live = Live::busy();
        live.says(line).forget();
        let mut command = answer;
        command["command"] = "settle".into();
        command["requestId"] = id.into();
        live.tries(command).map(|()| live.stdin().join("\n")).map_err(|error| error.code)
    };
    let mut live = Live::busy();
    live.says(READ);
    let read_id = live.seen.events[0]["requestId"].as_str().expect("an id").to_owned();
    assert!(read_id.ends_with(":3"), "{read_id}");
    for (line, id, answer, stdin) in [
        (
            FORM,
            "t:\"f-1\"",
            json!({"answers":{"Which one?":"dev","dry":"true","n":"3","all":"x"}}),
            Ok(
                r#"{"jsonrpc":"2.0","id":"f-1","result":{"action":"accept","content":{"all":["x"],"dry":true,"env":"dev","n":3}}}"#,
            ),
        ),
        (
            FORM,
            "t:\"f-1\"",
            json!({"behavior":"allow","updatedInput":{"env":"prod"}}),
            Ok(
                r#"{"jsonrpc":"2.0","id":"f-1","result":{"action":"accept","content":{"env":"prod"}}}"#,
            ),
        ),
        (
            FORM,
            "t:\"f-1\"",
            json!({"behavior":"deny"}),
            Ok(r#"{"jsonrpc":"2.0","id":"f-1","result":{"action":"decline"}}"#),
        ),
        (
            FORM,
            "t:\"f-1\"",
            json!({"behavior":"deny","interrupt":true}),
            Ok(
                "{\"jsonrpc\":\"2.0\",\"id\":\"f-1\",\"result\":{\"action\":\"cancel\"}}\n{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s\"}}",
            ),
        ),
        (
            FORM,
            "t:\"f-1\"",
            json!({"hookOutput":{"action":"cancel"}}),
            Ok(r#"{"jsonrpc":"2.0","id":"f-1","result":{"action":"cancel"}}"#),
        ),
        (FORM, "t:\"f-1\"", json!({"behavior":"allow"}), Err(ErrorCode::InvalidMessage)),
        (FORM, "t:\"f-1\"", json!({"answers":{"nope":"x"}}), Err(ErrorCode::InvalidMessage)),
        (FORM, "t:\"f-1\"", json!({"answers":{"n":"many"}}), Err(ErrorCode::InvalidMessage)),
        (
            FORM,
            "t:\"f-1\"",
            json!({"behavior":"allow","remember":"session"}),
            Err(ErrorCode::Unsupported),
        ),
        (
            LINK,
            "el:2",
            json!({"behavior":"allow"}),
            Ok(r#"{"jsonrpc":"2.0","id":2,"result":{"action":"accept"}}"#),
        ),
        (
            LINK,
            "el:2",
            json!({"behavior":"deny"}),
            Ok(r#"{"jsonrpc":"2.0","id":2,"result":{"action":"decline"}}"#),
        ),
        (
            READ,
            &read_id,
            json!({"hookOutput":{"content":"x"}}),
            Ok(r#"{"jsonrpc":"2.0","id":3,"result":{"content":"x"}}"#),
        ),
        (
            READ,
            &read_id,
            json!({"behavior":"deny","message":"no"}),
            Ok(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}"#),
        ),
        (READ, &read_id, json!({"behavior":"allow"}), Err(ErrorCode::InvalidMessage)),
        (READ, "nope", json!({"behavior":"allow"}), Err(ErrorCode::RequestNotFound)),
    ] {
        assert_eq!(settle(line, id, answer.clone()), stdin.map(str::to_owned), "{answer}");
    }
}

#[test]
fn the_agent_withdraws_what_it_asked() {
    let mut live = Live::busy();
    live.says(PERMISSION).says(LINK).forget();
    live.says(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}"#);
    live.says(
        r#"{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"el"}}"#,
    );
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32800,"message":"request cancelled"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"action":"accept"}}"#,
        ]
    );
    assert_eq!(live.events(), ["requestSettled withdrawn agent", "requestSettled resolved agent"]);
}

/// The form of claude-agent-acp: the question is the form's message, and a field beside it takes an
/// answer of one's own.
#[test]
fn an_answer_of_ones_own_goes_to_the_field_for_it() {
    let own = json!({"type":"string","title":"Other"});
    let one = json!({"type":"string","title":"Choice","oneOf":[{"const":"Red","title":"Red"},{"const":"Blue","title":"Blue"}]});
    let many = json!({"type":"array","description":"Which two?","items":{"anyOf":[{"const":"One"},{"const":"Two"}]}});
    let asked = |properties: Value| {
        let schema = json!({"type":"object","properties":properties});
        json!({"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"sessionId":"s","toolCallId":"t","mode":"form","message":"Which one?","requestedSchema":schema}})
    };
    let single = asked(json!({"question_0":one,"question_0_custom":own}));
    let double = asked(json!({"q":one,"q_custom":own,"r":many,"r_custom":own}));
    for (form, answers, content) in [
        (&single, json!({"Which one?":"Blue"}), json!({"question_0":"Blue"})),
        (&single, json!({"question_0":"Green"}), json!({"question_0_custom":"Green"})),
        (
            &double,
            json!({"q":"Red","Which two?":["One","Six"]}),
            json!({"q":"Red","r":["One"],"r_custom":"Six"}),
        ),
        (&double, json!({"Choice":"Red","r":"Two"}), json!({"q":"Red","r":["Two"]})),
    ] {
        let mut live = Live::ready();
        live.says(&form.to_string());
        let request = live.seen.events.last().expect("an event").clone();
        let id = request["requestId"].as_str().expect("an id").to_owned();
        let own = request["questions"].as_array().expect("questions").iter();
        assert!(
            own.clone()
                .all(|question| !question["id"].as_str().expect("an id").ends_with("_custom"))
        );
        live.stdin();
        live.does(json!({"command":"settle","requestId":id,"behavior":"allow","answers":answers}));
        let said: Value = serde_json::from_str(&live.stdin()[0]).expect("a line");
        assert_eq!(said["result"], json!({"action":"accept","content":content}), "{answers}");
    }
}

/// A call that nobody allowed has no subagent; one that was cut off ends with its turn, and so does what
/// its subagent had open.
#[test]
fn a_subagent_is_told_when_it_works_and_ends_with_its_call() {
    let claude = |tool: &str, by: Option<&str>| match by {
        Some(by) => json!({"claudeCode":{"toolName":tool,"parentToolUseId":by}}),
        None => json!({"claudeCode":{"toolName":tool}}),
    };
    let call = |id: &str, meta: Value, input: Value| {
        update(
            json!({"sessionUpdate":"tool_call","toolCallId":id,"title":id,"kind":"think","status":"pending","rawInput":input,"_meta":meta}),
        )
    };
    let input = json!({"description":"A part","prompt":"Look","subagent_type":"general-purpose"});
    let mut live = Live::ready();
    live.does(json!({"command":"prompt","prompt":"go"}));
    live.says(&call("a", claude("Agent", None), input.clone()));
    let kinds = |live: &Live| -> Vec<(String, String)> {
        let word = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
        live.seen.events.iter().map(|event| (word(event, "type"), word(event, "agentId"))).collect()
    };
    assert!(!kinds(&live).iter().any(|(kind, _)| kind == "agentSpawned"), "more may come of it");
    live.says(&call("b", claude("Bash", Some("a")), json!({"command":"sleep 9"})));
    let content = json!({"type":"text","text":"hm"});
    live.says(&update(json!({"sessionUpdate":"agent_message_chunk","content":content,"_meta":claude("Agent", Some("a"))})));
    live.says(r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"cancelled"}}"#);
    let seen = kinds(&live);
    let at = seen.iter().position(|(kind, _)| kind == "agentSpawned").expect("one");
    let expected = [
        ("agentSpawned", "a"),
        ("toolStarted", "a"),
        ("textChunk", "a"),
        ("textChunk", "a"),
        ("toolFailed", "a"),
        ("agentFinished", "a"),
        ("toolFailed", "main"),
        ("turnFailed", "main"),
    ];
    let expected = expected.map(|(kind, agent)| (kind.to_owned(), agent.to_owned()));
    assert_eq!(seen[at..], expected);
    let spawned = &live.seen.events[at];
    assert_eq!((&spawned["name"], &spawned["prompt"]), (&json!("general-purpose"), &json!("Look")));
    assert_eq!(spawned["parentAgentId"], "main");

    let mut live = Live::ready();
    live.does(json!({"command":"prompt","prompt":"go"}));
    live.says(&call("a", claude("Agent", None), input));
    let asked = json!({"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"a"},"options":[{"optionId":"no","name":"No","kind":"reject_once"}]}});
    live.says(&asked.to_string());
    let id = live.seen.events.last().expect("an event")["requestId"].clone();
    live.says(&text("meanwhile"));
    live.does(json!({"command":"settle","requestId":id,"behavior":"deny"}));
    live.says(&text("meanwhile"));
    assert!(!kinds(&live).iter().any(|(kind, _)| kind.starts_with("agent")), "{:?}", kinds(&live));
}

#[test]
fn configure_waits_for_the_agent() {
    let mut live = Live::ready();
    live.does(json!({"command":"configure","model":"b","permissionMode":"plan"}));
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":2,"method":"session/set_model","params":{"modelId":"b","sessionId":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"modeId":"plan","sessionId":"s"}}"#,
        ]
    );
    live.says(&result("2", json!({})));
    assert_eq!(live.replies(), [""; 0]);
    live.says(&result("3", json!(null)));
    assert_eq!(live.replies(), ["{}"]);
    assert_eq!(live.events(), ["statusChanged model b", "statusChanged mode plan"]);
    // A mode of the gateway takes the agent back to the one that asks.
    live.does(json!({"command":"configure","approvalMode":"autoAll"}));
    assert!(live.stdin()[0].contains(r#""modeId":"default""#));
    live.says(&result("4", json!({}))).forget();

    // One of two fails: one reply.
    live.does(json!({"command":"configure","model":"c","permissionMode":"plan"})).forget();
    live.says(r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"Internal error","data":{"details":"no model c"}}}"#);
    live.says(&result("6", json!({})));
    assert_eq!(live.replies(), ["agentFailed: Internal error: no model c"]);
    assert_eq!(live.events(), ["error Internal error: no model c", "statusChanged mode plan"]);

    for (change, name) in [
        (json!({"command":"configure","maxThinkingTokens":5}), "maxThinkingTokens"),
        (json!({"command":"configure","permissionMode":"bogus"}), "permissionMode bogus"),
        (json!({"command":"query","method":"setPermissionMode","args":["yolo"]}), "permissionMode"),
    ] {
        let (code, message) = live.refuses(change);
        assert_eq!((code, message.contains(name)), (ErrorCode::Unsupported, true), "{message}");
    }
    // Before the session is open, it is opened so.
    let mut live = Live::start(ACP, json!({}), None);
    live.does(json!({"command":"configure","permissionMode":"plan"}));
    live.says(INITIALIZE).forget();
    live.says(OPENED);
    assert!(live.stdin()[0].contains(r#""modeId":"plan""#));
}

#[test]
fn a_model_can_be_taken_back() {
    for (config, first, change, ids) in
        [(json!({}), "a", "b", ["2", "3"]), (json!({"model":"b"}), "b", "a", ["3", "4"])]
    {
        let mut live = Live::start(ACP, config, None);
        live.says(INITIALIZE).says(OPENED).says(&result("2", json!({}))).forget();
        live.does(json!({"command":"configure","model":change}));
        live.says(&result(ids[0], json!({}))).forget();
        live.does(json!({"command":"configure","model":null,"maxThinkingTokens":null}));
        assert!(live.stdin()[0].contains(&format!(r#""modelId":"{first}""#)));
        live.says(&result(ids[1], json!({})));
        assert_eq!(live.events(), [format!("statusChanged model {first}")]);
    }
    let mut live = Live::start(ACP, json!({}), None);
    live.says(INITIALIZE).says(&result("1", json!({"sessionId":"s"}))).forget();
    let (code, message) = live.refuses(json!({"command":"configure","model":null}));
    assert_eq!((code, message.contains("model null")), (ErrorCode::Unsupported, true), "{message}");
}

#[test]
fn an_interrupt_may_give_up_what_waits() {
    let mut live = Live::busy();
    let id = "00000000-0000-4000-8000-000000000001";
    live.does(json!({"command":"prompt","prompt":"on","messageId":id})).forget();
    live.does(json!({"command":"interrupt","cancelQueued":true}));
    assert_eq!(live.stdin().len(), 1);
    assert_eq!(live.seen.events[0]["details"]["messageId"], id);
    assert_eq!(live.events(), ["statusChanged queue cancelled"]);
}

#[test]
fn queries_reply_what_is_known_or_asked() {
    let mut live = Live::ready();
    live.says(&update(
        json!({"sessionUpdate":"available_commands_update","availableCommands":[{"name":"x"}]}),
    ));
    for (method, reply) in [
        (
            "supportedModels",
            r#"{"currentModelId":"a","availableModels":[{"modelId":"a"},{"modelId":"b"}]}"#,
        ),
        ("supportedCommands", r#"[{"name":"x"}]"#),
        ("accountInfo", r#"{"authMethods":[{"id":"key","name":"Key"}]}"#),
    ] {
        live.does(json!({"command":"query","method":method}));
        assert_eq!((live.stdin(), live.replies()), (vec![], vec![reply.to_owned()]));
    }
    for (method, args, line) in [
        (
            "setModel",
            json!(["b"]),
            r#""method":"session/set_model","params":{"modelId":"b","sessionId":"s"}}"#,
        ),
        (
            "setPermissionMode",
            json!(["plan"]),
            r#""method":"session/set_mode","params":{"modeId":"plan","sessionId":"s"}}"#,
        ),
        (
            "setConfigOption",
            json!(["fast", true]),
            r#""method":"session/set_config_option","params":{"configId":"fast","sessionId":"s","type":"boolean","value":true}}"#,
        ),
        ("listSessions", json!([]), r#""method":"session/list","params":{}}"#),
        ("authenticate", json!(["key"]), r#""method":"authenticate","params":{"methodId":"key"}}"#),
    ] {
        live.does(json!({"command":"query","method":method,"args":args}));
        let stdin = live.stdin();
        assert!(stdin[0].ends_with(line), "{stdin:?}");
    }
    live.forget();
    live.says(&result("4", json!({"configOptions":[]}))).says(&result("5", json!({"sessions":[]})));
    assert_eq!(live.replies(), [r#"{"configOptions":[]}"#, r#"{"sessions":[]}"#]);
    assert_eq!(live.events(), ["statusChanged commands configOptions", "other session/list"]);
    for method in ["mcpServerStatus", "setMaxThinkingTokens", "rewindFiles", "bogus"] {
        let (code, message) = live.refuses(json!({"command":"query","method":method}));
        assert_eq!((code, message.contains(method)), (ErrorCode::Unsupported, true), "{message}");
    }
    assert_eq!(
        live.refuses(json!({"command":"query","method":"setModel"})).0,
        ErrorCode::InvalidMessage
    );
    assert_eq!(live.refuses(json!({"command":"rewind","messageId":"m"})).0, ErrorCode::Unsupported);
    assert_eq!(live.refuses(json!({"command":"attach"})).0, ErrorCode::Unsupported);
    // The rest is answered when the agent ends.
    live.tape.end(Exit::Code(0), &mut live.seen);
    assert_eq!(live.replies(), ["agentFailed: the agent ended"; 3]);
}

#[test]
fn a_sign_in_opens_the_session() {
    let mut live = Live::start(ACP, json!({}), None);
    live.does(json!({"command":"prompt","prompt":"hi"}));
    live.says(INITIALIZE).forget();
    live.says(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"key is missing"}}"#);
    assert_eq!(
        live.events(),
        ["error key is missing", "turnStarted hi", "turnFailed error key is missing"]
    );
    live.does(json!({"command":"query","method":"authenticate","args":["key"]})).forget();
    live.says(&result("2", json!({})));
    assert!(live.stdin()[0].contains("session/new"));
    live.says(&OPENED.replace("\"id\":1,", "\"id\":3,"));
    live.does(json!({"command":"prompt","prompt":"hi"}));
    assert!(live.stdin()[0].contains("session/prompt"));
}

#[test]
fn gemini_says_a_mode_as_text() {
    let mut live = Live::start(GEMINI, json!({}), None);
    live.says(GEMINI_CLI).says(OPENED).forget();
    live.does(json!({"command":"configure","permissionMode":"plan"}));
    live.says(&text("[MODE_UPDATE] plan")).says(&result("2", json!({})));
    assert_eq!(live.events(), ["statusChanged mode plan", "other session/set_mode"]);
    assert_eq!(live.replies(), ["{}"]);
}

/// A call that was closed stays closed, whatever is said of it later.
#[test]
fn late_words_open_nothing_again() {
    let call = |status: &str| {
        update(json!({"sessionUpdate":"tool_call_update","toolCallId":"t","status":status}))
    };
    let mut live = Live::busy();
    live.says(&call("in_progress")).says(&call("in_progress")).says(DONE);
    assert_eq!(
        live.events(),
        [
            "toolStarted",
            "toolProgress in_progress",
            "toolFailed interrupted the turn ended without its result",
            "turnCompleted"
        ]
    );
    live.says(&call("completed")).says(PERMISSION);
    assert_eq!(live.events(), ["other lateToolCall", "requestRaised"]);
    // What is asked about it can be settled all the same.
    live.does(json!({"command":"settle","requestId":"t:0","behavior":"deny"}));
    assert_eq!((live.stdin().len(), live.events()), (1, vec![]));
}

/// What a call shows is said once: an update repeats the output and adds to it.
#[test]
fn output_of_a_call_is_not_said_twice() {
    let shows = |status: &str, text: &str| {
        let content = json!([{"type":"content","content":{"type":"text","text":text}}]);
        update(
            json!({"sessionUpdate":"tool_call_update","toolCallId":"t","title":"run","status":status,"content":content}),
        )
    };
    let mut live = Live::busy();
    live.says(&shows("pending", "about to run"));
    for text in ["one\n", "one\ntwo\n", "anew"] {
        live.says(&shows("in_progress", text));
    }
    live.says(&shows("completed", "anew, done"));
    let said: Vec<_> = live.seen.events.iter().map(|event| &event["output"]).collect();
    assert_eq!(json!(said), json!([null, null, null, "one\n", "two\n", "anew", null]));
    assert_eq!(live.seen.events[2]["message"], "about to run");
}

/// Without a turn the agent may still speak; nothing of it is lost, and no turn is made up.
#[test]
fn words_outside_a_turn_are_kept() {
    let mut live = Live::ready();
    live.says(&text("by the way"));
    live.does(json!({"command":"prompt","prompt":"hi"}));
    live.says(&text("yes"));
    assert_eq!(
        live.events(),
        ["textChunk by the way", "textChunk ", "turnStarted hi", "textChunk yes"]
    );
}

fn argv(dialect: &Acp, mut config: Value) -> Result<Vec<String>, String> {
    config["workingDirectory"] = "/w".into();
    let config: SessionConfig = serde_json::from_value(config).expect("a config");
    let start =
        Start { config: &config, resume: None, fork: false, native_session_id: None, prompt: None };
    let launch = dialect.launch(&start).map_err(|error| error.message)?;
    assert_eq!(launch.stdin, Stdin::Open);
    Ok([launch.program.clone()].into_iter().chain(launch.shown_args()).collect())
}

#[test]
fn gemini_is_started_with_its_flags() {
    for (config, flags) in [
        (json!({}), "--approval-mode=default"),
        (json!({"approvalMode":"ask"}), "--approval-mode=default"),
        (json!({"approvalMode":"askDangerous"}), "--approval-mode=default"),
        // It always asks; what then runs is the gateway's to decide.
        (json!({"approvalMode":"autoEdit"}), "--approval-mode=default"),
        (json!({"approvalMode":"autoAll"}), "--approval-mode=default"),
        (json!({"permissionMode":"plan","approvalMode":"autoAll"}), "--approval-mode=plan"),
        (json!({"permissionMode":"acceptEdits"}), "--approval-mode=default"),
        (json!({"permissionMode":"auto_edit"}), "--approval-mode=default"),
        (json!({"permissionMode":"autoEdit"}), "--approval-mode=default"),
        (json!({"permissionMode":"yolo"}), "--approval-mode=default"),
        (json!({"permissionMode":"bypassPermissions"}), "--approval-mode=default"),
        (json!({"model":"--yolo"}), "--approval-mode=default --model=--yolo"),
        (json!({"sandboxMode":"workspaceWrite"}), "--approval-mode=default --sandbox"),
        (json!({"sandboxMode":"fullAccess"}), "--approval-mode=default"),
        (json!({"allowedTools":["-a","b"]}), "--approval-mode=default"),
        (
            json!({"additionalDirectories":["/a","-b"]}),
            "--approval-mode=default --include-directories=/a --include-directories=-b",
        ),
        // On the wire, or the gateway's own.
        (
            json!({"mcpServers":{"d":{"command":"x"}},"maxTurns":3,"blockedTools":["x"]}),
            "--approval-mode=default",
        ),
    ] {
        let (mode, more) = flags.split_once(' ').unwrap_or((flags, ""));
        let expected =
            format!("gemini --acp --skip-trust {mode} --policy={{file:ask.toml}} {more}");
        let expected = expected.trim_end().to_owned();
        assert_eq!(argv(&GEMINI, config).map(|argv| argv.join(" ")), Ok(expected));
    }
    assert_eq!(
        argv(&ACP, json!({"model":"x","approvalMode":"autoAll"})),
        Ok(vec!["acp".to_owned()])
    );
    let config: SessionConfig =
        serde_json::from_value(json!({"env":{"A":"b"},"workingDirectory":"/w"})).expect("a config");
    let start =
        Start { config: &config, resume: None, fork: false, native_session_id: None, prompt: None };
    let launch = GEMINI.launch(&start).expect("a launch");
    assert_eq!(json!(launch.env), json!({"A":"b","GEMINI_CLI_NO_RELAUNCH":"1"}));
    assert_eq!(launch.working_directory.as_deref(), Some("/w"));
}

#[test]
fn options_that_cannot_be_taken_are_refused_by_name() {
    let both = [
        (json!({"sandboxMode":"readOnly"}), "sandboxMode readOnly"),
        (json!({"maxThinkingTokens":1}), "maxThinkingTokens"),
        (json!({"enableFileCheckpointing":true}), "enableFileCheckpointing"),
        (json!({"agents":{}}), "agents"),
        (json!({"sandbox":{}}), "sandbox"),
        (json!({"settingSources":[]}), "settingSources"),
        (json!({"betas":[]}), "betas"),
        (json!({"outputFormat":{"type":"json_schema","schema":{}}}), "outputFormat"),
        (json!({"fallbackModel":"x"}), "fallbackModel"),
        (json!({"mcpServers":{"h":{"type":"sdk"}}}), "the MCP server h of type sdk"),
        (json!({"mcpServers":{"h":{}}}), "the MCP server h needs a command"),
    ];
    for (config, name) in both {
        for dialect in [&ACP, &GEMINI] {
            let error = argv(dialect, config.clone()).expect_err(name);
            assert!(error.contains(name), "{error}");
        }
    }
    assert!(
        argv(&GEMINI, json!({"permissionMode":"x"}))
            .expect_err("refused")
            .contains("permissionMode x")
    );
    let sandbox = argv(&ACP, json!({"sandboxMode":"workspaceWrite"})).expect_err("refused");
    assert!(sandbox.contains("sandboxMode workspaceWrite"));
}

/// What a recording of these lines becomes, in brief, up to its end.
fn recorded(lines: &[String]) -> Vec<String> {
    let mut live = Live { tape: Tape::recording(&ACP), seen: Seen::default(), calls: 0 };
    for line in lines {
        live.says(line);
    }
    live.tape.end(Exit::Unknown, &mut live.seen);
    live.events()
}

/// The result of `session/resume` may be empty: what follows is new all the same.
#[test]
fn an_empty_result_opens_the_session() {
    for opened in ["null", "{}"] {
        let opened = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{opened}}}"#);
        let events = recorded(&[BARE.into(), text("OLD"), opened, text("NEW"), DONE.into()]);
        assert_eq!(
            events,
            [
                "sessionStarted",
                "other replay",
                "statusChanged ready",
                "turnStarted",
                "textChunk NEW",
                "textChunk ",
                "turnCompleted",
                "sessionEnded completed",
            ]
        );
    }
    // A sign-in or a list before it opens nothing for good.
    let events = recorded(&[
        BARE.into(),
        result("1", json!({})),
        result("2", json!({"sessions":[]})),
        OPENED.into(),
        text("NEW"),
        DONE.into(),
    ]);
    assert!(events.contains(&"textChunk NEW".to_owned()), "{events:?}");
}

/// A session outlives its process: the next one resumes it, as it was configured last.
#[test]
fn the_next_process_resumes_the_session() {
    let mut live = Live::busy();
    live.does(json!({"command":"configure","model":"b"}));
    live.says(&text("half")).says(&result("3", json!({})));
    live.tape.end(Exit::Code(1), &mut live.seen);
    assert_eq!(
        live.events(),
        [
            "textChunk half",
            "statusChanged model b",
            "textChunk ",
            "turnFailed died the agent ended before the turn did",
        ]
    );
    live.forget();
    live.tape.start(&mut live.seen);
    live.does(json!({"command":"prompt","prompt":"again"}));
    let stdin = live.stdin();
    assert!(stdin.len() == 1 && stdin[0].contains(r#""id":4,"method":"initialize""#), "{stdin:?}");
    live.says(&INITIALIZE.replace("\"id\":0", "\"id\":4"));
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":5,"method":"session/load","params":{"cwd":"/w","mcpServers":[],"sessionId":"s"}}"#
        ]
    );
    live.says(&text("half"));
    live.says(&OPENED.replace("\"id\":1", "\"id\":5").replace("\"sessionId\":\"s\",", ""));
    assert_eq!(
        live.stdin(),
        [
            r#"{"jsonrpc":"2.0","id":6,"method":"session/set_model","params":{"modelId":"b","sessionId":"s"}}"#
        ]
    );
    live.says(&result("6", json!({})));
    assert!(live.stdin()[0].contains(r#""method":"session/prompt""#));
    live.says(&text("new")).says(&result("7", json!({"stopReason":"end_turn"})));
    assert_eq!(
        live.events(),
        [
            "statusChanged ready",
            "other replay",
            "statusChanged ready",
            "statusChanged model b",
            "turnStarted again",
            "textChunk new",
            "textChunk ",
            "turnCompleted",
        ]
    );
}

/// Nothing of one process is left in the next: a failed opening, a held call, an interrupt.
#[test]
fn the_next_process_begins_anew() {
    let mut live = Live::start(ACP, json!({"systemPrompt":"x"}), None);
    live.says(BARE);
    live.tape.end(Exit::Code(0), &mut live.seen);
    live.forget();
    live.tape.start(&mut live.seen);
    live.does(json!({"command":"prompt","prompt":"hi"}));
    live.says(&INITIALIZE.replace("\"id\":0", "\"id\":1"));
    assert!(live.stdin()[1].contains("session/new"));

    let mut live = Live::busy();
    live.does(json!({"command":"interrupt"}));
    live.says(&update(json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"x"})));
    live.tape.end(Exit::Code(0), &mut live.seen);
    assert_eq!(
        live.events(),
        [
            "other toolCallPending",
            "toolStarted",
            "toolFailed interrupted the agent ended",
            "turnFailed interrupted interrupted",
        ]
    );
    live.tape.start(&mut live.seen);
    live.tape.end(Exit::Code(0), &mut live.seen);
    assert_eq!(live.events(), [""; 0]);
}

/// The model that Gemini was started with is not asked for again; another is.
#[test]
fn gemini_takes_a_model_while_it_starts() {
    let set_model = |model: &str| {
        let mut live = Live::start(GEMINI, json!({"model":"alias"}), None);
        live.does(json!({"command":"configure","model":model}));
        live.says(GEMINI_CLI).forget();
        live.says(OPENED);
        live.stdin()
    };
    assert_eq!(set_model("alias"), [""; 0]);
    assert_eq!(
        set_model("b"),
        [
            r#"{"jsonrpc":"2.0","id":2,"method":"session/set_model","params":{"modelId":"b","sessionId":"s"}}"#
        ]
    );
}

/// What is remembered of an open call is bounded; what its last word brings is told whole.
#[test]
fn long_texts_of_an_open_call_are_not_kept() {
    let shows = |status: &str, content: Option<&str>| {
        let diff = |text: &str| json!([{"type":"diff","path":"/a","oldText":"x","newText":text}]);
        let mut call = json!({"sessionUpdate":"tool_call_update","toolCallId":"t","status":status});
        if let Some(text) = content {
            call["content"] = diff(text);
        }
        update(call)
    };
    let long = "y".repeat((64 << 10) + 1);
    for (shown, finished, after) in
        [(&*long, None, None), ("y", None, Some("y")), (&*long, Some(&*long), Some(&*long))]
    {
        let mut live = Live::busy();
        live.says(&shows("in_progress", Some(shown))).says(&shows("completed", finished));
        let changed = live.seen.events.last().expect("an event");
        assert_eq!((&changed["type"], &changed["filePath"]), (&json!("fileChanged"), &json!("/a")));
        assert_eq!(changed["after"].as_str(), after);
        assert_eq!(changed["diff"].is_string(), after.is_some());
        assert_eq!(changed["before"].is_string(), after.is_some());
    }
}

/// ACP wants an absolute directory, and the dialect cannot make one of another.
#[test]
fn a_directory_is_given_and_absolute() {
    for dialect in [&ACP, &GEMINI] {
        for config in
            [json!({}), json!({"workingDirectory":"."}), json!({"workingDirectory":"a/b"})]
        {
            let config: SessionConfig = serde_json::from_value(config).expect("a config");
            let start = Start {
                config: &config,
                resume: None,
                fork: false,
                native_session_id: None,
                prompt: None,
            };
            let error = dialect.launch(&start).expect_err("refused");
            assert_eq!(error.code, ErrorCode::InvalidMessage);
            assert!(error.message.contains("workingDirectory"), "{error}");
        }
    }
}

/// An agent is never left in a mode in which it approves by itself.
#[test]
fn the_agent_is_put_into_the_mode_that_asks() {
    let bypass = OPENED.replace(r#""currentModeId":"default""#, r#""currentModeId":"yolo""#);
    for config in [json!({}), json!({"approvalMode":"autoAll"}), json!({"permissionMode":"yolo"})] {
        let mut live = Live::start(ACP, config, None);
        live.does(json!({"command":"prompt","prompt":"hi"}));
        live.says(INITIALIZE).forget();
        live.says(&bypass);
        let stdin = live.stdin();
        assert!(stdin.len() == 1 && stdin[0].contains(r#""modeId":"default""#), "{stdin:?}");
        live.says(&result("2", json!({})));
        assert!(live.stdin()[0].contains("session/prompt"));
        assert!(live.seen.broken.is_empty());
    }
    let refused = |opened: &str, answer: &str| {
        let mut live = Live::start(ACP, json!({}), None);
        live.says(INITIALIZE).says(opened).says(answer).forget();
        live.refuses(json!({"command":"prompt","prompt":"x"}))
    };
    // It does not leave it, or only says so.
    let error = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}"#;
    assert_eq!(refused(&bypass, error).0, ErrorCode::AgentFailed);
    let stays = OPTIONS.replace(r#""currentValue":"ask""#, r#""currentValue":"acceptEdits""#);
    let (code, message) = refused(&stays, &stays.replace("\"id\":1,", "\"id\":2,"));
    assert_eq!(
        (code, message.contains("acceptEdits")),
        (ErrorCode::StartFailed, true),
        "{message}"
    );
    // It has no other.
    for only in ["bypassPermissions", "full-access", "auto_edit", "YOLO", "dont-ask", "auto"] {
        let modes = json!({"currentModeId":only,"availableModes":[{"id":only}]});
        let opened = result("1", json!({"sessionId":"s","modes":modes}));
        let (code, message) = refused(&opened, "{}");
        assert_eq!((code, message.contains(only)), (ErrorCode::StartFailed, true), "{message}");
        let named = json!({"currentModeId":"m1","availableModes":[{"id":"m1","name":only}]});
        let opened = result("1", json!({"sessionId":"s","modes":named}));
        assert_eq!(refused(&opened, "{}").0, ErrorCode::StartFailed, "{only}");
    }
    // One that says nothing of the kind stays as it is.
    let modes = json!({"currentModeId":"code","availableModes":[{"id":"code"},{"id":"architect"}]});
    let mut live = Live::start(ACP, json!({"approvalMode":"autoAll"}), None);
    live.does(json!({"command":"prompt","prompt":"hi"}));
    live.says(INITIALIZE).forget();
    live.says(&result("1", json!({"sessionId":"s","modes":modes})));
    assert!(live.stdin()[0].contains("session/prompt"));
}

#[test]
fn an_agent_that_moves_to_a_mode_that_approves_ends_the_session() {
    for line in [
        update(json!({"sessionUpdate":"current_mode_update","currentModeId":"yolo"})),
        update(json!({"sessionUpdate":"config_option_update","configOptions":[{"id":"p",
            "category":"mode","currentValue":"yolo","options":[{"value":"yolo"}]}]})),
    ] {
        let mut live = Live::busy();
        live.says(&line);
        let broken = live.seen.broken.join("");
        assert!(broken.contains("yolo"), "{broken}");
        live.forget();
        let (code, _) = live.refuses(json!({"command":"prompt","prompt":"x"}));
        assert_eq!(code, ErrorCode::AgentFailed);
    }
    let mut live = Live::start(GEMINI, json!({}), None);
    live.says(GEMINI_CLI).says(OPENED).forget();
    live.says(&text("[MODE_UPDATE] autoEdit"));
    assert_eq!(live.seen.broken.len(), 1);
    // Back to one that asks, or to one in which it does less, is its own matter.
    let mut live = Live::busy();
    live.says(&update(json!({"sessionUpdate":"current_mode_update","currentModeId":"plan"})));
    live.says(&update(json!({"sessionUpdate":"current_mode_update","currentModeId":"default"})));
    assert!(live.seen.broken.is_empty());
}

#[test]
fn clients_see_the_mode_that_they_set() {
    let mut live = Live::ready();
    for mode in ["yolo", "acceptEdits", "bypassPermissions"] {
        live.does(json!({"command":"configure","permissionMode":mode}));
        assert_eq!(live.stdin(), [""; 0]);
        assert_eq!(live.events(), [format!("statusChanged mode {mode}")]);
        assert_eq!(live.replies(), ["{}"]);
    }
    // The agent says what it is in; what was set stays.
    live.says(&update(json!({"sessionUpdate":"current_mode_update","currentModeId":"default"})));
    assert_eq!(live.events(), ["statusChanged mode bypassPermissions"]);
    live.does(json!({"command":"configure","permissionMode":"default"}));
    assert_eq!(live.events(), ["statusChanged mode default"]);
    let option = json!({"command":"query","method":"setConfigOption","args":["p","acceptEdits"]});
    let mut live = Live::start(ACP, json!({"permissionMode":"acceptEdits"}), None);
    live.says(INITIALIZE).says(OPTIONS);
    assert_eq!(live.seen.events[1]["info"]["mode"], "acceptEdits");
    live.forget();
    assert_eq!(live.refuses(option).0, ErrorCode::Unsupported);
}

/// What claude-agent-acp would run unasked it leaves alone, if it is told the rule.
#[test]
fn claude_is_told_what_is_denied() {
    let mut live =
        Live::start(ACP, json!({"blockedTools":["Edit(src/**)","Read","Bash(rm:*)"]}), None);
    live.forget();
    live.says(
        &INITIALIZE
            .replace(r#""loadSession":true"#, r#""_meta":{"claudeCode":{"promptQueueing":true}}"#),
    );
    let opened: Value = serde_json::from_str(&live.stdin()[0]).expect("JSON");
    let options = &opened["params"]["_meta"]["claudeCode"]["options"];
    let denied =
        "Edit(src/**) Write(src/**) NotebookEdit(src/**) Read Grep Glob NotebookRead Bash(rm:*)";
    let denied: Vec<&str> = denied.split(' ').collect();
    assert_eq!(options["disallowedTools"], json!(denied));
    assert_eq!(options["allowDangerouslySkipPermissions"], false);
}

/// Of a call all is judged and shown that any word said of it.
#[test]
fn a_request_shows_all_of_its_call() {
    let diff = |path: &str| json!({"type":"diff","path":path,"oldText":"a","newText":"b"});
    let first = |call: Value| {
        let mut call = call;
        call["sessionUpdate"] = "tool_call".into();
        call["toolCallId"] = "t".into();
        update(call)
    };
    let asks = |call: Value| {
        let mut call = call;
        call["toolCallId"] = "t".into();
        json!({"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{
            "sessionId":"s","toolCall":call,
            "options":[{"optionId":"once","name":"Once","kind":"allow_once"}]}})
        .to_string()
    };
    let input = |lines: &[String]| {
        let mut live = Live::busy();
        for line in lines {
            live.says(line);
        }
        let raised = live.seen.events.iter().find(|event| event["type"] == "requestRaised");
        raised.expect("a request")["input"].clone()
    };
    // The kind that it said last, or first, if that is worse.
    for (one, other) in [("think", "execute"), ("execute", "think"), ("read", "delete")] {
        let shown = input(&[
            first(json!({"title":"x","kind":one,"status":"in_progress"})),
            asks(json!({"kind":other})),
        ]);
        let worst = if one == "think" || one == "read" { other } else { one };
        assert!(
            shown["kind"] == worst || shown.get("kind").is_none_or(|_| one == worst),
            "{shown}"
        );
    }
    // Every change, and every place.
    let shown = input(&[
        first(json!({"title":"x","kind":"edit","status":"in_progress","content":[diff("/w/a")]})),
        asks(json!({"content":[diff("/w/a"),diff("/etc/b")],"locations":[{"path":"/etc/c"}]})),
    ]);
    assert_eq!(shown["content"][1]["path"], "/etc/b");
    assert_eq!(shown["locations"], json!([{"path":"/etc/c"}]));
    // What an earlier word named, beside the input.
    let shown = input(&[
        first(
            json!({"title":"x","kind":"edit","status":"in_progress","locations":[{"path":"/etc/c"}]}),
        ),
        asks(json!({"rawInput":{"path":"/w/a","note":"/etc/c"}})),
    ]);
    assert_eq!(shown["rawInput"]["path"], "/w/a");
    assert_eq!(shown["locations"], json!([{"path":"/etc/c"}]));
    let link = json!({"type":"content","content":{"type":"resource_link","uri":"file:///etc/d"}});
    let shown = input(&[
        first(json!({"title":"x","kind":"fetch","status":"in_progress","content":[link]})),
        asks(json!({"rawInput":{"url":"https://a.org"}})),
    ]);
    assert_eq!(shown["locations"], json!([{"path":"file:///etc/d"}]));
    // An input without fields, which nobody can read, beside a change that is shown.
    for raw in [json!("/etc/d"), json!([{"path":"/etc/d"}]), json!(5)] {
        let started = first(
            json!({"title":"x","kind":"edit","status":"in_progress","content":[diff("/w/a")]}),
        );
        let shown = input(&[started.clone(), asks(json!({"rawInput":raw}))]);
        assert_eq!(shown["rawInput"], raw);
        let odd = first(json!({"title":"x","kind":"edit","status":"in_progress","rawInput":raw}));
        let shown = input(&[odd, asks(json!({"content":[diff("/w/a")]}))]);
        assert_eq!(shown["rawInput"], raw);
    }
    // What is shown of a call says of which kinds it is.
    let gone = json!({"type":"diff","path":"/w/a","oldText":"a","newText":null});
    for (piece, kind) in [
        (json!({"type":"terminal","terminalId":"1"}), "execute"),
        (gone, "delete"),
        (json!({"type":"later"}), "other"),
    ] {
        let shown = input(&[
            first(json!({"title":"x","kind":"edit","status":"in_progress","content":[piece]})),
            asks(json!({"rawInput":{"path":"/w/a"},"content":[diff("/w/a")]})),
        ]);
        let kinds = shown["kinds"].as_array().expect("kinds");
        assert!(kinds.contains(&kind.into()), "{shown}");
    }
    // An input that says it all is shown as it is.
    let raw = json!({"file_path":"/w/a","old_string":"a","new_string":"b"});
    let shown = input(&[
        first(json!({"title":"x","kind":"edit","status":"in_progress","content":[diff("/w/a")]})),
        asks(json!({"rawInput":raw})),
    ]);
    assert_eq!(shown, raw);
}

#[test]
fn a_call_that_changes_is_asked_about_again() {
    let change = |call: Value| {
        let mut call = call;
        call["sessionUpdate"] = "tool_call_update".into();
        call["toolCallId"] = "t".into();
        update(call)
    };
    for changed in [
        json!({"kind":"delete"}),
        json!({"title":"rm -rf /"}),
        json!({"rawInput":{"command":"rm"}}),
        json!({"locations":[{"path":"/etc/passwd"}]}),
        json!({"content":[{"type":"diff","path":"/etc/x","newText":"b"}]}),
    ] {
        let mut live = Live::busy();
        live.says(&PERMISSION.replace("\"execute\"", "\"edit\"")).forget();
        live.says(&change(changed.clone()));
        let events = live.events();
        assert!(
            events[0].starts_with("requestSettled") && events[0].contains("withdrawn"),
            "{changed}: {events:?}"
        );
        assert_eq!(events[1], "requestRaised", "{changed}");
        let allow = |id: &str| json!({"command":"settle","requestId":id,"behavior":"allow"});
        assert_eq!(live.refuses(allow("t:0")).0, ErrorCode::RequestNotFound);
        live.does(allow("t:0:2"));
        assert!(live.stdin()[0].contains(r#""optionId":"once""#), "{changed}");
    }
    // What says nothing new changes nothing.
    let mut live = Live::busy();
    live.says(PERMISSION).forget();
    live.says(&change(json!({"status":"pending","title":"touch x","kind":"execute"})));
    assert!(!live.events().iter().any(|event| event.starts_with("request")));
}

#[test]
fn what_runs_unasked_is_told() {
    let call = |status: &str| {
        update(json!({"sessionUpdate":"tool_call","toolCallId":"t","status":status,"title":"rm x",
            "kind":"execute","rawInput":{"command":"rm x"}}))
    };
    for status in ["in_progress", "completed"] {
        let mut live = Live::busy();
        live.says(&call(status));
        let unasked = std::mem::take(&mut live.seen.unasked);
        let input = unasked[0].input.as_ref().map(|input| input.get().to_owned());
        assert_eq!(input.as_deref(), Some(r#"{"command":"rm x"}"#));
        assert_eq!((unasked.len(), unasked[0].tool_name.as_deref()), (1, None));
    }
    for status in ["pending", "failed"] {
        let mut live = Live::busy();
        live.says(&call(status));
        assert!(live.seen.unasked.is_empty(), "{status}");
    }
    // It was asked about, and runs as it was asked for.
    let done =
        update(json!({"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}));
    let mut live = Live::busy();
    live.says(PERMISSION).does(json!({"command":"settle","requestId":"t:0","behavior":"allow"}));
    live.says(&done);
    assert!(live.seen.unasked.is_empty());
    // It did not wait for the answer, or runs as something else.
    let mut live = Live::busy();
    live.says(PERMISSION).says(&done);
    assert_eq!(live.seen.unasked.len(), 1);
    let other =
        update(json!({"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress",
        "locations":[{"path":"/etc/x"}]}));
    let mut live = Live::busy();
    live.says(PERMISSION).does(json!({"command":"settle","requestId":"t:0","behavior":"allow"}));
    live.says(&other);
    assert_eq!(live.seen.unasked.len(), 1);
}

/// Gemini tells its tools by the ids of their calls; a server's tool is never one of Gemini's own.
#[test]
fn a_servers_tool_is_never_the_agents_own() {
    for (id, title, kind, name) in [
        ("read_file__read_file_1_0", "a.txt", "read", Some(("read_file", "read"))),
        (
            "mcp_s_read_file__mcp_s_read_file_1_0",
            "read_file",
            "read",
            Some(("mcp_s_read_file", "mcp")),
        ),
        ("mcp_s_a__b__mcp_s_a__b_1_0", "read_file", "read", Some(("mcp_s_a__b", "mcp"))),
        ("mcp_s_add__mcp_s_add_1_0", "add (s MCP Server)", "execute", Some(("add", "mcp"))),
        ("read_file__other_1_0", "read_file", "read", None),
    ] {
        let mut live = Live::start(GEMINI, json!({}), None);
        live.says(GEMINI_CLI).says(OPENED).does(json!({"command":"prompt","prompt":"hi"})).forget();
        live.says(&update(
            json!({"sessionUpdate":"tool_call","toolCallId":id,"status":"in_progress",
            "title":title,"kind":kind}),
        ));
        let started = &live.seen.events[0];
        match name {
            Some((name, kind)) => {
                assert_eq!((&started["toolName"], &started["kind"]), (&json!(name), &json!(kind)));
                assert!(live.seen.unasked[0].tool_name.is_some());
            }
            // Its title is all there is, and that is no name.
            None => assert!(live.seen.unasked[0].tool_name.is_none()),
        }
    }
}

/// What Gemini would run by itself it asks about, so that rules hold.
#[test]
fn gemini_is_given_rules_by_which_it_asks() {
    let file = |blocked: Value| {
        let config = json!({"workingDirectory":"/w","blockedTools":blocked});
        let config: SessionConfig = serde_json::from_value(config).expect("a config");
        let start = Start {
            config: &config,
            resume: None,
            fork: false,
            native_session_id: None,
            prompt: None,
        };
        let launch = GEMINI.launch(&start).expect("a launch");
        String::from_utf8(launch.files["ask.toml"].clone()).expect("text")
    };
    let plain = file(json!(["Bash", "Edit(src/**)", "mcp__s", "write_file"]));
    assert_eq!(plain, file(json!([])));
    assert!(plain.contains("\"complete_task\", ") && plain.contains("decision = \"allow\""));
    assert!(plain.contains("toolName = \"run_shell_command\"\ndecision = \"ask_user\""));
    for rule in ["Read", "Read(.env)", "read_file", "Grep", "WebFetch", "google_web_search", "Task"]
    {
        let all = file(json!(["Bash", rule]));
        assert!(all.contains("toolName = \"*\"\ndecision = \"ask_user\""), "{rule}");
        assert!(!all.contains("decision = \"allow\""), "{rule}");
        assert!(all.contains("toolName = \"invoke_agent\"\ndecision = \"deny\""), "{rule}");
    }
}

/// Beyond what can be kept open, a request is denied at once: nobody would answer it.
#[test]
fn too_many_requests_are_denied() {
    let mut live = Live::busy();
    for id in 0..1025 {
        let line = PERMISSION.replacen("\"id\":0", &format!("\"id\":{id}"), 1);
        live.says(&line.replace("\"t\"", &format!("\"t{id}\"")));
    }
    let raised = live.seen.events.iter().filter(|event| event["type"] == "requestRaised").count();
    assert_eq!(raised, 1024);
    assert_eq!(live.seen.events.last().expect("an event")["code"], "overloaded");
    let written = live.stdin();
    assert_eq!(written.len(), 1, "{written:?}");
    let answer: Value = serde_json::from_str(&written[0]).expect("JSON");
    assert_eq!((&answer["id"], answer["error"].is_object()), (&json!(1024), true), "{answer}");
}
