//! The demo agent, for the matrix of the SDKs. It is part of agentwire, so no package is fetched for it.

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
