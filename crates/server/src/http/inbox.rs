//! The inbox: what agents ask and wait for, over all sessions, and the answers.

use agentwire_protocol::{Command, ErrorCode, Fields, GatewayError, Json, SessionId, Settlement};
use agentwire_sessions::hub::OpenRequest;
use axum::body::Body;
use axum::extract::{Extension, State};
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{At, LARGE, json, query, read, text};
use super::problem::Problem;
use super::rest::{Answer, order, session_id};
use super::{App, power};
use crate::tokens::{Caller, Scope};

/// A request that waits.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OpenRequest")]
pub(super) struct Waiting {
    /// The session that asks.
    session_id: SessionId,
    /// The agent within it that asks.
    agent_id: String,
    /// The agent that spawned that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_agent_id: Option<String>,
    /// When it was asked.
    raised_at: String,
    /// The number of the event that tells it.
    seq: u64,
    /// `open`
    state: &'static str,
    #[serde(flatten)]
    request: agentwire_protocol::event::RequestRaised<'static>,
}

/// What waits for an answer, oldest first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RequestList")]
pub(super) struct Inbox {
    /// The requests.
    requests: Vec<Waiting>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InboxQuery {
    state: Option<String>,
    session_id: Option<String>,
}

/// `GET /v1/requests`
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Answer {
    let InboxQuery { state, session_id: of } = query(&uri)?;
    if state.as_deref().is_some_and(|state| state != "open") {
        return Err(Problem::invalid("state must be open: the log has those that are settled"));
    }
    let of = of.as_deref().map(session_id).transpose()?;
    let requests = app.hub().open_requests(of.as_ref()).await?;
    let requests = requests.into_iter().map(Waiting::from).collect();
    Ok(json(StatusCode::OK, &Inbox { requests }))
}

impl From<OpenRequest> for Waiting {
    fn from(open: OpenRequest) -> Self {
        Self {
            session_id: open.session_id,
            agent_id: open.agent_id,
            parent_agent_id: open.parent_agent_id,
            raised_at: open.raised_at,
            seq: open.seq,
            state: "open",
            request: open.request,
        }
    }
}

/// `GET /v1/sessions/{id}/requests/{rid}`
pub(super) async fn show(
    State(app): State<App>,
    At((id, request)): At<(String, String)>,
) -> Answer {
    let id = session_id(&id)?;
    match app.hub().open_request(&id, &request).await? {
        Some(found) => Ok(json(StatusCode::OK, &Waiting::from(found))),
        None => {
            let message = format!("session {id} has no open request {request}");
            Err(GatewayError::new(ErrorCode::RequestNotFound, message).into())
        }
    }
}

/// `POST /v1/sessions/{id}/requests/{rid}`
pub(super) async fn settle(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    At((id, request)): At<(String, String)>,
    body: Body,
) -> Answer {
    power::need(&caller, Scope::Approve)?;
    let settlement = settlement(&text(body, LARGE).await?, &request)?;
    power::settle(&caller, &settlement)?;
    let reply = order(&app, &caller, &session_id(&id)?, Command::Settle(settlement)).await?;
    Ok(json(StatusCode::OK, &reply))
}

/// The body may leave out which request it is for; the path says.
fn settlement(text: &str, request: &str) -> Result<Settlement, Problem> {
    let mut fields: Fields = read(text)?;
    let named = fields.entry("requestId".to_owned()).or_insert_with(|| Json::of(&request));
    if named.read::<String>().ok().as_deref() != Some(request) {
        return Err(Problem::invalid("requestId is not the request of the path"));
    }
    read(Json::of(&fields).get())
}

#[cfg(test)]
mod tests {
    use super::settlement;

    #[test]
    fn an_answer_says_each_thing_once() {
        assert!(settlement(r#"{"behavior":"deny"}"#, "r").is_ok());
        assert!(settlement(r#"{"behavior":"deny","behavior":"allow"}"#, "r").is_err());
        assert!(settlement(r#"{"requestId":"r","requestId":"r","behavior":"deny"}"#, "r").is_err());
        assert!(settlement(r#"{"requestId":"s","behavior":"deny"}"#, "r").is_err());
    }
}
