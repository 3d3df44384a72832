//! The official TypeScript SDK as a yardstick: it reads the same agent and stores nothing.
//!
//! It needs node and npm and downloads the SDK, so it takes part only with `AGENTWIRE_TEST_SDKS=1`, like
//! the tests that use it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use crate::agent;
use crate::install;

/// A program that reads one agent through the SDK.
pub struct Sdk {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    _directory: TempDir,
}

/// What the SDK's program saw of one order.
#[derive(Deserialize)]
pub struct Seen {
    pub seconds: f64,
    /// Lines that were lost, doubled or out of order.
    pub faults: u64,
    /// Microseconds of its processor time.
    pub cpu: f64,
    /// Microseconds between the writing of each line and its arrival in the program.
    pub ages: Vec<f64>,
}

impl Sdk {
    /// `None` unless the SDKs are turned on.
    pub async fn start() -> Option<Self> {
        if std::env::var_os("AGENTWIRE_TEST_SDKS").is_none_or(|value| value != "1") {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        // The SDK starts a program without a first argument of ours.
        let program = directory.path().join("agent");
        let own = std::env::current_exe().unwrap();
        let script = format!("#!/bin/sh\nexec '{}' {} \"$@\"\n", own.display(), agent::VERB);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/server/sdk.mjs");
        let mut command = install::node("node".into(), directory.path(), source.as_ref()).await;
        command.arg(&program).env("HOME", directory.path()).current_dir(directory.path());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node starts");
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut sdk = Self { child, orders, answers, _directory: directory };
        // The first turn includes the start of everything.
        sdk.order(&agent::order(1, 0, 0));
        Some(sdk)
    }

    /// Has the agent print, and returns once the SDK has given every line to its program.
    pub fn order(&mut self, order: &str) -> Seen {
        writeln!(self.orders, "{order}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the SDK's program said {line:?}"))
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
