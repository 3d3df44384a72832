//! What clients see of sessions as a whole, over HTTP and on every line alike.

use agentwire_protocol::reply::{PromptResult, RequestList, SessionDetails, SessionList};
use agentwire_protocol::{
    Command, Configure, ErrorCode, GatewayError, Json, NewSession, SessionConfig, SessionId,
    SessionState,
};
use agentwire_sessions::session::Client;
use agentwire_sessions::store::Filter;
use agentwire_sessions::{Hub, SessionHandle};
use sha2::{Digest as _, Sha256};

/// A session that was asked for.
pub enum Begun {
    /// It runs here.
    Runs(SessionHandle),
    /// It was begun before with the same key, and may be over.
    Before(SessionId),
}

/// Begins a session, or goes on with one that waits for its next prompt, or finds the one that was begun
/// with the same key.
pub async fn begin(hub: &Hub, new: NewSession) -> Result<Begun, GatewayError> {
    if let Some(session) = waiting(hub, &new).await? {
        return go_on(session, new).await.map(Begun::Runs);
    }
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

/// The session that is to go on, if it runs here and has nothing to do, or has begun to do this.
async fn waiting(hub: &Hub, new: &NewSession) -> Result<Option<SessionHandle>, GatewayError> {
    let Some(id) = new.resume.as_ref().filter(|_| !new.fork) else { return Ok(None) };
    let Ok(session) = hub.session(id) else { return Ok(None) };
    let is_idle = session.summary().state == SessionState::Idle;
    let is_taken = match &new.key {
        Some(key) if !is_idle => hub.has_taken(id, &message_id(key)).await?,
        Some(_) | None => false,
    };
    Ok((is_idle || is_taken).then_some(session))
}

/// Gives a session that runs its next prompt. What it runs with stays, but for the model and the mode.
async fn go_on(session: SessionHandle, new: NewSession) -> Result<SessionHandle, GatewayError> {
    let (id, summary) = (session.id(), session.summary());
    if summary.agent_type != new.agent {
        let agent = summary.agent_type.as_str();
        let message = format!("session {id} is one of {agent}; go on with it with that agent");
        return Err(GatewayError::new(ErrorCode::Conflict, message));
    }
    let SessionConfig { model, approval_mode, permission_mode, .. } = new.config.clone();
    let kept = SessionConfig {
        model: model.clone(),
        approval_mode,
        permission_mode: permission_mode.clone(),
        ..SessionConfig::default()
    };
    if new.config != kept {
        let message = format!(
            "session {id} runs: only its model and its mode can be changed now; stop it first to resume \
             it with other options"
        );
        return Err(GatewayError::new(ErrorCode::Conflict, message));
    }
    if kept != SessionConfig::default() {
        let change = Configure {
            model: model.map(Some),
            approval_mode,
            permission_mode,
            ..Configure::default()
        };
        session.send(Command::Configure(change)).await?;
    }
    if let Some(mut prompt) = new.prompt {
        // A start that is sent twice is one prompt.
        prompt.message_id = prompt.message_id.or(new.key.map(|key| message_id(&key)));
        session.send(Command::Prompt(prompt)).await?;
    }
    Ok(session)
}

/// The id of the message that is sent under that key. Some agents take none but UUIDs.
pub(crate) fn message_id(key: &str) -> String {
    let digest = Sha256::digest(key);
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// Wants something of a session that runs here. A prompt that was taken before counts once, even if the
/// session is over since, or runs elsewhere.
pub async fn order(
    hub: &Hub,
    id: &SessionId,
    client: &Client,
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
    client: &Client,
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
    let limit = limit.unwrap_or(SessionList::PAGE).clamp(1, SessionList::LIMIT);
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
