//! Events: an envelope that the session stamps, a kind from a dialect, and the agent's own lines.

pub mod agent;
pub mod content;
pub mod file;
pub mod request;
pub mod session;
pub mod status;
pub mod tool;
pub mod turn;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

pub use agent::{AgentFinished, AgentOutcome, AgentSpawned};
pub use content::{PlanEntry, PlanStatus, PlanUpdated, TextChunk, ThinkingChunk};
pub use file::{FileChangeType, FileChanged};
pub use request::{
    Question, QuestionOption, RequestKind, RequestOption, RequestOptionKind, RequestOutcome,
    RequestRaised, RequestSettled, SettledBy, TRUST_DIRECTORY, UNANSWERED, input_digest,
};
pub use session::{AgentInfo, SessionEndReason, SessionEnded, SessionStarted};
pub use status::{ErrorEvent, Other, Status, StatusChanged, UsageReported};
pub use tool::{ToolCompleted, ToolFailed, ToolFailure, ToolKind, ToolProgress, ToolStarted};
pub use turn::{TurnCompleted, TurnFailed, TurnFailure, TurnOrigin, TurnStarted};

use crate::json::{Json, Text, WriteError, write_line, write_value};
use crate::native::{Lines, Native};

/// One entry in a session's log. It never changes once it has a number.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct Event<'a> {
    /// Unique across all sessions.
    pub id: Cow<'a, str>,
    /// The session it belongs to.
    pub session_id: Cow<'a, str>,
    /// Starts at 1 in each session and has no gaps.
    pub seq: u64,
    /// When the gateway received it, RFC 3339 in UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: Cow<'a, str>,
    /// What happened.
    #[schemars(flatten)]
    pub kind: EventKind<'a>,
    /// `main`, or for a subagent the id of the tool call that spawned it.
    pub agent_id: Text<'a>,
    /// For subagents, the agent that spawned this one.
    #[schemars(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<Text<'a>>,
    /// The agent's own lines that this event carries, in order; absent if an earlier event carries the
    /// line.
    #[schemars(skip_serializing_if = "Lines::is_empty")]
    pub native: Lines<'a>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident($kind:ident $(in $holder:ident)?) = $wire:literal,)*) => {
        /// What happened: the twelve types of the specification, and agentwire's extensions.
        #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "camelCase")]
        pub enum EventKind<'a> {
            $($(#[$doc])* $name(kinds!(@held $kind $($holder)?)),)*
            /// A kind that this version does not know, stored unchanged.
            #[serde(skip)]
            Unknown(UnknownKind<'a>),
        }

        impl EventKind<'_> {
            /// Every type name that this version knows.
            pub const NAMES: &'static [&'static str] = &[$($wire),*];

            /// The `type` on the wire.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name(_) => $wire,)*
                    Self::Unknown(unknown) => &unknown.name,
                }
            }
        }

        fn read_kind(name: &str, event: &str) -> Result<EventKind<'static>, serde_json::Error> {
            match name {
                $($wire => serde_json::from_str::<$kind<'static>>(event).map(EventKind::from),)*
                _ => Err(de::Error::custom("unknown event type")),
            }
        }

        $(impl<'a> From<$kind<'a>> for EventKind<'a> {
            fn from(kind: $kind<'a>) -> Self {
                Self::$name(kind.into())
            }
        })*
    };
    (@held $kind:ident) => { $kind<'a> };
    (@held $kind:ident $holder:ident) => { $holder<$kind<'a>> };
}

kinds! {
    /// The session started. Always the first event.
    SessionStarted(SessionStarted in Box) = "sessionStarted",
    /// The session ended.
    SessionEnded(SessionEnded) = "sessionEnded",
    /// The agent started to work, on a prompt or on its own.
    TurnStarted(TurnStarted) = "turnStarted",
    /// The agent finished a turn.
    TurnCompleted(TurnCompleted in Box) = "turnCompleted",
    /// The turn ended in any other way; the session may continue.
    TurnFailed(TurnFailed in Box) = "turnFailed",
    /// Text of the agent's answer.
    TextChunk(TextChunk) = "textChunk",
    /// A tool was called.
    ToolStarted(ToolStarted) = "toolStarted",
    /// Output or progress of a running tool.
    ToolProgress(ToolProgress) = "toolProgress",
    /// The tool finished, with or without success.
    ToolCompleted(ToolCompleted) = "toolCompleted",
    /// The tool did not run, or was interrupted.
    ToolFailed(ToolFailed) = "toolFailed",
    /// A file was changed.
    FileChanged(FileChanged in Box) = "fileChanged",
    /// Something went wrong. The error itself ends neither the turn nor the session.
    Error(ErrorEvent) = "error",
    /// Text of the agent's reasoning.
    ThinkingChunk(ThinkingChunk) = "thinkingChunk",
    /// The agent's complete plan or to-do list.
    PlanUpdated(PlanUpdated) = "planUpdated",
    /// A subagent started.
    AgentSpawned(AgentSpawned) = "agentSpawned",
    /// A subagent ended.
    AgentFinished(AgentFinished) = "agentFinished",
    /// The agent asks something and waits for the answer.
    RequestRaised(RequestRaised in Box) = "requestRaised",
    /// A request was answered or withdrawn.
    RequestSettled(RequestSettled) = "requestSettled",
    /// Any other change of state.
    StatusChanged(StatusChanged in Box) = "statusChanged",
    /// Tokens or money spent so far, for display. Totals are computed from the turns.
    UsageReported(UsageReported in Box) = "usageReported",
    /// A line that no other event type can represent; it is in `native`.
    Other(Other) = "other",
}

/// An event type from a newer gateway.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
pub struct UnknownKind<'a> {
    /// The event's `type`.
    pub name: Cow<'a, str>,
    /// The whole event, exactly as read.
    pub raw: Json<'a>,
}

impl Event<'_> {
    /// Reads an event. An unknown type, or a known type with an unknown value, is stored unchanged as
    /// [`EventKind::Unknown`].
    pub fn from_json(text: &str) -> Result<Event<'static>, serde_json::Error> {
        let envelope: Envelope = serde_json::from_str(text)?;
        let kind = read_kind(&envelope.name, text).unwrap_or_else(|_| {
            EventKind::Unknown(UnknownKind {
                name: Cow::Owned(envelope.name),
                raw: Json::parse(text).map_or_else(|_| Json::trusted("null"), Json::into_owned),
            })
        });
        Ok(Event {
            id: Cow::Owned(envelope.id),
            session_id: Cow::Owned(envelope.session_id),
            seq: envelope.seq,
            timestamp: Cow::Owned(envelope.timestamp),
            kind,
            agent_id: envelope.agent_id,
            parent_agent_id: envelope.parent_agent_id,
            native: Lines::Owned(envelope.native),
        })
    }

    /// Appends the event as one line, `\n` included.
    ///
    /// Writes the same text as serializing does, but without `flatten`: the kind is written as a separate
    /// object, and its braces are then replaced to merge it into the event.
    pub fn write_line(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if let EventKind::Unknown(_) = &self.kind {
            return write_line(self, out);
        }
        let start = out.len();
        let written = self.write_fields(out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_fields(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.extend_from_slice(b"{\"id\":");
        write_value(&self.id, out)?;
        out.extend_from_slice(b",\"sessionId\":");
        write_value(&self.session_id, out)?;
        out.extend_from_slice(b",\"seq\":");
        write_value(&self.seq, out)?;
        out.extend_from_slice(b",\"timestamp\":");
        write_value(&self.timestamp, out)?;
        let kind = out.len();
        write_value(&self.kind, out)?;
        if let Some(brace) = out.get_mut(kind) {
            *brace = b',';
        }
        out.pop();
        out.extend_from_slice(b",\"agentId\":");
        write_value(&self.agent_id, out)?;
        if let Some(parent) = &self.parent_agent_id {
            out.extend_from_slice(b",\"parentAgentId\":");
            write_value(parent, out)?;
        }
        if !self.native.is_empty() {
            out.extend_from_slice(b",\"native\":");
            write_value(&*self.native, out)?;
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// The fields that every event has. They are read first; the kind's own fields are read from the same text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    id: String,
    session_id: String,
    #[serde(default)]
    seq: u64,
    timestamp: String,
    #[serde(rename = "type")]
    name: String,
    #[serde(default = "main_agent")]
    agent_id: Text<'static>,
    #[serde(default)]
    parent_agent_id: Option<Text<'static>>,
    #[serde(default)]
    native: Vec<Native<'static>>,
}

fn main_agent() -> Text<'static> {
    Text::from(crate::MAIN_AGENT)
}

/// Only for writing: `flatten` and internal tags lose nothing when serializing.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventLine<'e, 'a> {
    id: &'e str,
    session_id: &'e str,
    seq: u64,
    timestamp: &'e str,
    #[serde(flatten)]
    kind: &'e EventKind<'a>,
    agent_id: &'e Text<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_agent_id: &'e Option<Text<'a>>,
    #[serde(skip_serializing_if = "<[Native<'_>]>::is_empty")]
    native: &'e [Native<'a>],
}

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let EventKind::Unknown(unknown) = &self.kind {
            return unknown.raw.serialize(serializer);
        }
        EventLine {
            id: &self.id,
            session_id: &self.session_id,
            seq: self.seq,
            timestamp: &self.timestamp,
            kind: &self.kind,
            agent_id: &self.agent_id,
            parent_agent_id: &self.parent_agent_id,
            native: &self.native,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Json::deserialize(deserializer)?;
        Event::from_json(raw.get()).map_err(de::Error::custom)
    }
}
