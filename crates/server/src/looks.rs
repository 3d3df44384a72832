//! What clients see of sessions as a whole, over HTTP and on every line alike.

use std::sync::Arc;

use agentwire_protocol::reply::{PromptResult, RequestList, SessionDetails, SessionList};
use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Json, NewSession, SessionId, SessionState,
};
use agentwire_sessions::store::Filter;
use agentwire_sessions::{Hub, SessionHandle};

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

/// Wants something of a session that runs here. A prompt that was taken before counts once, even if the
/// session is over since, or runs elsewhere.
pub async fn order(
    hub: &Hub,
    id: &SessionId,
    client: Option<&Arc<str>>,
    command: Command,
) -> Result<Json<'static>, GatewayError> {
    let message_id =
        if let Command::Prompt(prompt) = &command { prompt.message_id.clone() } else { None };
    let reply = send(hub, id, client, command).await;
    let is_unheard = reply.as_ref().is_err_and(GatewayError::is_unheard);
    match message_id.filter(|_| is_unheard) {
        Some(message_id) if hub.has_taken(id, &message_id).await? => {
            Ok(Json::of(&PromptResult { message_id, repeated: true }))
        }
        Some(_) | None => reply,
    }
}

/// A session that never was is told from one that is over.
async fn send(
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
) -> Result<SessionList, GatewayError> {
    let limit = limit.unwrap_or(SessionList::PAGE);
    if !(1..=SessionList::LIMIT).contains(&limit) {
        let message = format!("limit is {limit}, it must be from 1 to {}", SessionList::LIMIT);
        return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
    }
    if let Some(before) = &after {
        hub.summary(before).await?;
    }
    // One more tells whether there is a further page.
    let filter = Filter { live, before: after, limit: Some(limit + 1) };
    let mut sessions = hub.sessions(filter).await?;
    let has_more = sessions.len() > limit;
    sessions.truncate(limit);
    let next = sessions.last().filter(|_| has_more).map(|session| session.id.clone());
    Ok(SessionList { sessions, next })
}

/// A session, and what it runs with.
pub async fn session(hub: &Hub, id: &SessionId) -> Result<SessionDetails, GatewayError> {
    let record = hub.record(id).await?;
    Ok(SessionDetails { summary: record.summary, config: record.config.shown() })
}

/// What waits for an answer, in one session or in all.
pub async fn requests(hub: &Hub, of: Option<&SessionId>) -> Result<RequestList, GatewayError> {
    Ok(RequestList { requests: hub.open_requests(of).await? })
}
