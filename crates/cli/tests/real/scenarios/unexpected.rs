//! Surprising behaviour of programs.

use serde_json::{Value, json};

use crate::harness::Place;

/// All prompts that arrive during a turn are accepted, whether the program merges them into one turn or
/// not.
pub(crate) fn queued(place: &mut Place) {
    let work = place.workspace();
    // No word twice: Gemini stops a model that repeats itself.
    let slow =
        "[[slow 80]] [[say while this goes on word by word two further prompts are to come in]]";
    let mut talk = place.session(&work, slow, json!({}));
    talk.next("turnStarted");
    let mut waiting: Vec<String> = Vec::new();
    for text in ["one", "two"] {
        let told = talk.post("prompt", &json!({ "prompt": format!("[[say answer {text}]]") }));
        waiting.push(told["messageId"].as_str().expect("an id").to_owned());
    }
    let names = |event: &Value, id: &str| {
        let in_turn = event["messageIds"].as_array().is_some_and(|ids| ids.contains(&json!(id)));
        in_turn || event["details"]["messageId"] == id
    };
    for id in &waiting {
        if !talk.events.iter().any(|event| names(event, id)) {
            talk.until("word of a prompt", |event| names(event, id));
        }
    }
    let is_asked = || {
        let requests = place.models.requests();
        requests.iter().any(|seen| String::from_utf8_lossy(&seen.body).contains("answer two"))
    };
    let begun = std::time::Instant::now();
    while !is_asked() || talk.summary()["state"] != "idle" {
        assert!(begun.elapsed() < crate::harness::PATIENCE, "a prompt waits: {}", talk.digest());
        crate::harness::pause();
    }
    let body = super::turns::last_body(place, "answer two");
    assert!(body.contains("answer one"), "a prompt was lost");
}

/// A session whose files are gone does not silently become another one.
pub(crate) fn lost(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "Remember the quince. [[say I will]]", json!({}));
    talk.completed();
    talk.stop();
    (place.agent.forget)(&place.home());
    let mut body = place.request(&work, "[[say a new life]]", json!({}));
    body["sessionId"] = json!(talk.id);
    match super::sessions::resumed(place, &body) {
        Err(problem) => assert!(problem["detail"].is_string(), "{problem}"),
        Ok(_) => {
            let end = talk.until("end", |event| {
                event["type"] == "sessionEnded"
                    || event["type"] == "turnFailed"
                    || event["type"] == "turnCompleted"
            });
            assert_ne!(end["type"], "turnCompleted", "another conversation: {}", talk.digest());
        }
    }
}
