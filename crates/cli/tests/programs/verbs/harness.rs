//! A home with sessions that this process runs, and the program to inspect them.

use std::ops::Deref;
use std::process::Output;

use agentwire_protocol::{AgentType, Prompt, SessionConfig, SessionId, SessionState};
use agentwire_sessions::{Hub, NewSession, SessionHandle, Settings};
use tokio::runtime::Runtime;

use crate::shared::{AGENTWIRE, Home};

/// A home whose engine can run in this process.
pub(crate) struct EngineHome {
    home: Home,
    /// Runs the sessions of this process. To the program they belong to another process.
    pub(crate) runtime: Runtime,
}

impl Deref for EngineHome {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl EngineHome {
    pub(crate) fn new() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
        Self { home: Home::new(), runtime }
    }

    pub(crate) fn hub(&self) -> Hub {
        let settings = Settings {
            data_dir: self.data(),
            keeper: Some(AGENTWIRE.into()),
            ..Settings::default()
        };
        self.runtime.block_on(Hub::open(settings)).expect("the engine opens")
    }

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

    /// An ended session with one turn.
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

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}
