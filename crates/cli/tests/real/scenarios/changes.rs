//! Changes to a running session.

use serde_json::json;

use super::turns::last_body;
use crate::harness::Place;

pub(crate) fn model(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[say before the change]]", json!({}));
    talk.completed();
    let other = place.agent.other_model;
    talk.change(&json!({ "model": other }));
    talk.prompt("[[say with the other]]");
    talk.completed();
    let requests = place.models.requests();
    let asked = requests
        .iter()
        .rev()
        .find(|seen| !seen.side && String::from_utf8_lossy(&seen.body).contains("with the other"));
    // A short name may be an alias for a longer one.
    let model = asked.and_then(|seen| seen.model.clone()).unwrap_or_default();
    assert!(model.contains(other), "{model}");
    assert!(last_body(place, "with the other").contains("before the change"));
}

pub(crate) fn mode(place: &mut Place) {
    let work = place.workspace();
    let touch = |name: &str| (place.agent.words.shell)(&format!("touch {name}")).step();
    let config = json!({ "approvalMode": "ask", "sandboxMode": "fullAccess" });
    let mut talk = place.session(&work, &format!("{} [[say one]]", touch("asked.txt")), config);
    let (_, id) = talk.asked();
    talk.settle(&id, &json!({ "behavior": "allow" }));
    talk.completed();
    talk.change(&json!({ "approvalMode": "autoAll" }));
    talk.prompt(&format!("{} [[say two]]", touch("free.txt")));
    talk.completed();
    assert!(work.join("free.txt").exists(), "{}", talk.digest());
    // Gemini reports the change as text of the model, which it is not.
    let said = talk.events.iter().filter_map(|event| event["content"].as_str());
    assert!(!said.collect::<String>().contains("MODE_UPDATE"), "{}", talk.digest());
    let asked = talk.of("requestRaised");
    let settled = talk.of("requestSettled");
    let by_us = settled.iter().filter(|event| event["by"] == "policy").count();
    assert_eq!(asked.len(), by_us, "somebody was asked: {}", talk.digest());
}
