//! The properties that must hold for all bytes: no panic, at least one event per line, each event is strict
//! JSON that parses to itself, and the native lines together are the input.

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Draft, Stamp, Tape};
use agentwire_protocol::Event;

/// Panics if a property does not hold.
pub fn check(dialect: &str, bytes: &[u8]) {
    let dialect = agentwire_dialects::agent(dialect).expect("a dialect");
    let mut tape = Tape::recording(dialect);
    let mut native = Vec::new();
    let mut seq = 0;
    let sink = &mut |draft: Draft<'_>| {
        seq += 1;
        let stamp = Stamp { id: "e", session_id: "s", seq, timestamp: "2026-01-01T00:00:00Z" };
        draft.stamp(stamp, |event| {
            let mut line = Vec::new();
            event.write_line(&mut line).expect("an event can be written");
            let line = std::str::from_utf8(&line).expect("an event is UTF-8");
            serde_json::from_str::<serde_json::Value>(line).expect("an event is strict JSON");
            let read = Event::from_json(line).expect("an event can be read");
            assert_eq!(read, event);
            read.native.iter().for_each(|line| line.write_to(&mut native));
        });
    };
    // Split in the middle, so that lines also arrive in pieces.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    tape.feed(first, sink);
    tape.feed(second, sink);
    tape.end(Exit::Unknown, sink);
    assert!(native == bytes);
}
