//! The gateway's means to judge calls cannot be removed: not by arguments, variables or files of the
//! machine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::shared::{Answer, Server};

fn start(server: &Server, agent: &str, config: &Value) -> Answer {
    let body = json!({ "agentType": agent, "prompt": "hello", "config": config });
    server.ask("POST", "/v1/sessions", Some(&body))
}

/// Asserts that it is refused with a text that contains these words.
fn refused(answer: &Answer, words: &[&str]) {
    assert_eq!((answer.status, &*answer.code()), (422, "unsupported"), "{words:?}: {answer:?}");
    let told = answer.json()["detail"].as_str().expect("a text").to_owned();
    assert!(words.iter().all(|word| told.contains(word)), "{words:?}: {told}");
}

#[test]
fn arguments_and_variables_that_unguard_claude_are_refused_by_name() {
    let server = Server::with_script("#!/bin/sh\nexit 1\n");
    for args in [
        &["--permission-mode=acceptEdits"][..],
        &["--permission-mode", "bypassPermissions"],
        &["--dangerously-skip-permissions"],
        &["--allowedTools", "Bash"],
        &["--allowed-tools=Bash"],
        &["--output-format=text"],
        &["--input-format", "text"],
        &["--bare"],
        &["--reply-on-resume"],
        &["--inherit-permission-mode=bypassPermissions"],
        &["--sdk-url=wss://localhost/x"],
        &["--sdk-url", "wss://localhost/x"],
        &["--remote"],
        &["--remote-control=name"],
        &["--teleport"],
        &["--channels", "server:x"],
        &["--project-config-root=/x"],
        &["--setting-sources=user,project,local"],
        &["--setting-sources", "project"],
        &["--"],
    ] {
        let name = args[0].split('=').next().expect("a name");
        refused(&start(&server, "claude", &json!({ "nativeArgs": args })), &[name, "nativeArgs"]);
    }
    let tool = ["--permission-prompt-tool=mcp__x__y"];
    for held in [
        json!({ "blockedTools": ["Bash"] }),
        json!({ "approvalMode": "autoEdit" }),
        json!({ "permissionMode": "acceptEdits" }),
    ] {
        let mut config = held.clone();
        config["nativeArgs"] = json!(tool);
        refused(&start(&server, "claude", &config), &["--permission-prompt-tool"]);
    }
    for name in [
        "CLAUDE_CODE_SIMPLE",
        "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS",
        "CLAUDE_CODE_REMOTE_SDK_URL",
    ] {
        refused(&start(&server, "claude", &json!({ "env": { name: "1" } })), &[name, "env"]);
    }
    // Claude judges all others: here it starts, and fails.
    let other = json!({ "nativeArgs": ["--effort=high"], "env": { "LANG": "C" } });
    assert_eq!(start(&server, "claude", &other).status, 201);
}

#[test]
fn arguments_in_the_settings_are_refused_like_those_of_a_session() {
    for (agent, args) in [
        ("claude", "['--dangerously-skip-permissions']"),
        ("codex", "['-c', 'approval_policy=\"never\"']"),
        ("codex", "['-capproval_policy=never']"),
        ("codex", "['--config=sandbox_mode=danger-full-access']"),
        ("codex", "['--yolo']"),
        ("codex", "['--full-auto']"),
        ("codex", "['-s', 'danger-full-access']"),
        ("codex", "['-sdanger-full-access']"),
        ("codex", "['--profile=lax']"),
        ("codex", "['-a', 'never']"),
        ("codex", "['--approve-for-me']"),
        ("codex", "['--dangerously-bypass-hook-trust']"),
        ("codex", "['-C/elsewhere']"),
        ("codex", "['-hVsdanger-full-access']"),
        ("gemini", "['--yolo']"),
        ("gemini", "['-y']"),
        ("gemini", "['-yolo']"),
        ("gemini", "['--y']"),
        ("gemini", "['-dslwxzy']"),
        ("gemini", "['--skip-trust']"),
        ("gemini", "['--approvalMode', 'yolo']"),
        ("gemini", "['--approval-mode=auto_edit']"),
        ("gemini", "['--allowed-tools', 'run_shell_command']"),
        ("gemini", "['--policy=p.toml']"),
        ("gemini", "['-p', 'x']"),
        ("gemini", "['--experimental-acp']"),
    ] {
        let settings = format!("[agents.{agent}]\ncommand = '/no/such/{agent}'\nargs = {args}\n");
        let server = Server::with_settings(&settings);
        refused(&start(&server, agent, &json!({})), &[&format!("[agents.{agent}]")]);
    }
    // Arguments of the launcher are not arguments of the agent.
    let settings = "[agents.gemini]\ncommand = ['/no/such/npx', '-y', 'package']\n\
                    [agents.codex]\nargs = ['-c', 'model_verbosity=low', '-mspecial-pass']\n\
                    command = '/no/such'\n";
    let server = Server::with_settings(settings);
    for agent in ["gemini", "codex"] {
        assert_eq!(start(&server, agent, &json!({})).code(), "agentUnavailable", "{agent}");
    }
}

/// An administrator's files override what agentwire tells an agent.
#[test]
fn files_of_the_machine_that_unguard_are_found() {
    let settings = "[agents.gemini]\ncommand = '/no/such/gemini'\n";
    let server = Server::set_up(&[], settings, |command, place| {
        let file = place.join("system.json");
        std::fs::write(&file, r#"{"adminPolicyPaths":["/x"]}"#).expect("a file");
        command.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", file);
    });
    let blocked = json!({ "blockedTools": ["Bash"] });
    refused(&start(&server, "gemini", &blocked), &["system.json", "the rule Bash"]);
    // Without a rule the agent may run; a warning says what runs unasked.
    assert_eq!(start(&server, "gemini", &json!({})).code(), "agentUnavailable");
}

/// An administrator's policy that allows tools runs them unasked. The client that starts a session sees a
/// warning in its events.
#[test]
fn a_session_begins_with_a_warning_of_a_policy_that_allows() {
    for (text, is_warned) in [(r#"{"adminPolicyPaths":["/p"]}"#, true), ("{}", false)] {
        let settings = "[agents.gemini]\ncommand = \"WORK/../home/gemini\"\n";
        let server = Server::set_up(&[], settings, |command, place| {
            let program = place.join("home/gemini");
            // It exits before it prints anything; the warning is still there.
            fs::write(&program, "#!/bin/sh\nexit 0\n").expect("a file");
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&program, mode).expect("a program");
            let file = place.join("home/system.json");
            fs::write(&file, text).expect("a file");
            command.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", file);
        });
        for mode in ["ask", "askDangerous", "autoEdit", "autoAll"] {
            let config = json!({ "approvalMode": mode });
            let body = json!({ "agentType": "gemini", "prompt": "hi", "config": config });
            let created = server.post("/v1/sessions", &body);
            let session = created["id"].as_str().expect("an id");
            let events = server.until(session, "sessionEnded");
            let warns = |event: &&Value| {
                event["status"] == "warning"
                    && event["message"].as_str().is_some_and(|it| it.contains("system.json"))
            };
            let count = events.iter().filter(warns).count();
            assert_eq!(count == 1, is_warned && mode != "autoAll", "{mode}: {events:?}");
            assert!(count < 2, "{mode}: {events:?}");
        }
        assert_eq!(server.stop(), Some(0));
    }
}
