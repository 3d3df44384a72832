//! The agent's requests, and the effects of the answers.

use serde_json::json;

use crate::harness::Place;

const ASK: &str = "ask";

pub(crate) fn allow(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch allowed.txt");
    let script = format!("{} [[say after it]]", call.step());
    let mut talk = place.session(&work, &script, json!({ "approvalMode": ASK }));
    let (request, id) = talk.asked();
    assert_eq!(request["kind"], "permission", "{request}");
    assert!(!work.join("allowed.txt").exists(), "it ran unasked");
    assert_eq!(talk.summary()["state"], "waitingPermission");
    talk.settle(&id, &json!({ "behavior": "allow" }));
    talk.completed();
    assert!(work.join("allowed.txt").exists(), "{}", talk.digest());
    assert_eq!(talk.text().trim(), "after it", "{}", talk.digest());
}

pub(crate) fn changed(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch original.txt");
    let script = format!("{} [[say after it]]", call.step());
    let mut talk = place.session(&work, &script, json!({ "approvalMode": ASK }));
    let (request, id) = talk.asked();
    let mut input = request["input"].clone();
    input["command"] = json!("touch changed.txt");
    talk.settle(&id, &json!({ "behavior": "allow", "updatedInput": input }));
    talk.completed();
    assert!(work.join("changed.txt").exists(), "{}", talk.digest());
    assert!(!work.join("original.txt").exists(), "the first input ran");
}

pub(crate) fn deny(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch denied.txt");
    let script = format!("{} [[say understood]]", call.step());
    let mut talk = place.session(&work, &script, json!({ "approvalMode": ASK }));
    let (_, id) = talk.asked();
    talk.settle(&id, &json!({ "behavior": "deny", "message": "not today" }));
    talk.completed();
    assert!(!work.join("denied.txt").exists(), "it ran although it was denied");
    assert_eq!(talk.text().trim(), "understood", "{}", talk.digest());
    assert_eq!(talk.of("toolFailed").len(), 1, "{}", talk.digest());
}

pub(crate) fn question(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.question)("Which one?", ["Red", "Blue"]);
    let script = format!("{} [[say you chose {{result}}]]", call.step());
    let config = match place.agent.question_mode {
        Some(mode) => json!({ "permissionMode": mode }),
        None => json!({ "approvalMode": ASK }),
    };
    let mut talk = place.session(&work, &script, config);
    let (request, id) = talk.asked();
    assert_eq!(request["kind"], "question", "{request}");
    assert_eq!(request["questions"][0]["question"], "Which one?", "{request}");
    talk.settle(&id, &json!({ "behavior": "allow", "answers": { "Which one?": "Blue" } }));
    talk.completed();
    assert!(talk.text().contains("Blue"), "{}", talk.digest());
}

/// Without a terminal, `run` denies, reports it and exits with 4, if the agent asks at all.
pub(crate) fn nobody(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("touch unasked.txt");
    let script = format!("{} [[say understood]]", call.step());
    let agent = &place.agent;
    let words =
        ["run", "-a", agent.kind, "--driver", agent.driver, "-m", agent.model, "--approval", ASK];
    let said = place.verb(&work, &[&words[..], &[&script]].concat());
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(!work.join("unasked.txt").exists(), "it ran although nobody could be asked");
    assert_eq!(said.status.code(), Some(4), "{errors}");
}
