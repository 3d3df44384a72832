//! Behaviour that only one program has, or that differs between programs.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::endings::{begun, goes_on, interrupted};
use super::sessions::resumed;
use super::turns::last_body;
use crate::harness::{self, PATIENCE, Place, pause};
use crate::talk::Talk;
use crate::trouble::Trouble;

/// No prompt breaks the wire, whatever it contains.
pub(crate) fn hostile(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[say ready]]", json!({}));
    talk.completed();
    let huge = "much ".repeat(100_000);
    let odd = [
        "one\u{2028}two\u{2029}three",
        "nothing \0 and a bell \u{7}",
        "\u{feff}first\r\nthen \u{1b}[31mred\u{1b}[0m",
        "\"}\n{\"type\":\"user\"}\nnull\nthis is no JSON",
        "\u{fffe}\u{10ffff}\u{e000} \u{1f468}\u{200d}\u{1f469}",
        &huge,
    ];
    for (number, text) in odd.iter().enumerate() {
        let answer = format!("outlived {number}");
        talk.prompt(&format!("{text} [[say {answer}]]"));
        talk.completed();
        assert_eq!(talk.text().trim(), answer, "{}", talk.digest());
    }
    // A lone surrogate is refused or replaced.
    let path = format!("/v1/sessions/{}/prompt", talk.id);
    let body = r#"{"prompt":"half \ud83d of it [[say outlived half]]"}"#;
    if let Ok(taken) = place.post_text(&path, body) {
        assert!(taken["messageId"].is_string(), "{taken}");
        talk.completed();
    }
    goes_on(&mut talk);
}

/// A line that the program cannot parse. Some programs ignore it. If the program exits, its error is
/// reported, and the session can be resumed.
pub(crate) fn malformed(place: &mut Place) {
    let program = place.program.display();
    let text = format!(
        "exec bash -c 'exec 3<&0; exec {program} \"$@\" < <(while IFS= read -r line <&3; do \
         case $line in *BREAK-IT*) echo this is no JSON;; esac; printf \"%s\\n\" \"$line\"; \
         done)' bash \"$@\""
    );
    let place = place.with(Trouble::script(&place.scripts(), &text));
    let work = place.workspace();
    let mut talk = place.session(&work, "Remember the fig. [[say I will]]", json!({}));
    talk.completed();
    if place.agent.kind != "claude" {
        talk.prompt("BREAK-IT [[say it was passed over]]");
        talk.completed();
        assert_eq!(talk.text().trim(), "it was passed over", "{}", talk.digest());
        return place.stop_all();
    }
    // It writes its files a little later; if it dies before that, there is nothing to resume.
    let begun = Instant::now();
    while !holds(&place.home().join(".claude/projects"), "I will") {
        assert!(begun.elapsed() < PATIENCE, "nothing is stored of the session");
        pause();
    }
    talk.prompt("BREAK-IT [[say never]]");
    let end = talk.ended();
    assert_eq!((&end["type"], &end["reason"]), (&json!("turnFailed"), &json!("died")), "{end}");
    let error = end["error"].as_str().unwrap_or_default();
    let words = ["exited with code 1", "rror parsing streaming input line"];
    assert!(words.iter().all(|word| error.contains(word)), "{end}");
    talk.next("sessionEnded");
    let mut body = place.request(&work, "[[say back again]]", json!({}));
    body["sessionId"] = json!(talk.id);
    resumed(&place, &body).expect("it continues");
    talk.completed();
    let body = last_body(&place, "back again");
    assert!(body.contains("Remember the fig"), "the model did not receive the earlier turn");
    place.stop_all();
}

/// Whether a file in this directory contains the text.
fn holds(directory: &Path, text: &str) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| match path.is_dir() {
        true => holds(&path, text),
        false => fs::read_to_string(&path).is_ok_and(|found| found.contains(text)),
    })
}

/// The end of a background command starts a turn that nobody asked for.
pub(crate) fn background(place: &mut Place) {
    let work = place.workspace();
    let call = json!({
        "command": "sleep 1; echo over", "description": "A while", "run_in_background": true,
    });
    let script =
        format!("[[tool Bash {call}]] [[say it has begun]] [[stop]] [[say it is over now]]");
    let config = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    let mut talk = place.session(&work, &script, config);
    talk.completed();
    assert!(talk.text().contains("it has begun"), "{}", talk.digest());
    let turn = talk.next("turnStarted");
    assert_eq!(turn["origin"], "agent", "{turn}");
    assert!(turn["prompt"].is_null(), "{turn}");
    talk.completed();
    assert!(talk.text().ends_with("it is over now"), "{}", talk.digest());
    assert_eq!(talk.summary()["state"], "idle");
    goes_on(&mut talk);
}

/// Claude empties the conversation and gives it another id; our session stays the same.
pub(crate) fn cleared(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "Remember the sloe. [[say I will]]", json!({}));
    talk.completed();
    let before = talk.summary()["nativeSessionId"].clone();
    talk.prompt("/clear");
    talk.completed();
    talk.prompt("Remember the medlar. [[say after the clearing]]");
    talk.completed();
    let summary = talk.summary();
    assert_eq!(summary["id"], json!(talk.id));
    assert_ne!(summary["nativeSessionId"], before, "{summary}");
    assert!(!last_body(place, "after the clearing").contains("sloe"), "it remembers");
    let id = talk.id.clone();
    place.restart();
    let mut body = place.request(&work, "[[say after the restart too]]", json!({}));
    body["sessionId"] = json!(id);
    resumed(place, &body).expect("it continues");
    let mut talk = Talk::new(place, &id);
    talk.until("the last turn", |event| {
        event["type"] == "textChunk"
            && event["content"].as_str().is_some_and(|text| text.contains("too"))
    });
    let body = last_body(place, "after the restart too");
    assert!(body.contains("medlar") && !body.contains("sloe"), "another conversation");
}

/// Everything that a command prints is reported, from its first line on.
pub(crate) fn output(place: &mut Place) {
    let work = place.workspace();
    let lines = "echo first-tick; sleep 1; echo second-tick; sleep 1; echo third-tick";
    let call = (place.agent.words.shell)(lines);
    let config = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    let mut talk = place.session(&work, &format!("{} [[say done]]", call.step()), config);
    talk.completed();
    let done = talk.of("toolCompleted");
    let [done] = done[..] else { panic!("not one result: {}", talk.digest()) };
    let told = done["result"].to_string();
    for tick in ["first-tick", "second-tick", "third-tick"] {
        assert!(told.contains(tick), "{tick} is missing: {done}");
    }
}

/// After the program has marked a directory as trusted, a stricter session there is still strict.
pub(crate) fn trusted(place: &mut Place) {
    let work = place.workspace();
    let config = place.home().join(".codex/config.toml");
    let before = fs::read_to_string(&config).expect("a file");
    let touch = |name: &str| (place.agent.words.shell)(&format!("touch {name}")).step();
    let free = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    place.session(&work, &format!("{} [[say one]]", touch("one.txt")), free).completed();
    assert!(work.join("one.txt").exists());
    let after = fs::read_to_string(&config).expect("a file");
    let project = format!("[projects.\"{}\"]", work.display());
    assert!(after.contains(&project) && after.contains("trust_level"), "{after}");
    let kept = before.lines().all(|line| after.contains(line));
    assert!(kept, "what the user wrote is gone: {after}");
    let script = format!("{} [[say two]]", touch("two.txt"));
    let mut talk = place.session(&work, &script, json!({ "approvalMode": "ask" }));
    if place.agent.cannot("allow").is_none() {
        let (_, id) = talk.asked();
        assert!(!work.join("two.txt").exists(), "it ran unasked");
        talk.settle(&id, &json!({ "behavior": "deny", "message": "no" }));
    }
    talk.completed();
    assert!(!work.join("two.txt").exists(), "a trusted directory made it free: {}", talk.digest());
}

/// A program that silently opens another conversation than the one to resume.
pub(crate) fn mistaken(place: &mut Place) {
    // It takes anything that is not a UUID for a name, and starts over if there is no such session.
    let text = format!(
        "is_first=1\nfor word do\n\
         case $word in ????????-????-????-????-????????????) word=sess_unheard-of;; esac\n\
         [ $is_first ] && set -- && is_first=\nset -- \"$@\" \"$word\"\ndone\nexec {} \"$@\"",
        place.program.display()
    );
    let place = place.with(Trouble::script(&place.scripts(), &text));
    let work = place.workspace();
    let mut talk = place.session(&work, "Remember the quince. [[say I will]]", json!({}));
    talk.completed();
    let before = talk.summary()["nativeSessionId"].clone();
    talk.prompt("[[say a new life]]");
    let end = talk.next("sessionEnded");
    assert_eq!(end["reason"], "failed", "{end}");
    assert!(talk.of("turnCompleted").is_empty(), "another conversation: {}", talk.digest());
    let is_told = talk.of("error").iter().any(|event| event["code"] == "resumeFailed");
    assert!(is_told, "{}", talk.digest());
    assert_eq!(talk.summary()["nativeSessionId"], before, "the one to resume is forgotten");
    place.stop_all();
}

/// An item with two ids is reported once, and its line is stored unchanged.
pub(crate) fn two_ids(place: &mut Place) {
    let work = place.workspace();
    let search = r#"{"action":{"type":"search","query":"weather"}}"#;
    let script = format!("[[tool web_search {search}]] [[say found]]");
    let mut talk = place.session(&work, &script, json!({}));
    talk.completed();
    assert_eq!(talk.text().trim(), "found", "{}", talk.digest());
    let (started, done) = (talk.of("toolStarted"), talk.of("toolCompleted"));
    let ([started], [done]) = (&started[..], &done[..]) else { panic!("{}", talk.digest()) };
    assert_eq!(started["toolId"], done["toolId"]);
    let id = started["toolId"].as_str().expect("an id");
    if place.agent.driver == "exec" {
        let line = done["native"][0]["text"].as_str().expect("a line that is not plain JSON");
        assert!(line.matches("\"id\":").count() == 2 && line.contains(id), "{line}");
    }
    talk.stop();
    place.assert_none_left(&work);
}

/// A program that starts another to do the work: signals reach it, and no process is left.
pub(crate) fn launcher(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch begun.txt; sleep 374");
    let mut config = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    if place.agent.kind == "gemini" {
        // agentwire skips its launcher unless the user wants it.
        config["env"] = json!({ "GEMINI_CLI_NO_RELAUNCH": "" });
    }
    let mut talk = place.session(&work, &format!("{} [[say never]]", call.step()), config);
    begun(&work, &mut talk);
    let running = harness::of(&work);
    let sleeps = running.iter().filter(|words| words.contains("sleep 374")).count();
    assert!(running.len() > sleeps + 1, "there is no launcher: {running:?}");
    interrupted(&mut talk);
    goes_on(&mut talk);
    talk.stop();
    place.assert_none_left(&work);
}

/// If the program stops a turn because the model repeats itself, the turn fails and the session continues.
pub(crate) fn repeats(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[repeat 2000 word ]]", json!({}));
    let end = talk.ended();
    assert_eq!((&end["type"], &end["reason"]), (&json!("turnFailed"), &json!("maxTurns")), "{end}");
    goes_on(&mut talk);
    talk.prompt("[[say and on]]");
    talk.completed();
    assert!(last_body(place, "and on").contains("still here"), "the model did not receive it");
}

/// Each exit code ends the turn with its reason.
pub(crate) fn exit_codes(place: &mut Place) {
    // 144, 145, 244: errors of the model's service.
    for (script, name) in [
        ("[[fail 400 TIMES 9 Not so]]", "INVALID_ARGUMENT"),
        ("[[fail 403 TIMES 9 Not you]]", "PERMISSION_DENIED"),
    ] {
        let end = place.session(&place.workspace(), script, json!({})).ended();
        assert_eq!(
            (&end["reason"], &end["errorType"]),
            (&json!("error"), &json!(name)),
            "{script}: {end}"
        );
    }
    // 0 with a failed result: an empty answer.
    let end = place.session(&place.workspace(), "[[stop]]", json!({})).ended();
    assert_eq!((&end["type"], &end["reason"]), (&json!("turnFailed"), &json!("error")), "{end}");
    // 53: the limit on steps in the settings.
    let trouble = Trouble {
        set_up: Some(|home, _, _| {
            crate::trouble::rewrite(&home.join(".gemini/settings.json"), |text| {
                let mut settings: Value = serde_json::from_str(&text).expect("JSON");
                settings["model"] = json!({ "maxSessionTurns": 1 });
                settings.to_string()
            });
        }),
        ..Trouble::default()
    };
    let few = place.with(trouble);
    let read = (few.agent.words.read)(&few.home().join(".gemini/settings.json")).step();
    let end = few.session(&few.workspace(), &format!("{read} {read} [[say x]]"), json!({})).ended();
    assert_eq!((&end["type"], &end["reason"]), (&json!("turnFailed"), &json!("maxTurns")), "{end}");
    few.stop_all();
}
