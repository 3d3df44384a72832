//! A home where agentwire is installed under the name `claude`.

use std::ffi::OsStr;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use crate::shared::{AGENTWIRE, ClaudeClient, Home, Program};

/// The arguments with which an SDK starts the program.
const STREAM: [&str; 5] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

pub(crate) struct ClaudeHome(Home);

impl Deref for ClaudeHome {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.0
    }
}

impl ClaudeHome {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        std::fs::create_dir(home.path("drop-in")).expect("a directory");
        symlink(AGENTWIRE, home.path("drop-in/claude")).expect("a link");
        Self(home)
    }

    /// The program as `claude`, with the demo agent.
    pub(crate) fn claude<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(self.path("drop-in/claude"));
        self.settle(&mut command);
        command.env("AGENTWIRE_AGENT", "demo").args(args);
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.claude(args).output().expect("the program runs")
    }

    pub(crate) fn client(&self, more: &[&str]) -> ClaudeClient {
        self.client_with(more, &[])
    }

    pub(crate) fn client_with(&self, more: &[&str], variables: &[(&str, &str)]) -> ClaudeClient {
        let mut command = self.claude(&[&STREAM, more].concat());
        ClaudeClient::new(Program::start(self, command.envs(variables.iter().copied())))
    }
}
