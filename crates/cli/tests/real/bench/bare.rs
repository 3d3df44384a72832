//! A program by itself: started as agentwire starts it, and driven with the fewest messages possible.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use agentwire_dialects::agent::{Launch, Start, Stdin};
use agentwire_protocol::{AgentType, Prompt, SessionConfig};
use serde_json::{Value, json};

use super::through::Lines;
use super::{Bench, PROMPT, WORD};
use crate::harness::dressed;

pub(super) struct Bare<'b> {
    bench: &'b Bench,
    wire: Wire,
    process: Option<Process>,
    /// The program's own session id.
    session: String,
    /// The number of the last call.
    call: u64,
}

/// The protocol of a program.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Claude,
    AppServer,
    Exec,
    Acp,
    Gemini,
}

struct Process {
    child: Child,
    lines: Lines,
}

impl<'b> Bare<'b> {
    pub(super) fn new(bench: &'b Bench) -> Self {
        let wire = match (bench.agent.kind, bench.agent.driver) {
            ("claude", _) => Wire::Claude,
            ("codex", "exec") => Wire::Exec,
            ("codex", _) => Wire::AppServer,
            ("gemini", "stream-json") => Wire::Gemini,
            _ => Wire::Acp,
        };
        Self { bench, wire, process: None, session: String::new(), call: 0 }
    }

    /// Whether one process serves all turns.
    pub(super) fn lasts(&self) -> bool {
        !matches!(self.wire, Wire::Exec | Wire::Gemini)
    }

    /// Measures the time from the start of the process to the first word, then reads to the end of the
    /// turn.
    pub(super) fn start(&mut self) -> Duration {
        let begun = Instant::now();
        self.spawn(None);
        match self.wire {
            Wire::Claude | Wire::Exec | Wire::Gemini => {}
            Wire::AppServer => {
                let client = json!({ "name": "bench", "title": "bench", "version": "1" });
                self.call("initialize", &json!({ "clientInfo": client }));
                self.write(&json!({ "method": "initialized" }));
                let thread = self.call(
                    "thread/start",
                    &json!({ "cwd": self.bench.work(), "model": self.bench.agent.model }),
                );
                self.session = text(&thread["thread"]["id"]);
            }
            Wire::Acp => {
                self.call("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
                let opened = self
                    .call("session/new", &json!({ "cwd": self.bench.work(), "mcpServers": [] }));
                self.session = text(&opened["sessionId"]);
            }
        }
        self.prompt();
        self.read_until(|_, line| line.contains(WORD) && !line.contains(PROMPT));
        let first = begun.elapsed();
        self.end();
        first
    }

    /// Measures the time from another prompt to the end of its turn.
    pub(super) fn turn(&mut self) -> Duration {
        let begun = Instant::now();
        if !self.lasts() {
            let session = self.session.clone();
            self.spawn(Some(&session));
        }
        self.prompt();
        self.end();
        begun.elapsed()
    }

    fn spawn(&mut self, resume: Option<&str>) {
        let config: SessionConfig =
            serde_json::from_value(self.bench.config()).expect("a config of ours");
        let agent = &self.bench.agent;
        let kind: AgentType = serde_json::from_value(json!(agent.kind)).expect("an agent");
        let dialect = agentwire_dialects::driver(kind, Some(agent.driver)).expect("a driver");
        let prompt = Prompt::text(PROMPT);
        let start = Start {
            config: &config,
            resume,
            fork: false,
            native_session_id: None,
            prompt: Some(&prompt),
        };
        let launch = dialect.launch(&start).expect("it can start");
        self.process = Some(Process::start(self.bench, &launch));
    }

    fn prompt(&mut self) {
        let session = self.session.clone();
        match self.wire {
            // It was passed at the start of the process.
            Wire::Exec | Wire::Gemini => {}
            Wire::Claude => self.write(&json!({
                "type": "user", "message": { "role": "user", "content": PROMPT },
            })),
            Wire::AppServer => {
                let input = json!([{ "type": "text", "text": PROMPT }]);
                self.send("turn/start", &json!({ "threadId": session, "input": input }));
            }
            Wire::Acp => {
                let prompt = json!([{ "type": "text", "text": PROMPT }]);
                self.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }));
            }
        }
    }

    fn end(&mut self) {
        let (wire, call) = (self.wire, self.call);
        let last = self.read_until(move |found, _| match wire {
            Wire::Claude | Wire::Gemini => found["type"] == "result",
            Wire::Exec => found["type"] == "turn.completed",
            Wire::AppServer => found["method"] == "turn/completed",
            Wire::Acp => found["id"] == call && found["method"].is_null(),
        });
        let is_error = !last["error"].is_null() || last["is_error"] == true;
        assert!(!is_error, "a turn failed: {last}");
        if !self.lasts() {
            drop(self.process.take());
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        let call = self.call;
        let answer =
            self.read_until(move |found, _| found["id"] == call && found["method"].is_null());
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn send(&mut self, method: &str, params: &Value) {
        self.call += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.call, "method": method, "params": params });
        self.write(&message);
    }

    fn write(&mut self, message: &Value) {
        self.process.as_mut().expect("a process").lines.write(message);
    }

    fn read_until(&mut self, wanted: impl Fn(&Value, &str) -> bool) -> Value {
        loop {
            let line = self.process.as_mut().expect("a process").lines.next();
            let found: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
            // Programs that report their session id in an event.
            let told = match self.wire {
                Wire::Exec => &found["thread_id"],
                Wire::Gemini => &found["session_id"],
                Wire::Claude | Wire::AppServer | Wire::Acp => &Value::Null,
            };
            if let Some(told) = told.as_str().filter(|_| self.session.is_empty()) {
                self.session = told.to_owned();
            }
            if wanted(&found, &line) {
                return found;
            }
        }
    }
}

impl Process {
    fn start(bench: &Bench, launch: &Launch) -> Self {
        assert!(launch.files.is_empty(), "files are not given here");
        let mut command = dressed(&bench.program, bench.directory.path(), bench.variables());
        command.args(launch.shown_args()).envs(&launch.env);
        command.current_dir(launch.working_directory.as_deref().map_or(Path::new("/"), Path::new));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let mut lines = Lines::of(&mut child);
        match &launch.stdin {
            Stdin::Open => {}
            Stdin::Text(text) => lines.say_all(text),
            Stdin::Empty => lines.say_all(""),
        }
        Self { child, lines }
    }
}

/// The program should exit when its stdin ends; if it does not, it is killed.
impl Drop for Process {
    fn drop(&mut self) {
        self.lines.say_all("");
        let begun = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if begun.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            crate::harness::pause();
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
