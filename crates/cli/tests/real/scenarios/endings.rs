//! Turns that are interrupted or stopped.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Place, pause};
use crate::talk::Talk;

pub(crate) fn mid_text(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[slow 50]] [[repeat 2000 word ]]", json!({}));
    if place.agent.has_deltas {
        talk.next("textChunk");
    } else {
        talk.next("turnStarted");
    }
    interrupted(&mut talk);
    goes_on(&mut talk);
    talk.stop();
    place.assert_none_left(&work);
}

pub(crate) fn mid_tool(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch begun.txt; sleep 371");
    let config = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    let mut talk = place.session(&work, &format!("{} [[say never]]", call.step()), config);
    begun(&work, &mut talk);
    interrupted(&mut talk);
    // Processes that the program leaves running are killed while the session lives.
    assert_no_sleep(&work);
    goes_on(&mut talk);
    talk.stop();
    place.assert_none_left(&work);
}

pub(crate) fn asking(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch asked.txt");
    let config = json!({ "approvalMode": "ask" });
    let mut talk = place.session(&work, &format!("{} [[say never]]", call.step()), config);
    let (_, id) = talk.asked();
    talk.post("interrupt", &Value::Null);
    let settled = talk.next("requestSettled");
    assert_eq!(settled["requestId"], json!(id), "{settled}");
    let end = talk.ended();
    assert_eq!(end["reason"], "interrupted", "{end}");
    assert!(!work.join("asked.txt").exists(), "it ran");
    goes_on(&mut talk);
}

pub(crate) fn stop(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch begun.txt; sleep 372");
    let config = json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" });
    let mut talk = place.session(&work, &format!("{} [[say never]]", call.step()), config);
    begun(&work, &mut talk);
    talk.stop();
    place.assert_none_left(&work);
}

pub(super) fn interrupted(talk: &mut Talk<'_>) {
    talk.post("interrupt", &Value::Null);
    let end = talk.ended();
    assert_eq!(end["type"], "turnFailed", "{end}");
    assert_eq!(end["reason"], "interrupted", "{end}");
}

/// The session accepts another prompt.
pub(super) fn goes_on(talk: &mut Talk<'_>) {
    talk.prompt("[[say still here]]");
    talk.completed();
    assert_eq!(talk.text().trim(), "still here", "{}", talk.digest());
}

pub(super) fn begun(work: &std::path::Path, talk: &mut Talk<'_>) {
    talk.next("toolStarted");
    let begun = std::time::Instant::now();
    while !work.join("begun.txt").exists() {
        assert!(
            begun.elapsed() < crate::harness::PATIENCE,
            "the command did not start: {}",
            talk.digest()
        );
        pause();
    }
}

fn assert_no_sleep(work: &std::path::Path) {
    let begun = std::time::Instant::now();
    loop {
        let left = fs::read_dir("/proc").expect("processes").flatten().any(|entry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let is_sleep = words.starts_with(b"sleep\0");
            is_sleep
                && fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(work))
        });
        if !left {
            return;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(15), "the command still runs");
        pause();
    }
}
