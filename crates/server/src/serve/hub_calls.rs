//! The calls that fronts make to the hub.

use std::future::ready;
use std::sync::Arc;

use agentwire_dialects::front::{GatewayQuery, GatewayReply};
use agentwire_protocol::{Call, ErrorCode, GatewayError, Json, NewSession, Profile, SessionId};
use agentwire_sessions::budget::Share;
use agentwire_sessions::hub::StartOutcome;
use agentwire_sessions::store::Filter;
use agentwire_sessions::{Hub, SessionHandle};

use crate::event_pages::{self, FilledPage, PageBuilder};
use crate::http::REPORT_PATIENCE as PATIENCE;
use crate::read_budget::ReadShares;

pub(super) struct FinishedCall {
    /// `None` for the pump's own commands.
    pub(super) call: Option<Call>,
    pub(super) reply: Result<GatewayReply, GatewayError>,
    pub(super) started: Option<SessionHandle>,
    /// The events that the call caused: up to this number in this session.
    pub(super) after: Option<(SessionId, u64)>,
    /// The budget shares of a page, held until the client has it.
    pub(super) shares: Option<ReadShares>,
}

pub(super) async fn command(
    hub: Hub,
    call: Option<Call>,
    session: SessionId,
    message_id: Option<String>,
    answer: impl Future<Output = agentwire_sessions::session::CommandReply>,
) -> FinishedCall {
    let answer = answer.await;
    let reply = match answer.reply {
        Err(refusal) => hub.repeated(&session, message_id, refusal).await,
        reply => reply,
    };
    let after = Some((session, answer.last_seq));
    FinishedCall { call, reply: reply.map(GatewayReply::Done), started: None, after, shares: None }
}

/// Answers for a session that does not run in this process.
pub(super) async fn not_running(
    hub: Hub,
    call: Call,
    session: SessionId,
    message_id: Option<String>,
    refusal: GatewayError,
) -> FinishedCall {
    let reply = hub.repeated(&session, message_id, refusal).await;
    finished(call, reply.map(GatewayReply::Done))
}

pub(super) async fn start(
    hub: Hub,
    call: Call,
    new: NewSession,
    share: Option<Arc<Share>>,
) -> FinishedCall {
    let (reply, started) = match start_session(&hub, new, share).await {
        Ok((reply, handle)) => (Ok(reply), handle),
        Err(error) => (Err(error), None),
    };
    FinishedCall { started, ..finished(call, reply) }
}

async fn start_session(
    hub: &Hub,
    new: NewSession,
    share: Option<Arc<Share>>,
) -> Result<(GatewayReply, Option<SessionHandle>), GatewayError> {
    let after = match (&new.resume, new.fork) {
        (Some(id), false) => hub.summary(id).await?.last_seq,
        (Some(_), true) | (None, _) => 0,
    };
    match hub.start_or_continue(new, share).await? {
        StartOutcome::Running(handle) => {
            let session = Box::new(hub.labelled(handle.summary()).await);
            Ok((GatewayReply::Started { session, after }, Some(handle)))
        }
        StartOutcome::Existing(id) => {
            let session = Box::new(hub.summary(&id).await?);
            Ok((GatewayReply::Started { session, after: 0 }, None))
        }
    }
}

/// The same information as over HTTP.
pub(super) async fn query(hub: Hub, call: Call, query: GatewayQuery) -> FinishedCall {
    let seen = match query {
        GatewayQuery::Sessions(query) => hub.page(*query).await.map(|seen| Json::of(&seen)),
        GatewayQuery::Label(id, change) => hub.label(&id, change).await.map(|seen| Json::of(&seen)),
        GatewayQuery::Session(id) => hub.details(&id).await.map(|seen| Json::of(&seen)),
        GatewayQuery::Usage(query) => hub.usage(&query, PATIENCE).await.map(|seen| Json::of(&seen)),
        GatewayQuery::Search(query) => {
            hub.search(*query, PATIENCE).await.map(|seen| Json::of(&seen))
        }
        GatewayQuery::Requests(of) => hub.requests(of.as_ref()).await.map(|seen| Json::of(&seen)),
    };
    finished(call, seen.map(GatewayReply::Done))
}

pub(super) async fn session(hub: Hub, call: Call, id: SessionId) -> FinishedCall {
    let summary = hub.summary(&id).await;
    finished(call, summary.map(|summary| GatewayReply::Session(Box::new(summary))))
}

/// Looks up a session; it must be one that this client started.
pub(super) async fn own_session(
    hub: Hub,
    call: Call,
    id: SessionId,
    client: Option<Arc<str>>,
) -> FinishedCall {
    let found = hub.record(&id).await.and_then(|record| {
        match client.is_some() && record.client.as_deref() == client.as_deref() {
            true => Ok(record.summary),
            false => Err(GatewayError::new(
                ErrorCode::SessionNotFound,
                format!("there is no session {id}"),
            )),
        }
    });
    let found = match found {
        Ok(summary) => Ok(GatewayReply::Session(Box::new(hub.labelled(summary).await))),
        Err(error) => Err(error),
    };
    finished(call, found)
}

pub(super) async fn sessions(hub: Hub, call: Call, limit: usize) -> FinishedCall {
    let filter = Filter { limit: Some(limit), ..Filter::default() };
    finished(call, hub.sessions(filter).await.map(GatewayReply::Sessions))
}

pub(super) async fn events(
    hub: Hub,
    call: Call,
    session: SessionId,
    after: u64,
    limit: usize,
) -> FinishedCall {
    let page = PageBuilder::new(&hub, "[", limit);
    match event_pages::read(&hub, &session, after, page, Profile::Full, ready(())).await {
        Ok(FilledPage { page, next, resume, .. }) => {
            let (mut text, shares) = page.into_parts();
            text.push(']');
            let reply = GatewayReply::Events { events: Json::trusted(text), next, resume };
            FinishedCall { shares: Some(shares), ..finished(call, Ok(reply)) }
        }
        Err(error) => finished(call, Err(error)),
    }
}

fn finished(call: Call, reply: Result<GatewayReply, GatewayError>) -> FinishedCall {
    FinishedCall { call: Some(call), reply, started: None, after: None, shares: None }
}
