//! Starts the demo agent directly, and reads its output.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::shared::{ClaudeClient, Home, PATIENCE, Program};

pub(crate) const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// A home with the agent's state next to its working directory.
pub(crate) struct DemoHome(Home);

impl Deref for DemoHome {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.0
    }
}

impl DemoHome {
    pub(crate) fn new() -> Self {
        Self(Home::new())
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    pub(crate) fn start(&self, flags: &[&str]) -> ClaudeClient {
        let session = format!("--session-id={SESSION}");
        let named = flags.iter().any(|flag| {
            flag.starts_with("--resume")
                || flag.starts_with("--session-id")
                || *flag == "--anonymous"
        });
        let flags = flags.iter().copied().filter(|flag| *flag != "--anonymous");
        let wire =
            ["demo-agent", "-p", "--output-format=stream-json", "--input-format=stream-json"];
        let mut command = self.command(&wire);
        command
            .args(["--verbose", "--permission-prompt-tool=stdio"])
            .arg(format!("--state-dir={}", self.state().display()))
            .args(flags.chain((!named).then_some(session.as_str())));
        ClaudeClient::new(Program::start(self, &mut command))
    }
}

/// All text from complete blocks.
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

/// Waits until that process is gone.
pub(crate) fn await_gone(pid: &str) {
    let until = Instant::now() + PATIENCE;
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

/// Waits until that file is not empty.
pub(crate) fn await_file(path: &Path) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(Instant::now() < until, "{} stays empty", path.display());
        thread::park_timeout(Duration::from_millis(5));
    }
}
