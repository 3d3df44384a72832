//! The memory of a translator or a renderer is bounded: a session that runs forever, with ids that never
//! repeat, does not grow.

mod common;

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::Mutex;

use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_dialects::tape::{Draft, Tape};
use agentwire_protocol::Event;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How much may be held afterwards: what the limits on open calls, requests and agents allow.
const LIMIT: isize = 8 << 20;

/// For a renderer: the inputs of open calls, a block and an answer, 8 MiB each, and room for their growth.
const RENDERER_LIMIT: isize = 48 << 20;

/// All tests share one allocator.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn renderers_do_not_grow() {
    let _alone = ALONE.lock();
    let cases = common::cases().into_iter().filter(|case| case.dialect.name() != "claude");
    let events = cases.flat_map(|case| common::events(case.dialect, &[&case.bytes], None));
    let events: Vec<String> = events.filter(|event| event.len() < 4000).collect();
    let input = "x".repeat(1 << 20);
    let tool = format!(
        r#"{{"id":"e1","sessionId":"s","timestamp":"","type":"toolStarted","toolId":"tool-1","toolName":"x","arguments":{{"a":"{input}"}}}}"#
    );
    let denied = r#"{"id":"e2","sessionId":"s","timestamp":"","type":"toolFailed","toolId":"tool-1","error":"no","reason":"denied"}"#;
    let text = format!(
        r#"{{"id":"e3","sessionId":"s","timestamp":"","type":"textChunk","content":"{input}","isComplete":false}}"#
    );
    let turn = r#"{"id":"e0","sessionId":"s","timestamp":"","type":"turnStarted","turnNumber":1}"#;
    let mut renderer = Renderer::new(Options::default());
    let mut show = |event: &str| {
        // With another id it may no longer be an event.
        if let Ok(event) = Event::from_json(event) {
            renderer.event(&event, &mut |_| {});
        }
    };
    let region = Region::new(ALLOCATOR);
    show(turn);
    for event in events.iter().step_by(1 + events.len() / 300) {
        (0..300).for_each(|round| show(&renamed(event, round)));
    }
    show(turn);
    (0..100).for_each(|_| show(&text));
    for round in 0..100 {
        show(&renamed(&tool, round));
        if round % 2 == 0 {
            show(&renamed(denied, round));
        }
    }
    let change = region.change();
    let held = change.bytes_allocated as isize - change.bytes_deallocated as isize;
    assert!(held < RENDERER_LIMIT, "it holds {held} bytes");
}

#[test]
fn translators_do_not_grow() {
    let _alone = ALONE.lock();
    let mut cases: BTreeMap<&str, Vec<common::Case>> = BTreeMap::new();
    for case in common::cases() {
        cases.entry(case.dialect.name()).or_default().push(case);
    }
    for (name, cases) in &cases {
        let mut lines: Vec<String> = Vec::new();
        for case in cases {
            let text = String::from_utf8_lossy(&case.bytes);
            lines.extend(text.lines().filter(|line| line.len() < 2000).map(str::to_owned));
        }
        // Each line alone, repeatedly: what only it opens is never closed.
        for dialect in agentwire_dialects::agents().iter().filter(|dialect| dialect.name() == *name)
        {
            let mut tape = Tape::recording(*dialect);
            let region = Region::new(ALLOCATOR);
            for line in lines.iter().step_by(1 + lines.len() / 150) {
                for round in 0..1500 {
                    let line = renamed(line, round);
                    tape.line(line.as_bytes(), &mut |_: Draft<'_>| {});
                }
            }
            // And exactly the same again: a block or an output that never ends.
            for line in lines.iter().step_by(1 + lines.len() / 150) {
                (0..1500).for_each(|_| tape.line(line.as_bytes(), &mut |_: Draft<'_>| {}));
            }
            let change = region.change();
            let held = change.bytes_allocated as isize - change.bytes_deallocated as isize;
            assert!(held < LIMIT, "{name} holds {held} bytes");
        }
    }
}

/// The line with new ids: each run of six or more characters that looks like an id gets a number.
fn renamed(line: &str, round: usize) -> String {
    let mut renamed = String::with_capacity(line.len() + 64);
    for part in line.split_inclusive('"') {
        let word = part.trim_end_matches('"');
        let id = word.len() >= 6
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if id {
            renamed.push_str(&format!("{word}{round}\""));
        } else {
            renamed.push_str(part);
        }
    }
    renamed
}
