//! A client of the demo agent that fails rather than waits for ever, and leaves nothing behind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Generous: only a hang is longer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";

pub(crate) struct Demo {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything that it wrote, so far.
    pub(crate) written: Vec<String>,
    stderr: Option<thread::JoinHandle<String>>,
}

/// A directory to work in, with the agent's memory beside it.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    /// Where the agent works, without symbolic links.
    pub(crate) fn work(&self) -> std::path::PathBuf {
        self.root.path().join("work").canonicalize().unwrap()
    }

    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.root.path().join("state")
    }

    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    pub(crate) fn start(&self, flags: &[&str]) -> Demo {
        let session = format!("--session-id={SESSION}");
        let named = flags.iter().any(|flag| {
            flag.starts_with("--resume")
                || flag.starts_with("--session-id")
                || *flag == "--anonymous"
        });
        let flags = flags.iter().copied().filter(|flag| *flag != "--anonymous");
        Demo::spawn(self, flags.chain((!named).then_some(session.as_str())))
    }
}

impl Demo {
    fn spawn<'f>(place: &Place, flags: impl Iterator<Item = &'f str>) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_agentwire"))
            .args(["demo-agent", "-p", "--output-format=stream-json", "--input-format=stream-json"])
            .args(["--verbose", "--permission-prompt-tool=stdio"])
            .arg(format!("--state-dir={}", place.state().display()))
            .args(flags)
            .current_dir(place.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = sync_channel(100_000);
        let stdout = child.stdout.take().unwrap();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, written: Vec::new(), stderr: Some(stderr) }
    }

    pub(crate) fn send_raw(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        // Whether it still reads, its output tells.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }

    pub(crate) fn send(&mut self, line: &Value) {
        self.send_raw(&line.to_string());
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.send(&json!({
            "type": "user",
            "message": { "role": "user", "content": text },
            "parent_tool_use_id": null,
        }));
    }

    /// Sends a control request and waits for its answer.
    pub(crate) fn control(&mut self, request: Value) -> Value {
        let id = format!("client-{}", self.written.len());
        self.request(&id, request);
        let answers = |line: &Value| {
            line["type"] == "control_response" && line["response"]["request_id"] == *id
        };
        self.until(answers)["response"].clone()
    }

    /// Sends a control request and does not wait.
    pub(crate) fn request(&mut self, id: &str, request: Value) {
        self.send(&json!({ "type": "control_request", "request_id": id, "request": request }));
    }

    pub(crate) fn initialize(&mut self, mut fields: Value) -> Value {
        fields["subtype"] = json!("initialize");
        self.control(fields)
    }

    pub(crate) fn answer(&mut self, request: &Value, response: Value) {
        let response = json!({
            "subtype": "success", "request_id": request["request_id"], "response": response,
        });
        self.send(&json!({ "type": "control_response", "response": response }));
    }

    /// The next line; `None` at the end of its output.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => {
                self.written.push(line.clone());
                Some(line)
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                panic!("the agent is silent; it said:\n{}", self.written.join("\n"))
            }
        }
    }

    /// The next line that fits; those before it are passed over.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        while let Some(line) = self.next_line() {
            let Ok(line) = serde_json::from_str(&line) else { continue };
            if fits(&line) {
                return line;
            }
        }
        panic!("the agent ended; it said:\n{}", self.written.join("\n"))
    }

    pub(crate) fn until_request(&mut self, subtype: &str) -> Value {
        self.until(|line| line["request"]["subtype"] == subtype)
    }

    pub(crate) fn until_result(&mut self) -> Value {
        self.until(|line| line["type"] == "result")
    }

    /// A whole turn in which everything is allowed; all its lines.
    pub(crate) fn turn(&mut self, prompt: &str) -> Vec<Value> {
        self.turn_with(prompt, |_| Some(json!({ "behavior": "allow" })))
    }

    /// A whole turn; `reply` answers requests, or leaves them alone.
    pub(crate) fn turn_with(
        &mut self,
        prompt: &str,
        reply: impl Fn(&Value) -> Option<Value>,
    ) -> Vec<Value> {
        self.prompt(prompt);
        self.finish_turn(reply)
    }

    pub(crate) fn finish_turn(&mut self, reply: impl Fn(&Value) -> Option<Value>) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.until(|_| true);
            if line["type"] == "control_request"
                && let Some(response) = reply(&line["request"])
            {
                self.answer(&line, response);
            }
            let ended = line["type"] == "result";
            lines.push(line);
            if ended {
                return lines;
            }
        }
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes stdin and waits for the end: the exit code, and what it said on stderr.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        self.close_stdin();
        while self.next_line().is_some() {}
        let status = self.child.wait().unwrap();
        (status.code(), self.stderr.take().unwrap().join().unwrap())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All text that was said whole.
pub(crate) fn text(lines: &[Value]) -> String {
    blocks(lines, "text").iter().filter_map(|block| block["text"].as_str()).collect()
}

pub(crate) fn blocks(lines: &[Value], kind: &str) -> Vec<Value> {
    let said = lines.iter().filter(|line| line["type"] == "assistant" || line["type"] == "user");
    let content = said.filter_map(|line| line["message"]["content"].as_array());
    content.flatten().filter(|block| block["type"] == kind).cloned().collect()
}

pub(crate) fn result(lines: &[Value]) -> &Value {
    lines.iter().find(|line| line["type"] == "result").expect("a result")
}

pub(crate) fn requests<'l>(lines: &'l [Value], subtype: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["request"]["subtype"] == subtype).collect()
}

/// Waits until that process is no more.
pub(crate) fn await_gone(pid: &str) {
    let until = Instant::now() + DEADLINE;
    let proc = Path::new("/proc").join(pid.trim());
    let is_alive = || {
        let stat = std::fs::read_to_string(proc.join("stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_alive() {
        assert!(Instant::now() < until, "process {pid} is still there");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Waits until that file has something in it.
pub(crate) fn await_file(path: &Path) -> String {
    let until = Instant::now() + DEADLINE;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(Instant::now() < until, "{} stays empty", path.display());
        thread::park_timeout(Duration::from_millis(5));
    }
}
