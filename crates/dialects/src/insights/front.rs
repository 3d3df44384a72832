//! Serves the insights wire: messages in, sessions and their events out.

mod reconnect;
mod session;

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, Event, GatewayError, MAIN_AGENT, NewSession, Price,
    Prompt, SessionConfig, SessionId, Settlement,
};

use self::session::{QueuedInput, Session, SessionPhase};
use super::messages::Created;
use super::modes::Mode;
use super::render::Renderer;
use super::requests::AnswerProgress;
use super::wire::{
    Code, Create, Failure, Input, Message, ModeChange, Permission, SessionOp, error, frame,
};
use crate::front::{Front, GatewayCall, GatewayReply, GatewayResult, Outbox, WATCHED};
use crate::program;

/// How many sessions a client may have created.
const SESSION_LIMIT: usize = 4096;

const FULL: &str = "too many sessions are running on this page; kill one or open another page";

#[derive(Debug)]
pub struct Insights {
    agent: AgentType,
    prices: BTreeMap<String, Price>,
    sessions: BTreeMap<SessionId, Session>,
    calls: BTreeMap<Call, PendingCall>,
    /// Sessions of an earlier connection that are being looked up, and what is wanted of each.
    finding: BTreeMap<SessionId, VecDeque<SessionOp>>,
}

/// What a reply of the gateway is for.
#[derive(Debug)]
enum PendingCall {
    Create {
        prompt: String,
        mode: Option<Mode>,
    },
    /// A session of an earlier connection.
    Find(SessionId),
    Resume(SessionId, String),
    Input {
        session: SessionId,
        text: String,
    },
    Interrupt(SessionId),
    Mode(SessionId, Mode),
    Answer(SessionId, AnsweredRequest),
    /// With the state that it had before.
    Kill(SessionId, SessionPhase),
}

/// What was answered, in case the answer is not accepted.
#[derive(Debug)]
enum AnsweredRequest {
    Permission(String),
    Question(String),
    /// A request that no page can answer.
    Nothing,
}

impl Insights {
    /// The agent of the page's sessions, and the prices of models.
    pub fn new(agent: AgentType, prices: BTreeMap<String, Price>) -> Self {
        let (sessions, calls, finding) = Default::default();
        Self { agent, prices, sessions, calls, finding }
    }

    fn message(
        &mut self,
        message: &Message,
        out: &mut Outbox,
    ) -> Result<(), (Option<String>, Failure)> {
        if message.kind == "session.create" {
            let create = message.payload().map_err(unnamed)?;
            return self.create(create, out).map_err(unnamed);
        }
        let Some((id, wanted)) = message.wanted().map_err(unnamed)? else {
            let text = format!("unknown message type {}", message.kind);
            return Err(unnamed(Failure::invalid(text)));
        };
        let session = SessionId::from(id.as_str());
        match self.sessions.get_mut(&session) {
            Some(state) if state.holds(&wanted) => state.hold(wanted),
            None => self.find_own(session, wanted, out),
            Some(_) => self.carry_out(&session, wanted, out),
        }
        .map_err(|failure| (Some(id), failure))
    }

    fn carry_out(
        &mut self,
        id: &SessionId,
        wanted: SessionOp,
        out: &mut Outbox,
    ) -> Result<(), Failure> {
        match wanted {
            SessionOp::Input(input) => self.input(input, out),
            SessionOp::Kill => self.kill(id, out),
            SessionOp::Interrupt => self.interrupt(id, out),
            SessionOp::Mode(change) => self.change_mode(&change, out),
            SessionOp::Permit(answer) => self.permit(&answer, out),
        }
    }

    fn create(&mut self, create: Create, out: &mut Outbox) -> Result<(), Failure> {
        if create.prompt.is_empty() {
            return Err(Failure::invalid("payload.prompt is empty"));
        }
        if self.sessions.len() >= SESSION_LIMIT {
            let text = format!("this page has {SESSION_LIMIT} sessions; kill one");
            return Err(Failure::new(Code::SessionCreateFailed, text));
        }
        if self.is_full() {
            return Err(Failure::new(Code::SessionCreateFailed, FULL));
        }
        let mode = create.permission_mode.as_deref().map(Mode::read).transpose()?;
        let agent = self.agent;
        let mut config = SessionConfig {
            working_directory: create.cwd.filter(|cwd| !cwd.is_empty()),
            model: create.model.filter(|model| is_model_of(agent, model)),
            allowed_tools: create.allowed_tools.filter(|tools| !tools.is_empty()),
            ..SessionConfig::default()
        };
        mode.iter().for_each(|mode| mode.start(&mut config));
        let prompt = Some(Prompt::text(create.prompt.clone()));
        let new = NewSession { prompt, config, ..NewSession::of(agent) };
        let call = out.call(GatewayCall::Start(Box::new(new)));
        self.calls.insert(call, PendingCall::Create { prompt: create.prompt, mode });
        Ok(())
    }

    fn living(&mut self, id: &SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id).filter(|session| session.phase != SessionPhase::Killed)
    }

    fn find(&mut self, id: &SessionId) -> Result<&mut Session, Failure> {
        let session = self.living(id);
        session
            .ok_or_else(|| Failure::new(Code::SessionNotFound, format!("there is no session {id}")))
    }

    /// Whether no more sessions can be watched.
    fn is_full(&self) -> bool {
        let begun =
            self.calls.values().filter(|asked| matches!(asked, PendingCall::Create { .. })).count();
        let is_there = |session: &&Session| {
            !matches!(session.phase, SessionPhase::Ended | SessionPhase::Killed)
        };
        self.sessions.values().filter(is_there).count() + begun >= WATCHED
    }

    /// The answer to an open question, else a prompt.
    fn input(&mut self, input: Input, out: &mut Outbox) -> Result<(), Failure> {
        let id = SessionId::from(input.session_id.as_str());
        let agent = input.agent_id.as_deref();
        let session = self.find(&id)?;
        if input.text.is_empty() {
            return Err(Failure::new(Code::InputFailed, "payload.text is empty"));
        }
        match session.renderer.answer(agent, &input.text) {
            Some(AnswerProgress::Next(question)) => out.send(question.get()),
            Some(AnswerProgress::All(settlement)) => {
                let asked = AnsweredRequest::Question(settlement.request_id.as_str().to_owned());
                self.settle(id, *settlement, asked, out);
            }
            None if agent.is_some_and(|agent| agent != MAIN_AGENT) => {
                let text = format!("agent {} has no open question", agent.unwrap_or_default());
                return Err(Failure::new(Code::InputFailed, text));
            }
            None => return self.prompt(id, input.text, out),
        }
        Ok(())
    }

    fn prompt(&mut self, id: SessionId, text: String, out: &mut Outbox) -> Result<(), Failure> {
        let is_full = self.is_full();
        let session = self.find(&id)?;
        session.look_again(&id, out);
        match session.phase {
            SessionPhase::Running => {
                session.renderer.prompted();
                let call = out.command(&id, Command::Prompt(Prompt::text(text.clone())));
                self.calls.insert(call, PendingCall::Input { session: id, text });
            }
            SessionPhase::Ended if is_full => return Err(Failure::new(Code::InputFailed, FULL)),
            SessionPhase::Ended => {
                session.phase = SessionPhase::Resuming;
                session.renderer.prompted();
                let new = NewSession {
                    prompt: Some(Prompt::text(text.clone())),
                    resume: Some(id.clone()),
                    ..NewSession::of(session.agent)
                };
                let call = out.call(GatewayCall::Start(Box::new(new)));
                self.calls.insert(call, PendingCall::Resume(id, text));
            }
            SessionPhase::Ending | SessionPhase::Resuming | SessionPhase::Killed => {
                return session.wait(QueuedInput::Input(text));
            }
        }
        Ok(())
    }

    fn interrupt(&mut self, id: &SessionId, out: &mut Outbox) -> Result<(), Failure> {
        let session = self.find(id)?;
        match session.phase {
            SessionPhase::Running => {
                let call = out.command(id, Command::Interrupt { cancel_queued: false });
                self.calls.insert(call, PendingCall::Interrupt(id.clone()));
            }
            SessionPhase::Resuming => return session.wait(QueuedInput::Interrupt),
            SessionPhase::Ending if !session.waiting.is_empty() => {
                return session.wait(QueuedInput::Interrupt);
            }
            // Nothing runs in an ended session.
            SessionPhase::Ending | SessionPhase::Ended | SessionPhase::Killed => {}
        }
        Ok(())
    }

    fn kill(&mut self, id: &SessionId, out: &mut Outbox) -> Result<(), Failure> {
        let phase = std::mem::replace(&mut self.find(id)?.phase, SessionPhase::Killed);
        out.unfollow(id);
        let call = out.command(id, Command::Stop);
        self.calls.insert(call, PendingCall::Kill(id.clone(), phase));
        Ok(())
    }

    fn change_mode(&mut self, change: &ModeChange, out: &mut Outbox) -> Result<(), Failure> {
        let id = SessionId::from(change.session_id.as_str());
        let session = self.find(&id)?;
        if session.phase != SessionPhase::Running {
            let text = "the session is not running; send it an input first";
            return Err(Failure::new(Code::PermissionModeChangeFailed, text));
        }
        let mode = Mode::read(&change.permission_mode)?;
        session.renderer.modes.ask(mode);
        let call = out.command(&id, Command::Configure(mode.configure()));
        self.calls.insert(call, PendingCall::Mode(id, mode));
        Ok(())
    }

    fn permit(&mut self, answer: &Permission, out: &mut Outbox) -> Result<(), Failure> {
        let id = SessionId::from(answer.session_id.as_str());
        if !self.find(&id)?.renderer.open_requests.permission(&answer.permission_id) {
            let text = format!("there is no open permission {}", answer.permission_id);
            return Err(Failure::new(Code::PermissionResponseFailed, text));
        }
        let permission = answer.permission_id.as_str();
        let settlement = match answer.approved {
            true => Settlement::allow(permission),
            false => Settlement::deny(permission, "the user denied it"),
        };
        self.settle(id, settlement, AnsweredRequest::Permission(permission.to_owned()), out);
        Ok(())
    }

    fn settle(
        &mut self,
        id: SessionId,
        settlement: Settlement,
        what: AnsweredRequest,
        out: &mut Outbox,
    ) {
        let call = out.command(&id, Command::Settle(settlement));
        self.calls.insert(call, PendingCall::Answer(id, what));
    }

    fn refuse_request(&mut self, session: &SessionId, id: String, out: &mut Outbox) {
        let denial = Settlement::error(id, "no page can answer that");
        self.settle(session.clone(), denial, AnsweredRequest::Nothing, out);
    }

    fn resumed(&mut self, id: &SessionId, out: &mut Outbox) {
        let Some(session) = self.living(id) else {
            // It was killed in the meantime.
            let _ = out.command(id, Command::Stop);
            return;
        };
        session.phase = SessionPhase::Running;
        out.follow(id, session.seen);
        for waiting in std::mem::take(&mut session.waiting) {
            let done = match waiting {
                QueuedInput::Input(text) => self.prompt(id.clone(), text, out),
                QueuedInput::Interrupt => self.interrupt(id, out),
            };
            if let Err(failure) = done {
                send_error(Some(id.as_str()), &failure, out);
            }
        }
    }

    /// Whether a session that cannot be resumed may be running already. That is assumed once, until an
    /// event of it arrives.
    fn is_others(&mut self, id: &SessionId, error: &GatewayError) -> bool {
        let session =
            self.sessions.get_mut(id).filter(|session| session.phase == SessionPhase::Resuming);
        error.code == ErrorCode::Conflict
            && session.is_some_and(|session| !std::mem::replace(&mut session.is_others, true))
    }

    fn refused(&mut self, asked: PendingCall, error: GatewayError, out: &mut Outbox) {
        let has_ended = matches!(error.code, ErrorCode::Conflict | ErrorCode::SessionNotFound);
        let (id, wanted) = match asked {
            PendingCall::Create { .. } => (None, Code::SessionCreateFailed),
            PendingCall::Find(id) => return self.not_found(&id, &error, out),
            PendingCall::Resume(id, text) if self.is_others(&id, &error) => {
                // It already runs, no matter who resumed it: its page continues with it.
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.waiting.push_front(QueuedInput::Input(text));
                }
                return self.resumed(&id, out);
            }
            PendingCall::Resume(id, _) => {
                let Some(session) = self.living(&id) else { return };
                session.phase = SessionPhase::Ended;
                let waiting = std::mem::take(&mut session.waiting);
                let lost = waiting.iter().filter(|it| matches!(it, QueuedInput::Input(_))).count();
                // The inputs that waited for it are lost with it; each gets an error.
                let failure = Failure::of(Code::InputFailed, error.clone());
                (0..lost).for_each(|_| send_error(Some(id.as_str()), &failure, out));
                (Some(id), Code::InputFailed)
            }
            // The session ended before the input reached it: the input resumes it, after its last events.
            PendingCall::Input { session, text } if has_ended => {
                let Some(state) = self.living(&session) else { return };
                if state.phase == SessionPhase::Running {
                    state.phase = SessionPhase::Ending;
                }
                if let Err(failure) = self.prompt(session.clone(), text, out) {
                    send_error(Some(session.as_str()), &failure, out);
                }
                return;
            }
            PendingCall::Input { session, .. } => (Some(session), Code::InputFailed),
            PendingCall::Interrupt(_) if has_ended => return,
            PendingCall::Interrupt(id) => (Some(id), Code::InterruptFailed),
            PendingCall::Mode(id, mode) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.renderer.modes.answered(mode, false);
                }
                (Some(id), Code::PermissionModeChangeFailed)
            }
            PendingCall::Answer(id, answered) => {
                let (request, code) = match answered {
                    AnsweredRequest::Permission(request) => {
                        (request, Code::PermissionResponseFailed)
                    }
                    AnsweredRequest::Question(request) => (request, Code::InputFailed),
                    AnsweredRequest::Nothing => return,
                };
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.renderer.open_requests.reopen(&request);
                }
                (Some(id), code)
            }
            PendingCall::Kill(id, _) if has_ended => return drop(self.sessions.remove(&id)),
            PendingCall::Kill(id, phase) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.phase = phase;
                    out.follow(&id, session.seen);
                }
                (Some(id), Code::HandlerError)
            }
        };
        let id = id.as_ref().map(SessionId::as_str);
        send_error(id, &Failure::of(wanted, error), out);
    }
}

impl Front for Insights {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        let Ok(text) = std::str::from_utf8(line) else {
            let failure = Failure::new(Code::InvalidJson, "the message is not UTF-8");
            return send_error(None, &failure, out);
        };
        let done =
            Message::read(text).map_err(unnamed).and_then(|message| self.message(&message, out));
        if let Err((session, failure)) = done {
            send_error(session.as_deref(), &failure, out);
        }
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        let text = format!("a message of {bytes} bytes is too long; nothing of it was accepted");
        send_error(None, &Failure::invalid(text), out);
    }

    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox) {
        match (self.calls.remove(&call), reply) {
            (
                Some(PendingCall::Create { prompt, mode }),
                Ok(GatewayReply::Started { session, after }),
            ) => {
                let id = session.id;
                let mut renderer = Renderer::new(id.as_str(), Some(prompt), self.prices.clone());
                mode.into_iter().for_each(|mode| renderer.modes.begin(mode));
                let state = Session::new(session.agent_type, renderer, after);
                out.send(frame("session.created", Created { session_id: &id }).get());
                let state = self.sessions.entry(id.clone()).or_insert(state);
                state.renderer.greet(&mut |message| out.send(message.get()));
                out.follow(&id, after);
            }
            (Some(PendingCall::Find(id)), Ok(GatewayReply::Session(summary))) => {
                self.found(&id, &summary, out);
            }
            (Some(PendingCall::Resume(id, _)), Ok(GatewayReply::Started { .. })) => {
                self.resumed(&id, out);
            }
            (Some(PendingCall::Kill(id, _)), Ok(_)) => drop(self.sessions.remove(&id)),
            (Some(PendingCall::Mode(id, mode)), Ok(_)) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.renderer.modes.answered(mode, true);
                    session.renderer.mode(mode, &mut |message| out.send(message.get()));
                }
            }
            (Some(asked), Err(error)) => self.refused(asked, error, out),
            // Events report the outcome of the rest.
            (Some(_) | None, Ok(_)) | (None, Err(_)) => {}
        }
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        let Ok(event) = Event::from_json(event) else { return };
        state.seen = event.seq;
        state.is_others = false;
        if state.phase == SessionPhase::Ended {
            // Someone else resumed it.
            state.phase = SessionPhase::Running;
        }
        if state.is_catching_up() {
            state.catch_up(&event);
            return self.caught_up(session, event.seq, out);
        }
        let asked = state.renderer.event(&event, &mut |message| out.send(message.get()));
        if let Some(id) = asked {
            self.refuse_request(session, id, out);
        }
    }

    fn on_pause(&mut self, session: &SessionId, out: &mut Outbox) {
        if let Some(state) = self.sessions.get_mut(session).filter(|state| !state.is_catching_up())
        {
            state.renderer.pause(&mut |message| out.send(message.get()));
        }
    }

    fn on_end(&mut self, session: &SessionId, out: &mut Outbox) {
        self.caught_up(session, u64::MAX, out);
        let Some(state) = self.sessions.get_mut(session) else { return };
        if matches!(state.phase, SessionPhase::Running | SessionPhase::Ending) {
            state.phase = SessionPhase::Ended;
        }
        // The page wants to see it again, no matter who resumes it.
        out.wait_for(session, state.seen);
        // An input that waits resumes it.
        while let Some(waiting) = state.waiting.pop_front() {
            if let QueuedInput::Input(text) = waiting {
                if let Err(failure) = self.prompt(session.clone(), text, out) {
                    send_error(Some(session.as_str()), &failure, out);
                }
                return;
            }
        }
    }

    fn on_lost(&mut self, session: &SessionId, error: GatewayError, out: &mut Outbox) {
        self.caught_up(session, u64::MAX, out);
        let Some(state) = self.sessions.get_mut(session) else { return };
        state.lose();
        send_error(Some(session.as_str()), &Failure::new(Code::HandlerError, error.message), out);
    }
}

/// Pages name Claude's models; another agent runs with its own.
fn is_model_of(agent: AgentType, model: &str) -> bool {
    match program(agent).speaks_claude() {
        true => !model.is_empty(),
        false => !matches!(model, "" | "sonnet" | "opus" | "haiku"),
    }
}

fn unnamed(failure: Failure) -> (Option<String>, Failure) {
    (None, failure)
}

fn send_error(session: Option<&str>, failure: &Failure, out: &mut Outbox) {
    out.send(error(session, None, failure).get());
}
