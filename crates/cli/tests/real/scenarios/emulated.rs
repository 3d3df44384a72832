//! What the gateway emulates for agents that lack it, or refuses by name.

use serde_json::{Value, json};

use super::turns::last_body;
use crate::harness::Place;

/// Replaces the agent's own.
pub(crate) fn system_prompt(place: &mut Place) {
    system(place, json!("You are the parrot of number 77."));
}

/// Is appended to the agent's own.
pub(crate) fn further_prompt(place: &mut Place) {
    let append = "You are the parrot of number 77.";
    system(place, json!({ "type": "preset", "preset": "claude_code", "append": append }));
}

fn system(place: &Place, prompt: Value) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[say one word]]", json!({ "systemPrompt": prompt }));
    talk.completed();
    assert_eq!(talk.text().trim(), "one word", "{}", talk.digest());
    let body = last_body(place, "one word");
    assert!(body.contains("the parrot of number 77"), "the model did not receive it: {body}");
}

/// If an answer changes a call and the agent does not support that, the original call does not run either.
pub(crate) fn changed_refused(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch original.txt");
    let script = format!("{} [[say understood]]", call.step());
    let mut talk = place.session(&work, &script, json!({ "approvalMode": "ask" }));
    let (request, id) = talk.asked();
    assert_eq!(request["inputIsFixed"], true, "{request}");
    let path = format!("/v1/sessions/{}/requests/{id}", talk.id);
    let input = json!({ "command": "touch changed.txt" });
    let answer = json!({ "behavior": "allow", "updatedInput": input });
    let problem = place.ask("POST", &path, &answer).expect_err("it is not supported");
    assert_eq!(problem["code"], "unsupported", "{problem}");
    assert_eq!(talk.summary()["state"], "waitingPermission");
    talk.settle(&id, &json!({ "behavior": "deny", "message": "as it is, no" }));
    talk.completed();
    assert!(!work.join("original.txt").exists(), "the first input ran");
}
