//! A client of the backend that waits for every frame and fails on unread ones.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shared::{Ended, Home, Program};

pub(crate) struct Client {
    program: Program,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        Self::at(&Home::new(), variables)
    }

    pub(crate) fn at(home: &Home, variables: &[(&str, &str)]) -> Self {
        let mut command = home.command(&["backend"]);
        command.env("AGENTWIRE_AGENT", "demo").envs(variables.iter().copied());
        Self { program: Program::start(home, &mut command) }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.program.home().work()
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        assert!(self.program.bytes(bytes), "it reads");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.bytes(format!("{message}\n").as_bytes());
    }

    /// Creates a session of the demo agent and returns its id.
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

    pub(crate) fn answer(&mut self, callback: &Value, payload: &Value) {
        let (id, session) = (callback["id"].as_str(), callback["session_id"].as_str());
        self.say("callback.response", id.expect("an id"), session.expect("a session"), payload);
    }

    pub(crate) fn line(&mut self) -> String {
        self.program.line().expect("one more frame")
    }

    pub(crate) fn frame(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Skips messages of the agent and returns the next other frame, which must be of this type.
    pub(crate) fn next(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.frame();
            if frame["type"] == kind {
                return frame;
            }
            assert_eq!(frame["type"], "sdk.message", "instead of {kind}: {frame}");
        }
    }

    /// The agent's messages up to and including the result of the turn.
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

    /// The result text of the turn.
    pub(crate) fn result(&mut self) -> String {
        let last = self.turn().pop().expect("a result");
        last["result"].as_str().unwrap_or_else(|| panic!("no text: {last}")).to_owned()
    }

    /// Kills the session, so that none of its messages is left unread.
    pub(crate) fn kill(&mut self, session: &str) {
        self.say("session.kill", "kill", session, &json!({}));
        let killed = self.next("session.killed");
        let expected =
            json!({ "type": "session.killed", "id": "kill", "session_id": session, "payload": {} });
        assert_eq!(killed, expected);
    }

    /// Closes stdin. Everything must have been read, and the program must exit with 0 and an empty stderr.
    pub(crate) fn finish(self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "unread: {rest:?}");
    }

    /// Closes stdin and reads the rest.
    pub(crate) fn rest(mut self) -> Vec<Value> {
        self.program.hang_up();
        let lines = std::iter::from_fn(|| self.program.line());
        let rest = lines.map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        let silent = Ended { code: Some(0), stderr: String::new() };
        assert_eq!(self.program.end(), silent);
        rest
    }
}

pub(crate) fn types(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["type"].as_str()).collect()
}
