//! Goldens: the events of each recorded run, and the fields that no unified field carries.
#![expect(clippy::disallowed_methods, reason = "a test reads fixtures and fails by panicking")]

mod common;

use agentwire_dialects::agent::{AgentDialect, Exit};
use agentwire_dialects::tape::{Draft, Tape};
use common::{Case, cases};

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

/// The golden of a removed case, or a file that nothing reads, is stale. `render/main.rs` reads the goldens
/// of messages.
#[test]
fn a_case_has_its_files_and_no_more() {
    for case in cases() {
        let entries = std::fs::read_dir(&case.folder).expect("a folder");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
        names.sort();
        names.retain(|name| name != "partial.snap");
        let is_rendered = case.dialect.name() != "claude";
        let rendered = is_rendered.then_some("rendered.snap");
        let expected = ["agent.jsonl", "events.snap"].into_iter().chain(rendered);
        let expected = expected.chain(["residue.snap"]);
        assert!(expected.eq(names.iter().map(String::as_str)), "{} {names:?}", case.name);
    }
}

/// `active_goal`, `some_future_type` and the like belong to no dialect, but no real line of Claude's starts
/// with them.
#[test]
fn lines_of_claude_are_recognised() {
    let mut recognised = 0;
    for case in cases().into_iter().filter(|case| case.dialect.name() == "claude") {
        if !case.name.starts_with("real-") && !case.name.starts_with("seed-") {
            continue;
        }
        let first = case.bytes.split(|byte| *byte == b'\n').next().expect("a line");
        let mut scanner = agentwire_dialects::json::Scanner::new();
        let found = agentwire_dialects::recognise_line(&mut scanner, first);
        assert_eq!(found.map(AgentDialect::name), Some("claude"), "{}", case.name);
        recognised += 1;
    }
    assert!(recognised > 20, "only {recognised}");
}

/// One line for each event, after the number of the agent's line that it carries.
fn events_golden(case: &Case) -> String {
    let mut text = String::new();
    let mut line = 0;
    for event in common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown)) {
        let event = common::brief(&event);
        line += event.lines;
        let place = if event.lines > 0 { format!("{line:>3}") } else { "   ".to_owned() };
        text.push_str(&format!("{place} {} {}\n", event.name, event.fields));
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
