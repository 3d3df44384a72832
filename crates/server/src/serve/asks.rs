//! What fronts ask of the hub.

use agentwire_dialects::front::{Ask, Reply};
use agentwire_protocol::{Call, GatewayError, NewSession, SessionId};
use agentwire_sessions::store::Filter;
use agentwire_sessions::{Hub, SessionHandle};

/// How many bytes of events one reply may have.
const PAGE_BYTES: usize = 8 << 20;

/// A call that came back.
pub(super) struct Answered {
    pub(super) call: Call,
    pub(super) reply: Result<Reply, GatewayError>,
    /// The session that it started.
    pub(super) started: Option<SessionHandle>,
    /// The events of what it did: up to that number of that session.
    pub(super) after: Option<(SessionId, u64)>,
}

/// Waits for a session's reply.
pub(super) async fn command(
    call: Call,
    session: SessionId,
    answer: impl Future<Output = agentwire_sessions::session::Answered>,
) -> Answered {
    let answer = answer.await;
    let reply = answer.reply.map(Reply::Done);
    Answered { call, reply, started: None, after: Some((session, answer.last_seq)) }
}

/// Asks the hub.
pub(super) async fn other(hub: Hub, call: Call, ask: Ask) -> Answered {
    let mut started = None;
    let reply = match ask {
        Ask::Start(new) => start(&hub, *new).await.map(|(handle, after)| {
            let session = Box::new(handle.summary());
            started = Some(handle);
            Reply::Started { session, after }
        }),
        Ask::Session(id) => hub.summary(&id).await.map(|summary| Reply::Session(Box::new(summary))),
        Ask::Sessions { limit } => {
            let filter = Filter { limit: Some(limit), ..Filter::default() };
            hub.sessions(filter).await.map(Reply::Sessions)
        }
        Ask::Events { session, after, limit } => events(&hub, &session, after, limit).await,
        Ask::Command(session, command) => match hub.session(&session) {
            Ok(handle) => handle.send(command).await.map(Reply::Done),
            Err(error) => Err(error),
        },
    };
    Answered { call, reply, started, after: None }
}

async fn start(hub: &Hub, new: NewSession) -> Result<(SessionHandle, u64), GatewayError> {
    let after = match (&new.resume, new.fork) {
        (Some(id), false) => hub.summary(id).await?.last_seq,
        (Some(_), true) | (None, _) => 0,
    };
    Ok((hub.start(new).await?, after))
}

/// A page of what is there; it waits for nothing.
async fn events(
    hub: &Hub,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Reply, GatewayError> {
    let last = hub.summary(session).await?.last_seq;
    let mut cursor = hub.log().cursor(session, after);
    let (mut events, mut next, mut bytes) = (Vec::new(), after, 0);
    while cursor.position() < last && events.len() < limit && bytes < PAGE_BYTES {
        let batch = cursor.next().await.map_err(|error| Hub::storage_error(&error))?;
        let Some(batch) = batch else { break };
        for (seq, line) in batch.events() {
            if events.len() == limit || (bytes > 0 && bytes + line.len() > PAGE_BYTES) {
                return Ok(Reply::Events { events, next });
            }
            bytes += line.len();
            next = seq;
            events.push(String::from_utf8_lossy(line).into_owned());
        }
    }
    Ok(Reply::Events { events, next })
}
