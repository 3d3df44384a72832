//! The parameters of a session's notifications.

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{Json, SessionId, Text};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageParams<'p> {
    pub(super) session_id: &'p SessionId,
    pub(super) message: Json<'p>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventParams<'p> {
    pub(super) session_id: &'p SessionId,
    pub(super) event: Json<'p>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestParams<'p, R: Serialize> {
    pub(super) session_id: &'p SessionId,
    pub(super) agent_id: &'p Text<'p>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_agent_id: Option<&'p Text<'p>>,
    pub(super) request: R,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettledParams<'p> {
    pub(super) session_id: &'p SessionId,
    pub(super) agent_id: &'p Text<'p>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_agent_id: Option<&'p Text<'p>>,
    pub(super) request_id: &'p Text<'p>,
    pub(super) outcome: &'static str,
    pub(super) by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<&'p Text<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'p Text<'p>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndedParams<'p> {
    pub(super) session_id: &'p SessionId,
    pub(super) reason: SessionEndReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'p Text<'p>>,
}

/// The content of a `system` message.
#[derive(Serialize)]
pub(super) struct SystemMessage<'m> {
    pub(super) message: &'m Text<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<&'m Text<'m>>,
}
