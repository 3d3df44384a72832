//! The one owner of a session: takes commands, reads the agent, and makes durable what it hears before
//! it acts on it.

use std::time::Duration;

use agentwire_dialects::tape::Tape;
use agentwire_protocol::event::{SessionEndReason, SessionEnded, SessionStarted, TurnFailure};
use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Prompt, SessionConfig, SessionSummary, Text,
};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::Inbox;
use super::agent::{Happening, Origin, Plan};
use super::callers::{Callers, NOBODY};
use super::calls::over;
use super::core::Core;
use super::limits::Limits;
use super::outbox::Outbox;
use super::phase::Phase;
use super::prompts::Prompts;
use super::requests::Requests;
use super::supervisor::{Due, Supervisor};
use super::trust_gate::Trusting;
use crate::blocking::blocking_if_long;
use crate::bridge::{Bridge, Heard};
use crate::log::{EventLog, LogWriter};
use crate::trust::Wish;

/// How much may gather while a commit runs; beyond it the agent waits.
const GATHER_LIMIT: usize = 1 << 20;

/// What an actor is made of.
pub(crate) struct Parts {
    pub(crate) plan: Plan,
    pub(crate) config: SessionConfig,
    pub(crate) tape: Tape,
    pub(crate) core: Core,
    pub(crate) log: EventLog,
    pub(crate) writer: LogWriter,
    pub(crate) commands: Inbox,
    pub(crate) summary: watch::Sender<SessionSummary>,
    /// What the agent goes on with.
    pub(crate) origin: Origin,
    /// The session that it is a copy of, for readers.
    pub(crate) forked_from: Option<String>,
    /// The MCP servers that the client hosts, where the agent cannot.
    pub(crate) bridge: Option<Bridge>,
    /// Calls that must count once with the creation.
    pub(crate) keys: Vec<(String, String)>,
    /// What the start says of the project's own files.
    pub(crate) wish: Wish,
    /// How long the agent must not start yet.
    pub(crate) rest: Option<Duration>,
}

/// Why a session did not start.
pub(crate) enum Refusal {
    /// It could not, and that is told.
    Failed(GatewayError),
    /// There is no room for its beginning, which comes into the log later, with its end.
    NoRoom(GatewayError),
}

/// The owner of a session.
pub(crate) struct Actor {
    pub(super) plan: Plan,
    pub(super) config: SessionConfig,
    /// What it was when this run of the session began.
    pub(super) first: SessionConfig,
    pub(super) tape: Tape,
    pub(super) core: Core,
    pub(super) requests: Requests,
    pub(super) limits: Limits,
    commands: Inbox,
    pub(super) callers: Callers,
    pub(super) outbox: Outbox,
    pub(super) supervisor: Supervisor,
    forked_from: Option<String>,
    pub(super) bridge: Option<Bridge>,
    /// Whether the project is trusted, and what waits for that.
    pub(super) trusting: Trusting,
    /// Warnings for as soon as the mode is one that asks.
    pub(super) warnings: Vec<String>,
    pub(super) prompts: Prompts,
    pub(super) phase: Phase,
    /// How many bytes the session has taken that it has not dealt with yet.
    pub(super) load: usize,
}

impl Actor {
    pub(crate) fn new(parts: Parts) -> Self {
        let price = parts.config.model.as_ref();
        let price = price.and_then(|model| parts.plan.settings.prices.get(model)).copied();
        Self {
            limits: Limits::new(&parts.config, price),
            plan: parts.plan,
            first: parts.config.clone(),
            config: parts.config,
            tape: parts.tape,
            core: parts.core,
            requests: Requests::default(),
            commands: parts.commands,
            callers: Callers::default(),
            outbox: Outbox::new(parts.log, parts.writer, parts.summary, parts.keys),
            supervisor: Supervisor::new(parts.origin),
            forked_from: parts.forked_from,
            bridge: parts.bridge,
            trusting: Trusting::new(parts.wish, parts.rest),
            warnings: Vec::new(),
            prompts: Prompts::default(),
            phase: Phase::default(),
            load: 0,
        }
    }

    /// Runs the session to its end, and says whether that is in the log. `started` hears when it is durable
    /// and its agent runs, or why not.
    pub(crate) async fn run(
        mut self,
        prompt: Option<Prompt>,
        started: oneshot::Sender<Result<(), Refusal>>,
    ) -> bool {
        let begun = self.begin(prompt).await;
        let _ = started.send(begun);
        loop {
            // What is asked with much text is also judged with it.
            let load = std::mem::take(&mut self.load);
            blocking_if_long(load, || self.tend());
            self.submit();
            match self.supervisor.take_due() {
                Some(Due::Agent) => self.go_in().await,
                Some(Due::Process) => self.next_process().await,
                None if self.phase.is_over() && !self.outbox.is_busy() => break,
                None => self.step().await,
            }
        }
        for message in self.commands.close() {
            let _ = message.reply.send(self.answered(Err(over())));
        }
        self.phase != Phase::Lost
    }

    /// Makes the beginning durable, starts the agent and gives it its first prompt.
    async fn begin(&mut self, prompt: Option<Prompt>) -> Result<(), Refusal> {
        let agent_type = self.plan.agent;
        let forked_from = self.forked_from.take().map(Text::from);
        let config = self.config.shown();
        self.core.emit(SessionStarted { agent_type, config, info: None, forked_from });
        // Nobody hears of a session that is not durable.
        let opened = match self.first_flush().await {
            Ok(()) => self.enter().await.map_err(Refusal::Failed),
            Err(refusal) => Err(refusal),
        };
        if let Err(Refusal::Failed(error) | Refusal::NoRoom(error)) = &opened {
            self.end(SessionEndReason::Failed, Some(error.message.clone()));
        } else if let Some(prompt) = prompt {
            let recalled = self.recall(prompt.message_id.as_deref()).await;
            // Who starts a session hears of its first prompt by its events.
            if let Err(error) = recalled.and_then(|()| self.prompt(NOBODY, prompt)) {
                self.core.error(error.code.as_str(), error.message.clone());
                self.end(SessionEndReason::Failed, Some(error.message));
            }
        }
        opened
    }

    /// Does what follows from what has happened.
    fn tend(&mut self) {
        self.take_changes();
        self.tend_hooks();
        self.end_breach();
        self.tend_answer();
        // First the limits: what is asked past one waits.
        self.keep_limits();
        self.settle_raised();
        self.end_if_done();
        self.core.place_replies();
    }

    /// Waits for one thing to happen, and does what follows.
    async fn step(&mut self) {
        let may_gather = self.core.journal.bytes() < GATHER_LIMIT;
        let deadline = self.deadline();
        let relays = self.bridge.as_mut().filter(|_| may_gather && !self.phase.is_over());
        tokio::select! {
            biased;
            // First: who has a reply finds done what it is the reply to.
            result = self.outbox.committed() => self.committed(result),
            message = self.commands.recv() => match message {
                Some(message) => self.hear(message).await,
                None => self.abandoned(),
            },
            () = until(deadline) => self.deadline_passed().await,
            checked = self.core.checked() => self.answer_checked(checked).await,
            said = said(relays, &mut self.supervisor, may_gather) => match said {
                Said::Relayed(heard) => self.heard(heard),
                Said::Happened(happening) => self.happened(happening).await,
            },
        }
    }

    /// The hub is gone, and nobody else is left to ask anything of the session: it must not outlive them.
    fn abandoned(&mut self) {
        if !self.phase.is_stopped() {
            let _ = self.command(NOBODY, Command::Stop);
        }
    }

    /// The session is over. Only what is already said remains to be made durable.
    pub(super) fn end(&mut self, reason: SessionEndReason, error: Option<String>) {
        if !self.phase.end() {
            return;
        }
        // What it still says, nobody hears; dropped, it is killed.
        self.supervisor.end();
        self.prompts.clear_queue();
        self.limit_is_moot("the session ended");
        self.fail_waiting(TurnFailure::Died, "the session ended");
        self.end_answers("the session ended");
        self.end_hooks(TurnFailure::Died, "the session ended");
        self.tend_hooks();
        self.withdraw_all("the session ended");
        let summary = &self.core.book.record.summary;
        let (session, agent) = (summary.id.as_str(), self.plan.agent.as_str());
        tracing::info!(session, agent, reason = reason.as_str(), error, "session ended");
        self.core.emit(SessionEnded { reason, error: error.map(Text::from) });
        self.core.book.record.owner = None;
        self.fail_calls(None, ErrorCode::Conflict, "the session ended");
    }
}

/// Something of the agent's.
enum Said {
    /// By a relay.
    Relayed(Heard),
    /// On its own wire.
    Happened(Happening),
}

/// What the agent says next. Where both have something, chance decides: neither starves the other.
async fn said(relays: Option<&mut Bridge>, supervisor: &mut Supervisor, may_gather: bool) -> Said {
    let relayed = async {
        match relays {
            Some(relays) => Said::Relayed(relays.next().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        said = relayed => said,
        happening = supervisor.next(may_gather) => Said::Happened(happening),
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
