//! What clients see of sessions as a whole, over HTTP and on every line alike.

use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::reply::{PromptResult, RequestList, SessionDetails, SessionList};
use agentwire_protocol::{
    Command, Configure, ErrorCode, GatewayError, Json, NewSession, SessionConfig, SessionId,
    SessionState,
};
use agentwire_sessions::budget::Share;
use agentwire_sessions::hub::{Once, Turn};
use agentwire_sessions::session::Client;
use agentwire_sessions::store::Filter;
use agentwire_sessions::{Hub, SessionHandle};
use sha2::{Digest as _, Sha256};

use crate::held::unless_wanted;

/// How long a large prompt may wait until the agent has taken a change, while others wait for its share.
const CHANGE: Duration = Duration::from_secs(1);

const BUSY: &str =
    "the agent has not taken the change yet, and others wait to send large messages; try again";

/// A session that was asked for.
pub enum Begun {
    /// It runs here.
    Runs(SessionHandle),
    /// It was begun before with the same key, and may be over.
    Before(SessionId),
}

/// Begins a session, or goes on with one that waits for its next prompt. A key that was used before, for
/// whatever it was, does nothing again. A large one has its share of the budget.
pub async fn begin(
    hub: &Hub,
    mut new: NewSession,
    share: Option<Arc<Share>>,
) -> Result<Begun, GatewayError> {
    let Some(key) = new.key.clone() else {
        return match waiting(hub, &new) {
            Some(session) => go_on(hub.clone(), session, new, share).await.map(Begun::Runs),
            None => hub.start(new).await.map(Begun::Runs),
        };
    };
    let turn = match hub.once(&key).await? {
        Once::Before(id) => return Ok(Begun::Before(id)),
        Once::New(turn) => turn,
    };
    if let (Some(id), Some(prompt)) = (new.resume.clone().filter(|_| !new.fork), &mut new.prompt) {
        // The key may have been that of a prompt.
        let message = prompt.message_id.get_or_insert_with(|| message_id(&key));
        if hub.has_taken(&id, message).await? {
            return Ok(Begun::Before(id));
        }
    }
    if let Some(session) = waiting(hub, &new) {
        return within(turn, go_on(hub.clone(), session, new, share)).await.map(Begun::Runs);
    }
    // Starts with one key take turns themselves, and look again.
    drop(turn);
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

/// The session that is to go on, if it runs here and has nothing to do.
fn waiting(hub: &Hub, new: &NewSession) -> Option<SessionHandle> {
    let id = new.resume.as_ref().filter(|_| !new.fork)?;
    let session = hub.session(id).ok()?;
    (session.summary().state == SessionState::Idle).then_some(session)
}

/// Gives a session that runs its next prompt. What it runs with stays, but for the model and the mode.
async fn go_on(
    hub: Hub,
    session: SessionHandle,
    new: NewSession,
    share: Option<Arc<Share>>,
) -> Result<SessionHandle, GatewayError> {
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
        let changed = session.send(Command::Configure(change));
        match &share {
            None => changed.await?,
            Some(_) => unless_wanted(&hub.log().budget().clients, CHANGE, changed)
                .await
                .unwrap_or_else(|| Err(GatewayError::new(ErrorCode::Overloaded, BUSY)))?,
        };
    }
    let last = match new.prompt {
        Some(prompt) => Command::Prompt(prompt),
        None => Command::Configure(Configure::default()),
    };
    match new.key {
        Some(key) => session.send_once(last, &key, share).await?,
        None => session.send_large(last, share).await?,
    };
    Ok(session)
}

/// Holds the turn of a key until the work under it is done, also if the caller does not wait for it.
async fn within<T: Send + 'static>(
    turn: Turn,
    work: impl Future<Output = Result<T, GatewayError>> + Send + 'static,
) -> Result<T, GatewayError> {
    let done = tokio::spawn(async move {
        let done = work.await;
        drop(turn);
        done
    });
    done.await.unwrap_or_else(|error| {
        let message = format!("agentwire failed: {error}");
        Err(GatewayError::new(ErrorCode::Internal, message))
    })
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
    share: Option<Arc<Share>>,
) -> Result<Json<'static>, GatewayError> {
    let message_id =
        if let Command::Prompt(prompt) = &command { prompt.message_id.clone() } else { None };
    let reply = send(hub, id, client, command, share).await;
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
    share: Option<Arc<Share>>,
) -> Result<Json<'static>, GatewayError> {
    let error = match hub.session(id) {
        Ok(session) => return session.of_client(client).send_large(command, share).await,
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
