//! A client that reads with a deadline and leaves nothing unread.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::shared::{Ended, Home, Program};

pub(crate) struct Client {
    program: Program,
    next_id: u64,
}

/// A reply, and what arrived before it.
pub(crate) struct Answer {
    pub(crate) before: Vec<Value>,
    pub(crate) reply: Value,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self::at(&Home::new())
    }

    /// A client in the home of an earlier one.
    pub(crate) fn at(home: &Home) -> Self {
        let mut command = home.command(&["rpc"]);
        let program = Program::start(home, command.env("AGENTWIRE_AGENT", "demo"));
        Self { program, next_id: 0 }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.program.home().path("work")
    }

    pub(crate) fn say(&mut self, line: &[u8]) {
        assert!(self.program.bytes(&[line, b"\n"].concat()), "it reads");
    }

    /// Sends a call and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let call =
            json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        self.say(call.to_string().as_bytes());
        self.next_id
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.program.line().expect("one more line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads up to the first message that fits.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Answer {
        let mut before = Vec::new();
        loop {
            let said = self.read();
            if fits(&said) {
                return Answer { before, reply: said };
            }
            before.push(said);
        }
    }

    /// Reads until all of these have arrived, in any order. Returns them, and everything else.
    pub(crate) fn all<const N: usize>(
        &mut self,
        fits: [&dyn Fn(&Value) -> bool; N],
    ) -> ([Value; N], Vec<Value>) {
        let mut found = [const { Value::Null }; N];
        let mut rest = Vec::new();
        while found.iter().any(Value::is_null) {
            let said = self.read();
            let open = (0..N).find(|at| found[*at].is_null() && fits[*at](&said));
            match open {
                Some(at) => found[at] = said,
                None => rest.push(said),
            }
        }
        (found, rest)
    }

    pub(crate) fn reply(&mut self, id: u64) -> Answer {
        self.until(|said| said["id"] == id)
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Answer {
        let id = self.send(method, params);
        self.reply(id)
    }

    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        let result = answer.reply.get("result").cloned();
        result.unwrap_or_else(|| panic!("{method}: {}", answer.reply))
    }

    /// The JSON-RPC code of a failed call, and our code for it.
    pub(crate) fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        error(&self.call(method, params).reply)
    }

    /// Closes stdin. Everything except the ends of sessions must have been read.
    pub(crate) fn close(mut self) -> Home {
        self.program.hang_up();
        let mut unread = Vec::new();
        while let Some(line) = self.program.line() {
            if !line.contains("\"session/ended\"") {
                unread.push(line);
            }
        }
        let silent = Ended { code: Some(0), stderr: String::new() };
        assert_eq!(self.program.end(), silent);
        assert!(unread.is_empty(), "unread: {}", unread.join("\n"));
        self.program.home().clone()
    }
}

pub(crate) fn error(reply: &Value) -> (i64, String) {
    let code = reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("{reply}"));
    (code, reply["error"]["data"]["code"].as_str().expect("our code").to_owned())
}

/// The types of the `message` notifications among these.
pub(crate) fn types(said: &[Value]) -> Vec<&str> {
    let messages = said.iter().filter(|said| said["method"] == "message");
    messages.map(|said| said["params"]["message"]["type"].as_str().expect("a type")).collect()
}

/// The text of the `message` notifications among these.
pub(crate) fn text(said: &[Value]) -> String {
    let content =
        said.iter().filter_map(|said| said["params"]["message"]["message"]["content"].as_array());
    content.flatten().filter_map(|block| block["text"].as_str()).collect()
}
