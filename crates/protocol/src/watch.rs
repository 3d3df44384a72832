//! All sessions at once: what a client that watches them receives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::reply::OpenRequest;
use crate::summary::SessionSummary;

/// Sessions and open requests that are new or have changed. The state is sent, not the difference: a change
/// that arrives twice changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchChange {
    /// Where to resume. Its content means nothing to clients.
    pub cursor: String,
    /// The watch starts over with everything: what the client knows is out of date.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
    /// Sessions that are new or have changed.
    pub sessions: Vec<ChangedSession>,
    /// Sessions that were deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<SessionId>,
    /// The client now knows everything; changes follow. Sent once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
}

/// A session that is new or has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedSession {
    /// The session as it appears in a list.
    pub session: SessionSummary,
    /// All its open requests, oldest first, if they have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Vec<OpenRequest>>,
}

/// The line that carries a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchFrame {
    /// The change.
    pub watch: WatchChange,
}
