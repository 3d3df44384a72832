//! Gathering changes the number of events, and nothing else.

use agentwire_dialects::agent::Setup;
use agentwire_dialects::tape::{Draft, Tape};
use agentwire_protocol::{Event, EventKind};
use proptest::prelude::*;

use super::Journal;

/// Lines of two agents that send at the same time, with blocks, thinking, tools and rubbish in between.
const LINES: &[&str] = &[
    r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}},"session_id":"s"}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one "}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"tw\"o\u00e9\n"}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_stop","index":0}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm "}}}"#,
    r#"{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"x"}}}"#,
    "rubbish",
    r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}"#,
];

/// The content, however it was cut up: consecutive chunks of one text count as one.
fn said(events: &[Event<'static>]) -> Vec<String> {
    let mut all: Vec<(String, String)> = Vec::new();
    for event in events {
        let (key, text) = match &event.kind {
            EventKind::TextChunk(chunk) if !chunk.is_complete => (
                format!("text {:?} {:?}", event.agent_id, chunk.block_id),
                chunk.content.to_string(),
            ),
            EventKind::ThinkingChunk(chunk) if !chunk.is_complete && chunk.signature.is_none() => (
                format!("thinking {:?} {:?}", event.agent_id, chunk.block_id),
                chunk.content.to_string(),
            ),
            kind => (format!("{kind:?}"), String::new()),
        };
        match all.last_mut() {
            Some((last, said)) if *last == key && !text.is_empty() => said.push_str(&text),
            _ => all.push((key, text)),
        }
    }
    all.into_iter().map(|(key, text)| format!("{key}: {text}")).collect()
}

fn run(lines: &[usize], cuts: &[bool]) -> Vec<Event<'static>> {
    let dialect = agentwire_dialects::agent("claude").expect("a dialect");
    let mut tape = Tape::new(dialect, &Setup::default());
    let mut journal = Journal::new("s".into(), 7);
    let mut events = Vec::new();
    let mut take = |journal: &mut Journal| {
        let Some(batch) = journal.take() else { return };
        let first = batch.first;
        for (at, line) in std::str::from_utf8(&batch.lines).expect("UTF-8").lines().enumerate() {
            let event = Event::from_json(line).expect("an event");
            assert_eq!(event.seq, first + at as u64);
            events.push(event);
        }
        assert_eq!(batch.last(), events.last().map_or(7, |event| event.seq));
    };
    for (line, cut) in lines.iter().zip(cuts) {
        tape.line(LINES[*line].as_bytes(), &mut |draft: Draft<'_>| journal.write(draft));
        if *cut {
            take(&mut journal);
        }
    }
    take(&mut journal);
    events
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gathering_loses_nothing(
        lines in proptest::collection::vec(0..LINES.len(), 1..60),
        cuts in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let gathered = run(&lines, &cuts);
        let apart = run(&lines, &[true; 60]);
        prop_assert_eq!(said(&gathered), said(&apart));
        let mut native = Vec::new();
        for line in gathered.iter().flat_map(|event| event.native.iter()) {
            line.write_to(&mut native);
        }
        let whole: String = lines.iter().map(|line| format!("{}\n", LINES[*line])).collect();
        prop_assert_eq!(String::from_utf8(native).expect("UTF-8"), whole);
        prop_assert!(gathered.len() <= apart.len());
        for (at, event) in gathered.iter().enumerate() {
            prop_assert_eq!(event.seq, at as u64 + 8);
        }
    }
}
