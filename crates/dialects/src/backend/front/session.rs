//! One session of a client: it runs, it has ended and the next prompt resumes it, or it is killed.

use std::collections::VecDeque;

use agentwire_protocol::{
    AgentType, Command, ErrorCode, GatewayError, Json, NewSession, Prompt, SessionConfig, SessionId,
};

use serde_json::json;

use super::queries::{Method, ReportedInfo, send_result};
use super::{Backend, PendingCall};
use crate::backend::wire::{Code, Empty, Failure, RefusedAction, refuse, send};
use crate::claude::render::{Options, Renderer};
use crate::front::{GatewayCall, Outbox};

/// How many operations may wait for a session that is being resumed.
const WAITING_LIMIT: usize = 1024;

/// How many bytes they may have together.
const WAITING_BYTES: usize = 16 << 20;

/// How many ended sessions are remembered so that they can be resumed. Beyond it the oldest are forgotten.
const OVER_LIMIT: usize = 1024;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) agent: AgentType,
    /// Config that the log does not store and that a resumed session needs again.
    carried: SessionConfig,
    partial: bool,
    /// Whether prompts are sent back with their ids, which rewinding files needs.
    pub(super) replays: bool,
    phase: SessionPhase,
    /// Operations that arrived while they could not be done.
    waiting: VecDeque<(Option<String>, SessionOp)>,
    /// The message ids of those who want it killed.
    killers: Vec<Option<String>>,
    /// The start of each of its frames.
    pub(super) head: String,
    pub(super) renderer: Renderer,
    pub(super) known: ReportedInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionPhase {
    Running,
    /// It accepts no more prompts; its last events have not arrived yet.
    Ending,
    Ended,
    Resuming,
    Killed,
}

/// What a client wants of a session.
#[derive(Clone, Debug)]
pub(super) enum SessionOp {
    Send(Prompt),
    Interrupt,
    Kill,
    Query(Method, Vec<Json<'static>>),
}

impl SessionOp {
    fn bytes(&self) -> usize {
        match self {
            Self::Send(prompt) => prompt.text.len(),
            Self::Interrupt | Self::Kill => 0,
            Self::Query(_, args) => args.iter().map(|arg| arg.get().len()).sum(),
        }
    }

    fn command(&self) -> Result<Command, String> {
        match self {
            Self::Send(prompt) => Ok(Command::Prompt(prompt.clone())),
            Self::Interrupt => Ok(Command::Interrupt { cancel_queued: false }),
            Self::Kill => Ok(Command::Stop),
            Self::Query(method, args) => method.command(args),
        }
    }
}

impl Session {
    pub(super) fn new(id: &SessionId, agent: AgentType, config: &SessionConfig) -> Self {
        let partial = config.include_partial_messages == Some(true);
        Self {
            agent,
            carried: config.unkept(),
            partial,
            replays: config.enable_file_checkpointing == Some(true),
            phase: SessionPhase::Running,
            waiting: VecDeque::new(),
            killers: Vec::new(),
            head: format!(
                r#"{{"type":"sdk.message","session_id":{},"payload":"#,
                Json::of(id).get()
            ),
            renderer: renderer(partial, agent),
            known: ReportedInfo::default(),
        }
    }

    fn is_full(&self, op: &SessionOp) -> bool {
        let bytes: usize = self.waiting.iter().map(|(_, op)| op.bytes()).sum();
        self.waiting.len() >= WAITING_LIMIT || bytes + op.bytes() > WAITING_BYTES
    }

    /// Sends back an accepted prompt if the client needs its id.
    pub(super) fn replay(&self, session: &SessionId, prompt: &Prompt, out: &mut Outbox) {
        let Some(uuid) = &prompt.message_id else { return };
        let message = json!({
            "type": "user",
            "message": { "role": "user", "content": prompt.text },
            "parent_tool_use_id": null,
            "session_id": session,
            "uuid": uuid,
            "isReplay": true,
        });
        send("sdk.message", None, Some(session.as_str()), message, out);
    }

    /// Sends what the agent reported earlier if it cannot be asked now, else why the call failed.
    fn send_known(
        &self,
        session: &SessionId,
        id: Option<&str>,
        method: Method,
        error: &GatewayError,
        out: &mut Outbox,
    ) {
        let known = self.known.answer(method, error).map(|known| method.result(known));
        send_result(id, session.as_str(), known.ok_or(error.message.as_str()), out);
    }

    /// A start that resumes the session. The log stores the rest of its config.
    fn resumed(&self, id: &SessionId, prompt: Prompt) -> NewSession {
        NewSession {
            prompt: Some(prompt),
            resume: Some(id.clone()),
            config: self.carried.clone(),
            ..NewSession::of(self.agent)
        }
    }
}

fn renderer(partial: bool, agent: AgentType) -> Renderer {
    Renderer::new(Options { partial }).only_named().of(agent)
}

impl Backend {
    /// Does what a client wants of a session, now or once it runs again.
    pub(super) fn perform(
        &mut self,
        session: &SessionId,
        id: Option<String>,
        op: SessionOp,
        out: &mut Outbox,
    ) -> Result<(), Failure> {
        let state = self.find(session)?;
        match (state.phase, op) {
            (SessionPhase::Running, op) => {
                let command = match op.command() {
                    Ok(command) => command,
                    Err(text) => {
                        send_result(id.as_deref(), session.as_str(), Err(&text), out);
                        return Ok(());
                    }
                };
                if let SessionOp::Kill = op {
                    state.phase = SessionPhase::Killed;
                    state.killers.push(id.clone());
                }
                let call = out.command(session, command);
                self.calls.insert(call, PendingCall::Op { session: session.clone(), id, op });
            }
            (SessionPhase::Ending | SessionPhase::Resuming, op) if state.is_full(&op) => {
                let text = "too much is waiting for the session; try again later";
                return Err(Failure::new(Code::SdkError, text));
            }
            (SessionPhase::Ending | SessionPhase::Resuming, op) => {
                state.waiting.push_back((id, op));
            }
            (SessionPhase::Killed, SessionOp::Kill) => state.killers.push(id),
            (
                SessionPhase::Killed,
                SessionOp::Send(_) | SessionOp::Interrupt | SessionOp::Query(..),
            ) => {
                let text = format!("session {session} is being killed");
                return Err(Failure::new(Code::SessionNotFound, text));
            }
            (SessionPhase::Ended, SessionOp::Send(prompt)) => {
                state.phase = SessionPhase::Resuming;
                let new = state.resumed(session, prompt.clone());
                let call = out.call(GatewayCall::Start(Box::new(new)));
                self.over.retain(|over| over != session);
                self.calls
                    .insert(call, PendingCall::Resume { session: session.clone(), id, prompt });
            }
            (SessionPhase::Ended, SessionOp::Interrupt) => {
                send("session.interrupted", id.as_deref(), Some(session.as_str()), Empty {}, out);
            }
            (SessionPhase::Ended, SessionOp::Kill) => {
                self.sessions.remove(session);
                self.over.retain(|over| over != session);
                send("session.killed", id.as_deref(), Some(session.as_str()), Empty {}, out);
            }
            (SessionPhase::Ended, SessionOp::Query(method, _)) => {
                let text = "the agent is not running and has not reported this before; session.send resumes \
                            the session";
                let error = GatewayError::new(ErrorCode::Conflict, text);
                state.send_known(session, id.as_deref(), method, &error, out);
            }
        }
        Ok(())
    }

    pub(super) fn resumed(&mut self, session: &SessionId, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        state.phase = SessionPhase::Running;
        self.catch_up(session, out);
    }

    /// The session has ended, or could not be resumed.
    pub(super) fn ended(&mut self, session: &SessionId, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        if state.phase != SessionPhase::Killed {
            state.phase = SessionPhase::Ended;
            // A resumed session starts with a fresh renderer.
            state.renderer = renderer(state.partial, state.agent);
            self.over.push_back(session.clone());
            if self.over.len() > OVER_LIMIT
                && let Some(oldest) = self.over.pop_front()
            {
                self.sessions.remove(&oldest);
            }
            return self.catch_up(session, out);
        }
        let killers = std::mem::take(&mut state.killers);
        self.sessions.remove(session);
        for id in killers {
            send("session.killed", id.as_deref(), Some(session.as_str()), Empty {}, out);
        }
    }

    fn catch_up(&mut self, session: &SessionId, out: &mut Outbox) {
        let waiting =
            self.sessions.get_mut(session).map(|state| std::mem::take(&mut state.waiting));
        for (id, op) in waiting.into_iter().flatten() {
            self.try_to(session, id.as_deref(), op, out);
        }
    }

    fn try_to(&mut self, session: &SessionId, id: Option<&str>, op: SessionOp, out: &mut Outbox) {
        if let Err(failure) = self.perform(session, id.map(str::to_owned), op, out) {
            refuse(id, Some(session.as_str()), &failure, out);
        }
    }

    /// The session refused an operation.
    pub(super) fn refused(
        &mut self,
        session: &SessionId,
        id: Option<&str>,
        op: SessionOp,
        error: GatewayError,
        out: &mut Outbox,
    ) {
        // The session ended before the operation reached it; its last events may not have arrived yet.
        let is_over = matches!(error.code, ErrorCode::Conflict | ErrorCode::SessionNotFound);
        let state = self.sessions.get_mut(session);
        let name = Some(session.as_str());
        match op {
            SessionOp::Send(_) if is_over => {
                if let Some(state) = state.filter(|state| state.phase == SessionPhase::Running) {
                    state.phase = SessionPhase::Ending;
                }
                self.try_to(session, id, op, out);
            }
            SessionOp::Interrupt if is_over => {
                send("session.interrupted", id, name, Empty {}, out);
            }
            SessionOp::Kill if is_over => {}
            SessionOp::Kill => {
                let killers = state.map(|state| {
                    state.phase = SessionPhase::Running;
                    std::mem::take(&mut state.killers)
                });
                let failure = Failure::of(RefusedAction::Turn, error);
                for id in killers.into_iter().flatten() {
                    refuse(id.as_deref(), name, &failure, out);
                }
            }
            SessionOp::Query(method, _) => match state {
                Some(state) => state.send_known(session, id, method, &error, out),
                None => send_result(id, session.as_str(), Err(&error.message), out),
            },
            SessionOp::Send(_) | SessionOp::Interrupt => {
                refuse(id, name, &Failure::of(RefusedAction::Turn, error), out);
            }
        }
    }
}
