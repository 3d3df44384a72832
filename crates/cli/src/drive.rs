//! One session on one screen: events are shown, requests are put to whoever is there, keys and signals
//! become commands.

mod asking;
mod signals;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use agentwire_protocol::event::{SessionEndReason, TurnFailure};
use agentwire_protocol::{
    Command, ErrorCode, Event, EventKind, GatewayError, Json, MAIN_AGENT, SessionState,
};
use agentwire_sessions::SessionHandle;
use agentwire_sessions::log::Cursor;
use agentwire_sessions::store::Batch;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use self::asking::Open;
use self::signals::Caught;
pub(crate) use self::signals::Signals;
use crate::commands::logs::read;
use crate::failure::Failure;
use crate::print;
use crate::screen::Screen;
use crate::terminal::{Terminal, Typed};
use crate::view::ask::{Ask, Reading};
use crate::view::page::Ink;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// How long an agent may take to begin a turn of its own after a subagent in the background is done.
const AFTERTHOUGHT: Duration = Duration::from_secs(2);

/// How long whoever does not want to wait waits for the last words to be read.
const HASTE: Duration = Duration::from_millis(200);

/// How many commands may be under way; more are never needed.
const COMMANDS: usize = 16;

/// One session on one screen.
pub(crate) struct Drive {
    cursor: Cursor,
    /// Up to this event all is history: what it asks was perhaps answered long ago.
    present: u64,
    shown: u64,
    screen: Screen,
    signals: Signals,
    /// What can be commanded; without it a session is only watched.
    session: Option<SessionHandle>,
    terminal: Option<Terminal>,
    open: Vec<Open>,
    asking: Option<Ask>,
    replies: mpsc::Receiver<Reply>,
    reply: mpsc::Sender<Reply>,
    /// Subagents that are not done, by id; their names.
    agents: BTreeMap<String, String>,
    turn: Turn,
    session_failed: bool,
    interrupts: u32,
    terminations: u32,
    is_stopping: bool,
    stop_at: Option<Instant>,
    /// Something was denied because nobody could be asked.
    denied: bool,
    is_unread: bool,
}

/// How it came out.
pub(crate) struct Ended {
    pub(crate) verdict: Result<(), Failure>,
    /// Whoever was there did not want to wait for the end.
    pub(crate) is_hasty: bool,
}

/// How the session's turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    None,
    Running,
    Completed,
    Failed(TurnFailure),
}

/// What came of a command: the request that it was to settle, if it was.
struct Reply {
    request: Option<String>,
    result: Result<Json<'static>, GatewayError>,
}

impl Drive {
    /// Watches a session; its event `present` is the last that there is.
    pub(crate) fn new(cursor: Cursor, present: u64, screen: Screen, signals: Signals) -> Self {
        let (reply, replies) = mpsc::channel(COMMANDS);
        Self {
            cursor,
            present,
            shown: 0,
            screen,
            signals,
            session: None,
            terminal: None,
            open: Vec::new(),
            asking: None,
            replies,
            reply,
            agents: BTreeMap::new(),
            turn: Turn::None,
            session_failed: false,
            interrupts: 0,
            terminations: 0,
            is_stopping: false,
            stop_at: None,
            denied: false,
            is_unread: false,
        }
    }

    /// Runs it too, to the end of its turn.
    pub(crate) fn of(mut self, session: SessionHandle, terminal: Option<Terminal>) -> Self {
        self.session = Some(session);
        self.terminal = terminal;
        self
    }

    /// Until the session is over and all is shown.
    pub(crate) async fn run(mut self) -> Ended {
        match self.show().await {
            Ok(is_hasty) => Ended { verdict: self.finish(is_hasty).await, is_hasty },
            Err(failure) => Ended { verdict: Err(failure), is_hasty: false },
        }
    }

    /// Whether it was left before its end.
    async fn show(&mut self) -> Result<bool, Failure> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let waits = self.waits_for_keys();
            tokio::select! {
                biased;
                caught = self.signals.next() => if self.caught(caught) { return Ok(true) },
                Some(reply) = self.replies.recv() => self.replied(reply),
                handed = self.screen.hand_over() => if handed.is_err() { self.unread() },
                typed = typed(&mut self.terminal), if waits => self.typed(&typed),
                batch = self.cursor.next(), if self.screen.is_idle() && !self.is_typing() => {
                    match batch {
                        Ok(Some(batch)) => self.batch(&batch).await?,
                        Ok(None) => return Ok(false),
                        Err(error) => {
                            let message = format!("failed to read the log: {error}");
                            return Err(GatewayError::new(ErrorCode::Internal, message).into());
                        }
                    }
                }
                () = until(self.stop_at) => self.stop(),
                _ = ticks.tick(), if self.asking.is_none() && self.is_busy() => {
                    self.screen.spin(self.hint());
                }
            }
        }
    }

    async fn batch(&mut self, batch: &Batch) -> Result<(), Failure> {
        for (seq, line) in batch.events() {
            let event = read(line)?;
            self.note(&event);
            self.screen.event(line, event)?;
            self.shown = seq;
        }
        self.ask_next();
        if self.session.is_some() && !self.is_stopping {
            self.look_for_the_end().await;
        }
        Ok(())
    }

    fn note(&mut self, event: &Event<'static>) {
        match &event.kind {
            EventKind::TurnStarted(_) => {
                self.turn = Turn::Running;
                self.stop_at = None;
            }
            EventKind::TurnCompleted(_) => self.turn = Turn::Completed,
            EventKind::TurnFailed(turn) => self.turn = Turn::Failed(turn.reason),
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
                let is_last = self.agents.is_empty() && self.turn != Turn::Running;
                self.stop_at = is_last.then(|| Instant::now() + AFTERTHOUGHT);
            }
            EventKind::RequestRaised(request) => {
                let agent = event.agent_id.decode();
                let name = self.agents.get(&*agent).cloned().unwrap_or_else(|| agent.to_string());
                let agent = (*agent != *MAIN_AGENT).then_some(name);
                self.open.push(Open::new((**request).clone(), agent));
            }
            EventKind::RequestSettled(settled) => self.settled(settled),
            EventKind::SessionStarted(_)
            | EventKind::TextChunk(_)
            | EventKind::ToolStarted(_)
            | EventKind::ToolProgress(_)
            | EventKind::ToolCompleted(_)
            | EventKind::ToolFailed(_)
            | EventKind::FileChanged(_)
            | EventKind::Error(_)
            | EventKind::ThinkingChunk(_)
            | EventKind::PlanUpdated(_)
            | EventKind::StatusChanged(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => {}
        }
    }

    /// Ends the session once its turn is over and no more is to come: no prompt that waits, no
    /// subagent whose end will start another turn.
    async fn look_for_the_end(&mut self) {
        let is_over = matches!(self.turn, Turn::Completed | Turn::Failed(_));
        let Some(session) = self.session.as_ref().filter(|_| is_over && self.stop_at.is_none())
        else {
            return;
        };
        // The summary follows the log at once, but after it.
        let shown = self.shown;
        let summary = session.until(|summary| summary.last_seq >= shown).await;
        let is_idle = match summary.state {
            SessionState::Starting | SessionState::Idle | SessionState::Ended => true,
            SessionState::Working
            | SessionState::WaitingPermission
            | SessionState::WaitingQuestion
            | SessionState::Stalled => false,
        };
        let was_cut = matches!(self.turn, Turn::Failed(_));
        if is_idle && (was_cut || self.agents.is_empty()) {
            self.stop();
        }
    }

    /// Whether to leave at once.
    fn caught(&mut self, caught: Caught) -> bool {
        match caught {
            Caught::Interrupt => {
                self.interrupts += 1;
                match self.interrupts {
                    _ if self.session.is_none() => return true,
                    1 => self.interrupt(),
                    2 => {
                        self.screen.remark("ending the session; ctrl-c again leaves at once");
                        self.stop();
                    }
                    _ => return true,
                }
            }
            Caught::Terminate => {
                self.interrupts += 1;
                self.terminations += 1;
                self.drop_question();
                self.stop();
                return self.session.is_none() || self.terminations > 1;
            }
            Caught::Continue => self.ask_again(),
        }
        false
    }

    fn interrupt(&mut self) {
        self.interrupts = self.interrupts.max(1);
        self.drop_question();
        self.screen.remark("interrupting; ctrl-c again ends the session");
        self.command(Command::Interrupt { cancel_queued: false }, None);
    }

    fn stop(&mut self) {
        self.stop_at = None;
        if !std::mem::replace(&mut self.is_stopping, true) {
            self.command(Command::Stop, None);
        }
    }

    /// Whoever read our output has gone.
    fn unread(&mut self) {
        self.is_unread = true;
        self.stop();
    }

    /// Sends a command; its reply comes later, and meanwhile events go on.
    fn command(&self, command: Command, request: Option<String>) {
        let Some(session) = self.session.clone() else { return };
        let reply = self.reply.clone();
        tokio::spawn(async move {
            let result = session.send(command).await;
            let _ = reply.send(Reply { request, result }).await;
        });
    }

    fn is_busy(&self) -> bool {
        match self.turn {
            Turn::Running => true,
            Turn::None => self.session.is_some(),
            Turn::Completed | Turn::Failed(_) => self.session.is_some() && !self.agents.is_empty(),
        }
    }

    fn hint(&self) -> &'static str {
        match (&self.session, self.interrupts) {
            (None, _) => "(ctrl-c leaves)",
            (Some(_), 0) => "(ctrl-c interrupts)",
            (Some(_), _) => "(ctrl-c ends the session)",
        }
    }

    fn waits_for_keys(&self) -> bool {
        self.asking.is_some() && !self.is_answered()
    }

    /// Whether a line is being typed, which nothing may disturb.
    fn is_typing(&self) -> bool {
        let reading = self.asking.as_ref().filter(|_| !self.is_answered()).map(Ask::reading);
        matches!(reading, Some(Reading::Line | Reading::Secret))
    }

    async fn finish(mut self, is_hasty: bool) -> Result<(), Failure> {
        // Before the last words: who reads them may type again.
        self.terminal = None;
        let session = self.session.as_ref().map(|session| session.id().to_string());
        if let Some(id) = session.filter(|_| self.screen.is_seen()) {
            let short = id.get(..8).unwrap_or(&id);
            let text = format!("session {short}; go on with `agentwire run --resume {short}`");
            self.screen.aside(|page, _| page.line(&[(Ink::Dim, &text)]));
        }
        let verdict = self.verdict();
        let Self { screen, mut signals, .. } = self;
        tokio::select! {
            written = screen.finish() => written?,
            _ = signals.next() => {}
            () = tokio::time::sleep(HASTE), if is_hasty => {}
        }
        verdict
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.is_unread {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        if self.interrupts > 0 || self.turn == Turn::Failed(TurnFailure::Interrupted) {
            return if self.session.is_some() || self.interrupts > 0 {
                Err(Failure::Exit(130))
            } else {
                Ok(())
            };
        }
        if self.session.is_none() {
            return Ok(());
        }
        if self.denied {
            print::note(
                "agentwire: a request was denied because nobody was there to ask; run it on a \
                 terminal, or allow it with --approval or --allow",
            );
            return Err(Failure::Exit(4));
        }
        match self.turn {
            Turn::Completed => Ok(()),
            Turn::Failed(_) => Err(Failure::Exit(1)),
            Turn::None | Turn::Running if self.session_failed => Err(Failure::Exit(1)),
            Turn::None | Turn::Running => {
                let message = "the session ended before the agent answered";
                Err(GatewayError::new(ErrorCode::AgentFailed, message).into())
            }
        }
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
