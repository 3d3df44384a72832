//! The gateway decides: rules, modes and "always" apply whatever the program would do by itself.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Place;
use crate::mcp;

const MODES: [&str; 4] = ["ask", "askDangerous", "autoEdit", "autoAll"];

/// User settings of Claude with which, without the gateway, it would ask about none of the calls below and
/// run no hooks from settings files.
const LAX: &str =
    r#"{"permissions":{"allow":["Write","Edit","Bash","Read"]},"disableAllHooks":true}"#;

/// Blocked calls run in no mode. If a rule cannot be enforced for a program, it does not start.
pub(crate) fn blocked(place: &mut Place) {
    let words = place.agent.words;
    let settings = place.home().join(".claude/settings.json");
    if place.agent.kind == "claude" {
        fs::create_dir_all(place.home().join(".claude")).expect("a directory");
        fs::write(&settings, LAX).expect("a file");
    }
    for mode in MODES {
        let work = place.workspace();
        let (file, secret) = (work.join("blocked.txt"), work.join("secret.txt"));
        fs::write(&secret, "made-up-secret").expect("a file");
        for (rule, call) in [
            ("Edit", (words.write)(&file, "x")),
            ("Bash", (words.shell)("touch blocked.txt")),
            ("Read(secret.txt)", (words.read)(&secret)),
        ] {
            // Codex reads files with commands, to which the rules for commands apply.
            if place.agent.kind == "codex"
                && place.agent.driver != "exec"
                && rule.starts_with("Read")
            {
                continue;
            }
            let config = json!({ "approvalMode": mode, "blockedTools": [rule] });
            let script = format!("{} [[say it gave {{result}}]]", call.step());
            let body = place.request(&work, &script, config);
            let started = match place.ask("POST", "/v1/sessions", &body) {
                Ok(started) => started,
                Err(problem) => {
                    super::rules::names(&problem, rule);
                    continue;
                }
            };
            let id = started["id"].as_str().expect("an id");
            let mut talk = crate::talk::Talk::new(place, id);
            talk.ended();
            assert!(
                talk.has_stopped_call(),
                "{mode}, {rule}: nothing was tried; {}",
                talk.digest()
            );
            assert!(!file.exists(), "{mode}, {rule}: it ran; {}", talk.digest());
            let told = talk.text();
            assert!(!told.contains("made-up-secret"), "{mode}, {rule}: {told}");
            talk.stop();
        }
    }
    let _ = fs::remove_file(&settings);
    if place.agent.kind == "claude" {
        unasked(place);
    }
}

/// In Claude's mode `dontAsk`, calls that a rule allows run, and no others.
fn unasked(place: &mut Place) {
    let work = place.workspace();
    let call = |command: &str| (place.agent.words.shell)(command).step();
    let (allowed, other) = (call("touch allowed.txt"), call("touch other.txt"));
    let config = json!({
        "permissionMode": "dontAsk",
        "allowedTools": ["Bash(touch allowed.txt)"],
    });
    let mut talk = place.session(&work, &format!("{allowed} {other} [[say over]]"), config);
    talk.completed();
    assert!(work.join("allowed.txt").exists(), "{}", talk.digest());
    assert!(!work.join("other.txt").exists(), "{}", talk.digest());
}

/// The gateway decides what a mode allows: in the mode that allows edits, a protected file and a deletion
/// are asked about.
pub(crate) fn protected(place: &mut Place) {
    let work = place.workspace();
    let words = place.agent.words;
    fs::create_dir_all(work.join(".vscode")).expect("a directory");
    fs::write(work.join("kept.txt"), "x").expect("a file");
    let edit = (words.write)(&work.join("plain.txt"), "x");
    let protected = (words.write)(&work.join(".vscode/tasks.json"), "{}");
    let remove = (words.shell)("rm kept.txt");
    let script = format!("{} {} {} [[say over]]", edit.step(), protected.step(), remove.step());
    let mut talk = place.session(&work, &script, json!({ "approvalMode": "autoEdit" }));
    for _ in 0..2 {
        let id = open_request(&mut talk);
        talk.settle(&id, &json!({ "behavior": "deny", "message": "no" }));
    }
    talk.completed();
    assert!(work.join("plain.txt").exists(), "{}", talk.digest());
    assert!(!work.join(".vscode/tasks.json").exists(), "{}", talk.digest());
    assert!(work.join("kept.txt").exists(), "{}", talk.digest());
    if place.agent.kind == "codex" {
        super::rules::patches(place);
    }
}

/// "Always" covers only the call that was shown.
pub(crate) fn always(place: &mut Place) {
    let work = place.workspace();
    let words = place.agent.words;
    fs::write(work.join("kept.txt"), "x").expect("a file");
    let (first, other) = (work.join("first.txt"), work.join("other.txt"));
    let write = (words.write)(&first, "x");
    let script = format!("{} [[say made]]", write.step());
    let mut talk = place.session(&work, &script, json!({ "approvalMode": "ask" }));
    let id = open_request(&mut talk);
    talk.settle(&id, &json!({ "behavior": "allow", "remember": "session" }));
    talk.completed();
    assert!(first.exists(), "{}", talk.digest());
    for call in [(words.write)(&other, "x"), (words.shell)("rm kept.txt")] {
        talk.prompt(&format!("{} [[say understood]]", call.step()));
        let id = open_request(&mut talk);
        talk.settle(&id, &json!({ "behavior": "deny", "message": "no" }));
        talk.completed();
    }
    assert!(!other.exists() && work.join("kept.txt").exists(), "{}", talk.digest());
    if place.agent.kind == "codex" {
        super::rules::same_command(place);
    }
}

/// "Always" for a command or an MCP tool covers only that one: the next is asked about again.
pub(crate) fn always_one_call(place: &mut Place) {
    let words = place.agent.words;
    let own = std::env::current_exe().expect("this program");
    let say = |tool: &str| (words.server_tool)("tiny", tool, json!({ "word": "plum" }));
    for (one, other) in [
        ((words.shell)("touch one.txt"), (words.shell)("touch two.txt")),
        (say("say_back"), say("say_again")),
    ] {
        let work = place.workspace();
        let servers = json!({ "tiny": { "command": own, "args": [mcp::VERB] } });
        let config = json!({ "approvalMode": "ask", "mcpServers": servers });
        let script = format!("{} [[say made]]", one.step());
        let mut talk = place.session(&work, &script, config);
        let id = open_request(&mut talk);
        talk.settle(&id, &json!({ "behavior": "allow", "remember": "session" }));
        talk.completed();
        assert!(!talk.has_stopped_call(), "{} did not run; {}", one.0, talk.digest());
        talk.prompt(&format!("{} [[say understood]]", other.step()));
        let id = open_request(&mut talk);
        talk.settle(&id, &json!({ "behavior": "deny", "message": "no" }));
        talk.completed();
        assert!(!work.join("two.txt").exists(), "{}", talk.digest());
        talk.stop();
    }
}

/// If the sandbox is missing, nothing runs without it.
pub(crate) fn sandbox(place: &mut Place) {
    let work = place.workspace();
    let outside = place.home().join("outside.txt");
    let command = format!("echo x > '{}'", outside.display());
    let call = (place.agent.words.shell)(&command);
    let config = json!({ "approvalMode": "autoAll", "sandboxMode": "workspaceWrite" });
    let body = place.request(&work, &format!("{} [[say over]]", call.step()), config);
    if let Ok(started) = place.ask("POST", "/v1/sessions", &body) {
        let id = started["id"].as_str().expect("an id");
        let mut talk = crate::talk::Talk::new(place, id);
        let end = talk.until("an end", |event| {
            ["turnCompleted", "turnFailed", "sessionEnded"].iter().any(|end| event["type"] == *end)
        });
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has_sandbox = std::env::split_paths(&path).any(|path| path.join("bwrap").exists());
        let is_well = end["type"] == "turnCompleted";
        assert!(!is_well || has_sandbox, "it ran without a sandbox; {}", talk.digest());
    }
    assert!(!outside.exists(), "a command wrote outside of the workspace");
}

/// The id of the next request that the policy leaves open.
fn open_request(talk: &mut crate::talk::Talk<'_>) -> String {
    loop {
        let (_, id) = talk.asked();
        // The policy settles at once, before anybody sees the request.
        let is_settled =
            |event: &Value| event["type"] == "requestSettled" && event["requestId"] == *id;
        if !talk.events.iter().any(is_settled) {
            return id;
        }
    }
}
