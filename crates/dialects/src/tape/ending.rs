//! How a request ended, as far as an agent's output shows it. Only the session decides and reports that a
//! permission was given or a question answered: a translator cannot express it.

use agentwire_protocol::EventKind;
use agentwire_protocol::event::{
    AgentFinished, AgentSpawned, ErrorEvent, FileChanged, Other, PlanUpdated, RequestOutcome,
    RequestRaised, SettledBy, StatusChanged, TextChunk, ThinkingChunk, ToolCompleted, ToolFailed,
    ToolProgress, ToolStarted, TurnCompleted, TurnFailed, TurnStarted, UsageReported,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub(super) outcome: RequestOutcome,
    pub(super) by: SettledBy,
}

impl Ending {
    /// The agent no longer asks.
    pub const WITHDRAWN: Self = Self { outcome: RequestOutcome::Withdrawn, by: SettledBy::Agent };

    /// The agent continued; the answer is not known.
    pub const RESOLVED: Self = Self::resolved(SettledBy::Agent);

    /// The same, for a request that someone else handled.
    pub const fn resolved(by: SettledBy) -> Self {
        Self { outcome: RequestOutcome::Resolved, by }
    }

    pub const fn denied(by: SettledBy) -> Self {
        Self { outcome: RequestOutcome::Denied, by }
    }
}

/// Proof that the input is a recording: others gave its answers, long ago. Only [`Out::recording`] creates
/// one, so that in a live session the agent's own output never counts as an allow.
///
/// ```compile_fail
/// let recording = agentwire_dialects::tape::Recording(());
/// ```
///
/// [`Out::recording`]: super::Out::recording
#[derive(Clone, Copy, Debug)]
pub struct Recording(pub(super) ());

impl Recording {
    pub fn allowed(self, by: SettledBy) -> Ending {
        Ending { outcome: RequestOutcome::Allowed, by }
    }

    pub fn answered(self, by: SettledBy) -> Ending {
        Ending { outcome: RequestOutcome::Answered, by }
    }
}

/// What a translator can emit: not `requestSettled`, which needs an [`Ending`], and not the start and the
/// end of the session, which belong to the tape.
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
