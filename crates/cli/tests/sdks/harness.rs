//! The home of a scenario: the `claude` that it drives, and the agent behind it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::child::{assert_none_left, run};
use crate::recording;
use crate::shared::{AGENTWIRE, Home, Server};

const DEADLINE: Duration = Duration::from_secs(90);

/// The agent. All except the demo agent are recordings, named by their fixture.
#[derive(Clone, Copy)]
pub(crate) enum Agent {
    Demo,
    Codex(&'static str),
    Acp(&'static str),
    Gemini(&'static str),
}

pub(crate) struct SdkHome {
    home: Home,
    agent: Agent,
}

impl SdkHome {
    pub(crate) fn new(agent: Agent) -> Self {
        let home = Home::new();
        symlink(AGENTWIRE, home.path("claude")).unwrap();
        Self { home, agent }
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.root()
    }

    /// Runs the scenario. It must succeed in time and leave no process.
    pub(crate) async fn play(self, mut command: Command, scenario: &str) {
        let home = self.path();
        command.arg(scenario).arg(home.join("claude")).current_dir(home.join("work"));
        command.env("HOME", home).env("AGENTWIRE_DATA_DIR", home.join("data"));
        let name = match self.agent {
            Agent::Demo => "demo",
            Agent::Codex(fixture) => {
                self.recorded("codex", &recording::codex(fixture), &mut command)
            }
            Agent::Acp(fixture) => self.recorded("acp", &recording::acp(fixture), &mut command),
            Agent::Gemini(fixture) => {
                self.recorded("gemini", &recording::acp(fixture), &mut command)
            }
        };
        command.env("AGENTWIRE_AGENT", name);
        let ended = run(command, DEADLINE, &home.join("output")).await;
        assert_none_left(home.to_str().unwrap()).await;
        if let Err(output) = ended {
            panic!("{output}");
        }
    }

    /// Installs a program that plays this recording for any arguments and logs its stdin.
    fn recorded(&self, name: &'static str, recording: &str, command: &mut Command) -> &'static str {
        let file = self.path().join("recording.jsonl");
        fs::write(&file, recording).unwrap();
        let [player, file, told] =
            [Path::new(AGENTWIRE), &file, &self.path().join("told.jsonl")].map(quoted);
        let script = format!("#!/bin/sh\ntee {told} | {player} play --speed max {file}\n");
        let program = self.home.program(name, &script);
        command.env(format!("AGENTWIRE_{}_BIN", name.to_uppercase()), program);
        name
    }
}

/// A server for third-party programs. It finds no agent except the demo agent.
pub(crate) fn serve(home: &Home) -> Server {
    Server::launch(home.clone(), &[], &[], |command, _| {
        command.env("PATH", "/nowhere");
    })
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_str().unwrap().replace('\'', r"'\''"))
}
