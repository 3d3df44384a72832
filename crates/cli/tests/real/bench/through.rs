//! The same through agentwire: a client of `agentwire unified`, which runs before and after.

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
        // Whoever answers is ready; the error is the answer.
        lines.write(&json!({ "id": 0, "command": "stop", "sessionId": "none" }));
        lines.next();
        Self { bench, child, lines, session: String::new() }
    }

    /// From the wish for a session to its first word; then the turn is read to its end.
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

    /// From a further prompt to the end of its turn.
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

/// When there is nothing more to do, it ends by itself.
impl Drop for Through<'_> {
    fn drop(&mut self) {
        self.lines.say_all("");
        let _ = self.child.wait();
    }
}

/// What goes to a process and comes from it, line by line.
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
        let stdin = self.stdin.as_mut().expect("it is still told things");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("it reads");
    }

    /// The last of what it is told.
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
