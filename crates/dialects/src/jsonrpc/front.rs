//! Serves the JSON-RPC wire: calls in, replies and notifications out.

mod notifications;
mod options;
mod params;
mod prompt;
mod replies;
mod sessions;
mod watch;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, GatewayError, Json, Resume, SessionId, SessionSummary,
};
use serde::Serialize;

use self::params::{ClientCall, Open};
use self::replies::{Replies, Ticket};
use self::sessions::LookupReason;
use self::watch::{FinishedRun, Watch};
use super::wire::{self, Fault, Line, Message};
use crate::front::{Front, GatewayCall, GatewayReply, GatewayResult, Outbox};

/// How many calls may wait for a reply at once.
const OPEN_CALLS: usize = 256;

/// The limit for calls that let others finish.
const OPEN_RELIEF: usize = 4 * OPEN_CALLS;

#[derive(Debug)]
pub struct JsonRpc {
    agent: AgentType,
    replies: Replies,
    calls: BTreeMap<Call, PendingCall>,
    watches: BTreeMap<SessionId, Watch>,
    /// Sessions that are being looked up or resumed, and the calls that wait for that: a client's calls on
    /// a session are handled in order.
    opening: BTreeMap<SessionId, VecDeque<(ClientCall, Ticket)>>,
    /// Sessions that are ending and are wanted again: their waiting calls wait for the end.
    ending: BTreeSet<SessionId>,
    /// Sessions that have ended and are resumed once all of their events are shown.
    resuming: BTreeMap<SessionId, (Box<Open>, AgentType, Ticket)>,
}

/// What a reply of the gateway is for.
#[derive(Debug)]
enum PendingCall {
    /// The reply goes to the client.
    Reply(Ticket),
    /// A prompt of a run or of `session/create`. The watch holds the ticket of a run.
    Prompt(SessionId, Box<Open>, Option<Ticket>),
    Start(Box<Open>, Ticket),
    Lookup(SessionId, LookupReason, Ticket),
    Kill(SessionId),
}

#[derive(Serialize)]
struct Sessions {
    sessions: Vec<SessionSummary>,
}

#[derive(Serialize)]
struct Page {
    events: Json<'static>,
    next: u64,
    resume: Resume,
}

impl JsonRpc {
    /// `agent` is the default for sessions that name none.
    pub fn new(agent: AgentType) -> Self {
        Self {
            agent,
            replies: Replies::default(),
            calls: BTreeMap::new(),
            watches: BTreeMap::new(),
            opening: BTreeMap::new(),
            ending: BTreeSet::new(),
            resuming: BTreeMap::new(),
        }
    }

    fn message(&mut self, message: Message, batch: Option<u64>, out: &mut Outbox) {
        match message {
            Message::Response => {}
            Message::Invalid { id, fault } => {
                let ticket = self.replies.ticket(Some(id), batch);
                self.replies.give(ticket, Err(fault), out);
            }
            Message::Call(call) => {
                let request = ClientCall::read(&call.method, &call.params);
                let open = self.replies.open();
                let is_full = |request: &ClientCall| {
                    open >= if request.is_relief() { OPEN_RELIEF } else { OPEN_CALLS }
                };
                let ticket = self.replies.ticket(call.id, batch);
                match request {
                    Ok(request) if is_full(&request) => {
                        let error = overloaded("too many calls are open; wait for a reply");
                        self.replies.give(ticket, Err(error), out);
                    }
                    Ok(request) => self.request(request, ticket, out),
                    Err(error) => self.replies.give(ticket, Err(error), out),
                }
            }
        }
    }

    fn request(&mut self, request: ClientCall, ticket: Ticket, out: &mut Outbox) {
        if let Some(waiting) = request.session().and_then(|id| self.opening.get_mut(id)) {
            return waiting.push_back((request, ticket));
        }
        match request {
            ClientCall::Open(open) => self.open(open, ticket, out),
            ClientCall::Attach(attach) => {
                self.look_up(attach.session.clone(), LookupReason::Attach(attach), ticket, out);
            }
            ClientCall::Greet(id) => {
                let greeting = self.watches.get(&id).map(Watch::greeting).ok_or_else(|| {
                    let message = format!("session {id} is not attached here; attach to it first");
                    GatewayError::new(ErrorCode::SessionNotFound, message)
                });
                self.replies.give(ticket, greeting, out);
            }
            ClientCall::Kill(id) if self.watches.contains_key(&id) => self.kill(id, ticket, out),
            ClientCall::Kill(id) => self.look_up(id, LookupReason::Kill, ticket, out),
            ClientCall::Command(id, command) => {
                let call = out.command(&id, command);
                self.calls.insert(call, PendingCall::Reply(ticket));
            }
            ClientCall::List { limit } => {
                let call = out.call(GatewayCall::Sessions { limit });
                self.calls.insert(call, PendingCall::Reply(ticket));
            }
            ClientCall::Events { session, after, limit } => {
                let call = out.call(GatewayCall::Events { session, after, limit });
                self.calls.insert(call, PendingCall::Reply(ticket));
            }
        }
    }

    fn kill(&mut self, id: SessionId, ticket: Ticket, out: &mut Outbox) {
        let call = out.command(&id, Command::Stop);
        if let Some(watch) = self.watches.get_mut(&id) {
            watch.killed(call, ticket);
        }
        self.calls.insert(call, PendingCall::Kill(id));
    }

    fn failed(&mut self, call: Call, pending: PendingCall, error: GatewayError, out: &mut Outbox) {
        match pending {
            PendingCall::Reply(ticket) => self.replies.give(ticket, Err(error), out),
            PendingCall::Prompt(id, open, ticket) => {
                let run = self.watches.get_mut(&id).and_then(|watch| watch.refused(call));
                if let Some(ticket) = run.or(ticket) {
                    self.refused(id, open, ticket, error, out);
                }
            }
            PendingCall::Start(open, ticket) => {
                self.replies.give(ticket, Err(error), out);
                if let Some(id) = &open.session {
                    self.opened(id, out);
                }
            }
            PendingCall::Lookup(id, _, ticket) => {
                self.replies.give(ticket, Err(error), out);
                self.opened(&id, out);
            }
            PendingCall::Kill(id) => {
                let Some(watch) = self.watches.get_mut(&id) else { return };
                if let Some(ticket) = watch.spared(call) {
                    self.replies.give(ticket, Err(error), out);
                }
                let goes_on = !watch.is_ending();
                if !self.is_shown(&id) {
                    self.watches.remove(&id);
                    out.unfollow(&id);
                }
                if goes_on && self.ending.remove(&id) {
                    self.opened(&id, out);
                }
            }
        }
    }

    /// Nothing more comes from that session.
    fn session_ended(&mut self, id: &SessionId, finished: Vec<FinishedRun>, out: &mut Outbox) {
        for (ticket, outcome) in finished {
            self.replies.give(ticket, outcome, out);
        }
        if let Some((open, agent, ticket)) = self.resuming.remove(id) {
            self.start(open, agent, ticket, out);
        } else if self.ending.remove(id) {
            self.opened(id, out);
        }
    }
}

impl Front for JsonRpc {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        let Ok(text) = std::str::from_utf8(line) else {
            return refuse(Fault::not_text(), out);
        };
        if text.trim().is_empty() {
            return;
        }
        match wire::read(text) {
            Ok(Line::One(message)) => self.message(message, None, out),
            Ok(Line::Batch(messages)) => {
                let wants_reply = |message: &&Message| match message {
                    Message::Call(call) => call.id.is_some(),
                    Message::Response => false,
                    Message::Invalid { .. } => true,
                };
                let batch = self.replies.batch(messages.iter().filter(wants_reply).count());
                for message in messages {
                    self.message(message, Some(batch), out);
                }
            }
            Err(fault) => refuse(fault, out),
        }
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        let message = format!("a message of {bytes} bytes is too long; nothing of it was accepted");
        refuse(Fault::invalid(message), out);
    }

    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox) {
        let Some(pending) = self.calls.remove(&call) else { return };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return self.failed(call, pending, error, out),
        };
        match (pending, reply) {
            (PendingCall::Start(open, ticket), GatewayReply::Started { session, after }) => {
                self.started(call, &session, after, open, ticket, out);
            }
            (PendingCall::Start(open, ticket), GatewayReply::Session(session))
                if open.key.is_some() =>
            {
                self.started_before(&session, &open, ticket, out);
            }
            (PendingCall::Lookup(_, wanted, ticket), GatewayReply::Session(session)) => {
                self.found(&session, wanted, ticket, out);
            }
            (PendingCall::Prompt(id, _, ticket), GatewayReply::Done(reply)) => {
                self.prompt_accepted(call, &id, ticket, &reply, out);
            }
            // The end of the session is the reply.
            (PendingCall::Kill(_), _) => {}
            (PendingCall::Reply(ticket), reply) => {
                let is_page =
                    matches!(reply, GatewayReply::Sessions(_) | GatewayReply::Events { .. });
                let value = match reply {
                    GatewayReply::Done(value) => value,
                    GatewayReply::Sessions(sessions) => Json::of(&Sessions { sessions }),
                    GatewayReply::Events { events, next, resume } => {
                        Json::of(&Page { events, next, resume })
                    }
                    GatewayReply::Started { session, .. } | GatewayReply::Session(session) => {
                        Json::of(&session)
                    }
                };
                let reply = match is_page && !self.replies.has_room(&ticket, value.get().len()) {
                    true => Err(overloaded("the replies of the batch are too long; ask again")),
                    false => Ok(value),
                };
                self.replies.give(ticket, reply, out);
            }
            (pending, _) => {
                let error =
                    GatewayError::new(ErrorCode::Internal, "the reply does not fit the call");
                self.failed(call, pending, error, out);
            }
        }
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        let Some(watch) = self.watches.get_mut(session) else { return };
        for (ticket, outcome) in watch.event(event, out) {
            self.replies.give(ticket, outcome, out);
        }
    }

    fn on_pause(&mut self, session: &SessionId, out: &mut Outbox) {
        if let Some(watch) = self.watches.get_mut(session) {
            watch.pause(out);
        }
    }

    fn on_end(&mut self, session: &SessionId, out: &mut Outbox) {
        if let Some(watch) = self.watches.remove(session) {
            self.session_ended(session, watch.end(), out);
        }
    }

    fn on_lost(&mut self, session: &SessionId, error: GatewayError, out: &mut Outbox) {
        if let Some(watch) = self.watches.remove(session) {
            self.session_ended(session, watch.lost(&error), out);
        }
    }
}

fn overloaded(message: &str) -> GatewayError {
    GatewayError::new(ErrorCode::Overloaded, message)
}

/// Answers a message without a readable id.
fn refuse(fault: Fault, out: &mut Outbox) {
    out.send(wire::response(&Json::trusted("null"), &Err(fault)).get());
}
