//! The single owner of a session: accepts commands, reads the agent, and makes everything it receives
//! durable before acting on it.

use std::time::Duration;

use agentwire_dialects::tape::Tape;
use agentwire_protocol::event::{SessionEndReason, SessionEnded, SessionStarted, TurnFailure};
use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Prompt, SessionConfig, SessionSummary, Text,
};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::Inbox;
use super::accept_commands::session_ended;
use super::agent::{Origin, Plan, ProcessActivity};
use super::callers::{Callers, NOBODY};
use super::core::Core;
use super::limits::Limits;
use super::outbox::Outbox;
use super::phase::Phase;
use super::prompts::Prompts;
use super::requests::Requests;
use super::supervisor::{Due, Supervisor};
use super::trust_gate::TrustGate;
use crate::blocking::blocking_if_long;
use crate::bridge::{Bridge, RelayActivity};
use crate::log::{EventLog, LogWriter};
use crate::trust::Wish;

/// How many bytes may gather while a commit runs. Beyond it, the agent waits.
const GATHER_LIMIT: usize = 1 << 20;

pub(crate) struct Parts {
    pub(crate) plan: Plan,
    pub(crate) config: SessionConfig,
    pub(crate) tape: Tape,
    pub(crate) core: Core,
    pub(crate) log: EventLog,
    pub(crate) writer: LogWriter,
    pub(crate) commands: Inbox,
    pub(crate) summary: watch::Sender<SessionSummary>,
    /// The conversation that the agent continues.
    pub(crate) origin: Origin,
    /// The session that this one is a copy of, shown to readers.
    pub(crate) forked_from: Option<String>,
    /// MCP servers that the client hosts, if the agent cannot reach them itself.
    pub(crate) bridge: Option<Bridge>,
    /// Idempotency keys that become durable together with the creation.
    pub(crate) keys: Vec<(String, String)>,
    /// What the start options say about trusting the project's files.
    pub(crate) wish: Wish,
    /// How long to wait before the agent may start.
    pub(crate) rest: Option<Duration>,
}

/// Why a session did not start.
pub(crate) enum Refusal {
    /// The start failed, and that is reported.
    Failed(GatewayError),
    /// There is no room to write the start of the log. It is written later, together with the end.
    NoRoom(GatewayError),
}

pub(crate) struct Actor {
    pub(super) plan: Plan,
    pub(super) config: SessionConfig,
    /// The configuration when this run of the session started.
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
    /// Whether the project is trusted, and what waits for that decision.
    pub(super) trust_gate: TrustGate,
    /// Warnings to report as soon as the session is in a mode that asks.
    pub(super) warnings: Vec<String>,
    pub(super) prompts: Prompts,
    pub(super) phase: Phase,
    /// How many bytes the session has accepted but not processed yet.
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
            trust_gate: TrustGate::new(parts.wish, parts.rest),
            warnings: Vec::new(),
            prompts: Prompts::default(),
            phase: Phase::default(),
            load: 0,
        }
    }

    /// Runs the session to its end and returns whether the end is in the log. `started` is notified when
    /// the session is durable and its agent runs, or why that failed.
    pub(crate) async fn run(
        mut self,
        prompt: Option<Prompt>,
        started: oneshot::Sender<Result<(), Refusal>>,
    ) -> bool {
        let begun = self.begin(prompt).await;
        let _ = started.send(begun);
        loop {
            // Judging a request with a lot of text takes long too.
            let load = std::mem::take(&mut self.load);
            blocking_if_long(load, || self.tend());
            self.submit();
            match self.supervisor.take_due() {
                Some(due) => self.start_due(due).await,
                None if self.phase.is_ended() && !self.outbox.is_busy() => break,
                None => self.step().await,
            }
        }
        for message in self.commands.close() {
            let _ = message.reply.send(self.command_reply(Err(session_ended())));
        }
        self.phase != Phase::Lost
    }

    /// Makes the start durable, starts the agent and gives it the first prompt.
    async fn begin(&mut self, prompt: Option<Prompt>) -> Result<(), Refusal> {
        let agent_type = self.plan.agent;
        let forked_from = self.forked_from.take().map(Text::from);
        let config = self.config.shown();
        self.core.emit(SessionStarted { agent_type, config, info: None, forked_from });
        // A session is not reported before it is durable.
        let opened = match self.first_flush().await {
            Ok(()) => self.enter().await.map_err(Refusal::Failed),
            Err(refusal) => Err(refusal),
        };
        if let Err(Refusal::Failed(error) | Refusal::NoRoom(error)) = &opened {
            self.end(SessionEndReason::Failed, Some(error.message.clone()));
        } else if let Some(prompt) = prompt {
            let recalled = self.recall(prompt.message_id.as_deref()).await;
            // A client that starts a session learns about its first prompt from the events.
            if let Err(error) = recalled.and_then(|()| self.prompt(NOBODY, prompt)) {
                self.core.error(error.code.as_str(), error.message.clone());
                self.end(SessionEndReason::Failed, Some(error.message));
            }
        }
        opened
    }

    fn tend(&mut self) {
        self.take_changes();
        self.tend_hooks();
        self.end_breach();
        self.tend_answer();
        // Limits come first: a request that passes a limit must wait.
        self.enforce_limits();
        self.settle_raised();
        self.end_if_done();
        self.core.place_replies();
    }

    async fn start_due(&mut self, due: Due) {
        match due {
            Due::Agent => self.start_agent_if_trusted().await,
            Due::Process => self.next_process().await,
        }
    }

    /// Waits for one thing to happen and handles it.
    async fn step(&mut self) {
        let may_gather = self.core.journal.bytes() < GATHER_LIMIT;
        let deadline = self.deadline();
        let relays = self.bridge.as_mut().filter(|_| may_gather && !self.phase.is_ended());
        tokio::select! {
            biased;
            // This comes first: a client that has a reply must find that the work is done.
            result = self.outbox.committed() => self.committed(result),
            message = self.commands.recv() => match message {
                Some(message) => {
                    self.finish_commit().await;
                    self.receive(message).await;
                }
                None => self.abandoned(),
            },
            () = until(deadline) => self.deadline_passed().await,
            checked = self.core.checked() => self.answer_checked(checked).await,
            activity = next_activity(relays, &mut self.supervisor, may_gather) => match activity {
                AgentActivity::Relay(activity) => self.relay_activity(activity),
                AgentActivity::Process(activity) => self.process_activity(activity).await,
            },
        }
    }

    /// The batch may have become durable just before a command was received, and its reply may have led to
    /// the command.
    async fn finish_commit(&mut self) {
        let result = tokio::select! {
            biased;
            result = self.outbox.committed() => result,
            () = std::future::ready(()) => return,
        };
        self.committed(result);
        if let Some(due) = self.supervisor.take_due() {
            self.start_due(due).await;
        }
    }

    /// The hub is gone and no senders are left. The session must not outlive them.
    fn abandoned(&mut self) {
        if !self.phase.is_stopped() {
            let _ = self.command(NOBODY, Command::Stop);
        }
    }

    /// Ends the session. Only what has been emitted remains to be made durable.
    pub(super) fn end(&mut self, reason: SessionEndReason, error: Option<String>) {
        if !self.phase.end() {
            return;
        }
        // Its remaining output is ignored. Dropping the process kills it.
        self.supervisor.end();
        self.prompts.clear_queue();
        self.limit_is_moot("the session ended");
        self.fail_waiting(TurnFailure::Died, "the session ended");
        self.end_answers("the session ended");
        self.end_hooks(TurnFailure::Died, "the session ended");
        self.tend_hooks();
        self.withdraw_all("the session ended");
        let summary = &self.core.state.record.summary;
        let (session, agent) = (summary.id.as_str(), self.plan.agent.as_str());
        tracing::info!(session, agent, reason = reason.as_str(), error, "session ended");
        self.core.emit(SessionEnded { reason, error: error.map(Text::from) });
        self.core.state.record.owner = None;
        self.fail_calls(None, ErrorCode::Conflict, "the session ended");
    }
}

enum AgentActivity {
    /// Through a relay.
    Relay(RelayActivity),
    /// On its own wire.
    Process(ProcessActivity),
}

/// What the agent sends next. If both sources are ready, the choice is random, so neither starves the
/// other.
async fn next_activity(
    relays: Option<&mut Bridge>,
    supervisor: &mut Supervisor,
    may_gather: bool,
) -> AgentActivity {
    let relayed = async {
        match relays {
            Some(relays) => AgentActivity::Relay(relays.next().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        activity = relayed => activity,
        activity = supervisor.next(may_gather) => AgentActivity::Process(activity),
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
