//! Hooks that the gateway raises itself, from the events it sees, where the agent does not.
//!
//! An *occasion* is one thing that happened; it raises one request for each hook that fits. When all
//! of them are answered, what waited for the occasion goes on.

mod answers;
mod calls;
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
use agentwire_protocol::event::{RequestRaised, TurnCompleted};
use agentwire_protocol::{ErrorCode, GatewayError, Json, SessionConfig};
use serde::Deserialize;
use tokio::time::Instant;

use self::input::ToolCall;
use self::output::Output;
use self::prompts::HeldPrompt;
pub(super) use self::prompts::add;

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

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

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

    /// Whether a refusal stops what it is about. Of any other event it would be a wish of its own: of
    /// `Stop`, that the agent goes on.
    fn is_gate(self) -> bool {
        match self {
            Self::UserPromptSubmit | Self::PreToolUse | Self::PermissionRequest => true,
            Self::SessionStart
            | Self::SessionEnd
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::Notification
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::Stop => false,
        }
    }

    /// Whether it is about the work of a turn, which has its end when all of them are answered.
    fn is_work(self) -> bool {
        match self {
            Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::SubagentStart
            | Self::SubagentStop
            | Self::Stop => true,
            Self::SessionStart
            | Self::SessionEnd
            | Self::UserPromptSubmit
            | Self::PermissionRequest
            | Self::Notification => false,
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
    prompts: VecDeque<HeldPrompt>,
    /// What hooks say at the start, for the first prompt.
    preface: Option<String>,
    /// Why they block it.
    barred: Option<String>,
    /// What hooks say of permissions of which somebody was told since.
    decided: BTreeMap<String, Output>,
    /// The end of the turn, until its hooks are answered.
    turn_end: Option<Box<TurnCompleted<'static>>>,
    /// What hooks say of the turn's end.
    last_word: Option<Output>,
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
    /// Without a subject there is nothing to choose by, whatever its matcher says.
    fn fits(&self, event: HookEvent, subjects: &[&str]) -> bool {
        let fits = subjects.is_empty() || subjects.iter().any(|name| self.matcher.fits(name));
        self.event == event && fits
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
    /// Nobody, unless the agent still asks before it makes this tool call.
    Call(String),
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
    /// The tool's input as it was shown.
    shown: Option<Json<'static>>,
}

impl Hooks {
    /// The hooks of a session that its agent does not call itself. Those are refused by name that its
    /// events do not show.
    pub(crate) fn new(
        agent: &'static str,
        capabilities: Capabilities,
        config: &SessionConfig,
    ) -> Result<Self, GatewayError> {
        let mut hooks = Self { agent, asks: capabilities.permissions, ..Self::default() };
        let Some(wanted) = &config.hooks else { return Ok(hooks) };
        let wanted = callbacks(wanted).into_iter();
        let ours = |name: &str| !capabilities.hooks.include(name);
        for (name, matchers) in wanted.filter(|(name, list)| ours(name) && !list.is_empty()) {
            let event = HookEvent::named(name)
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
            Purpose::Start
            | Purpose::Prompt
            | Purpose::Call(_)
            | Purpose::Ask(_)
            | Purpose::Tell => false,
        };
        self.hold_prompts() || self.hold_turn_end() || self.occasions.values().any(holds)
    }

    /// Whether the agent has ended its turn, and hooks are to be answered before that is told.
    pub(super) fn hold_turn_end(&self) -> bool {
        self.turn_end.is_some()
    }

    /// Whether a hook is open that is about the work of a turn.
    fn are_at_work(&self) -> bool {
        self.occasions.values().any(|occasion| occasion.event.is_work())
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
        self.decided.remove(permission);
    }

    /// Whether any of them is about tool calls.
    fn follow_tools(&self) -> bool {
        self.all.iter().any(|hook| match hook.event {
            HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::PermissionRequest
            | HookEvent::Notification => true,
            HookEvent::SessionStart
            | HookEvent::SessionEnd
            | HookEvent::UserPromptSubmit
            | HookEvent::SubagentStart
            | HookEvent::SubagentStop
            | HookEvent::Stop => false,
        })
    }

    /// The hooks of that occasion have nothing to decide.
    fn make_moot(&mut self, occasion: u64) {
        let over = self.occasions.remove(&occasion);
        self.moot.extend(over.into_iter().flat_map(|occasion| occasion.open));
    }

    fn wants(&self, event: HookEvent, subjects: &[&str]) -> bool {
        self.all.iter().any(|hook| hook.fits(event, subjects))
    }

    fn is_starting(&self) -> bool {
        self.occasions.values().any(|occasion| matches!(occasion.purpose, Purpose::Start))
    }

    /// Takes the permission that waits under that id, if one does.
    fn take_held(&mut self, permission: &str) -> Option<Held> {
        let is_it = |occasion: &Occasion| {
            if let Purpose::Permission(held) = &occasion.purpose {
                held.request.request_id == *permission
            } else {
                false
            }
        };
        let (_, occasion) = self.occasions.extract_if(.., |_, occasion| is_it(occasion)).next()?;
        self.moot.extend(occasion.open);
        let Purpose::Permission(held) = occasion.purpose else { return None };
        Some(*held)
    }
}

/// Whether a hook that is told this can deny anything.
pub(super) fn can_deny(input: Option<&Json<'_>>) -> bool {
    event_name(input).and_then(|name| HookEvent::named(&name)).is_some_and(HookEvent::is_gate)
}

/// The event that a hook is called for, by its input.
pub(super) fn event_name(input: Option<&Json<'_>>) -> Option<String> {
    #[derive(Deserialize)]
    struct Told {
        hook_event_name: String,
    }
    input.and_then(|input| input.read::<Told>().ok()).map(|told| told.hook_event_name)
}
