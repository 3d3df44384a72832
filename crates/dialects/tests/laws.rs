//! The laws that make losing anything impossible, over fixtures, mutated fixtures and arbitrary bytes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test reads fixtures and fails by panicking"
)]

mod common;

use agentwire_dialects::agent::{AgentDialect, Exit, Setup};
use agentwire_dialects::agents;
use agentwire_dialects::tape::{Action, Draft, Sink, Stamp, Tape};
use agentwire_protocol::event::{RequestKind, RequestOutcome};
use agentwire_protocol::{Event, EventKind, SessionConfig};
use common::{cases, events, stamped, tape_of};
use proptest::prelude::*;

/// Tape: the native lines, in order, are the agent's stdout byte for byte.
#[test]
fn tape_over_every_case() {
    for case in cases() {
        let events = events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
        assert!(tape_of(&events) == case.bytes, "{} {}", case.dialect.name(), case.name);
    }
}

/// Wire: event → JSON → event is the same event, of a known kind.
#[test]
fn wire_over_every_case() {
    for case in cases() {
        let mut tape = Tape::recording(case.dialect);
        let sink = &mut |draft: Draft<'_>| {
            let stamp =
                Stamp { id: "evt", session_id: "s", seq: 1, timestamp: "2026-01-01T00:00:00Z" };
            draft.stamp(stamp, |event| {
                let mut line = Vec::new();
                event.write_line(&mut line).expect("an event can be written");
                let line = String::from_utf8(line).expect("UTF-8");
                assert_eq!(
                    Event::from_json(&line).expect("an event can be read"),
                    event,
                    "{}",
                    case.name
                );
            });
        };
        tape.feed(&case.bytes, sink);
        tape.end(Exit::Unknown, sink);
    }
}

/// Prefix: the events of the first lines are the first events.
#[test]
fn prefix_over_every_case() {
    for case in cases() {
        let whole = events(case.dialect, &[&case.bytes], None);
        let ends = memchr::memchr_iter(b'\n', &case.bytes);
        for end in ends {
            let part = events(case.dialect, &[&case.bytes[..=end]], None);
            assert!(whole.starts_with(&part), "{} {}", case.dialect.name(), case.name);
        }
    }
}

/// Chunk: however the bytes are split, the events are the same.
#[test]
fn chunk_over_every_case() {
    for case in cases() {
        let whole = events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
        for size in [1, 2, 3, 7, 64, 1000, 4096, 65536] {
            let chunks: Vec<&[u8]> = case.bytes.chunks(size).collect();
            let cut = events(case.dialect, &chunks, Some(Exit::Unknown));
            assert!(cut == whole, "{} {} by {size}", case.dialect.name(), case.name);
        }
    }
}

/// Order: `sessionStarted` comes first and once; the end comes last and once; no turn, tool or request is
/// closed that was not opened, or closed twice.
#[test]
fn order_over_every_case() {
    for case in cases() {
        let events = events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
        let name = format!("{} {}", case.dialect.name(), case.name);
        check_order(&events, &name);
    }
}

fn check_order(events: &[String], name: &str) {
    let read = |line: &String| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    let events: Vec<_> = events.iter().map(read).collect();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == *kind).count();
    assert_eq!(count("sessionStarted"), 1, "{name}");
    assert_eq!(events[0]["type"], "sessionStarted", "{name}");
    assert_eq!(count("sessionEnded"), 1, "{name}");
    assert_eq!(events[events.len() - 1]["type"], "sessionEnded", "{name}");
    assert_eq!(count("turnStarted"), count("turnCompleted") + count("turnFailed"), "{name}");
    assert_eq!(count("requestRaised"), count("requestSettled"), "{name}");
    let mut turn_open = false;
    for event in &events {
        let kind = event["type"].as_str().expect("a type");
        match kind {
            "turnStarted" => assert!(!std::mem::replace(&mut turn_open, true), "{name}"),
            "turnCompleted" | "turnFailed" => {
                assert!(std::mem::replace(&mut turn_open, false), "{name}");
            }
            _ => {}
        }
        // No field of an event is null.
        let fields = event.as_object().expect("an object");
        assert!(fields.iter().all(|(_, value)| !value.is_null()), "{name} {event}");
    }
    for opened in ids(&events, &["toolStarted"], "toolId") {
        let closed = ids(&events, &["toolCompleted", "toolFailed"], "toolId");
        let times = closed.iter().filter(|id| **id == opened).count();
        assert_eq!(times, 1, "{name}: {opened} is closed {times} times");
    }
}

fn ids(events: &[serde_json::Value], kinds: &[&str], field: &str) -> Vec<String> {
    let of_kind =
        events.iter().filter(|event| kinds.contains(&event["type"].as_str().unwrap_or("")));
    of_kind.filter_map(|event| event[field].as_str().map(str::to_owned)).collect()
}

/// The output of an agent's lines in a live session without commands.
#[derive(Default)]
struct Live {
    /// How many permissions were asked for.
    permissions: usize,
    outcomes: Vec<RequestOutcome>,
    /// What is written to the agent.
    written: Vec<String>,
}

impl Sink for Live {
    fn event(&mut self, draft: Draft<'_>) {
        match draft.kind {
            EventKind::RequestRaised(asked) if asked.kind == RequestKind::Permission => {
                self.permissions += 1;
            }
            EventKind::RequestSettled(settled) => self.outcomes.push(settled.outcome),
            _ => {}
        }
    }

    fn action(&mut self, action: Action) {
        if let Action::Write(line) = action {
            self.written.push(line);
        }
    }
}

/// Judge: only the session allows. Whatever an agent's lines say, no event reports a request as allowed or
/// answered, and everything written to the agent is our own command or a refusal.
fn check_allows_nothing(dialect: &dyn AgentDialect, bytes: &[u8], name: &str) -> usize {
    let mut live = Live::default();
    let mut tape = Tape::new(dialect, &Setup::default());
    tape.start(&mut live);
    tape.feed(bytes, &mut live);
    tape.end(Exit::Unknown, &mut live);
    for outcome in &live.outcomes {
        let allows = matches!(outcome, RequestOutcome::Allowed | RequestOutcome::Answered);
        assert!(!allows, "{name}: {outcome:?}");
    }
    for line in &live.written {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        // Not a permission: the agent itself reports that a link, which it asked the user to open, was
        // opened.
        let is_opened =
            dialect.name() == "acp" && line["result"] == serde_json::json!({ "action": "accept" });
        assert!(is_ours(&line) || refuses(&line) || is_opened, "{name} is told {line}");
    }
    live.permissions
}

/// Whether a line for an agent is a request or a notification.
fn is_ours(line: &serde_json::Value) -> bool {
    let is_answer = matches!(line["type"].as_str(), Some("control_response" | "callback.response"));
    line.get("method").is_some() || (line.get("type").is_some() && !is_answer)
}

fn refuses(answer: &serde_json::Value) -> bool {
    let result = [&answer["result"], &answer["response"]["response"], &answer["payload"]];
    let is = |pointer: &str, words: &[&str]| {
        let mut said = result.iter().filter_map(|result| result.pointer(pointer)?.as_str());
        said.any(|word| words.contains(&word))
    };
    answer.get("error").is_some()
        || answer["response"]["subtype"] == "error"
        || is("/behavior", &["deny"])
        || is("/hookSpecificOutput/permissionDecision", &["deny"])
        || is("/decision", &["decline", "cancel", "denied", "abort", "block"])
        || is("/outcome/outcome", &["cancelled"])
        || is("/action", &["decline", "cancel"])
}

#[test]
fn lines_alone_allow_nothing() {
    let mut asked = std::collections::BTreeMap::new();
    for case in cases() {
        let name = case.dialect.name();
        let case_name = format!("{name} {}", case.name);
        *asked.entry(name).or_insert(0) +=
            check_allows_nothing(case.dialect, &case.bytes, &case_name);
    }
    for dialect in agents().iter().filter(|dialect| dialect.capabilities().permissions) {
        let name = dialect.name();
        assert!(asked.get(name).is_some_and(|count| *count > 0), "no case of {name} asks");
    }
}

/// Total: any bytes produce at least one event for each line, and the tape law holds.
fn check_total(dialect: &dyn AgentDialect, bytes: &[u8]) {
    let mut lines = Vec::new();
    let mut tape = Tape::recording(dialect);
    tape.feed(bytes, &mut |draft: Draft<'_>| lines.push(stamped(draft, lines.len() as u64 + 1)));
    tape.end(Exit::Unknown, &mut |draft: Draft<'_>| {
        lines.push(stamped(draft, lines.len() as u64 + 1));
    });
    assert!(tape_of(&lines) == bytes);
    for line in &lines {
        serde_json::from_str::<serde_json::Value>(line).expect("an event is strict JSON");
        assert!(!line[..line.len() - 1].contains(['\n', '\r', '\u{2028}', '\u{2029}']));
    }
}

/// A few lines of a fixture with bytes changed, dropped, doubled or swapped.
fn mutated() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let all = cases();
    let lines: Vec<(usize, Vec<Vec<u8>>)> = all
        .iter()
        .map(|case| {
            let dialect = agents().iter().position(|d| d.name() == case.dialect.name());
            let lines = case.bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
            (dialect.expect("a dialect"), lines.collect())
        })
        .collect();
    (0..lines.len(), any::<u64>(), proptest::collection::vec(any::<(u16, u8, u8)>(), 0..6))
        .prop_map(move |(case, seed, edits)| {
            let (dialect, lines) = &lines[case];
            let mut lines = lines.clone();
            let turn = seed as usize % lines.len();
            lines.rotate_left(turn);
            if seed & 1 == 0 {
                lines.truncate(1 + seed as usize % 7);
            }
            if seed & 2 == 0 {
                let doubled = lines[seed as usize / 4 % lines.len()].clone();
                lines.insert(seed as usize / 64 % lines.len(), doubled);
            }
            if seed & 4 == 0 {
                let (a, b) = (seed as usize / 8 % lines.len(), seed as usize / 128 % lines.len());
                lines.swap(a, b);
            }
            let mut bytes = lines.join(&b'\n');
            for (place, byte, how) in edits {
                if bytes.is_empty() {
                    break;
                }
                let place = place as usize * 31 % bytes.len();
                match how % 4 {
                    0 => bytes[place] = byte,
                    1 => drop(bytes.remove(place)),
                    2 => bytes.insert(place, byte),
                    _ => bytes.truncate(place),
                }
            }
            (*dialect, bytes)
        })
}

/// What may be between values, and where a reader might split a line.
fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![5 => Just(""), 1 => Just(" "), 1 => Just("\t"), 1 => Just("\r")]
}

/// JSON objects of any shape, with the words that dialects look for in all the wrong places.
fn any_message() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("type"),
        Just("subtype"),
        Just("message"),
        Just("content"),
        Just("id"),
        Just("item"),
        Just("params"),
        Just("method"),
        Just("update"),
        Just("request"),
        Just("request_id"),
        Just("tool_use_id"),
        Just("error"),
        Just("usage"),
        Just("result"),
        Just("event"),
        Just("delta"),
        Just("payload"),
        Just("threadId"),
        Just("itemId"),
        Just("sessionUpdate"),
    ];
    let name = prop_oneof![
        Just("assistant"),
        Just("user"),
        Just("system"),
        Just("result"),
        Just("stream_event"),
        Just("control_request"),
        Just("can_use_tool"),
        Just("tool_use"),
        Just("tool_result"),
        Just("text"),
        Just("item.completed"),
        Just("item/started"),
        Just("item/completed"),
        Just("turn/completed"),
        Just("session/update"),
        Just("tool_call"),
        Just("agent_message"),
        Just("agentMessage"),
        Just("command_execution"),
        Just("message"),
        Just("init"),
        Just("main"),
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|v| format!("{v:?}")),
        name.prop_map(|name| format!("\"{name}\"")),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
        Just("\"\\ud83d\"".to_owned()),
        Just("1e400".to_owned()),
    ];
    let value = leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            (proptest::collection::vec((word.clone(), inner), 0..6), space()).prop_map(
                |(fields, space)| {
                    let fields: Vec<_> = fields
                        .iter()
                        .map(|(key, value)| format!("\"{key}\":{space}{value}"))
                        .collect();
                    format!("{{{}}}", fields.join(","))
                }
            ),
        ]
    });
    proptest::collection::vec(value, 1..6).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn total_over_mutated_fixtures((dialect, bytes) in mutated()) {
        check_total(agents()[dialect], &bytes);
    }

    /// What starts also ends, once, in any order of lines.
    #[test]
    fn order_over_mutated_fixtures((dialect, bytes) in mutated()) {
        check_order(&events(agents()[dialect], &[&bytes], Some(Exit::Unknown)), "mutated");
    }

    /// Lines alone allow nothing, in any order.
    #[test]
    fn mutated_lines_alone_allow_nothing((dialect, bytes) in mutated()) {
        check_allows_nothing(agents()[dialect], &bytes, "mutated");
    }

    #[test]
    fn total_over_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), dialect in 0..agents().len()) {
        check_total(agents()[dialect], &bytes);
    }

    #[test]
    fn total_over_any_messages(text in any_message(), dialect in 0..agents().len()) {
        check_total(agents()[dialect], text.as_bytes());
    }

    #[test]
    fn chunk_at_any_cuts((dialect, bytes) in mutated(), cuts in proptest::collection::vec(any::<u16>(), 0..8)) {
        let dialect = agents()[dialect];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut as usize % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let whole = events(dialect, &[&bytes], Some(Exit::Unknown));
        prop_assert_eq!(events(dialect, &chunks, Some(Exit::Unknown)), whole);
    }
}

/// A line that is too long to store becomes one event with its length, and the next line is read as usual.
#[test]
fn overlong_lines_are_told_and_passed_over() {
    for dialect in agents() {
        let mut lines = Vec::new();
        let mut tape = Tape::recording(*dialect).limit(100);
        let sink = &mut |draft: Draft<'_>| lines.push(stamped(draft, lines.len() as u64 + 1));
        for _ in 0..50 {
            tape.feed(&[b'x'; 33], sink);
        }
        tape.feed(b"\n{}\n", sink);
        tape.end(Exit::Unknown, sink);
        assert!(
            lines[1].contains("lineTooLong") && lines[1].contains("\"bytes\":1650"),
            "{lines:?}"
        );
        assert_eq!(tape_of(&lines), b"{}\n");
    }
}

/// A session's secrets are in no event.
#[test]
fn secrets_of_the_configuration_are_not_shown() {
    let config = r#"{"model":"m","env":{"KEY":"hush"},"mcpServers":{"db":{"type":"http","url":"http://x/?hush","headers":{"A":"hush"},"env":{"B":"hush"},"args":["hush"]}}}"#;
    let config: SessionConfig = serde_json::from_str(config).expect("a config");
    for dialect in agents() {
        let setup = Setup { config: config.clone(), recording: true, ..Setup::default() };
        let mut lines = Vec::new();
        let sink = &mut |draft: Draft<'_>| lines.push(stamped(draft, lines.len() as u64 + 1));
        Tape::new(*dialect, &setup).feed(b"{}\n", sink);
        assert!(lines[0].contains("\"db\"") && !lines.concat().contains("hush"), "{lines:?}");
    }
}

/// A line may be 64 MiB long, as with an image, and comes back unchanged.
#[test]
fn a_long_line_is_kept_whole() {
    let dialect = agentwire_dialects::agent("gemini").expect("a dialect");
    let head = br#"{"type":"message","role":"assistant","delta":true,"content":""#;
    let line = [head, vec![b'x'; 63 << 20].as_slice(), b"\"}\n"].concat();
    let mut native = Vec::new();
    let mut text = 0;
    let mut tape = Tape::recording(dialect);
    let sink = &mut |draft: Draft<'_>| {
        draft.native.iter().for_each(|line| line.write_to(&mut native));
        if let EventKind::TextChunk(chunk) = &draft.kind {
            text += chunk.content.decode().len();
        }
    };
    line.chunks(1 << 16).for_each(|chunk| tape.feed(chunk, sink));
    assert!(native == line && text == 63 << 20);
}
