//! What a translator remembers is bounded: a session that goes on for ever, with ids that never come
//! again, does not grow.

mod common;

use std::alloc::System;
use std::collections::BTreeMap;

use agentwire_dialects::tape::{Draft, Tape};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How much may be held after all that: what the limits on open calls, requests and agents allow.
const LIMIT: isize = 8 << 20;

#[test]
fn translators_do_not_grow() {
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
        // Each line alone, over and over: what only it opens is never closed.
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

/// The line with other ids: each run of six or more characters that looks like one gets a number.
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
