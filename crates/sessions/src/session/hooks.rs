//! Hooks that the gateway raises itself, from the events it sees, for agents that have none.
//!
//! An *occasion* is one thing that happened; it raises one request for each hook that fits. When all
//! of them are answered, what waited for the occasion goes on.

mod answers;
mod input;
mod output;
mod prompts;
mod raise;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use agentwire_dialects::agent::Capabilities;
use agentwire_dialects::hooks::{Matcher, callbacks};
use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{ErrorCode, GatewayError, SessionConfig};
use tokio::time::Instant;

use self::input::ToolCall;
use self::output::Output;
use self::prompts::Waiting;

/// How long a hook is waited for that says nothing of it, as Claude does.
const TIMEOUT: Duration = Duration::from_secs(60);

/// After so long without a request, a tool runs unasked.
const UNASKED: Duration = Duration::from_secs(1);

/// How many hooks may wait that only tell of something; further ones are not raised.
const TELLING_LIMIT: usize = 1024;

/// How many tool calls are remembered.
const TOOL_LIMIT: usize = 4096;

/// What hooks can be raised for from the events of any agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HookEvent {
    SessionStart,
    SessionEnd,
    UserPromptSubmit,
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    PermissionRequest,
    Notification,
    SubagentStart,
    SubagentStop,
    Stop,
}

impl HookEvent {
    const ALL: [Self; 11] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::Notification,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::Stop,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::Notification => "Notification",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::Stop => "Stop",
        }
    }
}

/// The hooks of a session, and what waits for their answers.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    all: Vec<Hook>,
    /// The agent, as warnings name it.
    agent: &'static str,
    /// It asks before tools run; otherwise every tool runs unasked.
    asks: bool,
    occasions: BTreeMap<u64, Occasion>,
    last_occasion: u64,
    /// Open requests of ours.
    calls: BTreeMap<String, HookCall>,
    /// Requests of ours that nobody need answer any more.
    moot: Vec<String>,
    tools: BTreeMap<String, ToolCall>,
    /// Calls of which it is not yet known whether the agent asks, oldest first.
    unasked: VecDeque<(Instant, String)>,
    /// Prompts that wait for hooks, in order.
    prompts: VecDeque<Waiting>,
    /// What hooks say at the start, for the first prompt.
    preface: Option<String>,
    /// How often in a row a hook has made the agent go on.
    continued: u32,
    phase: Phase,
    /// The kinds of subagents that run, by their ids.
    subagents: BTreeMap<String, String>,
    warned: BTreeSet<(HookEvent, &'static str)>,
}

/// How far the session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    New,
    Begun,
    Over,
}

/// One callback of the client.
#[derive(Debug)]
struct Hook {
    event: HookEvent,
    matcher: Matcher,
    callback: String,
    timeout: Duration,
    /// No answer counts as a refusal.
    blocks: bool,
}

impl Hook {
    fn fits(&self, event: HookEvent, subjects: &[&str]) -> bool {
        self.event == event && subjects.iter().any(|subject| self.matcher.fits(subject))
    }
}

/// One thing that happened.
#[derive(Debug)]
struct Occasion {
    event: HookEvent,
    purpose: Purpose,
    open: BTreeSet<String>,
    outputs: Vec<Output>,
}

/// What waits for the answers.
#[derive(Debug)]
enum Purpose {
    /// All prompts.
    Start,
    /// The first of the prompts that wait.
    Prompt,
    /// A permission of which nobody has heard yet.
    Permission(Box<Held>),
    /// Nobody, but the first to decide settles this permission.
    Ask(String),
    /// Whether the agent goes on.
    Stop,
    /// Nobody.
    Tell,
}

/// A permission request that is told once its hooks are answered.
#[derive(Debug)]
struct Held {
    request: RequestRaised<'static>,
    agent: Agent<'static>,
}

/// An open request of ours.
#[derive(Debug)]
struct HookCall {
    occasion: u64,
    event: HookEvent,
    timeout: Duration,
    blocks: bool,
}

impl Hooks {
    /// The hooks of a session. An agent that has hooks raises them itself; of another, those are
    /// refused by name that its events do not show.
    pub(crate) fn new(
        agent: &'static str,
        capabilities: Capabilities,
        config: &SessionConfig,
    ) -> Result<Self, GatewayError> {
        let mut hooks = Self { agent, asks: capabilities.permissions, ..Self::default() };
        let Some(wanted) = config.hooks.as_ref().filter(|_| !capabilities.hooks) else {
            return Ok(hooks);
        };
        for (name, matchers) in callbacks(wanted) {
            let event = HookEvent::ALL.into_iter().find(|event| event.as_str() == name);
            let event = event
                .ok_or_else(|| GatewayError::unsupported(agent, &format!("the hook {name}")))?;
            for entry in matchers {
                // A pattern that is passed over would be a guard that sleeps.
                let matcher = Matcher::parse(entry.matcher.as_deref()).map_err(|error| {
                    let pattern = entry.matcher.as_deref().unwrap_or_default();
                    let message = format!(
                        "failed to read the matcher {pattern:?} of the hook {name}: {error}"
                    );
                    GatewayError::new(ErrorCode::InvalidMessage, message)
                })?;
                let timeout = entry.timeout.map(|seconds| Duration::from_secs(seconds.into()));
                hooks.all.extend(entry.callback_ids.into_iter().map(|callback| Hook {
                    event,
                    matcher: matcher.clone(),
                    callback,
                    timeout: timeout.unwrap_or(TIMEOUT),
                    blocks: entry.on_failure.as_deref() == Some("block"),
                }));
            }
        }
        Ok(hooks)
    }

    /// Whether the gateway raises any.
    pub(super) fn is_active(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether something waits for answers that would otherwise go on.
    pub(super) fn hold_something(&self) -> bool {
        let holds = |occasion: &Occasion| match occasion.purpose {
            Purpose::Permission(_) | Purpose::Stop => true,
            Purpose::Start | Purpose::Prompt | Purpose::Ask(_) | Purpose::Tell => false,
        };
        self.hold_prompts() || self.occasions.values().any(holds)
    }

    /// By when that request must be answered, if it is one of ours.
    pub(super) fn patience(&self, request: &str) -> Option<Duration> {
        self.calls.get(request).map(|call| call.timeout)
    }

    /// When the next call counts as one that runs unasked.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.unasked.front().map(|(since, _)| *since + UNASKED)
    }

    /// The permission is over: its hooks have nothing to decide.
    pub(super) fn permission_over(&mut self, permission: &str) {
        let ends =
            |occasion: &Occasion| matches!(&occasion.purpose, Purpose::Ask(id) if id == permission);
        for (_, occasion) in self.occasions.extract_if(.., |_, occasion| ends(occasion)) {
            self.moot.extend(occasion.open);
        }
    }

    fn wants(&self, event: HookEvent, subjects: &[&str]) -> bool {
        self.all.iter().any(|hook| hook.fits(event, subjects))
    }

    fn is_starting(&self) -> bool {
        self.occasions.values().any(|occasion| matches!(occasion.purpose, Purpose::Start))
    }

    /// Takes the permission that waits under that id, if one does.
    fn take_held(&mut self, permission: &str) -> Option<Held> {
        let holds = |occasion: &Occasion| match &occasion.purpose {
            Purpose::Permission(held) => held.request.request_id == *permission,
            Purpose::Start | Purpose::Prompt | Purpose::Ask(_) | Purpose::Stop | Purpose::Tell => {
                false
            }
        };
        let number = *self.occasions.iter().find(|(_, occasion)| holds(occasion))?.0;
        let occasion = self.occasions.remove(&number)?;
        self.moot.extend(occasion.open);
        match occasion.purpose {
            Purpose::Permission(held) => Some(*held),
            Purpose::Start | Purpose::Prompt | Purpose::Ask(_) | Purpose::Stop | Purpose::Tell => {
                None
            }
        }
    }
}
