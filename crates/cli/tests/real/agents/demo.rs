//! The demo agent, for the SDKs' matrix. It is part of agentwire, so there is no package to install.

use super::{Agent, Login, claude};

pub(super) const DEMO: Agent = Agent {
    name: "demo",
    kind: "demo",
    model: "first-model",
    other_model: "second-model",
    variable: "AGENTWIRE_DEMO_BIN",
    environment: |_, _| Vec::new(),
    login: Login::Untold,
    broken: None,
    cannot: &[],
    ..claude::NOW
};
