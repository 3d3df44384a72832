//! The one owner of a session: takes commands, reads the agent, and makes durable what it hears before
//! it acts on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Signal, Sink as _, Tape};
use agentwire_protocol::event::{
    ErrorEvent, SessionEndReason, SessionEnded, SessionStarted, Status, StatusChanged, TurnFailure,
};
use agentwire_protocol::{
    Call, Command, ErrorCode, GatewayError, Json, Prompt, SessionConfig, SessionState,
    SessionSummary, Text,
};
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};
use tokio::time::Instant;

use super::agent::{Happening, Origin, Plan, Running, SCRATCH};
use super::core::{Core, Effect, ended};
use super::limits::{Limits, Reached};
use super::policy::Policy;
use super::stderr;
use super::{Answered, Inbox, Message};
use crate::bridge::{Bridge, Heard};
use crate::log::{Committed, EventLog, LogWriter};
use crate::process::TreeSignal;
use crate::store::{Append, StoreError};

/// How much may gather while a commit runs; beyond it the agent waits.
const GATHER_LIMIT: usize = 1 << 20;

/// A line that is longer needs leave: how many sessions hold such lines at once is bounded.
const LARGE_LINE: usize = 1 << 20;

/// How long an agent may live on after it closed its output.
const CLOSED_GRACE: Duration = Duration::from_secs(2);

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
}

/// The owner of a session.
pub(crate) struct Actor {
    pub(super) plan: Plan,
    pub(super) config: SessionConfig,
    pub(super) tape: Tape,
    pub(super) core: Core,
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    pub(super) log: EventLog,
    writer: LogWriter,
    commands: Inbox,
    summary: watch::Sender<SessionSummary>,
    /// What its next process goes on with.
    origin: Origin,
    forked_from: Option<String>,
    pub(super) bridge: Option<Bridge>,
    pub(super) process: Option<Running>,
    pub(super) calls: BTreeMap<u64, Waiting>,
    next_call: u64,
    in_flight: Option<InFlight>,
    pub(super) keys: Vec<(String, String)>,
    /// Message ids of prompts that were taken.
    pub(super) taken: BTreeSet<String>,
    /// Prompts that wait for their process, where one process serves one turn.
    pub(super) prompts: VecDeque<String>,
    /// Prompts that wait until somebody allows to go past a limit.
    pub(super) held: VecDeque<Prompt>,
    pub(super) reached: Option<Reached>,
    /// Requests that are over, and how: those who come late are told.
    pub(super) over: VecDeque<(String, String)>,
    /// When open requests are denied for want of an answer.
    pub(super) deadlines: BTreeMap<String, Instant>,
    pub(super) escalation: Option<(Instant, TreeSignal)>,
    /// The turn that is to end by it.
    braked: Option<u64>,
    pub(super) ending: Option<(SessionEndReason, Option<String>)>,
    pub(super) is_over: bool,
    is_abandoned: bool,
    /// No client is left who could prompt or answer.
    pub(super) is_alone: bool,
    /// The log could not be written: what it says of the session is not its end.
    is_lost: bool,
    has_refused: bool,
    /// A prompt waits for its process.
    wants_process: bool,
    /// Leave to hold a large line.
    large: Option<OwnedSemaphorePermit>,
}

/// A caller who waits for the agent's answer.
pub(super) struct Waiting {
    pub(super) reply: oneshot::Sender<Answered>,
    deadline: Instant,
}

/// What is being made durable, and what follows then.
struct InFlight {
    committed: Pin<Box<Committed>>,
    effects: Vec<Effect>,
    summary: SessionSummary,
}

impl Actor {
    pub(crate) fn new(parts: Parts) -> Self {
        let price = parts.config.model.as_ref();
        let price = price.and_then(|model| parts.plan.settings.prices.get(model)).copied();
        Self {
            limits: Limits::new(&parts.config, price),
            plan: parts.plan,
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
            taken: BTreeSet::new(),
            prompts: VecDeque::new(),
            held: VecDeque::new(),
            reached: None,
            over: VecDeque::new(),
            deadlines: BTreeMap::new(),
            escalation: None,
            braked: None,
            ending: None,
            is_over: false,
            is_abandoned: false,
            is_alone: false,
            is_lost: false,
            has_refused: false,
            wants_process: false,
            large: None,
        }
    }

    /// Runs the session to its end, and says whether that is in the log. `started` hears when it is durable and its agent runs, or why not.
    pub(crate) async fn run(
        mut self,
        prompt: Option<Prompt>,
        started: oneshot::Sender<Result<(), GatewayError>>,
    ) -> bool {
        let agent_type = self.plan.agent;
        let forked_from = self.forked_from.take().map(Text::from);
        let config = self.config.shown();
        self.core.emit(SessionStarted { agent_type, config, info: None, forked_from });
        // Nobody hears of a session that is not durable.
        let opened = match self.first_flush().await {
            Ok(()) => self.open().await,
            Err(error) => Err(error),
        };
        if opened.is_ok() {
            self.core.raise_start(self.origin.resume.is_some());
        }
        if let (Ok(()), Some(prompt)) = (&opened, prompt) {
            // Who starts a session hears of its first prompt by its events.
            if let Err(error) = self.prompt(NOBODY, prompt) {
                self.core.error(error.code.as_str(), error.message.clone());
                self.end(SessionEndReason::Failed, Some(error.message));
            }
        }
        if let Err(error) = &opened {
            self.end(SessionEndReason::Failed, Some(error.message.clone()));
        }
        let _ = started.send(opened);
        loop {
            self.tend_hooks();
            self.settle_raised();
            self.keep_limits();
            self.end_if_done();
            self.submit();
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

    /// An interrupt that is not heeded becomes signals.
    pub(super) fn escalate(&mut self) {
        let at = Instant::now() + self.plan.settings.timing.interrupt;
        self.braked = self.core.book.record.open.turn;
        self.escalation.get_or_insert((at, TreeSignal::Interrupt));
    }

    /// The agent has something new to do: its silence counts from here.
    pub(super) fn touch(&mut self) {
        if let Some(process) = &mut self.process {
            process.heard = Instant::now();
        }
    }

    /// Waits for one thing to happen, and does what follows.
    async fn step(&mut self) {
        // What is being ended must be read to its end, whoever else holds large lines.
        let is_ending = self.ending.is_some()
            || self.process.as_ref().is_some_and(|process| process.exit.is_some());
        let wants_large = self.large.is_none() && self.tape.held() > LARGE_LINE && !is_ending;
        let may_read = self.core.journal.bytes() < GATHER_LIMIT && !wants_large;
        let deadline = self.deadline();
        let room = Arc::clone(&self.plan.room);
        tokio::select! {
            biased;
            message = self.commands.recv(), if !self.is_abandoned => match message {
                Some(message) => self.take(message),
                // Nobody is left to ask anything of the session; it goes on all the same.
                None => self.abandoned(),
            },
            () = until(deadline) => self.deadline_passed().await,
            result = committed(&mut self.in_flight) => self.committed(result),
            room = room.acquire_owned(), if wants_large => self.large = room.ok(),
            // Before the agent's output: there is never more of it than clients have answered.
            heard = heard(&mut self.bridge), if may_read && !self.is_over => self.heard(heard),
            happening = next(&mut self.process, may_read) => self.happened(happening).await,
        }
    }

    fn take(&mut self, message: Message) {
        if self.is_over {
            let _ = message.reply.send(self.answered(Err(over())));
            return;
        }
        let call = Call(self.next_call);
        self.next_call += 1;
        let deadline = Instant::now() + self.plan.settings.timing.call;
        self.calls.insert(call.0, Waiting { reply: message.reply, deadline });
        self.core.journal.tick();
        // With no room to write, only what makes an agent stop is taken.
        let stuck = self.log.stuck();
        if let Some(error) = stuck.as_ref().filter(|_| !is_brake(&message.command)) {
            return self.reply(call, Err(storage(error)));
        }
        let before = self.core.effects.len();
        let ends_turn = matches!(message.command, Command::Interrupt | Command::Stop);
        if let Err(error) = self.command(call, message.command) {
            self.core.effects.push(Effect::Reply(call, Err(error)));
        }
        if stuck.is_some() {
            let brakes = self.core.effects.split_off(before);
            if ends_turn {
                self.take_back();
            }
            brakes.into_iter().for_each(|effect| self.act(effect));
        }
    }

    /// What was to be said to the agent before it was told to stop is not said after it.
    fn take_back(&mut self) {
        let stays = |effect: &Effect| !matches!(effect, Effect::Write(_) | Effect::Start);
        self.core.effects.retain(stays);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.effects.retain(stays);
        }
    }

    /// The hub is gone: the session must not outlive it.
    fn abandoned(&mut self) {
        self.is_abandoned = true;
        if self.ending.is_none() {
            let _ = self.command(NOBODY, Command::Stop);
        }
    }

    async fn happened(&mut self, happening: Happening) {
        let Some(process) = &mut self.process else { return };
        self.core.journal.tick();
        match happening {
            Happening::Writable => process.flush(),
            Happening::Stdout(count) => {
                process.heard(count);
                self.core.book.silent(false);
                SCRATCH.with_borrow(|buffer| {
                    self.tape.feed(buffer.get(..count).unwrap_or_default(), &mut self.core);
                });
            }
            Happening::Stderr(count) => {
                let dialect = self.plan.dialect.name();
                let core = &mut self.core;
                let each = &mut |line: &[u8], unterminated: bool| {
                    core.event(stderr::draft(dialect, line, unterminated));
                };
                if count == 0 {
                    process.close_stderr();
                    process.said.end(each);
                } else {
                    SCRATCH.with_borrow(|buffer| {
                        process.said.feed(buffer.get(..count).unwrap_or_default(), each);
                    });
                }
            }
            Happening::Exited(exit) => process.exited(exit),
            Happening::Gone => process.gone(),
        }
        self.verify_resume();
        if self.process.as_ref().is_some_and(Running::is_over) {
            self.process_over().await;
        }
        self.calm();
    }

    /// Starts the agent. A process that serves one turn waits for its prompt.
    async fn open(&mut self) -> Result<(), GatewayError> {
        if self.plan.dialect.capabilities().process_per_turn {
            let launch = self.plan.launch(&self.config, &self.origin, None, Some(""))?;
            self.plan.program(&launch)?;
            self.core.book.ready();
            return Ok(());
        }
        self.start_process(None).await
    }

    async fn start_process(&mut self, prompt: Option<&str>) -> Result<(), GatewayError> {
        let session = self.core.book.record.summary.id.as_str().to_owned();
        let launch = self.plan.launch(&self.config, &self.origin, Some(&session), prompt)?;
        let process = self.plan.start(launch).await?;
        tracing::debug!(session, pid = process.control.pid(), "agent process started");
        self.process = Some(process);
        self.core.book.ask_for(self.origin.wanted());
        self.tape.start(&mut self.core);
        Ok(())
    }

    /// The process has ended and all it said is read.
    async fn process_over(&mut self) {
        let Some(process) = self.process.take() else { return };
        let exit = process.exit.unwrap_or(Exit::Unknown);
        let session = self.core.book.record.summary.id.as_str();
        tracing::debug!(session, pid = process.control.pid(), ?exit, "agent process ended");
        let was_busy = self.core.book.is_busy();
        let lost = process.said.lost();
        if lost > 0 {
            let details = Some(Json::of(&serde_json::json!({ "bytes": lost })));
            let code = Some(Text::fixed("stderrCut"));
            let message = format!("{lost} further bytes of stderr were not kept");
            self.core.emit(ErrorEvent { code, details, ..ErrorEvent::new(message) });
        }
        self.tape.end(exit, &mut self.core);
        self.core.book.process_ended();
        self.escalation = None;
        self.limit_is_moot("the agent ended");
        // What the agent was last told, it will not answer.
        self.fail_calls(|_| true, ErrorCode::AgentFailed, "the agent ended");
        if let Some((reason, error)) = self.ending.take() {
            return self.end(reason, error);
        }
        if self.plan.dialect.capabilities().process_per_turn {
            self.core.book.ready();
            // Until the agent has told its own id, the next process begins as this one did.
            if let Some(id) = self.core.book.record.summary.native_session_id.clone() {
                self.origin = Origin { resume: Some(id), fork: false };
            }
            if !self.prompts.is_empty() {
                self.core.effects.push(Effect::Start);
            }
            return;
        }
        let words = process.said.last_words();
        let with_words = |text: String| match &words {
            Some(words) => format!("{text}: {words}"),
            None => text,
        };
        match exit {
            Exit::Code(0) if !was_busy => self.end(SessionEndReason::Completed, None),
            _ => {
                let error = with_words(ended(exit));
                self.core.error("agentFailed", error.clone());
                self.end(SessionEndReason::Failed, Some(error));
            }
        }
    }

    /// Where one process serves one turn: starts the next, if a prompt waits.
    pub(super) async fn next_process(&mut self) {
        while self.process.is_none() && self.ending.is_none() {
            let Some(prompt) = self.prompts.pop_front() else { return };
            if let Err(error) = self.start_process(Some(&prompt)).await {
                self.core.error(error.code.as_str(), error.message);
                self.tape.end(Exit::Unknown, &mut self.core);
                self.core.book.process_ended();
                self.core.book.ready();
            }
        }
    }

    /// A resumed session is the one that was asked for, or it ends.
    fn verify_resume(&mut self) {
        if self.has_refused {
            return;
        }
        let Some(message) = self.core.book.refusal().map(str::to_owned) else { return };
        self.has_refused = true;
        self.core.error("resumeFailed", message.clone());
        self.ending = Some((SessionEndReason::Failed, Some(message)));
        self.signal(TreeSignal::Kill);
    }

    /// The session is over. Only what is already said remains to be made durable.
    pub(super) fn end(&mut self, reason: SessionEndReason, error: Option<String>) {
        if self.is_over {
            return;
        }
        self.is_over = true;
        self.limit_is_moot("the session ended");
        self.end_hooks(TurnFailure::Died, "the session ended");
        self.tend_hooks();
        self.withdraw_all("the session ended");
        let summary = &self.core.book.record.summary;
        tracing::info!(session = summary.id.as_str(), ?reason, error, "session ended");
        self.core.emit(SessionEnded { reason, error: error.map(Text::from) });
        self.core.book.record.owner = None;
        self.fail_calls(|_| true, ErrorCode::Conflict, "the session ended");
    }

    /// Hands to the log what has gathered, unless it is still at the last.
    fn submit(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        if !self.core.has_news() && self.keys.is_empty() {
            let effects = std::mem::take(&mut self.core.effects);
            effects.into_iter().for_each(|effect| self.act(effect));
            return;
        }
        let batch = self.core.journal.take();
        let record = &mut self.core.book.record;
        record.summary.last_seq = self.core.journal.last();
        record.summary.updated_at = self.core.journal.timestamp().to_owned();
        let summary = record.summary.clone();
        let append = Append { batch, record: record.clone(), keys: std::mem::take(&mut self.keys) };
        self.core.book.changed = false;
        self.in_flight = Some(InFlight {
            committed: Box::pin(self.writer.submit(append)),
            effects: std::mem::take(&mut self.core.effects),
            summary,
        });
    }

    /// Makes the session's beginning durable. If there is no room, whoever starts the session hears of
    /// it at once; then nothing may start later, when there is room again.
    async fn first_flush(&mut self) -> Result<(), GatewayError> {
        self.submit();
        loop {
            tokio::select! {
                result = committed(&mut self.in_flight) => {
                    let told = result.as_ref().map_err(storage).copied();
                    self.committed(result);
                    return told;
                }
                () = tokio::time::sleep(Duration::from_millis(50)) => {
                    if let Some(error) = self.log.stuck() {
                        return Err(storage(&error));
                    }
                }
            }
        }
    }

    fn committed(&mut self, result: Result<(), StoreError>) {
        let Some(in_flight) = self.in_flight.take() else { return };
        match result {
            Ok(()) => {
                self.summary.send_replace(in_flight.summary);
                if self.tape.held() <= LARGE_LINE {
                    self.large = None;
                }
                in_flight.effects.into_iter().for_each(|effect| self.act(effect));
            }
            // The log is no longer ours, or cannot be written at all: nothing may go on unseen.
            Err(error) => {
                let session = self.core.book.record.summary.id.as_str();
                tracing::error!(session, %error, "session lost: its log cannot be written");
                self.is_over = true;
                self.is_lost = true;
                self.process = None;
                self.prompts.clear();
                self.wants_process = false;
                let error = storage(&error);
                let gathered = std::mem::take(&mut self.core.effects);
                for effect in in_flight.effects.into_iter().chain(gathered) {
                    if let Effect::Reply(call, _) = effect {
                        self.reply(call, Err(error.clone()));
                    }
                }
                self.fail_calls(|_| true, error.code, &error.message);
                // What cannot be kept must not be tried again.
                let _ = self.core.journal.take();
                self.core.book.changed = false;
                self.core.raised.clear();
                self.keys.clear();
                self.summary.send_modify(|summary| summary.state = SessionState::Ended);
            }
        }
    }

    fn act(&mut self, effect: Effect) {
        match (effect, &mut self.process) {
            (Effect::Reply(call, result), _) => self.reply(call, result),
            (Effect::Write(line), Some(process)) => process.send(&line),
            (Effect::CloseStdin, Some(process)) => process.close_stdin(),
            (Effect::Signal(Signal::Interrupt), Some(_)) => self.signal(TreeSignal::Interrupt),
            (Effect::Signal(Signal::Terminate), Some(_)) => self.signal(TreeSignal::Terminate),
            (Effect::Relay(connection, message), _) => {
                if let Some(bridge) = &mut self.bridge {
                    bridge.send(connection, &message);
                }
            }
            (Effect::Start, _) => self.wants_process = true,
            (Effect::Write(_) | Effect::CloseStdin | Effect::Signal(_), None) => {}
        }
    }

    pub(super) fn signal(&self, signal: TreeSignal) {
        if let Some(process) = &self.process {
            process.control.signal(signal);
        }
    }

    fn answered(&self, reply: Result<Json<'static>, GatewayError>) -> Answered {
        Answered { reply, last_seq: self.summary.borrow().last_seq }
    }

    pub(super) fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        if let Some(waiting) = self.calls.remove(&call.0) {
            let _ = waiting.reply.send(self.answered(result));
        }
    }

    fn fail_calls(&mut self, which: impl Fn(&Waiting) -> bool, code: ErrorCode, message: &str) {
        // A call whose reply waits for the store has its answer.
        let queued = self.core.effects.iter();
        let queued = queued.chain(self.in_flight.iter().flat_map(|flight| &flight.effects));
        let answered: BTreeSet<u64> = queued
            .filter_map(|effect| match effect {
                Effect::Reply(call, _) => Some(call.0),
                Effect::Write(_)
                | Effect::CloseStdin
                | Effect::Signal(_)
                | Effect::Relay(..)
                | Effect::Start => None,
            })
            .collect();
        let over: Vec<u64> = self
            .calls
            .iter()
            .filter(|(call, waiting)| !answered.contains(call) && which(waiting))
            .map(|(call, _)| *call)
            .collect();
        for call in over {
            self.reply(Call(call), Err(GatewayError::new(code, message)));
        }
    }

    /// What an interrupt was to reach is reached.
    fn calm(&mut self) {
        let is_over = !self.core.book.is_busy() || self.core.book.record.open.turn != self.braked;
        if self.ending.is_none() && self.escalation.is_some() && is_over {
            self.escalation = None;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let timing = &self.plan.settings.timing;
        let left = self.process.as_ref().and_then(|process| process.left_until);
        let process = self.process.as_ref().filter(|process| process.exit.is_none());
        let stall = process
            .filter(|_| self.reached.is_none() && self.core.book.may_stall())
            .map(|process| process.heard + timing.stall);
        let closed = process.and_then(|process| process.closed).map(|closed| closed + CLOSED_GRACE);
        let closed = closed.filter(|_| self.escalation.is_none());
        [
            self.calls.values().map(|waiting| waiting.deadline).min(),
            self.deadlines.values().min().copied(),
            self.escalation.map(|(at, _)| at),
            self.core.hooks.deadline(),
            stall,
            closed,
            left,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    async fn deadline_passed(&mut self) {
        let now = Instant::now();
        self.core.journal.tick();
        if let Some(process) = &mut self.process
            && process.left_until.is_some_and(|left| left <= now)
        {
            self.core
                .error("processLeft", "the agent left processes that cannot be ended from here");
            process.gone();
            if process.is_over() {
                self.process_over().await;
            }
        }
        self.fail_calls(
            |waiting| waiting.deadline <= now,
            ErrorCode::Timeout,
            "the agent did not answer in time",
        );
        // Those that have their answer wait for the store, not for the agent.
        for waiting in self.calls.values_mut().filter(|waiting| waiting.deadline <= now) {
            waiting.deadline = now + self.plan.settings.timing.call;
        }
        self.deny_late(now);
        self.core.raise_late(now);
        if let Some((_, signal)) = self.escalation.filter(|(at, _)| *at <= now) {
            self.signal(TreeSignal::Continue);
            self.signal(signal);
            let next = match signal {
                TreeSignal::Interrupt => Some(TreeSignal::Terminate),
                TreeSignal::Terminate => Some(TreeSignal::Kill),
                TreeSignal::Kill | TreeSignal::Pause | TreeSignal::Continue => None,
            };
            self.escalation = next.map(|signal| (now + self.plan.settings.timing.signal, signal));
        }
        let Some(process) = self.process.as_mut().filter(|process| process.exit.is_none()) else {
            return;
        };
        let closed = process.closed.is_some_and(|closed| closed + CLOSED_GRACE <= now);
        if closed && self.escalation.is_none() {
            process.closed = None;
            self.core.error("agentFailed", "the agent closed its output and lives on: it is ended");
            self.escalation = Some((now, TreeSignal::Terminate));
        } else if process.heard + self.plan.settings.timing.stall <= now
            && self.core.book.may_stall()
        {
            let seconds = self.plan.settings.timing.stall.as_secs();
            let message = format!("the agent has said nothing for {seconds} s");
            self.core.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
            self.core.book.silent(true);
        }
    }
}

/// A call that nobody waits for.
pub(super) const NOBODY: Call = Call(0);

/// What makes an agent stop is taken at any time.
fn is_brake(command: &Command) -> bool {
    match command {
        Command::Interrupt | Command::Stop | Command::Finish => true,
        Command::Settle(settlement) => {
            settlement.behavior == Some(agentwire_protocol::command::Behavior::Deny)
        }
        Command::Start(_)
        | Command::Attach { .. }
        | Command::Prompt(_)
        | Command::Configure(_)
        | Command::Query { .. }
        | Command::Rewind { .. } => false,
    }
}

fn over() -> GatewayError {
    GatewayError::new(ErrorCode::Conflict, "the session is over; it can be resumed")
}

/// A store's error, for clients.
pub(crate) fn storage(error: &StoreError) -> GatewayError {
    match error {
        StoreError::Full(text) => GatewayError::new(
            ErrorCode::StorageFull,
            format!("no room to keep events: {text}; free some space, it goes on by itself"),
        ),
        StoreError::Busy(text) => {
            GatewayError::new(ErrorCode::Overloaded, format!("the store is busy: {text}"))
        }
        StoreError::Conflict(text) => GatewayError::new(ErrorCode::Conflict, text.clone()),
        StoreError::Failed(text) => {
            GatewayError::new(ErrorCode::Internal, format!("failed to keep events: {text}"))
        }
    }
}

async fn committed(in_flight: &mut Option<InFlight>) -> Result<(), StoreError> {
    match in_flight {
        Some(in_flight) => in_flight.committed.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn next(process: &mut Option<Running>, may_read: bool) -> Happening {
    match process {
        Some(process) => process.next(may_read).await,
        None => std::future::pending().await,
    }
}

async fn heard(bridge: &mut Option<Bridge>) -> Heard {
    match bridge {
        Some(bridge) => bridge.next().await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
