//! The same through agentwire, with a client of `agentwire unified` that starts before and ends after the
//! measurement.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, PROMPT, WORD};
use crate::harness::dressed;

pub(super) struct Through<'b> {
    bench: &'b Bench,
    child: Child,
    lines: Lines,
    session: String,
}

impl<'b> Through<'b> {
    pub(super) fn new(bench: &'b Bench) -> Self {
        let place = bench.directory.path();
        let own = Path::new(env!("CARGO_BIN_EXE_agentwire"));
        let mut command = dressed(own, place, bench.variables());
        command.env("AGENTWIRE_DATA_DIR", place.join("data"));
        command.env(bench.agent.variable, &bench.program).arg("unified");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("agentwire starts");
        let mut lines = Lines::of(&mut child);
        // An error to this command shows that it is ready.
        lines.write(&json!({ "id": 0, "command": "stop", "sessionId": "none" }));
        lines.next();
        Self { bench, child, lines, session: String::new() }
    }

    /// Measures the time from the start of a session to the first word, then reads to the end of the turn.
    pub(super) fn start(&mut self) -> Duration {
        let begun = Instant::now();
        self.lines.write(&json!({
            "id": 1, "command": "start", "agentType": self.bench.agent.kind, "prompt": PROMPT,
            "config": self.bench.config(),
        }));
        let word = self.read_until(|found, line| found == "textChunk" && line.contains(WORD));
        let first = begun.elapsed();
        let word: Value = serde_json::from_str(&word).expect("an event");
        self.session = word["sessionId"].as_str().expect("an id").to_owned();
        self.end();
        first
    }

    /// Measures the time from another prompt to the end of its turn.
    pub(super) fn turn(&mut self) -> Duration {
        let begun = Instant::now();
        let session = &self.session;
        let prompt =
            json!({ "id": 2, "command": "prompt", "sessionId": session, "prompt": PROMPT });
        self.lines.write(&prompt);
        self.end();
        begun.elapsed()
    }

    fn end(&mut self) {
        self.read_until(|found, _| found == "turnCompleted");
    }

    fn read_until(&mut self, wanted: impl Fn(&str, &str) -> bool) -> String {
        loop {
            let line = self.lines.next();
            let kind = line.split_once("\"type\":\"").and_then(|(_, rest)| rest.split_once('"'));
            let kind = kind.map_or("", |(kind, _)| kind);
            let is_over = kind == "turnFailed" || kind == "sessionEnded";
            assert!(!is_over && !line.contains("\"error\":{\"code\""), "it failed: {line}");
            if wanted(kind, &line) {
                return line;
            }
        }
    }
}

/// It exits by itself when its stdin ends.
impl Drop for Through<'_> {
    fn drop(&mut self) {
        self.lines.say_all("");
        let _ = self.child.wait();
    }
}

/// The stdin and stdout of a process, line by line.
pub(super) struct Lines {
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Lines {
    pub(super) fn of(child: &mut Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        Self { stdin: child.stdin.take(), stdout }
    }

    pub(super) fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("it reads");
    }

    /// Writes the text and closes stdin.
    pub(super) fn say_all(&mut self, text: &str) {
        if let Some(mut stdin) = self.stdin.take() {
            let _ = stdin.write_all(text.as_bytes());
        }
    }

    pub(super) fn next(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).expect("UTF-8") > 0, "it ended");
        line
    }
}
