//! `ls`, `show`, `wait` and `prune`.

use std::process::Stdio;

use agentwire_protocol::{Command, SessionState, SessionSummary, Settlement};
use serde_json::{Value, json};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};

fn ids(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().expect("a list");
    sessions.iter().map(|session| session["id"].as_str().expect("an id")).collect()
}

#[test]
fn ls_says_that_there_is_nothing() {
    let home = EngineHome::new();
    let output = home.run(&["ls"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(error(&output).contains("no sessions yet"), "{}", error(&output));
    assert_eq!(home.json(&["ls", "--json"]), json!({"sessions": []}));
}

#[test]
fn ls_shows_what_runs_first_then_the_newest() {
    let home = EngineHome::new();
    let old = home.ended("/say \u{1b}[31mred\u{202e} old");
    let hub = home.hub();
    let live = home.start(&hub, "/bash true");
    home.runtime.block_on(live.until(|now| now.state == SessionState::WaitingPermission));
    let failed = home.ended("/fail no good");

    let list = home.json(&["ls", "--json"]);
    assert_eq!(ids(&list), [live.id().as_str(), failed.as_str(), old.as_str()]);
    for session in list["sessions"].as_array().expect("a list") {
        serde_json::from_value::<SessionSummary>(session.clone()).expect("a summary");
    }
    let text = home.told(&["ls"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("STATE") && lines.len() == 4, "{text}");
    assert!(lines[1].starts_with("● ") && lines[1].contains("needs permission"), "{text}");
    assert!(lines[3].contains(&old.as_str()[..8]), "{text}");
    assert!(lines[3].contains(r"\x1b[31mred\u{202e} old"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");

    let output = home.run(&["ls", "--limit", "2"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    assert!(error(&output).contains("--all"), "{}", error(&output));
    assert_eq!(ids(&home.json(&["ls", "--all", "--json"])).len(), 3);
    let output = home.run(&["ls", "-n", "0"]);
    assert!(output.stdout.is_empty());
    assert!(error(&output).contains("showing the last 0; --all"), "{}", error(&output));
    // The name that `--driver` accepts.
    assert_eq!(list["sessions"][0]["driver"], "stream-json");
    home.runtime.block_on(hub.shutdown());
}

/// `name` works on a session of another process, and `ls` finds it by what it is called.
#[test]
fn name_says_what_ls_finds() {
    let home = EngineHome::new();
    let old = home.ended("/say old");
    let hub = home.hub();
    let live = home.start(&hub, "/bash true");
    home.runtime.block_on(live.until(|now| now.state == SessionState::WaitingPermission));
    let id = live.id().as_str();
    let named =
        home.json(&["name", id, "The\u{1b} one", "--tag", "x", "--tag", "y z", "--pin", "--json"]);
    assert_eq!((&named["title"], &named["pinned"]), (&json!("The one"), &json!(true)));
    assert_eq!(named["tags"], json!(["x", "y z"]));
    let text = home.told(&["ls", "the", "ONE"]);
    assert!(text.contains("★ The one #x #y z") && text.lines().count() == 2, "{text}");
    assert_eq!(ids(&home.json(&["ls", "--state", "ended", "--json"])), [old.as_str()]);
    assert_eq!(ids(&home.json(&["ls", "--sort", "pinned", "--json"])), [id, old.as_str()]);
    home.told(&["name", id, "--untag", "x", "--unpin", "--no-title"]);
    let shown = home.json(&["show", id, "--json"]);
    assert_eq!((&shown["title"], &shown["pinned"]), (&json!("/bash true"), &json!(false)));
    assert_eq!(shown["tags"], json!(["y z"]));
    let output = home.run(&["ls", "nothing"]);
    assert!(output.stdout.is_empty() && error(&output).contains("no session fits"));
    home.runtime.block_on(hub.shutdown());
}

#[test]
fn search_and_usage_read_the_log_of_this_machine() {
    let home = EngineHome::new();
    let first = home.ended("/say a serendipitous day");
    home.ended("/say \u{1b}[31mserendipitous");
    let text = home.told(&["search", "serendipitous", "day"]);
    assert!(
        text.starts_with(&first.as_str()[..8]) && text.contains("a serendipitous day"),
        "{text}"
    );
    assert!(!home.told(&["search", "serendipitous"]).contains('\u{1b}'));
    let found = home.json(&["search", "serendip*", "-n", "1", "--json"]);
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1));
    assert!(found["next"].is_string(), "{found}");
    std::fs::write(home.data().join("index.db"), "damaged".repeat(4096)).expect("a file");
    let output = home.run(&["search", "serendipitous"]);
    assert!(error(&output).contains("--rebuild"), "{}", error(&output));
    home.run(&["search", "--rebuild"]);
    assert!(home.told(&["search", "serendipitous", "day"]).contains("a serendipitous day"));
    assert!(error(&home.run(&["search", "nowhere"])).contains("nothing found"));
    let table = home.told(&["usage", "--by", "agent"]);
    assert!(table.lines().count() == 1 && table.contains("demo"), "{table}");
    assert_eq!(home.json(&["usage", "--json", "--since", "7d"])["rows"][0]["turns"], 2);
}

#[test]
fn show_tells_what_is_asked_and_how_to_go_on() {
    let home = EngineHome::new();
    let hub = home.hub();
    let live = home.start(&hub, "/bash echo 'one two' && echo three");
    home.runtime.block_on(live.until(|now| now.open_requests > 0));
    let prefix = &live.id().as_str()[..6];

    let text = home.told(&["show", prefix]);
    for word in [live.id().as_str(), "needs permission", "Bash", "echo 'one two' && echo three"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let shown = home.json(&["show", prefix, "--json"]);
    assert_eq!(shown["requests"][0]["type"], "requestRaised");
    assert_eq!(shown["requests"][0]["toolName"], "Bash");
    assert_eq!(shown["config"]["workingDirectory"], shown["workingDirectory"]);
    // The versions that it ran with are stored.
    let listed = &home.json(&["ls", "--json"])["sessions"][0];
    for told in [&shown, listed] {
        assert_eq!(told["gatewayVersion"], env!("CARGO_PKG_VERSION"), "{told}");
        assert!(told["agentVersion"].is_string(), "{told}");
    }
    home.runtime.block_on(hub.shutdown());

    let text = home.told(&["show", prefix]);
    assert!(
        text.contains(&format!("agentwire run --resume {}", &live.id().as_str()[..8])),
        "{text}"
    );
    assert!(!text.contains("waits:"), "{text}");
    assert_eq!(home.json(&["show", prefix, "--json"])["requests"], json!([]));
}

#[test]
fn a_session_that_is_not_there_is_named() {
    let home = EngineHome::new();
    for verb in ["show", "export", "wait"] {
        let output = home.run(&[verb, "beef0000"]);
        assert_eq!(code(&output), Some(2), "{verb}");
        assert!(error(&output).contains("there is no session beef0000"), "{}", error(&output));
    }
}

#[test]
fn wait_follows_a_session_of_another_process() {
    let home = EngineHome::new();
    let hub = home.hub();
    let live = home.start(&hub, "/bash true\n/say done");
    let id = live.id().as_str();

    assert!(home.told(&["wait", id, "--for", "request"]).contains("needs permission"));
    let output = home.run(&["wait", id, "--timeout", "0.2"]);
    assert_eq!(code(&output), Some(1));
    assert!(
        error(&output).contains("within 0.2 s (state: needs permission)"),
        "{}",
        error(&output)
    );

    let mut waiting = home.command(&["wait", id, "--json"]);
    let waiting = waiting.stdout(Stdio::piped()).spawn().expect("the program starts");
    home.runtime.block_on(async {
        let record = hub.record(live.id()).await.expect("a record");
        let request = record.open.requests.keys().next().expect("a request").as_str();
        live.send(Command::Settle(Settlement::allow(request))).await.expect("it is settled");
    });
    let output = waiting.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["sessions"][0]["state"], "idle");

    let mut waiting = home.command(&["wait", id, "--for", "ended"]);
    let mut waiting = waiting.stdout(Stdio::null()).spawn().expect("the program starts");
    home.runtime.block_on(hub.shutdown());
    assert!(waiting.wait().expect("it ends").success());
    let output = home.run(&["wait", id, "--for", "request"]);
    assert_eq!(code(&output), Some(1));
    assert!(error(&output).contains("has ended"), "{}", error(&output));
}

#[test]
fn wait_tells_what_failed() {
    let home = EngineHome::new();
    let good = home.ended("/say fine");
    let bad = home.ended("/fail no good");
    assert_eq!(code(&home.run(&["wait", good.as_str()])), Some(0));
    let output = home.run(&["wait", good.as_str(), bad.as_str()]);
    assert_eq!(code(&output), Some(1));
    let told = error(&output);
    assert!(told.contains(&bad.as_str()[..8]) && !told.contains(&good.as_str()[..8]), "{told}");

    let hub = home.hub();
    let dead = home.start(&hub, "/exit 7");
    home.runtime.block_on(dead.ended());
    let output = home.run(&["wait", dead.id().as_str(), "--for", "ended"]);
    assert_eq!(code(&output), Some(1));
    assert!(error(&output).contains("failed"), "{}", error(&output));
    home.runtime.block_on(hub.shutdown());
}

/// A session whose process was killed is reported as lost, not waited for forever.
#[test]
fn wait_sees_that_nobody_runs_the_session_any_more() {
    let home = EngineHome::new();
    let mut run = home.command(&["run", "-a", "demo", "/hang"]);
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let id = loop {
        let list = home.json(&["ls", "--json"]);
        match ids(&list).first() {
            Some(id) => break (*id).to_owned(),
            None => std::thread::yield_now(),
        }
    };
    let mut waiting = home.command(&["wait", &id, "--for", "ended"]);
    let waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    run.kill().expect("it is killed");
    run.wait().expect("it ends");
    let output = waiting.wait_with_output().expect("it ends");
    assert_eq!(code(&output), Some(1));
    // Lost if `wait` started before the kill, closed as failed if it started after.
    let told = error(&output);
    assert!(told.contains("was lost") || told.contains("agentwire ended"), "{told}");
    assert_eq!(home.json(&["ls", "--json"])["sessions"][0]["reason"], "failed");
}

#[test]
fn prune_forgets_what_is_over_and_nothing_else() {
    let home = EngineHome::new();
    let old: Vec<_> = (0..3).map(|number| home.ended(&format!("/say {number}"))).collect();
    let hub = home.hub();
    let live = home.start(&hub, "/bash true");
    home.runtime.block_on(live.until(|now| now.open_requests > 0));
    let conversation = |id: &str| home.data().join("demo").join(format!("{id}.jsonl"));
    assert!(old.iter().all(|id| conversation(id.as_str()).exists()));

    // All sessions are too recent.
    assert_eq!(home.json(&["prune", "--yes", "--json"])["sessions"], json!([]));
    // There is no terminal to ask on.
    let output = home.run(&["prune", "--older-than", "0s"]);
    assert_eq!(code(&output), Some(2));
    assert!(error(&output).contains("--yes"), "{}", error(&output));
    let dry = home.run(&["prune", "--keep", "1", "--dry-run"]);
    let listed = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(listed.contains(old[0].as_str()) && listed.contains(old[1].as_str()), "{listed}");
    assert!(!listed.contains(old[2].as_str()) && !listed.contains(live.id().as_str()), "{listed}");
    assert!(error(&dry).contains("would delete 2 sessions"), "{}", error(&dry));
    assert_eq!(ids(&home.json(&["ls", "--json"])).len(), 4);

    let told = home.json(&["prune", "--keep", "1", "--yes", "--json"]);
    assert_eq!(told["pruned"], 2);
    assert!(told["bytes"].as_u64().expect("a size") > 1000);
    assert_eq!(ids(&home.json(&["ls", "--json"])), [live.id().as_str(), old[2].as_str()]);
    assert!(!conversation(old[0].as_str()).exists() && conversation(old[2].as_str()).exists());

    assert_eq!(home.json(&["prune", "--older-than", "0s", "--yes", "--json"])["pruned"], 1);
    assert_eq!(ids(&home.json(&["ls", "--json"])), [live.id().as_str()]);
    home.runtime.block_on(hub.shutdown());
}
