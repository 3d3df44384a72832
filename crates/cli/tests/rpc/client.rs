//! A client that reads with a deadline and leaves nothing unread.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more than anything takes here.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Client {
    place: TempDir,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
}

/// What a call gave: what was said before the reply, and the reply.
pub(crate) struct Answer {
    pub(crate) before: Vec<Value>,
    pub(crate) reply: Value,
}

impl Client {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        Self::at(place)
    }

    /// A client in the place of another that has left.
    pub(crate) fn at(place: TempDir) -> Self {
        for name in ["data", "work", "home"] {
            let _ = fs::create_dir(place.path().join(name));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
        command.arg("rpc").current_dir(place.path().join("work"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AGENTWIRE_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .env("AGENTWIRE_DATA_DIR", place.path().join("data"))
            .env("HOME", place.path().join("home"))
            .env("XDG_CONFIG_HOME", place.path().join("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (said, lines) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { place, child, stdin, lines, next_id: 0 }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    pub(crate) fn say(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line).expect("it reads");
        stdin.write_all(b"\n").expect("it reads");
        stdin.flush().expect("it reads");
    }

    /// Sends a call; gives its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let call =
            json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        self.say(call.to_string().as_bytes());
        self.next_id
    }

    /// The next that the program says.
    pub(crate) fn read(&mut self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("the program says something in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads up to something that fits.
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

    /// Reads up to where each of these has been said, in any order; gives them, and all else.
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

    /// The result of a call that succeeds.
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.call(method, params);
        let result = answer.reply.get("result").cloned();
        result.unwrap_or_else(|| panic!("{method}: {}", answer.reply))
    }

    /// The code of a call that fails, and our name of it.
    pub(crate) fn error(&mut self, method: &str, params: &Value) -> (i64, String) {
        error(&self.call(method, params).reply)
    }

    /// Says no more; gives what was still unread but for the last words of sessions.
    pub(crate) fn close(mut self) -> TempDir {
        drop(self.stdin.take());
        let mut unread = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            unread.push(line);
        }
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
        let mut stderr = String::new();
        let told = self.child.stderr.take().expect("stderr");
        std::io::Read::read_to_string(&mut BufReader::new(told), &mut stderr).expect("UTF-8");
        assert_eq!(stderr, "", "stderr is silent");
        assert!(unread.is_empty(), "unread: {}", unread.join("\n"));
        let Self { place, .. } = self;
        place
    }
}

pub(crate) fn error(reply: &Value) -> (i64, String) {
    let code = reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("{reply}"));
    (code, reply["error"]["data"]["code"].as_str().expect("our code").to_owned())
}

/// The types of the messages among these.
pub(crate) fn types(said: &[Value]) -> Vec<&str> {
    let messages = said.iter().filter(|said| said["method"] == "message");
    messages.map(|said| said["params"]["message"]["type"].as_str().expect("a type")).collect()
}

/// The text of the assistant's messages among these.
pub(crate) fn text(said: &[Value]) -> String {
    let content =
        said.iter().filter_map(|said| said["params"]["message"]["message"]["content"].as_array());
    content.flatten().filter_map(|block| block["text"].as_str()).collect()
}
