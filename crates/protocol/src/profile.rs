//! Views of a log: `full`, `lean` without the agent's lines, and `core` for readers that only know the
//! specification.

mod lean;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind, TextChunk};
use crate::json::{Json, Text};
use crate::native::Lines;

/// How much of a log a reader sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Profile {
    /// Only the twelve types of the specification, without `native`. Each event validates against the
    /// specification's schema.
    Core,
    /// Every event, without `native`: for screens, and wherever bytes count.
    Lean,
    /// Everything.
    #[default]
    Full,
}

impl Profile {
    /// Every profile, with its name on the wire.
    pub const NAMES: [(&'static str, Self); 3] =
        [("core", Self::Core), ("lean", Self::Lean), ("full", Self::Full)];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Lean => "lean",
            Self::Full => "full",
        }
    }

    /// Whether this profile shows every event, so that the numbers of its events have no gaps.
    pub fn has_all_events(self) -> bool {
        match self {
            Self::Core => false,
            Self::Lean | Self::Full => true,
        }
    }

    /// The event as this profile shows it, or nothing if the profile omits it.
    pub fn show<'a>(self, mut event: Event<'a>) -> Option<Event<'a>> {
        match self {
            Self::Full => return Some(event),
            Self::Core => event.kind = core_kind(event.kind)?,
            Self::Lean => {
                if let EventKind::Unknown(unknown) = &mut event.kind {
                    let lean = lean::without_native(unknown.raw.get()).into_owned();
                    unknown.raw = Json::parse(&lean).map_or(Json::EMPTY, Json::into_owned);
                }
            }
        }
        event.native = Lines::Lent(&[]);
        Some(event)
    }

    /// The event as this profile shows it, or nothing if the profile omits it; `line` is its JSON, as it is
    /// in the log.
    pub fn show_line(self, line: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Full => Some(line.into()),
            Self::Lean => Some(lean::without_native(line)),
            Self::Core => {
                let event = self.show(Event::from_json(line).ok()?)?;
                Some(Json::of(&event).get().to_owned().into())
            }
        }
    }
}

fn core_kind(kind: EventKind<'_>) -> Option<EventKind<'_>> {
    Some(match kind {
        EventKind::SessionStarted(mut started) => {
            started.agent_type = started.agent_type.core();
            started.config = started.config.core();
            started.forked_from = None;
            EventKind::SessionStarted(started)
        }
        EventKind::ThinkingChunk(chunk) => EventKind::TextChunk(TextChunk {
            content: chunk.content,
            is_complete: chunk.is_complete,
            block_id: chunk.block_id,
        }),
        EventKind::PlanUpdated(plan) => EventKind::TextChunk(TextChunk {
            content: Text::from(plan.to_markdown()),
            is_complete: true,
            block_id: None,
        }),
        EventKind::SessionEnded(_)
        | EventKind::TurnStarted(_)
        | EventKind::TurnCompleted(_)
        | EventKind::TurnFailed(_)
        | EventKind::TextChunk(_)
        | EventKind::ToolStarted(_)
        | EventKind::ToolProgress(_)
        | EventKind::ToolCompleted(_)
        | EventKind::ToolFailed(_)
        | EventKind::FileChanged(_)
        | EventKind::Error(_) => kind,
        EventKind::AgentSpawned(_)
        | EventKind::AgentFinished(_)
        | EventKind::RequestRaised(_)
        | EventKind::RequestSettled(_)
        | EventKind::StatusChanged(_)
        | EventKind::UsageReported(_)
        | EventKind::Other(_)
        | EventKind::Unknown(_) => return None,
    })
}
