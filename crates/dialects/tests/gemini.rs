//! Gemini with stream-json, live: its commands, its ends and its start.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect shall fail"
)]

mod common;

use agentwire_dialects::agent::{AgentDialect, Exit, Setup, Start, Stdin};
use agentwire_dialects::gemini::Gemini;
use agentwire_dialects::tape::{Action, Draft, Signal, Sink, Tape};
use agentwire_protocol::command::Image;
use agentwire_protocol::{
    Call, CommandFrame, ErrorCode, GatewayError, Json, Prompt, SessionConfig,
};
use serde_json::{Value, json};

const USER: &str = r#"{"type":"message","role":"user","content":"hi"}"#;

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    actions: Vec<Action>,
    replies: usize,
}

impl Sink for Seen {
    fn event(&mut self, draft: Draft<'_>) {
        let event = common::stamped(draft, 1);
        self.events.push(serde_json::from_str(&event).expect("an event"));
    }
    fn action(&mut self, action: Action) {
        self.actions.push(action);
    }
    fn reply(&mut self, _: Call, result: Result<Json<'static>, GatewayError>) {
        assert_eq!(result.expect("a reply").get(), "{}");
        self.replies += 1;
    }
}

fn command(tape: &mut Tape, seen: &mut Seen, command: &Value) -> Result<(), GatewayError> {
    let frame = CommandFrame::from_json(&command.to_string()).expect("a command");
    tape.command(Call(1), &frame.command, seen)
}

#[test]
fn commands_are_signals_or_the_next_process() {
    let interrupt = || vec![Action::Signal(Signal::Interrupt)];
    for (line, actions) in [
        (json!({"command":"prompt","prompt":"x"}), vec![]),
        (json!({"command":"prompt","prompt":"x","delivery":"queue"}), vec![]),
        (json!({"command":"prompt","prompt":"x","delivery":"now"}), interrupt()),
        (json!({"command":"interrupt"}), interrupt()),
        (json!({"command":"stop"}), vec![Action::Signal(Signal::Terminate)]),
        (json!({"command":"configure","model":"m","permissionMode":"plan"}), vec![]),
    ] {
        let (mut tape, mut seen) = (Tape::new(&Gemini, &Setup::default()), Seen::default());
        tape.line(USER.as_bytes(), &mut seen);
        command(&mut tape, &mut seen, &line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!((seen.actions, seen.replies), (actions, 1), "{line}");
    }
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let image = json!([{"mediaType":"image/png","data":"A"}]);
    for (line, code, name) in [
        (
            json!({"command":"prompt","prompt":"x","delivery":"steer"}),
            ErrorCode::Unsupported,
            "steer",
        ),
        (
            json!({"command":"prompt","prompt":"x","images":image}),
            ErrorCode::InvalidMessage,
            "base64",
        ),
        (
            json!({"command":"configure","maxThinkingTokens":1}),
            ErrorCode::Unsupported,
            "maxThinkingTokens",
        ),
        (
            json!({"command":"configure","permissionMode":"x"}),
            ErrorCode::Unsupported,
            "permissionMode x",
        ),
        (
            json!({"command":"settle","requestId":"r","behavior":"allow"}),
            ErrorCode::RequestNotFound,
            "r",
        ),
        (
            json!({"command":"query","method":"supportedModels"}),
            ErrorCode::Unsupported,
            "supportedModels",
        ),
        (json!({"command":"rewind","messageId":"m"}), ErrorCode::Unsupported, "rewind"),
        (json!({"command":"attach"}), ErrorCode::Unsupported, "attach"),
    ] {
        let (mut tape, mut seen) = (Tape::new(&Gemini, &Setup::default()), Seen::default());
        let error = command(&mut tape, &mut seen, &line).expect_err("refused");
        assert_eq!((error.code, error.message.contains(name)), (code, true), "{error}");
        assert_eq!((seen.actions.len(), seen.replies), (0, 0));
    }
}

#[test]
fn a_process_ends_in_many_ways() {
    for (lines, exit, reason, error) in [
        (&[USER][..], Exit::Code(0), "interrupted", "the run was interrupted"),
        (&[USER], Exit::Signal(15), "interrupted", "the run was interrupted"),
        (&[USER], Exit::Code(1), "died", "the output ended before the result"),
        (&[], Exit::Code(41), "error", "gemini is not signed in"),
        (&[], Exit::Code(42), "error", "gemini did not take the prompt or the session to resume"),
        (&[], Exit::Code(52), "error", "gemini did not take its settings"),
        (&[], Exit::Code(55), "error", "gemini does not trust the folder"),
        (&[], Exit::Code(1), "died", "gemini ended before it began"),
    ] {
        let (mut tape, mut seen) = (Tape::new(&Gemini, &Setup::default()), Seen::default());
        tape.start(&mut seen);
        command(&mut tape, &mut seen, &json!({"command":"prompt","prompt":"hi"})).expect("taken");
        for line in lines {
            tape.line(line.as_bytes(), &mut seen);
        }
        // The next prompt is the next process's.
        if !lines.is_empty() {
            command(&mut tape, &mut seen, &json!({"command":"prompt","prompt":"2"}))
                .expect("taken");
        }
        tape.end(exit, &mut seen);
        let types: Vec<_> =
            seen.events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["turnStarted", "turnFailed"], "{exit:?}");
        assert_eq!(seen.events[0]["prompt"], "hi");
        assert_eq!(seen.events[1]["reason"], reason, "{exit:?}");
        assert_eq!(seen.events[1]["error"], error, "{exit:?}");
    }
}

/// The error of the specification is told once; the process's end closes the turn.
#[test]
fn an_error_of_the_specification_fails_the_turn_once() {
    let error = r#"{"type":"error","status":"error","error":{"code":"C","message":"why"}}"#;
    let bare = r#"{"type":"result","status":"error","stats":{"total_tokens":7}}"#;
    for (lines, tokens) in [(&[error][..], None), (&[error, bare], Some(7))] {
        let (mut tape, mut seen) = (Tape::new(&Gemini, &Setup::default()), Seen::default());
        tape.start(&mut seen);
        for line in [USER].iter().chain(lines) {
            tape.line(line.as_bytes(), &mut seen);
        }
        tape.end(Exit::Code(1), &mut seen);
        let types: Vec<_> = seen.events.iter().map(|event| &event["type"]).collect();
        assert_eq!(types, ["turnStarted", "error", "turnFailed"]);
        let failed = &seen.events[2];
        assert_eq!((&failed["error"], &failed["errorType"]), (&json!("why"), &json!("C")));
        assert_eq!(failed["reason"], "error");
        assert_eq!(failed["usage"]["totalTokens"].as_u64(), tokens);
    }
}

/// What is remembered of an open call is bounded.
#[test]
fn long_texts_of_an_open_call_are_not_kept() {
    let long = "y".repeat((64 << 10) + 1);
    for (name, input, is_kept) in [
        ("write_file", json!({"file_path":"/a","content":"y"}), true),
        ("write_file", json!({"file_path":"/a","content":long}), false),
        ("replace", json!({"file_path":"/a","old_string":"x","new_string":"y"}), true),
        ("replace", json!({"file_path":"/a","old_string":long,"new_string":"y"}), false),
    ] {
        let (mut tape, mut seen) = (Tape::new(&Gemini, &Setup::default()), Seen::default());
        let call = json!({"type":"tool_use","tool_name":name,"tool_id":"t","parameters":input});
        let result = json!({"type":"tool_result","tool_id":"t","status":"success"});
        for line in [call, result] {
            tape.line(line.to_string().as_bytes(), &mut seen);
        }
        let changed = seen.events.last().expect("an event");
        assert_eq!((&changed["type"], &changed["filePath"]), (&json!("fileChanged"), &json!("/a")));
        assert_eq!(changed["after"].is_string() || changed["diff"].is_string(), is_kept, "{name}");
    }
}

fn launch(config: Value, resume: Option<&str>, id: Option<&str>) -> Result<String, String> {
    let config: SessionConfig = serde_json::from_value(config).expect("a config");
    let prompt = Some(&Prompt::text("--help"));
    let start = Start { config: &config, resume, fork: false, native_session_id: id, prompt };
    let launch = Gemini.launch(&start).map_err(|error| error.message)?;
    assert_eq!(launch.stdin, Stdin::Text("--help".to_owned()));
    assert_eq!(launch.env["GEMINI_CLI_NO_RELAUNCH"], "1");
    let flags = launch.shown_args().join(" ");
    let fixed = "--output-format=stream-json --skip-trust ";
    Ok(flags.strip_prefix(fixed).expect("the fixed flags").to_owned())
}

/// They are files of the workspace for as long as the turn lasts, and the prompt names them; what the
/// client said is the turn's prompt all the same.
#[test]
fn images_are_files_that_the_prompt_names() {
    let image =
        |kind: &str, data: &str| Image { media_type: kind.to_owned(), data: data.to_owned() };
    let images = vec![image("image/png", "/w=="), image("image/webp", "")];
    let prompt = Prompt { images, ..Prompt::text("What is it?") };
    let config = SessionConfig::default();
    let start = Start {
        config: &config,
        resume: None,
        fork: false,
        native_session_id: None,
        prompt: Some(&prompt),
    };
    let launch = Gemini.launch(&start).expect("a launch");
    assert_eq!(launch.stdin, Stdin::Text("What is it?".to_owned()));
    let named = "--prompt=@{escaped:image-1.png} @{escaped:image-2.webp}";
    assert_eq!(launch.shown_args()[3..], ["--include-directories={file:}", named]);
    let files: Vec<_> = launch.files.into_iter().collect();
    let expected = [("image-1.png", vec![0xff]), ("image-2.webp", Vec::new())];
    assert_eq!(files, expected.map(|(name, bytes)| (name.to_owned(), bytes)));

    let (mut tape, mut seen) = (Tape::new(&Gemini, &Setup::default()), Seen::default());
    let sent = json!({"command":"prompt","prompt":"What is it?","images":[{"mediaType":"image/png","data":"/w=="}]});
    command(&mut tape, &mut seen, &sent).expect("taken");
    let echo = json!({"type":"message","role":"user","content":"What is it?\n\n\n@/run/launch-1/image-1.png"});
    tape.line(echo.to_string().as_bytes(), &mut seen);
    assert_eq!(seen.events.last().expect("an event")["prompt"], "What is it?");
}

#[test]
fn options_become_flags_and_values_never_do() {
    for (config, flags) in [
        (json!({}), "--approval-mode=default"),
        (json!({"approvalMode":"ask"}), "--approval-mode=default"),
        (json!({"approvalMode":"askDangerous"}), "--approval-mode=default"),
        (json!({"approvalMode":"autoEdit"}), "--approval-mode=auto_edit"),
        (json!({"approvalMode":"autoAll"}), "--approval-mode=yolo"),
        (json!({"permissionMode":"plan","approvalMode":"autoAll"}), "--approval-mode=plan"),
        (json!({"permissionMode":"bypassPermissions"}), "--approval-mode=yolo"),
        (json!({"model":"--yolo"}), "--approval-mode=default --model=--yolo"),
        (json!({"sandboxMode":"none"}), "--approval-mode=default"),
        (json!({"sandboxMode":"fullAccess"}), "--approval-mode=default"),
        (json!({"sandboxMode":"workspaceWrite"}), "--approval-mode=default --sandbox"),
        (
            json!({"additionalDirectories":["-d"]}),
            "--approval-mode=default --include-directories=-d",
        ),
        (json!({"blockedTools":[],"maxTurns":1,"maxBudgetUsd":1.0}), "--approval-mode=default"),
    ] {
        assert_eq!(launch(config, None, None).as_deref(), Ok(flags));
    }
    let default = "--approval-mode=default";
    assert_eq!(launch(json!({}), Some("-r"), Some("i")), Ok(format!("{default} --resume=-r")));
    assert_eq!(launch(json!({}), None, Some("-i")), Ok(format!("{default} --session-id=-i")));
}

#[test]
fn options_that_cannot_be_taken_are_refused_by_name() {
    for (config, name) in [
        (json!({"sandboxMode":"readOnly"}), "sandboxMode readOnly"),
        (json!({"permissionMode":"x"}), "permissionMode x"),
        (
            json!({"systemPrompt":{"type":"preset","preset":"claude_code","append":"x"}}),
            "systemPrompt with append",
        ),
        (json!({"maxThinkingTokens":1}), "maxThinkingTokens"),
        (json!({"enableFileCheckpointing":true}), "enableFileCheckpointing"),
        (json!({"mcpServers":{}}), "mcpServers"),
        (json!({"agents":{}}), "agents"),
        (json!({"sandbox":{}}), "sandbox"),
        (json!({"settingSources":[]}), "settingSources"),
        (json!({"betas":[]}), "betas"),
        (json!({"outputFormat":{"type":"json_schema","schema":{}}}), "outputFormat"),
        (json!({"fallbackModel":"x"}), "fallbackModel"),
        // It never asks, so nobody could apply them.
        (json!({"blockedTools":["Edit","Bash(rm:*)"]}), "the rule Edit in blockedTools"),
        (json!({"allowedTools":["Bash(ls)"]}), "the rule Bash(ls) in allowedTools"),
    ] {
        let error = launch(config, None, None).expect_err(name);
        assert!(error.contains(name), "{error}");
    }
}
