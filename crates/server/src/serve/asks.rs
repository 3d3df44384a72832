//! What fronts ask of the hub.

use std::sync::Arc;

use agentwire_dialects::front::{Look, Reply};
use agentwire_protocol::{Call, ErrorCode, GatewayError, Json, NewSession, Resume, SessionId};
use agentwire_sessions::apart::apart_if_long;
use agentwire_sessions::budget::Share;
use agentwire_sessions::store::{Filter, StoreError};
use agentwire_sessions::{Hub, SessionHandle};

use crate::held::Held;
use crate::looks::{self, Begun};
use crate::reading::first_or_next;

/// How many bytes of events one reply may have.
const PAGE_BYTES: usize = 8 << 20;

/// A call that came back.
pub(super) struct Answered {
    /// Whose; what the pump itself wants has none.
    pub(super) call: Option<Call>,
    pub(super) reply: Result<Reply, GatewayError>,
    /// The session that it started.
    pub(super) started: Option<SessionHandle>,
    /// The events of what it did: up to that number of that session.
    pub(super) after: Option<(SessionId, u64)>,
    /// What a page takes of the budget until the client has it.
    pub(super) shares: Option<Shares>,
}

/// The shares of a page.
pub(super) type Shares = Held;

/// Waits for a session's reply.
pub(super) async fn command(
    call: Option<Call>,
    session: SessionId,
    answer: impl Future<Output = agentwire_sessions::session::Answered>,
) -> Answered {
    let answer = answer.await;
    let reply = answer.reply.map(Reply::Done);
    Answered { call, reply, started: None, after: Some((session, answer.last_seq)), shares: None }
}

/// Starts a session.
pub(super) async fn start(
    hub: Hub,
    call: Call,
    new: NewSession,
    share: Option<Arc<Share>>,
) -> Answered {
    let (reply, started) = match begin(&hub, new, share).await {
        Ok((reply, handle)) => (Ok(reply), handle),
        Err(error) => (Err(error), None),
    };
    Answered { started, ..answered(call, reply) }
}

async fn begin(
    hub: &Hub,
    new: NewSession,
    share: Option<Arc<Share>>,
) -> Result<(Reply, Option<SessionHandle>), GatewayError> {
    let after = match (&new.resume, new.fork) {
        (Some(id), false) => hub.summary(id).await?.last_seq,
        (Some(_), true) | (None, _) => 0,
    };
    match looks::begin(hub, new, share).await? {
        Begun::Runs(handle) => {
            let session = Box::new(handle.summary());
            Ok((Reply::Started { session, after }, Some(handle)))
        }
        Begun::Before(id) => {
            let session = Box::new(hub.summary(&id).await?);
            Ok((Reply::Started { session, after: 0 }, None))
        }
    }
}

/// What there is, as it is shown over HTTP.
pub(super) async fn look(hub: Hub, call: Call, look: Look) -> Answered {
    let seen = match look {
        Look::Sessions { live, after, limit } => {
            looks::sessions(&hub, live, after, limit).await.map(|seen| Json::of(&seen))
        }
        Look::Session(id) => looks::session(&hub, &id).await.map(|seen| Json::of(&seen)),
        Look::Taken { session, message_id } => {
            hub.has_taken(&session, &message_id).await.map(|taken| Json::of(&taken))
        }
        Look::Requests(of) => looks::requests(&hub, of.as_ref()).await.map(|seen| Json::of(&seen)),
    };
    answered(call, seen.map(Reply::Done))
}

/// Looks a session up.
pub(super) async fn session(hub: Hub, call: Call, id: SessionId) -> Answered {
    let summary = hub.summary(&id).await;
    answered(call, summary.map(|summary| Reply::Session(Box::new(summary))))
}

/// Looks up a session that this client started.
pub(super) async fn own(hub: Hub, call: Call, id: SessionId, client: Option<Arc<str>>) -> Answered {
    let found = hub.record(&id).await.and_then(|record| {
        match client.is_some() && record.client.as_deref() == client.as_deref() {
            true => Ok(Reply::Session(Box::new(record.summary))),
            false => Err(GatewayError::new(
                ErrorCode::SessionNotFound,
                format!("there is no session {id}"),
            )),
        }
    });
    answered(call, found)
}

/// The newest sessions.
pub(super) async fn sessions(hub: Hub, call: Call, limit: usize) -> Answered {
    let filter = Filter { limit: Some(limit), ..Filter::default() };
    answered(call, hub.sessions(filter).await.map(Reply::Sessions))
}

/// A page of events.
pub(super) async fn events(
    hub: Hub,
    call: Call,
    session: SessionId,
    after: u64,
    limit: usize,
) -> Answered {
    match page(&hub, &session, after, limit).await {
        Ok((reply, held)) => Answered { shares: Some(held), ..answered(call, Ok(reply)) },
        Err(error) => answered(call, Err(error)),
    }
}

fn answered(call: Call, reply: Result<Reply, GatewayError>) -> Answered {
    Answered { call: Some(call), reply, started: None, after: None, shares: None }
}

/// A page of what is there; it waits for nothing.
async fn page(
    hub: &Hub,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<(Reply, Held), GatewayError> {
    let last = hub.summary(session).await?.last_seq;
    let (resume, after) = Resume::of(after, last);
    let mut cursor = hub.log().cursor(session, after);
    let (mut events, mut next, mut bytes) = (Vec::new(), after, 0);
    let mut held = Held::default();
    'page: while cursor.position() < last && events.len() < limit && bytes < PAGE_BYTES {
        let batch = match first_or_next(&mut cursor, !events.is_empty()).await {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            // What there is is a page.
            Err(StoreError::Busy(_)) if !events.is_empty() => break,
            Err(error) => return Err(Hub::storage_error(&error)),
        };
        held.keep(&batch);
        for (seq, line) in batch.events() {
            let is_full = bytes > 0
                && (bytes + line.len() > PAGE_BYTES
                    || !held.may_grow(bytes + line.len(), PAGE_BYTES, hub.log().budget()));
            if events.len() == limit || is_full {
                break 'page;
            }
            bytes += line.len();
            next = seq;
            let text = apart_if_long(line.len(), || String::from_utf8_lossy(line).into_owned());
            events.push(text);
        }
    }
    Ok((Reply::Events { events, next, resume }, held))
}
