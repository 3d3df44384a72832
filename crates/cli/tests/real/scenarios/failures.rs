//! A model server that fails.

use serde_json::json;

use crate::harness::Place;

pub(crate) fn refused(place: &mut Place) {
    let work = place.workspace();
    let script = "[[fail 400 invalid_request_error The model will not have it]]";
    let mut talk = place.session(&work, script, json!({}));
    let end = talk.ended();
    assert_eq!(end["type"], "turnFailed", "{end}");
    assert!(end.to_string().contains("will not have it"), "not the program's own words: {end}");
    talk.prompt("[[say better now]]");
    talk.completed();
    assert_eq!(talk.text().trim(), "better now", "{}", talk.digest());
}

pub(crate) fn retried(place: &mut Place) {
    let work = place.workspace();
    let before = place.models.requests().len();
    let mut talk = place.session(&work, "[[fail 500 TIMES 1]] [[say in the end]]", json!({}));
    talk.completed();
    assert_eq!(talk.text().trim(), "in the end", "{}", talk.digest());
    assert_eq!(answered(place, before, 500), 1);
}

pub(crate) fn limited(place: &mut Place) {
    let work = place.workspace();
    let before = place.models.requests().len();
    let mut talk =
        place.session(&work, "[[ratelimit TIMES 1 RETRY-AFTER 1]] [[say in the end]]", json!({}));
    talk.completed();
    assert_eq!(talk.text().trim(), "in the end", "{}", talk.digest());
    assert_eq!(answered(place, before, 429), 1);
}

pub(crate) fn cut(place: &mut Place) {
    let work = place.workspace();
    let before = place.models.requests().len();
    let mut talk =
        place.session(&work, "[[say half of]] [[cut TIMES 1]] [[say the whole]]", json!({}));
    talk.completed();
    assert!(talk.text().contains("the whole"), "{}", talk.digest());
    assert!(answered(place, before, 200) > 1, "it was asked once: nothing broke");
}

/// Requests after the first `before` that were answered with this status.
fn answered(place: &Place, before: usize, status: u16) -> usize {
    place.models.requests().iter().skip(before).filter(|seen| seen.status == status).count()
}
