//! A data directory of a test's own, sessions in it, and the program to look at them with.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agentwire_protocol::{AgentType, Prompt, SessionConfig, SessionId, SessionState};
use agentwire_sessions::{Hub, NewSession, SessionHandle, Settings};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Everything of one test.
pub(crate) struct Place {
    home: TempDir,
    /// Sessions of this process run here: for the program they are another process's.
    pub(crate) runtime: Runtime,
}

impl Place {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join("work")).expect("a directory to work in");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
        Self { home, runtime }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    /// The program, with nothing of the environment that could change what it does.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.path())
            .env("AGENTWIRE_DATA_DIR", self.data_dir())
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// What it prints; it must succeed.
    pub(crate) fn told(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", error(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.told(args)).expect("JSON")
    }

    /// The engine, in this process.
    pub(crate) fn hub(&self) -> Hub {
        let settings = Settings {
            data_dir: self.data_dir(),
            keeper: Some(Path::new(env!("CARGO_BIN_EXE_agentwire")).to_owned()),
            ..Settings::default()
        };
        self.runtime.block_on(Hub::open(settings)).expect("the engine opens")
    }

    /// Starts a session of the demo agent.
    pub(crate) fn start(&self, hub: &Hub, prompt: &str) -> SessionHandle {
        let new = NewSession {
            prompt: Some(Prompt::text(prompt)),
            config: SessionConfig {
                working_directory: Some(self.path("work").to_string_lossy().into_owned()),
                ..SessionConfig::default()
            },
            ..NewSession::of(AgentType::Demo)
        };
        self.runtime.block_on(hub.start(new)).expect("a session")
    }

    /// A session of one turn, over.
    pub(crate) fn ended(&self, prompt: &str) -> SessionId {
        let hub = self.hub();
        let session = self.start(&hub, prompt);
        self.runtime.block_on(async {
            session.until(|summary| summary.state == SessionState::Idle).await;
            hub.shutdown().await;
        });
        session.id().clone()
    }
}

pub(crate) fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}
