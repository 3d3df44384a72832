//! Sessions that are resumed or forked.

use std::time::Instant;

use serde_json::{Value, json};

use super::turns::last_body;
use crate::harness::{PATIENCE, Place, pause};
use crate::talk::Talk;

pub(crate) fn resume(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "Remember the plum. [[say I will]]", json!({}));
    talk.completed();
    let id = talk.id.clone();
    place.restart();
    let mut body = place.request(&work, "[[say after the restart]]", json!({}));
    body["sessionId"] = json!(id);
    let answer = resumed(place, &body).expect("it continues");
    assert_eq!(answer["id"], json!(id));
    let mut talk = Talk::new(place, &id);
    talk.until("second turn", |event| event["type"] == "turnCompleted" && event["turnNumber"] == 2);
    assert!(talk.text().contains("after the restart"), "{}", talk.digest());
    let body = last_body(place, "after the restart");
    assert!(body.contains("Remember the plum"), "the model did not receive the earlier turn");
}

/// Resumes a session. If that is refused until the next clock minute, waits for it.
pub(super) fn resumed(place: &Place, body: &Value) -> Result<Value, Value> {
    let begun = Instant::now();
    loop {
        match place.ask("POST", "/v1/sessions", body) {
            Err(problem)
                if problem["detail"].as_str().is_some_and(|why| why.contains("minute")) =>
            {
                assert!(begun.elapsed() < PATIENCE, "{problem}");
                pause();
            }
            answer => return answer,
        }
    }
}

pub(crate) fn fork(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "Remember the pear. [[say I will]]", json!({}));
    talk.completed();
    let mut body = place.request(&work, "[[say in the fork]]", json!({}));
    body["sessionId"] = json!(talk.id);
    body["fork"] = json!(true);
    let answer = place.ask("POST", "/v1/sessions", &body).expect("a fork");
    let forked = answer["id"].as_str().expect("an id");
    assert_ne!(forked, talk.id);
    let mut copy = Talk::new(place, forked);
    copy.completed();
    let body = last_body(place, "in the fork");
    assert!(body.contains("Remember the pear"), "the model did not receive the earlier turn");
    // The first session continues independently.
    talk.prompt("[[say in the first]]");
    talk.completed();
    assert!(
        !last_body(place, "in the first").contains("in the fork"),
        "the first has the fork's turn"
    );
}
