//! Raises hooks from the events that the gateway sees, for agents that do not call them themselves.
//!
//! An *occasion* is one thing that happened. It raises one request for each hook that fits. When all of
//! them are answered, what waited for the occasion continues.

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

/// How long to wait for a hook without its own timeout; the same as Claude's.
const TIMEOUT: Duration = Duration::from_secs(60);

/// After this long without a request, a tool is taken to run without asking.
const UNASKED: Duration = Duration::from_secs(1);

/// How many hooks that only notify may wait. Further ones are not raised.
const TELLING_LIMIT: usize = 1024;

const TOOL_LIMIT: usize = 4096;

/// Hooks that can be raised from the events of any agent.
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

    /// Whether a refusal stops what the hook is about. For any other event a refusal would mean something
    /// else: for `Stop`, that the agent continues.
    fn is_gate(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::PreToolUse | Self::PermissionRequest)
    }

    /// Whether it is about the work of a turn. The turn ends when all of these are answered.
    fn is_work(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::SubagentStart
                | Self::SubagentStop
                | Self::Stop
        )
    }

    /// Whether it is about tool calls.
    fn is_of_tools(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::PermissionRequest
                | Self::Notification
        )
    }
}

/// The hooks of a session, and what waits for their answers.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    all: Vec<Hook>,
    /// The agent's name in warnings.
    agent: &'static str,
    /// The agent asks before tools run. Otherwise every tool runs without asking.
    asks: bool,
    occasions: BTreeMap<u64, Occasion>,
    last_occasion: u64,
    /// Open requests that the gateway raised.
    calls: BTreeMap<String, HookCall>,
    /// Requests that the gateway raised and that no longer need an answer.
    moot: Vec<String>,
    tools: BTreeMap<String, ToolCall>,
    /// Calls for which it is not yet known whether the agent asks, oldest first.
    unasked: VecDeque<(Instant, String)>,
    /// Prompts that wait for hooks, in order.
    prompts: VecDeque<HeldPrompt>,
    /// What hooks add to the first prompt at the start.
    preface: Option<String>,
    /// Why hooks block the first prompt.
    barred: Option<String>,
    /// What hooks decided about permissions that have been reported since.
    decided: BTreeMap<String, Output>,
    /// The end of the turn, held until its hooks are answered.
    turn_end: Option<Box<TurnCompleted<'static>>>,
    /// What hooks answered to the end of the turn.
    last_word: Option<Output>,
    /// How often in a row a hook has made the agent continue.
    continued: u32,
    phase: Phase,
    /// The kinds of the running subagents, by id.
    subagents: BTreeMap<String, String>,
    warned: BTreeSet<(HookEvent, &'static str)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    New,
    Begun,
    Over,
}

#[derive(Debug)]
struct Hook {
    event: HookEvent,
    matcher: Matcher,
    callback: String,
    timeout: Duration,
    /// A missing answer counts as a refusal.
    blocks: bool,
}

impl Hook {
    /// Without a subject, any matcher fits.
    fn fits(&self, event: HookEvent, subjects: &[&str]) -> bool {
        let fits = subjects.is_empty() || subjects.iter().any(|name| self.matcher.fits(name));
        self.event == event && fits
    }
}

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
    /// A permission that has not been reported yet.
    Permission(Box<HeldRequest>),
    /// Nothing, unless the agent still asks before it makes this tool call.
    Call(String),
    /// Nothing, but the first answer that decides settles this permission.
    Ask(String),
    /// The decision whether the agent continues.
    Stop,
    /// Nothing.
    Tell,
}

/// A permission request that is reported once its hooks are answered.
#[derive(Debug)]
struct HeldRequest {
    request: RequestRaised<'static>,
    agent: Agent<'static>,
}

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
    /// The hooks of a session that its agent does not call itself. Refuses hooks that the agent's events
    /// cannot show, by name.
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
                .ok_or_else(|| GatewayError::unsupported(agent, format!("the hook {name}")))?;
            for entry in matchers {
                // Ignoring an invalid pattern would silently disable a guard.
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

    pub(super) fn is_active(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether something that would otherwise continue waits for answers.
    pub(super) fn hold_something(&self) -> bool {
        let holds = |occasion: &Occasion| {
            matches!(occasion.purpose, Purpose::Permission(_) | Purpose::Stop)
        };
        self.hold_prompts() || self.hold_turn_end() || self.occasions.values().any(holds)
    }

    /// Whether the agent has ended its turn, but hooks must be answered before the end is reported.
    pub(super) fn hold_turn_end(&self) -> bool {
        self.turn_end.is_some()
    }

    /// Whether a hook about the work of a turn is open.
    fn are_at_work(&self) -> bool {
        self.occasions.values().any(|occasion| occasion.event.is_work())
    }

    /// How long that request may wait, if the gateway raised it.
    pub(super) fn patience(&self, request: &str) -> Option<Duration> {
        self.calls.get(request).map(|call| call.timeout)
    }

    /// When the next call counts as one that runs without asking.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.unasked.front().map(|(since, _)| *since + UNASKED)
    }

    /// The permission is settled, so its hooks have nothing to decide.
    pub(super) fn permission_settled(&mut self, permission: &str) {
        let ends =
            |occasion: &Occasion| matches!(&occasion.purpose, Purpose::Ask(id) if id == permission);
        for (_, occasion) in self.occasions.extract_if(.., |_, occasion| ends(occasion)) {
            self.moot.extend(occasion.open);
        }
        self.decided.remove(permission);
    }

    fn follow_tools(&self) -> bool {
        self.all.iter().any(|hook| hook.event.is_of_tools())
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

    /// Takes the held permission with that id, if there is one.
    fn take_held(&mut self, permission: &str) -> Option<HeldRequest> {
        let is_it = |occasion: &Occasion| match &occasion.purpose {
            Purpose::Permission(held) => held.request.request_id == *permission,
            _ => false,
        };
        let (_, occasion) = self.occasions.extract_if(.., |_, occasion| is_it(occasion)).next()?;
        self.moot.extend(occasion.open);
        let Purpose::Permission(held) = occasion.purpose else { return None };
        Some(*held)
    }
}

/// Whether a hook with this input can deny anything.
pub(super) fn can_deny(input: Option<&Json<'_>>) -> bool {
    event_name(input).and_then(|name| HookEvent::named(&name)).is_some_and(HookEvent::is_gate)
}

/// The event that a hook is called for, from its input.
pub(super) fn event_name(input: Option<&Json<'_>>) -> Option<String> {
    #[derive(Deserialize)]
    struct HookInput {
        hook_event_name: String,
    }
    input.and_then(|input| input.read::<HookInput>().ok()).map(|hook| hook.hook_event_name)
}
