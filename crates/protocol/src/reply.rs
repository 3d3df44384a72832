//! The gateway's replies, the same over HTTP and on lines.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::GatewayError;
use crate::event::{Event, EventKind, RequestKind, RequestRaised};
use crate::id::SessionId;
use crate::json::Json;
use crate::report::{SearchResult, UsageReport};
use crate::session::SessionConfig;
use crate::summary::SessionSummary;
use crate::watch::WatchFrame;

/// A page of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// In the order that was asked for.
    pub sessions: Vec<SessionSummary>,
    /// The value of `after` for the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl SessionList {
    /// The default page size.
    pub const PAGE: usize = 50;
    /// The maximum page size.
    pub const LIMIT: usize = 500;
}

/// A session and its config.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SessionDetails {
    /// The session as it appears in a list.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// The config, without secrets.
    pub config: SessionConfig,
}

/// A session that the client attached to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Attached {
    /// The session as it appears in a list.
    #[serde(flatten)]
    pub session: SessionSummary,
    /// Whether events are missing.
    pub resume: Resume,
}

/// Whether a client can continue from its last event without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Resume {
    /// The client gets every event after its last one.
    Exact,
    /// The client has events that this log does not have: it read another log, or the log was truncated.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
}

impl Resume {
    /// For a client that has the events up to `after`, in a log whose last event is `last`. Also returns
    /// the event after which to continue.
    pub fn of(after: u64, last: u64) -> (Self, u64) {
        match after <= last {
            true => (Self::Exact, after),
            false => (Self::Missing { from: last + 1, to: after }, last),
        }
    }
}

/// An accepted prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// The id of the prompt; the turn that works on it names it.
    pub message_id: String,
    /// The prompt was already accepted before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// The prompts that wait for their turn, in the order in which they will be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptQueue {
    /// The prompts.
    pub queued: Vec<QueuedPrompt>,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedPrompt {
    /// The id of the prompt.
    pub message_id: String,
    /// The text; at most its first 64 KiB.
    pub prompt: String,
    /// How many images it has.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub images: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// An interrupted turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptResult {
    /// The `messageId`s of the prompts that are still queued.
    pub still_queued: Vec<String>,
    /// With `cancelQueued`: the `messageId`s of the cancelled prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Vec<String>>,
}

/// Open requests, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestList {
    /// The requests.
    pub requests: Vec<OpenRequest>,
}

/// An open request, as it was raised.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// The session of the request.
    pub session_id: SessionId,
    /// The agent within the session that raised it.
    pub agent_id: String,
    /// The agent that spawned that agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<String>,
    /// When it was raised.
    pub raised_at: String,
    /// The number of the event that raised it.
    pub seq: u64,
    /// Always `open`; settled requests are not listed.
    pub state: RequestState,
    /// The request itself.
    #[serde(flatten)]
    pub request: RequestRaised<'static>,
}

impl OpenRequest {
    /// The request that this event raises, if it does. A request of an unknown kind waits for an answer
    /// too; it becomes [`RequestKind::Other`].
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let request = match &event.kind {
            EventKind::RequestRaised(request) => (**request).clone().into_owned(),
            EventKind::Unknown(unknown) if unknown.name == "requestRaised" => {
                raised(unknown.raw.get()).ok()?
            }
            _ => return None,
        };
        Some(Self {
            session_id: SessionId::from(event.session_id.as_ref()),
            agent_id: event.agent_id.to_string(),
            parent_agent_id: event.parent_agent_id.as_ref().map(ToString::to_string),
            raised_at: event.timestamp.to_string(),
            seq: event.seq,
            state: RequestState::Open,
            request,
        })
    }
}

/// Reads a request, even if its kind is unknown.
fn raised(text: &str) -> Result<RequestRaised<'static>, serde_json::Error> {
    let read = |text: &str| Ok(serde_json::from_str::<RequestRaised<'_>>(text)?.into_owned());
    read(text).or_else(|_| {
        let mut fields: BTreeMap<String, Json<'static>> = serde_json::from_str(text)?;
        fields.insert("kind".to_owned(), Json::of(&RequestKind::Other));
        read(Json::of(&fields).get())
    })
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequestState {
    /// It waits for an answer.
    Open,
}

// A `Json` value cannot be read through `flatten`, so the parts are read one by one.

impl<'de> Deserialize<'de> for SessionDetails {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Own {
            #[serde(default)]
            config: SessionConfig,
        }
        let whole = Json::deserialize(from)?;
        let Own { config } = part(&whole)?;
        Ok(Self { summary: part(&whole)?, config })
    }
}

impl<'de> Deserialize<'de> for OpenRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Own {
            session_id: SessionId,
            agent_id: String,
            #[serde(default)]
            parent_agent_id: Option<String>,
            raised_at: String,
            seq: u64,
        }
        let whole = Json::deserialize(from)?;
        let own: Own = part(&whole)?;
        let request = raised(whole.get()).map_err(serde::de::Error::custom)?;
        Ok(Self {
            session_id: own.session_id,
            agent_id: own.agent_id,
            parent_agent_id: own.parent_agent_id,
            raised_at: own.raised_at,
            seq: own.seq,
            state: RequestState::Open,
            request,
        })
    }
}

fn part<'w, T: Deserialize<'w>, E: serde::de::Error>(whole: &'w Json<'static>) -> Result<T, E> {
    serde_json::from_str(whole.get()).map_err(E::custom)
}

/// The reply to a command that succeeded.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DoneFrame")]
pub struct DoneFrame<'r, T> {
    /// The id of the command, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: &'r Option<Json<'static>>,
    /// The type depends on the command, see `Replies`.
    pub reply: T,
}

/// A command that was refused and changed nothing; or, without an `id`, a problem with the connection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorFrame<'r> {
    /// The id of the command, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: &'r Option<Json<'static>>,
    /// Why it was refused.
    pub error: &'r GatewayError,
}

/// The reply to a command.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum ReplyFrame {
    /// The command succeeded.
    Done(DoneFrame<'static, Json<'static>>),
    /// The command was refused.
    Refused(ErrorFrame<'static>),
    /// Sessions that have changed, after `watch`.
    Watch(WatchFrame),
}

/// The replies by command.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only used for its schema")]
pub struct Replies {
    start: SessionSummary,
    attach: Attached,
    prompt: PromptResult,
    interrupt: InterruptResult,
    stop: Nothing,
    finish: Nothing,
    settle: Nothing,
    /// The agent's reply.
    configure: Json<'static>,
    /// The agent's reply.
    query: Json<'static>,
    /// The agent's reply.
    rewind: Json<'static>,
    queue: PromptQueue,
    cancel: Nothing,
    edit: Nothing,
    list: SessionList,
    show: SessionDetails,
    label: SessionSummary,
    requests: RequestList,
    usage: UsageReport,
    search: SearchResult,
    detach: Nothing,
    watch: Nothing,
    unwatch: Nothing,
}

/// An empty reply, `{}`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Nothing {}
