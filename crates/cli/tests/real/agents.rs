//! The columns: how each program is set up, and how a script calls its tools.

mod claude;
mod codex;
mod demo;
mod gemini;

use std::path::Path;

use serde_json::Value;

use crate::packages::Package;
use crate::trouble::SetUp;

/// A program of a pinned version, and the driver for it.
#[derive(Clone, Copy)]
pub(crate) struct Agent {
    /// The head of its column.
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) driver: &'static str,
    pub(crate) package: Package,
    /// The variable that tells agentwire where the program is.
    pub(crate) variable: &'static str,
    pub(crate) model: &'static str,
    pub(crate) other_model: &'static str,
    /// Writes the program's settings.
    pub(crate) set_up: fn(home: &Path, url: &str),
    pub(crate) environment: fn(home: &Path, url: &str) -> Vec<(String, String)>,
    pub(crate) words: Words,
    /// The mode it needs to ask questions, if any.
    pub(crate) question_mode: Option<&'static str>,
    /// Whether its text arrives in deltas.
    pub(crate) has_deltas: bool,
    /// A script that ends with a structured answer.
    pub(crate) structured: fn(answer: &Value) -> String,
    /// Removes the program's stored sessions.
    pub(crate) forget: fn(home: &Path),
    pub(crate) login: Login,
    /// Removes its key.
    pub(crate) sign_out: SetUp,
    /// Restores its default number of retries.
    pub(crate) retry: SetUp,
    /// Makes it fail at its start, with the error it prints; not possible for all.
    pub(crate) broken: Option<Broken>,
    /// Scenarios it does not support, and why.
    pub(crate) cannot: &'static [(&'static str, &'static str)],
}

/// How a program is signed in, and whether it reports that.
#[derive(Clone, Copy)]
pub(crate) enum Login {
    /// By an environment variable.
    Variable,
    /// By a command that reads a key.
    Command(&'static [&'static str]),
    /// It does not report it.
    Untold,
}

/// The key of every program. It is not valid anywhere.
pub(crate) const KEY: &str = "made-up";

/// A setup with which a program cannot start.
#[derive(Clone, Copy)]
pub(crate) struct Broken {
    pub(crate) set_up: SetUp,
    /// agentwire's settings.
    pub(crate) settings: Option<&'static str>,
    /// What the program prints.
    pub(crate) says: &'static str,
}

/// Steps of a script that call one program's tools.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub(crate) shell: fn(command: &str) -> Call,
    pub(crate) write: fn(path: &Path, text: &str) -> Call,
    pub(crate) edit: fn(path: &Path, old: &str, new: &str) -> Call,
    pub(crate) read: fn(path: &Path) -> Call,
    pub(crate) question: fn(question: &str, options: [&str; 2]) -> Call,
    pub(crate) subagent: fn(prompt: &str) -> Call,
    /// The step that creates a list of two tasks.
    pub(crate) plan: fn(first: &str, second: &str) -> String,
    pub(crate) server_tool: fn(server: &str, tool: &str, arguments: Value) -> Call,
}

/// A tool's name and its input.
pub(crate) struct Call(pub(crate) String, pub(crate) Value);

impl Call {
    fn new(name: impl Into<String>, given: Value) -> Self {
        Self(name.into(), given)
    }

    pub(crate) fn step(&self) -> String {
        format!("[[tool {} {}]]", self.0, self.1)
    }
}

/// Only in the SDKs' matrix.
pub(crate) const DEMO: Agent = demo::DEMO;

pub(crate) const AGENTS: [Agent; 7] = [
    claude::NOW,
    claude::BEFORE,
    codex::APP_SERVER,
    codex::EXEC,
    gemini::ACP,
    gemini::HEADLESS,
    claude::OVER_ACP,
];

impl Agent {
    /// Why it does not support a scenario, or `None` if it does.
    pub(crate) fn cannot(&self, scenario: &str) -> Option<&'static str> {
        self.cannot.iter().find(|(name, _)| *name == scenario).map(|(_, why)| *why)
    }
}

fn remove(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
}

fn variables<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}
