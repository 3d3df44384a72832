//! The inbox: what agents ask and wait for, over all sessions, and the answers.

use agentwire_protocol::{
    Command, ErrorCode, Event, EventKind, GatewayError, Json, SessionId, Settlement,
};
use agentwire_sessions::Hub;
use axum::body::Body;
use axum::extract::{Extension, State};
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{At, SMALL, json, query, read, text};
use super::problem::Problem;
use super::rest::{Answer, order, session_id};
use super::{App, power};
use crate::tokens::{Caller, Scope};

/// A request that waits.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
    if let Some(id) = &of {
        app.hub().summary(id).await?;
    }
    let mut requests = Vec::new();
    for session in app.hub().running() {
        // The record knows of a request as soon as anybody can have seen it; the session's own summary
        // follows.
        if of.as_ref().is_none_or(|id| session.id() == id) {
            requests.extend(open(app.hub(), session.id()).await?);
        }
    }
    requests.sort_by(|a, b| {
        (&a.raised_at, &a.session_id, a.seq).cmp(&(&b.raised_at, &b.session_id, b.seq))
    });
    Ok(json(StatusCode::OK, &Inbox { requests }))
}

/// What a session asks now, read from its log.
async fn open(hub: &Hub, id: &SessionId) -> Result<Vec<Waiting>, GatewayError> {
    let record = hub.record(id).await?;
    let mut requests = Vec::new();
    for by in record.open.requests.values() {
        let Some(seq) = by.seq else { continue };
        requests.extend(raised(hub, id, seq).await?);
    }
    Ok(requests)
}

/// The request that was raised by that event.
async fn raised(hub: &Hub, id: &SessionId, seq: u64) -> Result<Option<Waiting>, GatewayError> {
    let mut cursor = hub.log().cursor(id, seq.saturating_sub(1));
    let batch = cursor.next().await.map_err(|error| Hub::storage_error(&error))?;
    let Some(batch) = batch else { return Ok(None) };
    let line = batch.events().find(|(number, _)| *number == seq).map(|(_, line)| line);
    let event = line.and_then(|line| std::str::from_utf8(line).ok());
    let event = event.and_then(|text| Event::from_json(text).ok());
    Ok(event.and_then(|event| waiting(id, event)))
}

fn waiting(id: &SessionId, event: Event<'_>) -> Option<Waiting> {
    let EventKind::RequestRaised(request) = event.kind else { return None };
    Some(Waiting {
        session_id: id.clone(),
        agent_id: event.agent_id.to_string(),
        parent_agent_id: event.parent_agent_id.map(|parent| parent.to_string()),
        raised_at: event.timestamp.into_owned(),
        seq: event.seq,
        state: "open",
        request: request.into_owned(),
    })
}

/// `GET /v1/sessions/{id}/requests/{rid}`
pub(super) async fn show(
    State(app): State<App>,
    At((id, request)): At<(String, String)>,
) -> Answer {
    let id = session_id(&id)?;
    let record = app.hub().record(&id).await?;
    let seq = record.open.requests.get(&request).and_then(|by| by.seq);
    let found = match seq {
        Some(seq) => raised(app.hub(), &id, seq).await?,
        None => None,
    };
    match found {
        Some(found) => Ok(json(StatusCode::OK, &found)),
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
    let settlement = settlement(&text(body, SMALL).await?, &request)?;
    power::settle(&caller, &settlement)?;
    let reply = order(&app, &caller, &session_id(&id)?, Command::Settle(settlement)).await?;
    tracing::info!(session = id, request, by = &*caller.name, "a request is answered");
    Ok(json(StatusCode::OK, &reply))
}

/// The body may leave out which request it is for; the path says.
fn settlement(text: &str, request: &str) -> Result<Settlement, Problem> {
    let mut fields: std::collections::BTreeMap<String, Json<'static>> = read(text)?;
    let named = fields.entry("requestId".to_owned()).or_insert_with(|| Json::of(&request));
    if named.read::<String>().ok().as_deref() != Some(request) {
        return Err(Problem::invalid("requestId is not the request of the path"));
    }
    read(Json::of(&fields).get())
}
