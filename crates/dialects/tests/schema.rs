//! Every event of every case follows our schema; in profile `core`, it follows the specification's own,
//! unchanged.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "a test reads fixtures and fails by panicking"
)]

mod common;

use agentwire_dialects::agent::Exit;
use agentwire_protocol::{Event, Profile};
use jsonschema::Validator;
use serde_json::Value;

const CORE: [&str; 12] = [
    "sessionStarted",
    "sessionEnded",
    "turnStarted",
    "turnCompleted",
    "turnFailed",
    "textChunk",
    "toolStarted",
    "toolProgress",
    "toolCompleted",
    "toolFailed",
    "fileChanged",
    "error",
];

fn validator(name: &str) -> Validator {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the schema is committed");
    let schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
    jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema")
}

#[test]
fn every_event_follows_the_schemas() {
    let (ours, specification) = (
        validator("schema/event.json"),
        validator("crates/protocol/tests/specification/event.json"),
    );
    for case in common::cases() {
        for line in common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown)) {
            check(&ours, &line, &case.name);
            let event = Event::from_json(&line).expect("an event");
            let Some(core) = Profile::Core.show(event) else { continue };
            assert!(CORE.contains(&core.kind.name()), "{}: {line}", case.name);
            let mut line = Vec::new();
            core.write_line(&mut line).expect("an event can be written");
            let line = String::from_utf8(line).expect("UTF-8");
            assert!(!line.contains("\"native\":["), "{}: {line}", case.name);
            check(&specification, &line, &case.name);
        }
    }
}

fn check(validator: &Validator, line: &str, name: &str) {
    let event: Value = serde_json::from_str(line).expect("an event is JSON");
    if let Err(error) = validator.validate(&event) {
        panic!("{name}: {error} at {}\n{line}", error.instance_path());
    }
}
