//! Turns without tools.

use agentwire_models::Usage;
use serde_json::json;

use crate::harness::Place;

pub(crate) fn text(place: &mut Place) {
    let work = place.workspace();
    let mut talk =
        place.session(&work, "[[slow 20]] [[say Hello from the model, word by word]]", json!({}));
    talk.completed();
    assert_eq!(talk.text().trim(), "Hello from the model, word by word", "{}", talk.digest());
    if place.agent.has_deltas {
        assert!(talk.of("textChunk").len() > 2, "no deltas: {}", talk.digest());
    }
    talk.stop();
    place.assert_none_left(&work);
}

pub(crate) fn thinking(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[think considering it]] [[say done]]", json!({}));
    talk.completed();
    assert!(talk.thinking().contains("considering it"), "{}", talk.digest());
    assert_eq!(talk.text().trim(), "done", "{}", talk.digest());
}

pub(crate) fn follow_up(place: &mut Place) {
    let work = place.workspace();
    let mut talk = place.session(&work, "[[say first answer]]", json!({}));
    talk.completed();
    talk.prompt("[[say second answer]]");
    talk.completed();
    assert_eq!(talk.text().trim(), "second answer", "{}", talk.digest());
    // The model receives the earlier turn.
    let body = last_body(place, "second answer");
    assert!(body.contains("first answer"), "{body}");
}

pub(crate) fn image(place: &mut Place) {
    // One red pixel.
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
    let work = place.workspace();
    let mut talk = place.session(&work, "[[say ready]]", json!({}));
    talk.completed();
    let image = json!({ "mediaType": "image/png", "data": PIXEL });
    talk.say(&json!({ "prompt": "What is this? [[say a pixel]]", "images": [image] }));
    talk.completed();
    assert_eq!(talk.text().trim(), "a pixel", "{}", talk.digest());
    let body = last_body(place, "a pixel");
    assert!(body.contains("image/png") && body.contains("iVBOR"), "no image came to the model");
}

pub(crate) fn structured(place: &mut Place) {
    let work = place.workspace();
    let schema = json!({
        "type": "object", "properties": { "answer": { "type": "integer" } }, "required": ["answer"],
        "additionalProperties": false,
    });
    let config = json!({ "outputFormat": { "type": "json_schema", "schema": schema } });
    let script = (place.agent.structured)(&json!({ "answer": 42 }));
    let mut talk = place.session(&work, &script, config);
    let end = talk.completed();
    assert_eq!(end["structuredOutput"], json!({ "answer": 42 }), "{end}");
}

pub(crate) fn usage(place: &mut Place) {
    let work = place.workspace();
    let before = reported(place);
    let mut talk = place.session(&work, "[[usage 1000 20 300 0]] [[say one]]", json!({}));
    let first = talk.completed()["usage"].clone();
    talk.prompt("[[usage 1100 30 400 0]] [[say two]]");
    let second = talk.completed()["usage"].clone();
    let after = reported(place);
    let output = after.output - before.output;
    let told = [&first, &second].map(|usage| usage["outputTokens"].as_u64().expect("a count"));
    assert_eq!(told.iter().sum::<u64>(), output, "{first} {second} {after:?}");
    let total = &talk.summary()["usage"];
    assert_eq!(total["outputTokens"], output, "the session's sum");
    // Cached tokens are counted as input, next to it, or not separately.
    let (input, cached) = (after.input - before.input, after.cache_read - before.cache_read);
    let told = |name: &str| total[name].as_u64().unwrap_or(0);
    let forms = [(input, cached), (input + cached, cached), (input + cached, 0)];
    let told = (told("inputTokens"), told("cachedTokens"));
    assert!(forms.contains(&told), "{total}: {input} and {cached} were reported");
}

/// The usage that the model reported so far. A title that a program requests by itself belongs to no turn.
pub(super) fn reported(place: &Place) -> Usage {
    let requests = place.models.requests();
    let asked = requests.iter().filter(|seen| !seen.side);
    asked.fold(Usage::default(), |sum, seen| sum + seen.usage)
}

pub(crate) fn run(place: &mut Place) {
    let work = place.workspace();
    let driver = place.agent.driver;
    let words = ["run", "-a", place.agent.kind, "--driver", driver, "-m", place.agent.model];
    let said = place.verb(&work, &[&words[..], &["[[say Hello from run]]"]].concat());
    let text = String::from_utf8_lossy(&said.stdout);
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && text.contains("Hello from run"), "{text}\n{errors}");
    let failed = place.verb(
        &work,
        &[&words[..], &["[[fail 400 invalid_request_error It was refused]]"]].concat(),
    );
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    place.assert_none_left(&work);
}

/// The body of the last request that contains this.
pub(super) fn last_body(place: &Place, marker: &str) -> String {
    let requests = place.models.requests();
    let bodies = requests.iter().rev().filter(|seen| !seen.side);
    let mut bodies = bodies.map(|seen| String::from_utf8_lossy(&seen.body).into_owned());
    bodies
        .find(|body| body.contains(marker))
        .unwrap_or_else(|| panic!("{marker:?} was never asked"))
}
