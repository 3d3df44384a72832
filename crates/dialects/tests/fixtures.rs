//! Goldens: what each recorded run becomes, and what of it no unified field carries.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test reads fixtures and fails by panicking"
)]

mod common;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Draft, Tape};
use common::{Case, cases};
use serde_json::Value;

#[test]
fn every_case_gives_its_golden_events() {
    for case in cases() {
        golden(&case, "events", &events_golden(&case));
    }
}

#[test]
fn every_case_shows_its_residue() {
    for case in cases() {
        let mut tape = Tape::recording(case.dialect).track_residue();
        tape.feed(&case.bytes, &mut |_: Draft<'_>| {});
        let residue: Vec<&str> = tape.residue().collect();
        golden(&case, "residue", &residue.join("\n"));
    }
}

/// A golden of a case that is gone, or a file that nothing reads, is stale. The goldens of messages
/// are read in `render/main.rs`.
#[test]
fn a_case_has_its_files_and_no_more() {
    for case in cases() {
        let entries = std::fs::read_dir(&case.folder).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names.retain(|name| name != "partial.snap");
        let rendered = (case.dialect.name() != "claude").then_some("rendered.snap");
        let expected = ["agent.jsonl", "events.snap", "residue.snap"].into_iter().chain(rendered);
        assert!(expected.eq(names.iter().map(String::as_str)), "{} {names:?}", case.name);
    }
}

/// One line for each event, after the number of the agent's line that it carries.
fn events_golden(case: &Case) -> String {
    let mut text = String::new();
    let mut line = 0;
    for event in common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown)) {
        let mut event: Value = serde_json::from_str(&event).expect("an event is JSON");
        let fields = event.as_object_mut().expect("an event is an object");
        let place = match fields.remove("native") {
            Some(native) => {
                line += native.as_array().map_or(0, Vec::len);
                format!("{line:>3}")
            }
            None => "   ".to_owned(),
        };
        for stamp in ["id", "sessionId", "seq", "timestamp"] {
            fields.remove(stamp);
        }
        if fields.get("agentId") == Some(&Value::from("main")) {
            fields.remove("agentId");
        }
        let name = fields.remove("type").expect("an event has a type");
        let name = name.as_str().expect("a type is a string").to_owned();
        text.push_str(&format!("{place} {name} {event}\n"));
    }
    text
}

fn golden(case: &Case, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&case.folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
