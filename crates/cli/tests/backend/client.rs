//! A client of the backend that waits for every frame, and fails on one that nobody read.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a frame may take.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    root: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "home"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
        command.arg("backend").current_dir(root.path().join("work"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENTWIRE_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .env("AGENTWIRE_DATA_DIR", root.path().join("data"))
            .env("HOME", root.path().join("home"))
            .env("XDG_CONFIG_HOME", root.path().join("home"))
            .env("PATH", "/usr/bin:/bin")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (sender, lines) = sync_channel(1 << 16);
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { root, child, stdin, lines }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work").canonicalize().expect("it is there")
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).expect("the program reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.bytes(format!("{message}\n").as_bytes());
    }

    /// Creates a session of the demo agent; its id.
    pub(crate) fn create(&mut self, prompt: &str, options: &Value) -> String {
        self.send(&json!({ "type": "session.create", "id": "create", "payload": {
            "prompt": prompt, "cwd": self.work(), "options": options,
        } }));
        let created = self.frame();
        assert_eq!(
            (&created["type"], &created["id"]),
            (&json!("session.created"), &json!("create")),
            "{created}"
        );
        let id = created["session_id"].as_str().expect("an id").to_owned();
        assert_eq!(created["payload"], json!({ "sdk_session_id": id }));
        id
    }

    pub(crate) fn say(&mut self, kind: &str, id: &str, session: &str, payload: &Value) {
        self.send(&json!({ "type": kind, "id": id, "session_id": session, "payload": payload }));
    }

    /// Answers a callback.
    pub(crate) fn answer(&mut self, callback: &Value, payload: &Value) {
        let (id, session) = (callback["id"].as_str(), callback["session_id"].as_str());
        self.say("callback.response", id.expect("an id"), session.expect("a session"), payload);
    }

    pub(crate) fn line(&mut self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a frame in time")
    }

    pub(crate) fn frame(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The frames up to the first of that type, which must come next but for messages of the agent.
    pub(crate) fn next(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.frame();
            if frame["type"] == kind {
                return frame;
            }
            assert_eq!(frame["type"], "sdk.message", "instead of {kind}: {frame}");
        }
    }

    /// The agent's messages up to the result of its turn.
    pub(crate) fn turn(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let mut frame = self.frame();
            assert_eq!(frame["type"], "sdk.message", "in a turn: {frame}");
            let message = frame["payload"].take();
            let is_result = message["type"] == "result";
            messages.push(message);
            if is_result {
                return messages;
            }
        }
    }

    /// The text that the turn ends with.
    pub(crate) fn result(&mut self) -> String {
        let last = self.turn().pop().expect("a result");
        last["result"].as_str().unwrap_or_else(|| panic!("no text: {last}")).to_owned()
    }

    /// Kills the session, so that no message of it is left unread.
    pub(crate) fn kill(&mut self, session: &str) {
        self.say("session.kill", "kill", session, &json!({}));
        let killed = self.next("session.killed");
        let expected =
            json!({ "type": "session.killed", "id": "kill", "session_id": session, "payload": {} });
        assert_eq!(killed, expected);
    }

    /// Says no more: all that was said must have been read, and the program ends well and silently.
    pub(crate) fn finish(mut self) {
        self.stdin = None;
        if let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            panic!("unread: {line}");
        }
        self.end();
    }

    /// Says no more, and reads what is left.
    pub(crate) fn rest(mut self) -> Vec<Value> {
        self.stdin = None;
        let mut rest = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            rest.push(serde_json::from_str(&line).expect("JSON"));
        }
        self.end();
        rest
    }

    fn end(&mut self) {
        let status = self.child.wait().expect("the program ends");
        let mut told = String::new();
        self.child.stderr.take().expect("stderr").read_to_string(&mut told).expect("UTF-8");
        assert_eq!((status.code(), told.as_str()), (Some(0), ""));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The types of messages, without those that only tell of the prompt's way.
pub(crate) fn types(messages: &[Value]) -> Vec<&str> {
    let types = messages.iter().filter_map(|message| message["type"].as_str());
    types.filter(|kind| *kind != "command_lifecycle").collect()
}
