//! What comes out of a tape meets here: events are numbered and noted, effects wait until what was
//! said before them is durable.

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Action, Agent, Draft, Signal, Sink};
use agentwire_protocol::event::{
    ErrorEvent, RequestOutcome, RequestSettled, SettledBy, Status, TurnFailure,
};
use agentwire_protocol::{ApprovalMode, Call, Configure, EventKind, GatewayError, Json, Text};

use super::book::{Book, Raised};
use super::hooks::Hooks;
use super::journal::Journal;
use crate::figures::Tally;

/// What a session does once its events are durable.
#[derive(Debug)]
pub(super) enum Effect {
    /// Write a line to the agent.
    Write(String),
    /// Close its stdin.
    CloseStdin,
    /// Signal its tree.
    Signal(Signal),
    /// Say that to the agent as one of its MCP servers.
    Relay(u64, Json<'static>),
    /// Start the process of the next prompt.
    Start,
    /// Answer a call.
    Reply(Call, Result<Json<'static>, GatewayError>),
}

/// The part of a session that a tape writes to.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) journal: Journal,
    pub(crate) book: Book,
    pub(super) hooks: Hooks,
    pub(super) effects: Vec<Effect>,
    /// Requests that were raised since they were last looked at.
    pub(super) raised: Vec<Raised>,
    /// Why the gateway cut the turn off, if it did: the agent only knows that it was interrupted.
    pub(super) cut: Option<(TurnFailure, String)>,
    /// How the last turn failed, if it did.
    pub(super) failure: Option<(TurnFailure, String)>,
    /// Changes that the agent was asked for; they hold once it has taken them.
    pub(super) changes: Vec<Change>,
    /// What is counted of it; nothing of a session that is only closed.
    tally: Option<Tally>,
}

/// A change that the agent was asked for.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) call: Call,
    pub(super) change: Configure,
    pub(super) is_taken: bool,
    /// An event has told which approval mode it is for.
    pub(super) is_told: bool,
}

impl Change {
    /// The mode of ours that it is for, if no event has told that. The agent's own name of one wins.
    pub(super) fn untold(&self) -> Option<ApprovalMode> {
        self.change.approval_mode.filter(|_| !self.is_told && self.change.permission_mode.is_none())
    }
}

/// What an event tells of the gateway's own mode.
pub(super) fn approval(mode: ApprovalMode) -> Json<'static> {
    Json::of(&serde_json::json!({ "approvalMode": mode }))
}

impl Core {
    pub(crate) fn new(journal: Journal, book: Book, hooks: Hooks, tally: Option<Tally>) -> Self {
        let (effects, raised) = (Vec::new(), Vec::new());
        let changes = Vec::new();
        Self { journal, book, hooks, effects, raised, cut: None, failure: None, changes, tally }
    }

    /// An event of the gateway's own.
    pub(crate) fn emit<'k>(&mut self, kind: impl Into<EventKind<'k>>) {
        self.emit_as(Agent::main(), kind);
    }

    /// An event of the gateway's own about that agent.
    pub(crate) fn emit_as<'k>(&mut self, agent: Agent<'k>, kind: impl Into<EventKind<'k>>) {
        self.take(Draft { agent, kind: kind.into(), native: None });
    }

    pub(super) fn error(&mut self, code: &'static str, message: impl Into<Text<'static>>) {
        self.emit(ErrorEvent { code: Some(Text::fixed(code)), ..ErrorEvent::new(message) });
    }

    /// The request is over.
    pub(super) fn settled(
        &mut self,
        raised: &Raised,
        outcome: RequestOutcome,
        (by, client): (SettledBy, Option<&str>),
        reason: Option<&str>,
        updated_input: Option<&Json<'static>>,
    ) {
        let settled = RequestSettled {
            request_id: Text::from(raised.id.as_str()),
            outcome,
            by,
            client: client.map(Text::from),
            reason: reason.map(Text::from),
            updated_input: updated_input.cloned(),
        };
        self.emit_as(raised.agent.clone(), settled);
    }

    /// Numbers and notes an event.
    pub(super) fn take(&mut self, mut draft: Draft<'_>) {
        if let EventKind::TurnFailed(failed) = &mut draft.kind {
            if let Some((reason, error)) = self.cut.take()
                && failed.reason == TurnFailure::Interrupted
            {
                failed.reason = reason;
                failed.error = Text::from(error);
            }
            self.failure = Some((failed.reason, failed.error.to_string()));
        } else if matches!(draft.kind, EventKind::TurnStarted(_) | EventKind::TurnCompleted(_)) {
            self.cut = None;
            self.failure = None;
        }
        self.tell_approval(&mut draft);
        if let Some(tally) = &mut self.tally {
            let asked = match &draft.kind {
                EventKind::RequestSettled(settled) => self.book.asked_as(&settled.request_id),
                _ => None,
            };
            tally.note(&draft.kind, asked, self.book.record.summary.model.as_deref());
        }
        let raised = self.book.note(&mut draft, self.journal.last() + 1);
        self.journal.write(draft);
        self.raised.extend(raised);
    }

    /// A mode that the agent tells while it is asked for one of ours is for that.
    fn tell_approval(&mut self, draft: &mut Draft<'_>) {
        if let EventKind::StatusChanged(change) = &mut draft.kind
            && change.status == Status::Mode
            && change.details.is_none()
            && draft.agent.parent.is_none()
            && let Some((mode, asked)) =
                self.changes.iter_mut().find_map(|asked| asked.untold().map(|mode| (mode, asked)))
        {
            asked.is_told = true;
            change.details = Some(approval(mode));
        }
    }

    /// Whether the store has to hear of anything.
    pub(super) fn has_news(&self) -> bool {
        !self.journal.is_empty() || self.book.changed
    }
}

impl Sink for Core {
    fn event(&mut self, draft: Draft<'_>) {
        if self.hooks.is_active() {
            self.hear(draft);
        } else {
            self.take(draft);
        }
    }

    fn action(&mut self, action: Action) {
        self.effects.push(match action {
            Action::Write(line) => Effect::Write(line),
            Action::CloseStdin => Effect::CloseStdin,
            Action::Signal(signal) => Effect::Signal(signal),
        });
    }

    fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        match &result {
            Ok(_) => self
                .changes
                .iter_mut()
                .filter(|change| change.call == call)
                .for_each(|change| change.is_taken = true),
            Err(_) => self.changes.retain(|change| change.call != call),
        }
        self.effects.push(Effect::Reply(call, result));
    }
}

/// How a process ended, in words.
pub(super) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("the agent exited with code {code}"),
        Exit::Signal(signal) => format!("the agent was ended by signal {signal}"),
        Exit::Unknown => "the agent ended".to_owned(),
    }
}
