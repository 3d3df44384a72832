//! Serves the backend wire: many sessions on one connection, each with any agent.

mod callbacks;
mod options;
mod queries;
mod session;

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, Event, EventKind, GatewayError, Json, NewSession, Prompt,
    SessionId, Settlement,
};
use serde::Deserialize;
use serde_json::json;

use self::callbacks::Callbacks;
use self::options::{Create, in_our_names};
use self::queries::{Method, send_result};
use self::session::{Session, SessionOp};
use super::wire::{Code, Empty, Failure, Message, RefusedAction, message, refuse, send};
use crate::claude::user_content;
use crate::front::{Front, GatewayCall, GatewayReply, GatewayResult, Outbox};
use crate::program;

/// One client. It sees only the sessions that it created.
#[derive(Debug)]
pub struct Backend {
    /// The agent of a session that names none.
    agent: AgentType,
    sessions: BTreeMap<SessionId, Session>,
    /// Sessions that have ended, oldest first.
    over: VecDeque<SessionId>,
    calls: BTreeMap<Call, PendingCall>,
    callbacks: Callbacks,
}

/// A call that waits for its reply.
#[derive(Debug)]
enum PendingCall {
    Create {
        id: Option<String>,
        new: Box<NewSession>,
    },
    /// Resumes a session that has ended.
    Resume {
        session: SessionId,
        id: Option<String>,
        prompt: Prompt,
    },
    Op {
        session: SessionId,
        id: Option<String>,
        op: SessionOp,
    },
    Answer {
        session: SessionId,
        number: u64,
    },
    /// The denial of a request that no client on this wire can answer.
    Denial,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendMessage {
    message: Option<String>,
    content: Option<Json<'static>>,
}

impl SendMessage {
    fn prompt(self, agent: AgentType) -> Result<Prompt, Failure> {
        let prompt = match (self.message, self.content) {
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("give payload.message or payload.content, not both"));
            }
            (None, None) => {
                return Err(Failure::invalid("the payload needs a message, or content blocks"));
            }
            (Some(text), None) => Prompt::text(text),
            (None, Some(content)) => {
                let keeps_form = program(agent).speaks_claude();
                user_content(content, keeps_form).map_err(Failure::invalid)?
            }
        };
        match prompt.text.is_empty() && prompt.images.is_empty() && prompt.content.is_none() {
            true => Err(Failure::invalid("the message is empty")),
            false => Ok(prompt),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryCall {
    method: String,
    #[serde(default)]
    args: Vec<Json<'static>>,
}

impl Backend {
    /// `agent` is the default for sessions that name none.
    pub fn new(agent: AgentType) -> Self {
        Self {
            agent,
            sessions: BTreeMap::new(),
            over: VecDeque::new(),
            calls: BTreeMap::new(),
            callbacks: Callbacks::default(),
        }
    }

    fn message(&mut self, message: &Message, out: &mut Outbox) -> Result<(), Failure> {
        match message.kind.as_str() {
            "session.create" => {
                let mut new = message.payload::<Create>()?.session(self.agent)?;
                if new.config.enable_file_checkpointing == Some(true)
                    && let Some(prompt) = &mut new.prompt
                {
                    prompt.message_id = Some(out.message_id());
                }
                let new = Box::new(new);
                let call = out.call(GatewayCall::Start(new.clone()));
                self.calls.insert(call, PendingCall::Create { id: message.id.clone(), new });
            }
            "session.send" => {
                let sent: SendMessage = message.payload()?;
                let session = named(message)?;
                let (agent, replays) = self.find(&session).map(|it| (it.agent, it.replays))?;
                let message_id = replays.then(|| out.message_id());
                let prompt = Prompt { message_id, ..sent.prompt(agent)? };
                self.perform(&session, message.id.clone(), SessionOp::Send(prompt), out)?;
            }
            "session.interrupt" => {
                self.perform(&named(message)?, message.id.clone(), SessionOp::Interrupt, out)?;
            }
            "session.kill" => {
                self.perform(&named(message)?, message.id.clone(), SessionOp::Kill, out)?;
            }
            "query.call" => {
                let QueryCall { method, args } = message.payload()?;
                let session = named(message)?;
                self.find(&session)?;
                let method = Method::named(&method)
                    .map_err(|text| Failure::new(Code::QueryMethodFailed, text))?;
                self.perform(&session, message.id.clone(), SessionOp::Query(method, args), out)?;
            }
            "callback.response" => {
                if let Some(session) = &message.session_id {
                    self.find(&SessionId::from(session.as_str()))?;
                }
                let id = message.id.as_deref();
                let id =
                    id.ok_or_else(|| Failure::invalid("the answer needs the callback's id"))?;
                let payload = message.payload()?;
                let answered =
                    self.callbacks.answer(id, message.session_id.as_deref(), &payload)?;
                let command = Command::Settle(answered.settlement);
                let call = out.command(&answered.session, command);
                let (session, number) = (answered.session, answered.number);
                self.calls.insert(call, PendingCall::Answer { session, number });
            }
            other => {
                return Err(Failure::invalid(format!("unknown message type {other}")));
            }
        }
        Ok(())
    }

    fn find(&mut self, session: &SessionId) -> Result<&mut Session, Failure> {
        let known = self.sessions.get_mut(session);
        known.ok_or_else(|| {
            let text = format!("there is no session {session}");
            Failure::new(Code::SessionNotFound, text)
        })
    }

    fn replay(&self, session: &SessionId, prompt: Option<&Prompt>, out: &mut Outbox) {
        if let (Some(state), Some(prompt)) = (self.sessions.get(session), prompt) {
            state.replay(session, prompt, out);
        }
    }

    fn created(
        &mut self,
        id: Option<&str>,
        session: &SessionId,
        after: u64,
        state: Session,
        out: &mut Outbox,
    ) {
        self.sessions.insert(session.clone(), state);
        let payload = json!({ "sdk_session_id": session });
        send("session.created", id, Some(session.as_str()), payload, out);
        out.follow(session, after);
    }

    /// Handles what the messages of an event do not cover.
    fn happened(&mut self, session: &SessionId, kind: EventKind<'static>, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        match kind {
            EventKind::SessionStarted(started) => {
                started.info.into_iter().for_each(|info| state.known.update_info(info));
            }
            EventKind::StatusChanged(change) => {
                change.info.into_iter().for_each(|info| state.known.update_info(info));
            }
            EventKind::SessionEnded(ended) if ended.reason == SessionEndReason::Failed => {
                let words = ended.error.map_or("the agent failed".to_owned(), |e| e.to_string());
                let failure = Failure::new(Code::SdkError, words);
                refuse(None, Some(session.as_str()), &failure, out);
            }
            EventKind::RequestRaised(request) => {
                let id = request.request_id.to_string();
                let shown = state.renderer.asked(&request);
                let is_native = state.renderer.speaks_claude();
                if !self.callbacks.raise(session, *request, shown, is_native) {
                    let denial = Settlement::error(id, "no client of this wire can answer that");
                    let call = out.command(session, Command::Settle(denial));
                    self.calls.insert(call, PendingCall::Denial);
                }
            }
            EventKind::RequestSettled(settled) => self.callbacks.settled(session, &settled, out),
            _ => {}
        }
    }
}

impl Front for Backend {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        let Ok(text) = std::str::from_utf8(line) else {
            return refuse(None, None, &Failure::invalid("the line is not UTF-8"), out);
        };
        if text.trim().is_empty() {
            return;
        }
        match message(text) {
            Ok(message) => {
                if let Err(failure) = self.message(&message, out) {
                    refuse(message.id.as_deref(), message.session_id.as_deref(), &failure, out);
                }
            }
            Err((sender, failure)) => {
                refuse(sender.id.as_deref(), sender.session_id.as_deref(), &failure, out);
            }
        }
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        let text = format!("a line of {bytes} bytes is too long; nothing of it was accepted");
        refuse(None, None, &Failure::invalid(text), out);
    }

    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox) {
        match (self.calls.remove(&call), reply) {
            (
                Some(PendingCall::Create { id, new }),
                Ok(GatewayReply::Started { session, after }),
            ) => {
                let state = Session::new(&session.id, session.agent_type, &new.config);
                self.created(id.as_deref(), &session.id, after, state, out);
                self.replay(&session.id, new.prompt.as_ref(), out);
            }
            // The agent may know a session that the log does not have.
            (Some(PendingCall::Create { id, mut new }), Err(error))
                if error.code == ErrorCode::SessionNotFound && new.resume.is_some() =>
            {
                new.native_resume = new.resume.take().map(|id| id.as_str().to_owned());
                let call = out.call(GatewayCall::Start(new.clone()));
                self.calls.insert(call, PendingCall::Create { id, new });
            }
            (Some(PendingCall::Create { id, .. }), Err(mut error)) => {
                in_our_names(&mut error);
                refuse(id.as_deref(), None, &Failure::of(RefusedAction::Session, error), out);
            }
            (
                Some(PendingCall::Resume { session, prompt, .. }),
                Ok(GatewayReply::Started { after, .. }),
            ) => {
                out.follow(&session, after);
                self.replay(&session, Some(&prompt), out);
                self.resumed(&session, out);
            }
            (Some(PendingCall::Resume { session, id, .. }), Err(error)) => {
                let failure = Failure::of(RefusedAction::Turn, error);
                refuse(id.as_deref(), Some(session.as_str()), &failure, out);
                self.ended(&session, out);
            }
            (Some(PendingCall::Op { session, id, op }), Ok(GatewayReply::Done(answer))) => match op
            {
                // The session's messages report the outcome.
                SessionOp::Send(prompt) => self.replay(&session, Some(&prompt), out),
                // `session.killed` follows after the session's last events.
                SessionOp::Kill => {}
                SessionOp::Interrupt => {
                    send(
                        "session.interrupted",
                        id.as_deref(),
                        Some(session.as_str()),
                        Empty {},
                        out,
                    );
                }
                SessionOp::Query(method, _) => {
                    let result = Ok(method.result(answer));
                    send_result(id.as_deref(), session.as_str(), result, out);
                }
            },
            (Some(PendingCall::Op { session, id, op }), Err(error)) => {
                self.refused(&session, id.as_deref(), op, error, out);
            }
            (Some(PendingCall::Answer { session, number }), Err(error)) => {
                self.callbacks.reopen(number);
                let failure = self.callbacks.late(number);
                let failure = failure.unwrap_or_else(|| Failure::of(RefusedAction::Answer, error));
                let id = callbacks::name(number);
                refuse(Some(&id), Some(session.as_str()), &failure, out);
            }
            // The reply of an accepted answer is its event. Other combinations cannot occur.
            (Some(_) | None, _) => {}
        }
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(session) else { return };
        let Ok(event) = Event::from_json(event) else { return };
        let head = &state.head;
        state.renderer.event(&event, &mut |line| {
            // The agent's own line is passed on byte for byte.
            let mut frame = Vec::with_capacity(head.len() + line.len() + 1);
            frame.extend_from_slice(head.as_bytes());
            frame.extend_from_slice(line.as_bytes());
            frame.push(b'}');
            out.send(frame);
        });
        self.happened(session, event.kind, out);
    }

    fn on_pause(&mut self, session: &SessionId, out: &mut Outbox) {
        self.callbacks.tell(session, out);
    }

    fn on_end(&mut self, session: &SessionId, out: &mut Outbox) {
        self.ended(session, out);
    }

    fn on_lost(&mut self, session: &SessionId, error: GatewayError, out: &mut Outbox) {
        refuse(None, Some(session.as_str()), &Failure::of(RefusedAction::Turn, error), out);
        self.ended(session, out);
    }
}

fn named(message: &Message) -> Result<SessionId, Failure> {
    let session = message.session_id.as_deref().map(SessionId::from);
    session.ok_or_else(|| Failure::invalid(format!("{} needs a session_id", message.kind)))
}
