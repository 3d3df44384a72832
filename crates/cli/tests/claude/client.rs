//! The program, called by the name `claude`, and who speaks to it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Far more than anything takes here.
const DEADLINE: Duration = Duration::from_secs(60);

/// How an SDK starts the program.
const STREAM: [&str; 5] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

/// A machine of its own: home, data, a directory to work in.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "home", "bin"] {
            fs::create_dir(place.path().join(name)).expect("a directory");
        }
        symlink(env!("CARGO_BIN_EXE_agentwire"), place.path().join("bin/claude")).expect("a link");
        Self(place)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program as `claude`, with the demo agent behind.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(self.path("bin/claude"));
        command
            .args(args)
            .current_dir(self.path("work"))
            .env_clear()
            .env("AGENTWIRE_AGENT", "demo")
            .env("AGENTWIRE_DATA_DIR", self.path("data"))
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    pub(crate) fn client(&self, more: &[&str]) -> Client {
        let mut command = self.command(&[&STREAM, more].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
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
        Client { child, stdin, lines }
    }
}

/// Who speaks to it.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub(crate) fn say(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(&[line, b"\n"].concat()).expect("it reads");
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        let line =
            serde_json::json!({ "type": "user", "message": { "role": "user", "content": text } });
        self.say(line.to_string().as_bytes());
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("the program says something in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads up to a line of that type.
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        loop {
            let said = self.read();
            if said["type"] == kind {
                return said;
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says no more.
    pub(crate) fn hush(&mut self) {
        self.stdin = None;
    }

    /// What it still says, and its exit code.
    pub(crate) fn rest(mut self) -> (Vec<Value>, Option<i32>) {
        self.hush();
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE) {
            said.push(serde_json::from_str(&line).expect("JSON"));
        }
        let status = self.child.wait().expect("it ends");
        let mut stderr = String::new();
        let told = self.child.stderr.take().expect("stderr");
        BufReader::new(told).read_to_string(&mut stderr).expect("UTF-8");
        assert_eq!(stderr, "", "stderr is silent");
        (said, status.code())
    }
}
