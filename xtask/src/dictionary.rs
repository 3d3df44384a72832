//! `cargo xtask dictionary`: makes the dictionary with which stores compress events.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::json::Scanner;
use agentwire_dialects::tape::{Draft, Sink, Stamp, Tape};
use agentwire_dialects::{programs, recognise_line};

/// Larger ones save little more.
const SIZE: usize = 32 << 10;

/// Longer events fill the dictionary with text that does not repeat.
const LONGEST: usize = 16 << 10;

/// Train a compression dictionary on the recorded cases of all agents
///
/// A dictionary never changes once a release has used it: stored events need it. Give a new one the next
/// number, and add it to crates/sessions/src/store/codec.rs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File to write
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match train(&args.file) {
        Ok((events, bytes)) => {
            say(&format!("{}: {bytes} bytes, from {events} events", args.file.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("failed to make a dictionary: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command for maintainers reports on stderr")]
fn say(text: &str) {
    eprintln!("{text}");
}

fn train(file: &Path) -> io::Result<(usize, usize)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/dialects/fixtures");
    let mut events = Events::default();
    for program in programs() {
        let folder = fixtures.join(program.agent.as_str());
        let Ok(cases) = fs::read_dir(&folder) else { continue };
        let mut cases: Vec<PathBuf> =
            cases.map(|case| Ok(case?.path())).collect::<io::Result<_>>()?;
        cases.sort();
        for case in cases {
            let lines = fs::read(case.join("agent.jsonl"))?;
            let found = lines
                .split(|byte| *byte == b'\n')
                .find_map(|line| recognise_line(&mut Scanner::default(), line));
            let Some(dialect) = found else { continue };
            events.next_session();
            let mut tape = Tape::recording(dialect);
            tape.feed(&lines, &mut events);
            tape.end(Exit::Unknown, &mut events);
        }
    }
    let dictionary = zstd::dict::from_samples(&events.lines, SIZE)?;
    fs::write(file, &dictionary)?;
    Ok((events.lines.len(), dictionary.len()))
}

/// Event lines as a session would write them.
#[derive(Default)]
struct Events {
    session: u64,
    seq: u64,
    lines: Vec<Vec<u8>>,
}

impl Events {
    fn next_session(&mut self) {
        self.session += 1;
        self.seq = 0;
    }
}

impl Sink for Events {
    fn event(&mut self, draft: Draft<'_>) {
        self.seq += 1;
        // Any id that differs from the others in all its digits: none of them must be learned.
        let mixed =
            u128::from(self.session).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let digits = format!("{mixed:032x}");
        let part = |from, to| digits.get(from..to).unwrap_or_default();
        let session_id =
            [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-");
        let id = format!("{session_id}-{}", self.seq);
        let (minute, second) = (self.session % 60, self.seq % 60);
        let timestamp = format!("2026-11-18T10:{minute:02}:{second:02}.{:03}Z", mixed % 1000);
        let stamp =
            Stamp { id: &id, session_id: &session_id, seq: self.seq, timestamp: &timestamp };
        let mut line = Vec::new();
        let is_written = draft.stamp(stamp, |event| event.write_line(&mut line).is_ok());
        if is_written && line.len() <= LONGEST {
            self.lines.push(line);
        }
    }
}
