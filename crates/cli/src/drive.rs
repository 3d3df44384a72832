//! One session on one screen: shows events, asks about requests, and turns keys and signals into
//! commands.

mod ending;
mod mode;
mod requests;
mod signals;

use std::collections::BTreeMap;
use std::time::Duration;

use agentwire_protocol::event::{SessionEndReason, TurnFailure};
use agentwire_protocol::{Command, ErrorCode, Event, EventKind, GatewayError, Json, MAIN_AGENT};
use agentwire_sessions::SessionHandle;
use agentwire_sessions::store::Batch;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use self::mode::Mode;
use self::requests::OpenRequest;
use self::signals::CaughtSignal;
pub(crate) use self::signals::Signals;
use crate::commands::logs::read;
use crate::failure::Failure;
use crate::format;
use crate::screen::Screen;
use crate::source::{EventUpdate, Events};
use crate::terminal::{Terminal, Typed};
use crate::view::dialog::{Dialog, Reading};

const TICK: Duration = Duration::from_millis(100);

/// How long an agent may take to start its own turn after a background subagent is done.
const AFTERTHOUGHT: Duration = Duration::from_secs(2);

/// How many commands may wait for a reply; more are never needed.
const COMMANDS: usize = 16;

pub(crate) struct Drive {
    events: Events,
    /// Events up to this one are history; their requests may be settled.
    present: u64,
    shown: u64,
    screen: Screen,
    signals: Signals,
    mode: Mode,
    terminal: Option<Terminal>,
    open: Vec<OpenRequest>,
    dialog: Option<Dialog>,
    replies: mpsc::Receiver<CommandReply>,
    reply: mpsc::Sender<CommandReply>,
    /// Names of running subagents, by id.
    agents: BTreeMap<String, String>,
    turn: TurnState,
    session_failed: bool,
    /// The agent never started a session.
    never_started: bool,
    interrupts: u32,
    terminations: u32,
    is_stopping: bool,
    stop_at: Option<Instant>,
    /// A request was denied because there was no one to ask.
    denied: bool,
    is_unread: bool,
    has_detached: bool,
}

pub(crate) struct DriveResult {
    pub(crate) verdict: Result<(), Failure>,
    /// The user left before the end.
    pub(crate) left_early: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnState {
    None,
    Running,
    Completed,
    Failed(TurnFailure),
}

/// The reply to a command, and the request that the command settles, if any.
struct CommandReply {
    request: Option<String>,
    result: Result<Json<'static>, GatewayError>,
}

impl Drive {
    /// Watches a session whose last event is `present`.
    pub(crate) fn new(events: Events, present: u64, screen: Screen, signals: Signals) -> Self {
        let (reply, replies) = mpsc::channel(COMMANDS);
        Self {
            events,
            present,
            shown: 0,
            screen,
            signals,
            mode: Mode::Watch,
            terminal: None,
            open: Vec::new(),
            dialog: None,
            replies,
            reply,
            agents: BTreeMap::new(),
            turn: TurnState::None,
            session_failed: false,
            never_started: false,
            interrupts: 0,
            terminations: 0,
            is_stopping: false,
            stop_at: None,
            denied: false,
            is_unread: false,
            has_detached: false,
        }
    }

    /// Also runs it, to the end of its turn.
    pub(crate) fn running(mut self, session: SessionHandle, terminal: Option<Terminal>) -> Self {
        self.mode = Mode::Run(session);
        self.terminal = terminal;
        self
    }

    /// Also answers its requests, if there is a terminal; the user can detach.
    pub(crate) fn answering(
        mut self,
        session: agentwire_client::Session,
        terminal: Option<Terminal>,
    ) -> Self {
        self.mode = Mode::answer(session);
        self.terminal = terminal;
        self
    }

    /// Stops at the end of the turn that works on that prompt.
    pub(crate) fn for_turn_of(mut self, message: Option<String>) -> Self {
        self.mode.for_turn_of(message);
        self
    }

    /// Runs until everything is shown.
    pub(crate) async fn run(mut self) -> DriveResult {
        match self.show().await {
            Ok(left_early) => DriveResult { verdict: self.finish(left_early).await, left_early },
            Err(failure) => DriveResult { verdict: Err(failure), left_early: false },
        }
    }

    /// Whether the user left before the end.
    async fn show(&mut self) -> Result<bool, Failure> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.has_detached {
            let waits = self.waits_for_keys();
            tokio::select! {
                biased;
                caught = self.signals.next() => if self.handle_signal(caught) { return Ok(true) },
                Some(reply) = self.replies.recv() => self.replied(reply),
                handed = self.screen.hand_over() => if handed.is_err() { self.unread() },
                typed = typed(&mut self.terminal), if waits => self.typed(&typed),
                seen = self.events.next(), if self.screen.is_idle() && !self.is_typing() => {
                    match seen? {
                        Some(seen) => if self.handle_update(seen).await? { return Ok(false) },
                        None => return Ok(false),
                    }
                }
                () = until(self.stop_at) => self.stop(),
                _ = ticks.tick(), if self.dialog.is_none() => self.tick(),
            }
        }
        Ok(true)
    }

    /// Shows the events; whether the goal is reached.
    async fn handle_update(&mut self, seen: EventUpdate) -> Result<bool, Failure> {
        match seen {
            EventUpdate::Events(batch) => self.batch(&batch).await,
            EventUpdate::Lost(why) => {
                self.screen.remark(&format!("{why}; reconnecting"));
                Ok(false)
            }
            EventUpdate::Back => {
                self.screen.remark("reconnected");
                Ok(false)
            }
        }
    }

    async fn batch(&mut self, batch: &Batch) -> Result<bool, Failure> {
        for (seq, line) in batch.events() {
            let event = read(line)?;
            self.note(&event);
            self.screen.event(line, event)?;
            self.shown = seq;
            if self.mode.has_reached_goal() {
                return Ok(true);
            }
        }
        self.ask_next();
        match &self.mode {
            Mode::Watch => Ok(false),
            Mode::Run(_) => {
                if !self.is_stopping {
                    self.stop_if_done().await;
                }
                Ok(false)
            }
            Mode::Answer(answering) => {
                let is_ended = matches!(self.turn, TurnState::Completed | TurnState::Failed(_));
                Ok(is_ended && answering.is_done(self.shown).await?)
            }
        }
    }

    fn note(&mut self, event: &Event<'static>) {
        self.mode.note(&event.kind);
        match &event.kind {
            EventKind::TurnStarted(_) => {
                self.turn = TurnState::Running;
                self.stop_at = None;
            }
            EventKind::TurnCompleted(_) => self.turn = TurnState::Completed,
            EventKind::TurnFailed(turn) => {
                self.turn = TurnState::Failed(turn.reason);
                let name = turn.error_type.as_ref();
                self.never_started =
                    name.is_some_and(|name| *name == *ErrorCode::StartFailed.as_str());
            }
            EventKind::SessionEnded(ended) => {
                self.session_failed = match ended.reason {
                    SessionEndReason::Failed | SessionEndReason::Timeout => true,
                    SessionEndReason::Completed | SessionEndReason::Cancelled => false,
                };
            }
            EventKind::AgentSpawned(spawned) => {
                let name = spawned.name.as_ref().map_or("subagent".to_owned(), ToString::to_string);
                self.agents.insert(event.agent_id.to_string(), name);
            }
            EventKind::AgentFinished(_) => {
                self.agents.remove(&*event.agent_id.decode());
                let is_last = self.agents.is_empty() && self.turn != TurnState::Running;
                self.stop_at = is_last.then(|| Instant::now() + AFTERTHOUGHT);
            }
            EventKind::RequestRaised(request) => {
                let agent = event.agent_id.decode();
                let name = self.agents.get(&*agent).cloned().unwrap_or_else(|| agent.to_string());
                let agent = (*agent != *MAIN_AGENT).then_some(name);
                self.open.push(OpenRequest::new((**request).clone(), agent));
            }
            EventKind::RequestSettled(settled) => self.settled(settled),
            _ => {}
        }
    }

    /// Whether to quit at once.
    fn handle_signal(&mut self, caught: CaughtSignal) -> bool {
        match caught {
            CaughtSignal::Interrupt => {
                self.interrupts += 1;
                match self.interrupts {
                    _ if !self.runs() => return true,
                    1 => self.interrupt(),
                    2 => {
                        self.screen
                            .remark("stopping the session; press ctrl-c again to quit at once");
                        self.stop();
                    }
                    _ => return true,
                }
            }
            CaughtSignal::Terminate => {
                self.interrupts += 1;
                self.terminations += 1;
                self.drop_question();
                if !self.runs() {
                    return true;
                }
                self.stop();
                return self.terminations > 1;
            }
            CaughtSignal::Continue => self.ask_again(),
            CaughtSignal::Resize => self.screen.resized(),
        }
        false
    }

    fn interrupt(&mut self) {
        self.drop_question();
        if self.runs() {
            self.interrupts = self.interrupts.max(1);
            self.screen.remark("interrupting; press ctrl-c again to stop the session");
        }
        self.command(Command::Interrupt { cancel_queued: false }, None);
    }

    fn stop(&mut self) {
        self.stop_at = None;
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.command(Command::Stop, None);
        }
    }

    /// The reader of our output is gone.
    fn unread(&mut self) {
        self.is_unread = true;
        match self.mode {
            Mode::Run(_) => self.stop(),
            Mode::Watch | Mode::Answer(_) => self.has_detached = true,
        }
    }

    /// Sends a command. Its reply arrives in `replies`.
    fn command(&self, command: Command, request: Option<String>) {
        let Some(sent) = self.mode.send(command) else { return };
        let reply = self.reply.clone();
        tokio::spawn(async move {
            let result = sent.await;
            let _ = reply.send(CommandReply { request, result }).await;
        });
    }

    fn runs(&self) -> bool {
        matches!(self.mode, Mode::Run(_))
    }

    fn is_busy(&self) -> bool {
        match (self.turn, &self.mode) {
            (TurnState::Running, _) => true,
            (TurnState::None, Mode::Run(_)) => true,
            (TurnState::Completed | TurnState::Failed(_), Mode::Run(_)) => !self.agents.is_empty(),
            (
                TurnState::None | TurnState::Completed | TurnState::Failed(_),
                Mode::Watch | Mode::Answer(_),
            ) => false,
        }
    }

    fn tick(&mut self) {
        if self.is_busy() {
            return self.screen.spin(self.hint());
        }
        let Mode::Answer(answering) = &self.mode else { return };
        if self.shown >= self.present && !answering.has_goal() {
            let short = format::short(answering.id().as_str());
            let text = format!("idle: agentwire send {short} PROMPT  (ctrl-c detaches)");
            self.screen.rest(&text);
        }
    }

    fn hint(&self) -> &'static str {
        match (&self.mode, self.interrupts) {
            (Mode::Watch | Mode::Answer(_), _) => "(ctrl-c detaches)",
            (Mode::Run(_), 0) => "(ctrl-c interrupts)",
            (Mode::Run(_), _) => "(ctrl-c stops the session)",
        }
    }

    fn waits_for_keys(&self) -> bool {
        self.dialog.is_some() && !self.is_answered()
    }

    /// Whether a line is being typed; no output may interrupt it.
    fn is_typing(&self) -> bool {
        let reading = self.dialog.as_ref().filter(|_| !self.is_answered()).map(Dialog::reading);
        matches!(reading, Some(Reading::Line | Reading::Secret))
    }
}

async fn typed(terminal: &mut Option<Terminal>) -> Typed {
    match terminal {
        Some(terminal) => terminal.typed().await,
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
