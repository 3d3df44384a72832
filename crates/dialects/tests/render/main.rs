//! Any agent's events as Claude's messages: goldens, the readers' rules, and Claude's own bytes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads fixtures and fails by panicking"
)]

mod check;
#[path = "../common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_protocol::{Event, EventKind};
use check::Checker;
use common::{Case, cases};
use proptest::prelude::*;
use serde_json::Value;

/// The cases that also have a golden with pieces.
const PARTIAL: &[&str] =
    &["codex/real-app-collab-spawn", "acp/real-two-tools", "codex/edge-app-item-reasoning"];

fn events_of(case: &Case) -> Vec<Event<'static>> {
    events(case, &case.bytes)
}

fn events(case: &Case, bytes: &[u8]) -> Vec<Event<'static>> {
    let lines = common::events(case.dialect, &[bytes], Some(Exit::Unknown));
    lines.iter().map(|line| Event::from_json(line).expect("an event")).collect()
}

fn rendered(events: &[Event<'_>], partial: bool) -> Vec<String> {
    let mut renderer = Renderer::new(Options { partial });
    let mut lines = Vec::new();
    for event in events {
        renderer.event(event, &mut |line| lines.push(line.to_owned()));
    }
    lines
}

fn others() -> impl Iterator<Item = Case> {
    cases().into_iter().filter(|case| case.dialect.name() != "claude")
}

#[test]
fn every_case_gives_its_golden_messages() {
    for case in others() {
        let events = events_of(&case);
        golden(&case, "rendered", &rendered(&events, false));
        let in_pieces = PARTIAL.contains(&&*format!("{}/{}", case.dialect.name(), case.name));
        assert_eq!(case.folder.join("partial.snap").exists(), in_pieces, "{}", case.name);
        if in_pieces {
            golden(&case, "partial", &rendered(&events, true));
        }
    }
}

fn golden(case: &Case, name: &str, lines: &[String]) {
    let text: String = lines.iter().map(|line| brief(line) + "\n").collect();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&case.folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// A line without the fields that the checker covers or that never change.
fn brief(line: &str) -> String {
    let mut message: Value = serde_json::from_str(line).expect("JSON");
    let name = message["type"].as_str().expect("a type").to_owned();
    let fields = message.as_object_mut().expect("an object");
    for known in ["type", "uuid", "session_id", "apiKeySource", "claude_code_version"] {
        fields.remove(known);
    }
    for known in ["output_style", "skills", "plugins", "duration_api_ms"] {
        fields.remove(known);
    }
    fields
        .retain(|_, value| !value.is_null() && *value != Value::Array(Vec::new()) && *value != *"");
    if let Some(usage) = fields.get_mut("usage").and_then(Value::as_object_mut) {
        for known in ["server_tool_use", "service_tier"] {
            usage.remove(known);
        }
    }
    if let Some(inner) = fields.get_mut("message").and_then(Value::as_object_mut) {
        for known in ["type", "role", "stop_reason", "stop_sequence", "usage"] {
            inner.remove(known);
        }
    }
    format!("{name} {message}")
}

/// Every line follows the rules, with pieces and without, and the whole messages are the same in both.
#[test]
fn every_case_keeps_the_rules() {
    for case in others() {
        check(&events_of(&case), &format!("{}/{}", case.dialect.name(), case.name));
    }
}

fn check(events: &[Event<'_>], name: &str) {
    let is_end = |event: &&Event<'_>| {
        matches!(event.kind, EventKind::TurnCompleted(_) | EventKind::TurnFailed(_))
    };
    let turns = events.iter().filter(is_end).count();
    let [whole, with_pieces] = [false, true].map(|partial| {
        let lines = rendered(events, partial);
        let mut checker = Checker::default();
        lines.iter().for_each(|line| checker.line(line));
        checker.end(turns, name);
        lines
    });
    let is_whole = |line: &&String| !line.starts_with("{\"type\":\"stream_event\"");
    assert!(with_pieces.iter().filter(is_whole).eq(&whole), "{name}");
}

/// Claude's own lines pass byte for byte, in order; control lines do not.
#[test]
fn claudes_own_lines_pass() {
    let mut cut = 0;
    for case in cases().into_iter().filter(|case| case.dialect.name() == "claude") {
        for partial in [false, true] {
            let lines = case.bytes.split(|byte| *byte == b'\n').rev();
            let mut passing: Vec<String> =
                lines.filter_map(|line| passes(std::str::from_utf8(line).ok()?, partial)).collect();
            for line in rendered(&events_of(&case), partial) {
                if passing.last() == Some(&line) {
                    passing.pop();
                    continue;
                }
                // A line that is not Claude's own is the start or end of a turn that Claude did not
                // delimit.
                let ours: Value = serde_json::from_str(&line).expect("JSON");
                assert_eq!(
                    ours["uuid"].as_str().map(|uuid| &uuid[14..15]),
                    Some("8"),
                    "{line}\nin place of {:?}",
                    passing.last()
                );
                cut += usize::from(ours["type"] == "result");
            }
            assert!(passing.is_empty(), "{} lacks {}", case.name, passing[passing.len() - 1]);
        }
    }
    assert!(cut > 2, "no turn is cut off");
}

fn passes(line: &str, partial: bool) -> Option<String> {
    let line = line.trim_start_matches('\u{FEFF}').trim_matches([' ', '\t', '\r']);
    let line = line.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    // Only names are read: values may be beyond what serde_json accepts. The last of duplicate names wins.
    let fields: BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(&line).ok()?;
    let word = |name| fields.get(name).map_or("", |word| word.get().trim_matches('"'));
    let kind = word("type");
    let is_control = kind.starts_with("control_") || kind.starts_with("callback.");
    let is_state = word("subtype") == "session_state_changed";
    let is_control = is_control || is_state || kind == "keep_alive";
    let is_request = word("subtype") == "status" && word("status") == "requesting";
    let is_piece = (kind == "stream_event" || is_request) && !partial;
    (!is_control && !is_piece).then_some(line)
}

/// Claude's messages say about a turn what the events say about it: read back, they give the same texts,
/// calls and outcomes.
#[test]
fn read_back_they_say_the_same() {
    for case in others() {
        let events = events_of(&case);
        let lines = rendered(&events, true).join("\n") + "\n";
        let claude = agentwire_dialects::agent("claude").expect("a dialect");
        let back = common::events(claude, &[lines.as_bytes()], Some(Exit::Unknown));
        let back: Vec<_> =
            back.iter().map(|line| Event::from_json(line).expect("an event")).collect();
        let name = format!("{}/{}", case.dialect.name(), case.name);
        assert_eq!(texts(&back), texts(&events), "{name}");
        assert_eq!(outcomes(&back), outcomes(&events), "{name}");
    }
}

/// The text of each agent: an answer, or a plan in words.
fn texts(events: &[Event<'_>]) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::<String, String>::new();
    for event in events {
        let text = match &event.kind {
            EventKind::TextChunk(chunk) => chunk.content.decode(),
            EventKind::PlanUpdated(plan) if plan.entries.is_empty() => {
                plan.explanation.as_ref().map(|words| words.decode()).unwrap_or_default()
            }
            _ => continue,
        };
        if !text.is_empty() {
            texts.entry(event.agent_id.to_string()).or_default().push_str(&text);
        }
    }
    texts
}

/// How turns ended: a turn that the agent did not end was interrupted or failed.
fn outcomes(events: &[Event<'_>]) -> Vec<bool> {
    let outcome = |event: &Event<'_>| match &event.kind {
        EventKind::TurnCompleted(_) => Some(true),
        EventKind::TurnFailed(_) => Some(false),
        _ => None,
    };
    events.iter().filter_map(outcome).collect()
}

/// The messages of the first events are the first messages.
#[test]
fn a_prefix_of_events_gives_a_prefix_of_messages() {
    for case in cases() {
        let events = events_of(&case);
        let whole = rendered(&events, true);
        for end in [1, events.len() / 3, events.len() / 2, events.len().saturating_sub(2)] {
            let part = rendered(&events[..end.min(events.len())], true);
            assert!(whole.starts_with(&part), "{}", case.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::default()
    })]

    /// However a run is cut or shuffled, its messages follow the rules.
    #[test]
    fn cut_runs_keep_the_rules(case in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), swap in any::<(prop::sample::Index, prop::sample::Index)>(), drop in any::<prop::sample::Index>()) {
        let all: Vec<Case> = others().collect();
        let case = case.get(&all);
        let mut lines: Vec<&[u8]> = case.bytes.split(|byte| *byte == b'\n').collect();
        let (a, b) = (swap.0.index(lines.len()), swap.1.index(lines.len()));
        lines.swap(a, b);
        let gone = drop.index(lines.len());
        lines.remove(gone);
        let bytes = lines.join(&b'\n');
        let end = if bytes.is_empty() { 0 } else { cut.index(bytes.len()) };
        check(&events(case, &bytes[end / 2..]), &case.name);
        check(&events(case, &bytes[..end]), &case.name);
    }

    #[test]
    fn any_prefix_of_events_gives_a_prefix_of_messages(case in any::<prop::sample::Index>(), end in any::<prop::sample::Index>(), partial in any::<bool>()) {
        let all = cases();
        let events = events_of(case.get(&all));
        let part = rendered(&events[..end.index(events.len())], partial);
        prop_assert!(rendered(&events, partial).starts_with(&part));
    }
}
