//! What clients see of sessions as a whole, over HTTP and on every line alike.

use std::sync::Arc;

use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Json, NewSession, SessionConfig, SessionId, SessionState,
    SessionSummary,
};
use agentwire_sessions::hub::OpenRequest;
use agentwire_sessions::store::Filter;
use agentwire_sessions::{Hub, SessionHandle};
use schemars::JsonSchema;
use serde::Serialize;

/// How many sessions a page has.
pub const PAGE: usize = 50;

/// How many a page may have.
pub const PAGE_LIMIT: usize = 500;

/// A page of sessions.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionList")]
pub struct Listed {
    /// Newest first.
    sessions: Vec<SessionSummary>,
    /// The `after` of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<SessionId>,
}

/// A session, and what it runs with.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SessionDetails")]
pub struct Details {
    #[serde(flatten)]
    session: SessionSummary,
    /// Without secrets.
    config: SessionConfig,
}

/// A request that waits.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OpenRequest")]
pub struct Waiting {
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
    request: RequestRaised<'static>,
}

/// What waits for an answer, oldest first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RequestList")]
pub struct Inbox {
    /// The requests.
    requests: Vec<Waiting>,
}

/// A session that was asked for.
pub enum Begun {
    /// It runs here.
    Runs(SessionHandle),
    /// It was begun before with the same key, and may be over.
    Before(SessionId),
}

/// Begins a session, or finds the one that was begun with the same key.
pub async fn begin(hub: &Hub, new: NewSession) -> Result<Begun, GatewayError> {
    let Some(key) = new.key.clone() else { return hub.start(new).await.map(Begun::Runs) };
    if let Some(id) = hub.started_with(&key).await? {
        return Ok(Begun::Before(id));
    }
    match hub.start(new).await {
        Ok(session) => Ok(Begun::Runs(session)),
        // Another with this key may have been first, and be over as well. Whatever else went wrong did so
        // in this one.
        Err(error) if matches!(error.code, ErrorCode::Conflict | ErrorCode::SessionNotFound) => {
            hub.started_with(&key).await?.map(Begun::Before).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Wants something of a session that runs here. A session that never was is told from one that is over.
pub async fn order(
    hub: &Hub,
    id: &SessionId,
    client: Option<&Arc<str>>,
    command: Command,
) -> Result<Json<'static>, GatewayError> {
    let error = match hub.session(id) {
        Ok(session) => return session.of_client(client).send(command).await,
        Err(error) => error,
    };
    let is_over = hub.summary(id).await?.state == SessionState::Ended;
    let message = match is_over {
        true => format!("session {id} is over; start a session with its id to go on"),
        false => format!("session {id} runs in another process; ask there"),
    };
    Err(GatewayError::new(if is_over { ErrorCode::Conflict } else { error.code }, message))
}

/// A page of sessions, newest first.
pub async fn sessions(
    hub: &Hub,
    live: bool,
    after: Option<SessionId>,
    limit: Option<usize>,
) -> Result<Listed, GatewayError> {
    if let Some(before) = &after {
        hub.summary(before).await?;
    }
    let limit = limit.unwrap_or(PAGE);
    // One more tells whether there is a further page.
    let filter = Filter { live, before: after, limit: Some(limit + 1) };
    let mut sessions = hub.sessions(filter).await?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let next = sessions.last().filter(|_| has_more).map(|session| session.id.clone());
    Ok(Listed { sessions, next })
}

/// A session, and what it runs with.
pub async fn session(hub: &Hub, id: &SessionId) -> Result<Details, GatewayError> {
    let record = hub.record(id).await?;
    Ok(Details { session: record.summary, config: record.config.shown() })
}

/// What waits for an answer, in one session or in all.
pub async fn requests(hub: &Hub, of: Option<&SessionId>) -> Result<Inbox, GatewayError> {
    let requests = hub.open_requests(of).await?;
    Ok(Inbox { requests: requests.into_iter().map(Waiting::from).collect() })
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
