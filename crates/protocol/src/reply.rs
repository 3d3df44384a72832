//! What the gateway answers, over HTTP and on every line alike.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::GatewayError;
use crate::event::{Event, EventKind, RequestKind, RequestRaised};
use crate::id::SessionId;
use crate::json::Json;
use crate::session::SessionConfig;
use crate::summary::SessionSummary;

/// A page of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// Newest first.
    pub sessions: Vec<SessionSummary>,
    /// The `after` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<SessionId>,
}

impl SessionList {
    /// How many a page has, unless it is said.
    pub const PAGE: usize = 50;
    /// How many it may have.
    pub const LIMIT: usize = 500;
}

/// A session, and what it runs with.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SessionDetails {
    /// The session as it stands in a list.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// Without secrets.
    pub config: SessionConfig,
}

/// A session that is attached to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Attached {
    /// The session as it stands in a list.
    #[serde(flatten)]
    pub session: SessionSummary,
    /// Whether anything is missing.
    pub resume: Resume,
}

/// Whether a client that has read up to there can go on without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Resume {
    /// It gets every event after the last that it knows.
    Exact,
    /// It knows events that this log does not have: it was another log, or one that was cut.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
}

impl Resume {
    /// For a client that knows the events up to `after`, where there are `last`; and the event after
    /// which it goes on.
    pub fn of(after: u64, last: u64) -> (Self, u64) {
        match after <= last {
            true => (Self::Exact, after),
            false => (Self::Missing { from: last + 1, to: after }, last),
        }
    }
}

/// A prompt that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// Under which it was taken; the turn that works on it names it.
    pub message_id: String,
    /// It was taken before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// A turn that was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptResult {
    /// The prompts that wait all the same, by the ids under which they were taken.
    pub still_queued: Vec<String>,
    /// With `cancelQueued`: those that were given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<Vec<String>>,
}

/// What waits for an answer, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestList {
    /// The requests.
    pub requests: Vec<OpenRequest>,
}

/// What an agent asks and waits for, as it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// The session that asks.
    pub session_id: SessionId,
    /// The agent within it that asks.
    pub agent_id: String,
    /// The agent that spawned that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<String>,
    /// When it was asked.
    pub raised_at: String,
    /// The number of the event that tells it.
    pub seq: u64,
    /// Always `open`: one that is settled is not told.
    pub state: RequestState,
    /// What is asked.
    #[serde(flatten)]
    pub request: RequestRaised<'static>,
}

impl OpenRequest {
    /// What that event asks, if it asks. A kind that is not known here waits for an answer too: it is
    /// [`RequestKind::Other`].
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

/// Reads a request, also of a kind that is not known here.
fn raised(text: &str) -> Result<RequestRaised<'static>, serde_json::Error> {
    let read = |text: &str| Ok(serde_json::from_str::<RequestRaised<'_>>(text)?.into_owned());
    read(text).or_else(|_| {
        let mut fields: BTreeMap<String, Json<'static>> = serde_json::from_str(text)?;
        fields.insert("kind".to_owned(), Json::of(&RequestKind::Other));
        read(Json::of(&fields).get())
    })
}

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequestState {
    /// It waits.
    Open,
}

// What is kept as it was written cannot be read through `flatten`: the parts are read one by one.

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

/// A command that was done, as a line tells it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DoneFrame")]
pub struct DoneFrame<'r, T> {
    /// The command's, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: &'r Option<Json<'static>>,
    /// What it is goes by the command, see `Replies`.
    pub reply: T,
}

/// A command that was refused, and changed nothing; or, without an `id`, what happened to the wire.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorFrame<'r> {
    /// The command's, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: &'r Option<Json<'static>>,
    /// Why.
    pub error: &'r GatewayError,
}

/// What a line says of a command.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum ReplyFrame {
    /// It was done.
    Done(DoneFrame<'static, Json<'static>>),
    /// It was refused.
    Refused(ErrorFrame<'static>),
}

/// What is replied, by the command.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is a table of types")]
pub struct Replies {
    start: SessionSummary,
    attach: Attached,
    prompt: PromptResult,
    interrupt: InterruptResult,
    stop: Nothing,
    finish: Nothing,
    settle: Nothing,
    /// What the agent says.
    configure: Json<'static>,
    /// What the agent says.
    query: Json<'static>,
    /// What the agent says.
    rewind: Json<'static>,
    list: SessionList,
    show: SessionDetails,
    requests: RequestList,
    detach: Nothing,
}

/// `{}`: there is nothing to say.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Nothing {}
