//! The program, called by the name `claude`, and who speaks to it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{self, Program};

/// How an SDK starts the program.
const STREAM: [&str; 5] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

/// A machine of its own: home, data, a directory to work in.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = program::place();
        fs::create_dir(place.path().join("bin")).expect("a directory");
        symlink(env!("CARGO_BIN_EXE_agentwire"), place.path().join("bin/claude")).expect("a link");
        Self(place)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program as `claude`, with the demo agent behind.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = program::command(self.path("bin/claude"), self.0.path());
        command.args(args);
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    pub(crate) fn client(&self, more: &[&str]) -> Client {
        self.client_with(more, &[])
    }

    /// With these variables.
    pub(crate) fn client_with(&self, more: &[&str], variables: &[(&str, &str)]) -> Client {
        let mut command = self.command(&[&STREAM, more].concat());
        Client(Program::start(command.envs(variables.iter().copied())))
    }
}

/// Who speaks to it.
pub(crate) struct Client(Program);

impl Client {
    pub(crate) fn say(&mut self, line: &[u8]) {
        self.0.bytes(&[line, b"\n"].concat());
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        let line =
            serde_json::json!({ "type": "user", "message": { "role": "user", "content": text } });
        self.say(line.to_string().as_bytes());
    }

    pub(crate) fn read(&mut self) -> Value {
        let line = self.0.line().expect("one more line");
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
        self.0.child.id()
    }

    /// Says no more.
    pub(crate) fn hush(&mut self) {
        self.0.hush();
    }

    /// What it still says, and its exit code.
    pub(crate) fn rest(mut self) -> (Vec<Value>, Option<i32>) {
        self.hush();
        let lines = std::iter::from_fn(|| self.0.line());
        let said = lines.map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        let code = self.0.end();
        (said, code)
    }
}
