//! The one owner of a session: takes commands, reads the agent, and makes durable what it hears before
//! it acts on it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::tape::{Judged, Tape};
use agentwire_protocol::event::{SessionEndReason, SessionEnded, SessionStarted, TurnFailure};
use agentwire_protocol::{
    Call, Command, ErrorCode, GatewayError, Prompt, SessionConfig, SessionSummary, Text,
};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::agent::{Happening, Origin, Plan, Running};
use super::book::Raised;
use super::calls::{Waiting, over};
use super::commit::{InFlight, committed};
use super::core::Core;
use super::entry::Entry;
use super::limits::{Limits, Reached};
use super::policy::Policy;
use super::requests::Over;
use super::taken::Taken;
use super::trusting::Trusting;
use super::{Client, Inbox};
use crate::apart::apart_if_long;
use crate::bridge::{Bridge, Heard};
use crate::budget::{self, Share};
use crate::log::{EventLog, LogWriter};
use crate::process::TreeSignal;
use crate::trust::Wish;

/// How much may gather while a commit runs; beyond it the agent waits.
const GATHER_LIMIT: usize = 1 << 20;

/// How long to wait before a disk that took no part of a long line is tried again.
const WRITE_AGAIN: Duration = Duration::from_millis(500);

/// What an actor is made of.
pub(crate) struct Parts {
    pub(crate) plan: Plan,
    pub(crate) config: SessionConfig,
    pub(crate) tape: Tape,
    pub(crate) core: Core,
    pub(crate) policy: Policy,
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

/// A share of the budget that is waited for.
pub(super) type Sharing = Pin<Box<dyn Future<Output = Share> + Send>>;

/// The owner of a session.
pub(crate) struct Actor {
    pub(super) plan: Plan,
    pub(super) config: SessionConfig,
    /// What it was when this run of the session began.
    pub(super) first: SessionConfig,
    pub(super) tape: Tape,
    pub(super) core: Core,
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    pub(super) log: EventLog,
    pub(super) writer: LogWriter,
    commands: Inbox,
    pub(super) summary: watch::Sender<SessionSummary>,
    /// What its next process goes on with.
    pub(super) origin: Origin,
    forked_from: Option<String>,
    pub(super) bridge: Option<Bridge>,
    pub(super) process: Option<Running>,
    pub(super) calls: BTreeMap<u64, Waiting>,
    pub(super) next_call: u64,
    pub(super) in_flight: Option<InFlight>,
    pub(super) keys: Vec<(String, String)>,
    /// Whether the project is trusted, and what waits for that.
    pub(super) trusting: Trusting,
    /// Warnings for as soon as the mode is one that asks.
    pub(super) warnings: Vec<String>,
    /// Message ids of prompts that were taken.
    pub(super) taken: Taken,
    /// The one that the store was asked for last, if it has it.
    pub(super) recalled: Option<String>,
    /// Prompts that wait for their process, where one process serves one turn.
    pub(super) prompts: VecDeque<Prompt>,
    /// Prompts that wait until somebody allows to go past a limit.
    pub(super) held: VecDeque<Entry>,
    pub(super) reached: Option<Reached>,
    /// Calls that wait there: shown to the gateway's own hook, or asked for.
    pub(super) held_calls: Vec<Judged>,
    pub(super) held_requests: Vec<Raised>,
    /// Requests that are over: those who come late are told.
    pub(super) over: VecDeque<Over>,
    /// The client whose command is being carried out, if it has a name.
    pub(super) caller: Client,
    /// When open requests are denied for want of an answer.
    pub(super) deadlines: BTreeMap<String, Instant>,
    pub(super) escalation: Option<(Instant, TreeSignal)>,
    /// The turn that is to end by it.
    pub(super) braked: Option<u64>,
    pub(super) ending: Option<(SessionEndReason, Option<String>)>,
    /// Somebody wants it to end whatever it does.
    pub(super) is_stopping: bool,
    pub(super) is_over: bool,
    is_abandoned: bool,
    /// No client is left who could prompt or answer.
    pub(super) is_alone: bool,
    /// The log could not be written: what it says of the session is not its end.
    pub(super) is_lost: bool,
    pub(super) has_refused: bool,
    /// A prompt waits for its process.
    pub(super) wants_process: bool,
    /// What the agent said last came by a relay.
    was_relayed: bool,
    /// The share of a long line whose events are not handed to the log yet.
    pub(super) share: Option<Share>,
    /// Those of commands, until what they did is handed to the log and said to the agent.
    pub(super) shares: Vec<Arc<Share>>,
    /// Waits for the share of the next long line.
    pub(super) sharing: Option<Sharing>,
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
            policy: parts.policy,
            log: parts.log,
            writer: parts.writer,
            commands: parts.commands,
            summary: parts.summary,
            origin: parts.origin,
            forked_from: parts.forked_from,
            bridge: parts.bridge,
            process: None,
            calls: BTreeMap::new(),
            next_call: 1,
            in_flight: None,
            keys: parts.keys,
            trusting: Trusting::new(parts.wish, parts.rest),
            warnings: Vec::new(),
            taken: Taken::default(),
            recalled: None,
            prompts: VecDeque::new(),
            held: VecDeque::new(),
            reached: None,
            held_calls: Vec::new(),
            held_requests: Vec::new(),
            over: VecDeque::new(),
            caller: Client::default(),
            deadlines: BTreeMap::new(),
            escalation: None,
            braked: None,
            ending: None,
            is_stopping: false,
            is_over: false,
            is_abandoned: false,
            is_alone: false,
            is_lost: false,
            has_refused: false,
            wants_process: false,
            was_relayed: false,
            share: None,
            shares: Vec::new(),
            sharing: None,
            load: 0,
        }
    }

    /// Runs the session to its end, and says whether that is in the log. `started` hears when it is durable and its agent runs, or why not.
    pub(crate) async fn run(
        mut self,
        prompt: Option<Prompt>,
        started: oneshot::Sender<Result<(), Refusal>>,
    ) -> bool {
        self.guard();
        let agent_type = self.plan.agent;
        let forked_from = self.forked_from.take().map(Text::from);
        let config = self.config.shown();
        self.core.emit(SessionStarted { agent_type, config, info: None, forked_from });
        // Nobody hears of a session that is not durable.
        let opened = match self.first_flush().await {
            Ok(()) => self.enter().await.map_err(Refusal::Failed),
            Err(refusal) => Err(refusal),
        };
        if let (Ok(()), Some(prompt)) = (&opened, prompt) {
            let recalled = self.recall(prompt.message_id.as_deref()).await;
            // Who starts a session hears of its first prompt by its events.
            if let Err(error) = recalled.and_then(|()| self.prompt(NOBODY, prompt)) {
                self.core.error(error.code.as_str(), error.message.clone());
                self.end(SessionEndReason::Failed, Some(error.message));
            }
        }
        if let Err(Refusal::Failed(error) | Refusal::NoRoom(error)) = &opened {
            self.end(SessionEndReason::Failed, Some(error.message.clone()));
        }
        let _ = started.send(opened);
        loop {
            // What is asked with much text is also judged with it.
            let load = std::mem::take(&mut self.load);
            apart_if_long(load, || self.tend());
            self.submit();
            if std::mem::take(&mut self.trusting.wants_open) {
                self.go_in().await;
                continue;
            }
            if std::mem::take(&mut self.wants_process) {
                self.next_process().await;
                continue;
            }
            if self.is_over && self.in_flight.is_none() {
                break;
            }
            self.step().await;
        }
        for message in self.commands.close() {
            let _ = message.reply.send(self.answered(Err(over())));
        }
        !self.is_lost
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
        let long = self.process.as_ref().and_then(|process| {
            process.long.as_ref().map(|long| (long, long.is_whole() || process.is_read()))
        });
        let is_stuck = long.is_some_and(|(long, _)| long.is_stuck());
        let is_whole = long.is_some_and(|(_, is_whole)| is_whole);
        match long.filter(|_| is_whole && may_gather) {
            Some((long, _)) if self.sharing.is_none() => {
                let (pool, bytes) = (self.plan.budget.work.clone(), budget::WORK * long.kept());
                self.sharing = Some(Box::pin(async move { pool.take(bytes).await }));
            }
            Some(_) => {}
            None => self.sharing = None,
        }
        let may_read = may_gather && !is_whole && !is_stuck;
        let deadline = self.deadline();
        // A message of a relay may hold the share that a long line waits for.
        let relays = self.bridge.as_mut().filter(|_| may_gather && !self.is_over);
        tokio::select! {
            biased;
            // First: who has a reply finds done what it is the reply to.
            result = committed(&mut self.in_flight) => self.committed(result),
            message = self.commands.recv(), if !self.is_abandoned => match message {
                Some(message) => self.hear(message).await,
                None => self.abandoned(),
            },
            () = until(deadline) => self.deadline_passed().await,
            share = shared(&mut self.sharing) => self.take_long(share).await,
            () = tokio::time::sleep(WRITE_AGAIN), if is_stuck && !is_whole => self.write_again(),
            said = said(relays, &mut self.process, may_read, self.was_relayed) => match said {
                Said::Relayed(heard) => {
                    self.was_relayed = true;
                    self.heard(heard);
                }
                Said::Happened(happening) => {
                    self.was_relayed = false;
                    self.happened(happening).await;
                }
            },
        }
    }

    /// The hub is gone, and nobody else is left to ask anything of the session: it must not outlive them.
    fn abandoned(&mut self) {
        self.is_abandoned = true;
        if !self.is_stopping {
            let _ = self.command(NOBODY, Command::Stop);
        }
    }

    /// The session is over. Only what is already said remains to be made durable.
    pub(super) fn end(&mut self, reason: SessionEndReason, error: Option<String>) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        // What it still says, nobody hears; dropped, it is killed.
        self.process = None;
        self.prompts.clear();
        self.wants_process = false;
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
        self.fail_calls(|_| true, ErrorCode::Conflict, "the session ended");
    }
}

/// A call that nobody waits for.
pub(super) const NOBODY: Call = Call(0);

/// Something of the agent's.
enum Said {
    /// By a relay.
    Relayed(Heard),
    /// On its own wire.
    Happened(Happening),
}

/// What the agent says next. Where both have something, they take turns: neither starves the other.
async fn said(
    relays: Option<&mut Bridge>,
    process: &mut Option<Running>,
    may_read: bool,
    was_relayed: bool,
) -> Said {
    let relayed = async {
        match relays {
            Some(relays) => Said::Relayed(relays.next().await),
            None => std::future::pending().await,
        }
    };
    let happened = async {
        match process {
            Some(process) => Said::Happened(process.next(may_read).await),
            None => std::future::pending().await,
        }
    };
    if was_relayed {
        tokio::select! { biased; said = happened => said, said = relayed => said }
    } else {
        tokio::select! { biased; said = relayed => said, said = happened => said }
    }
}

async fn shared(sharing: &mut Option<Sharing>) -> Share {
    match sharing {
        Some(share) => share.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
