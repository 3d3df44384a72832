//! Rules and modes apply whatever the agent would do by itself: the gateway decides.

use std::fs;

use serde_json::{Value, json};

use crate::agents::Call;
use crate::harness::{Place, of};
use crate::mcp;
use crate::talk::Talk;

/// With this rule, the call is denied, or the session does not start and the refusal names the rule.
fn denies(place: &Place, mut config: Value, rule: &str, call: &Call) {
    let work = place.workspace();
    fs::write(work.join("kept.txt"), "kept\n").expect("a file");
    config["blockedTools"] = json!([rule]);
    let script = format!("{} [[say after it]]", call.step());
    let body = place.request(&work, &script, config);
    match place.ask("POST", "/v1/sessions", &body) {
        Err(problem) => names(&problem, rule),
        Ok(session) => {
            let mut talk = Talk::new(place, session["id"].as_str().expect("an id"));
            talk.ended();
            assert!(talk.has_stopped_call(), "nothing was tried: {}", talk.digest());
        }
    }
    let left: Vec<String> = fs::read_dir(&work)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name != ".git")
        .collect();
    assert_eq!(left, ["kept.txt"], "the call ran");
}

/// The refusal names the rule that cannot be enforced for the program.
pub(super) fn names(problem: &Value, rule: &str) {
    assert_eq!(problem["code"], "unsupported", "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|told| told.contains(rule)), "{problem}");
}

pub(crate) fn blocked_shell(place: &mut Place) {
    let all = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    for (rule, command) in [("Bash", "rm kept.txt"), ("Bash(rm:*)", "rm -f kept.txt")] {
        denies(place, all.clone(), rule, &(place.agent.words.shell)(command));
    }
}

pub(crate) fn blocked_edit(place: &mut Place) {
    for mode in ["autoEdit", "autoAll"] {
        let call = (place.agent.words.write)("new.txt".as_ref(), "x\n");
        denies(place, json!({ "approvalMode": mode }), "Edit", &call);
    }
}

/// A mode that accepts edits asks before protected files change, and before files are deleted or moved.
pub(crate) fn patches(place: &mut Place) {
    let work = place.workspace();
    fs::write(work.join("old.txt"), "one\n").expect("a file");
    let patch = |body: &str| {
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch");
        Call("apply_patch".to_owned(), json!(patch))
    };
    for call in [
        (place.agent.words.write)(&work.join(".env"), "KEY=1\n"),
        patch("*** Delete File: old.txt"),
        patch("*** Update File: old.txt\n*** Move to: new.txt\n@@\n-one\n+two"),
    ] {
        let script = format!("{} [[say after it]]", call.step());
        let mut talk = place.session(&work, &script, json!({ "approvalMode": "autoEdit" }));
        let (request, id) = talk.asked();
        assert_eq!(request["kind"], "permission", "{request}");
        talk.settle(&id, &json!({ "behavior": "deny" }));
        talk.completed();
        assert!(!work.join(".env").exists() && !work.join("new.txt").exists(), "it ran");
        assert!(work.join("old.txt").exists(), "it was deleted");
    }
}

/// "Always" covers only the command that was shown: the same runs, another is asked about.
pub(crate) fn same_command(place: &mut Place) {
    let work = place.workspace();
    let touch = |name: &str| (place.agent.words.shell)(&format!("touch {name}")).step();
    let script = format!("{} [[say one]]", touch("one.txt"));
    let mut talk = place.session(&work, &script, json!({ "approvalMode": "ask" }));
    let (_, id) = talk.asked();
    talk.settle(&id, &json!({ "behavior": "allow", "remember": "session" }));
    talk.completed();
    fs::remove_file(work.join("one.txt")).expect("it ran");
    talk.prompt(&format!("{} {} [[say two]]", touch("one.txt"), touch("two.txt")));
    let other = |event: &Value| {
        event["type"] == "requestRaised" && event.to_string().contains("touch two.txt")
    };
    let request = talk.until("a question about another command", other);
    assert!(work.join("one.txt").exists(), "the same was asked again: {}", talk.digest());
    assert!(!work.join("two.txt").exists(), "another command ran");
    let id = request["requestId"].as_str().expect("an id");
    talk.settle(id, &json!({ "behavior": "deny" }));
    talk.completed();
    assert!(!work.join("two.txt").exists(), "another command ran");
}

/// No other user of the machine can read the environment of an MCP server from a command line.
pub(crate) fn command_line(place: &mut Place) {
    let work = place.workspace();
    let own = std::env::current_exe().expect("this program");
    let secret = "aw-secret-on-argv";
    let server = json!({ "command": own, "args": [mcp::VERB], "env": { "MCP_KEY": secret } });
    let config = json!({
        "approvalMode": "autoAll",
        "sandboxMode": "fullAccess",
        "mcpServers": { "tiny": server },
    });
    let call = (place.agent.words.server_tool)("tiny", "say_back", json!({ "word": "plum" }));
    let script = format!("{} [[say {{result}}]] [[hang]]", call.step());
    let mut talk = place.session(&work, &script, config);
    talk.until("the tool's end", |event| event["type"] == "toolCompleted");
    let running = of(&work);
    assert!(!running.is_empty(), "nothing runs");
    assert!(running.iter().all(|line| !line.contains(secret)), "{running:?}");
    talk.stop();
}
