//! How a request ended, as far as an agent's output shows it. That a permission was given, or a question
//! answered, is the session's to decide and to report: a translator has no word for it.

use agentwire_protocol::EventKind;
use agentwire_protocol::event::{
    AgentFinished, AgentSpawned, ErrorEvent, FileChanged, Other, PlanUpdated, RequestOutcome,
    RequestRaised, SettledBy, StatusChanged, TextChunk, ThinkingChunk, ToolCompleted, ToolFailed,
    ToolProgress, ToolStarted, TurnCompleted, TurnFailed, TurnStarted, UsageReported,
};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub(super) outcome: RequestOutcome,
    pub(super) by: SettledBy,
}

impl Ending {
    /// The agent no longer asks.
    pub const WITHDRAWN: Self = Self { outcome: RequestOutcome::Withdrawn, by: SettledBy::Agent };

    /// The agent went on, nobody knows by which answer.
    pub const RESOLVED: Self = Self::resolved(SettledBy::Agent);

    /// The same, of a request that somebody else was there for.
    pub const fn resolved(by: SettledBy) -> Self {
        Self { outcome: RequestOutcome::Resolved, by }
    }

    /// It was denied.
    pub const fn denied(by: SettledBy) -> Self {
        Self { outcome: RequestOutcome::Denied, by }
    }
}

/// What is translated is a recording: its answers were given by others, long ago. Only [`Out::recording`]
/// makes one, so that nothing in a live session is said to be allowed by the agent's own output.
///
/// ```compile_fail
/// let recording = agentwire_dialects::tape::Recording(());
/// ```
///
/// [`Out::recording`]: super::Out::recording
#[derive(Clone, Copy, Debug)]
pub struct Recording(pub(super) ());

impl Recording {
    /// The permission was given.
    pub fn allowed(self, by: SettledBy) -> Ending {
        Ending { outcome: RequestOutcome::Allowed, by }
    }

    /// The question was answered.
    pub fn answered(self, by: SettledBy) -> Ending {
        Ending { outcome: RequestOutcome::Answered, by }
    }
}

/// What a translator can emit: not `requestSettled`, which needs an [`Ending`], and not the beginning and
/// the end of the session, which are the tape's.
///
/// ```
/// fn says(out: &mut agentwire_dialects::tape::Out<'_>) {
///     out.emit(agentwire_protocol::event::Other::named("x"));
/// }
/// ```
///
/// ```compile_fail
/// use agentwire_protocol::event::RequestSettled;
/// fn allows(out: &mut agentwire_dialects::tape::Out<'_>, settled: RequestSettled<'_>) {
///     out.emit(settled);
/// }
/// ```
pub trait Emitted<'k>: Into<EventKind<'k>> {}

macro_rules! emitted {
    ($($kind:ident)*) => { $(impl<'k> Emitted<'k> for $kind<'k> {})* };
}

emitted! {
    AgentFinished AgentSpawned ErrorEvent FileChanged Other PlanUpdated RequestRaised StatusChanged
    TextChunk ThinkingChunk ToolCompleted ToolFailed ToolProgress ToolStarted TurnCompleted TurnFailed
    TurnStarted UsageReported
}
