//! Two views of a log: `full`, and `core` for readers that only know the specification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Event, EventKind, TextChunk};
use crate::json::Text;
use crate::native::Lines;

/// How much of a log a reader sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Profile {
    /// Only the twelve types of the specification, without `native`. Each event validates against the
    /// specification's schema.
    Core,
    /// Everything.
    #[default]
    Full,
}

impl Profile {
    /// The event as this profile shows it, or nothing if the profile omits it.
    pub fn show<'a>(self, mut event: Event<'a>) -> Option<Event<'a>> {
        if self == Self::Full {
            return Some(event);
        }
        event.kind = core_kind(event.kind)?;
        event.native = Lines::Lent(&[]);
        Some(event)
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
