//! We serve it: calls in, replies and notifications out.

mod options;
mod params;
mod prompt;
mod replies;
mod watch;

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::command::Delivery;
use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, GatewayError, Json, NewSession, Prompt, SessionConfig,
    SessionId, SessionState, SessionSummary,
};
use serde::Serialize;

use self::params::{Attach, Open, Request};
use self::replies::{Replies, Ticket};
use self::watch::Watch;
use super::wire::{self, Fault, Line, Message};
use crate::front::{Ask, Front, Outbox, Reply};

/// How many calls may wait for a reply at once.
const OPEN_CALLS: usize = 256;

/// One client of JSON-RPC.
#[derive(Debug)]
pub struct JsonRpc {
    agent: AgentType,
    replies: Replies,
    calls: BTreeMap<Call, Pending>,
    watches: BTreeMap<SessionId, Watch>,
    /// Sessions that are looked up or resumed, and what waits for that: what a client wants of a
    /// session happens in order.
    opening: BTreeMap<SessionId, VecDeque<(Request, Ticket)>>,
    /// Sessions that are over and wanted again, once all that happened in them is shown.
    resuming: BTreeMap<SessionId, (Box<Open>, AgentType, Ticket)>,
}

/// What a reply of the gateway is for.
#[derive(Debug)]
enum Pending {
    /// The reply is the client's.
    Reply(Ticket),
    /// A prompt that nobody waits for longer than until it is taken.
    Sent(SessionId, Ticket),
    /// A prompt of a run or of `session/create`. Of a run the watch has the ticket.
    Prompt(SessionId, Box<Open>, Option<Ticket>),
    Start(Box<Open>, Ticket),
    Lookup(SessionId, Wanted, Ticket),
    Kill(SessionId),
}

/// What a session is looked up for.
#[derive(Debug)]
enum Wanted {
    Open(Box<Open>),
    Attach(Attach),
    Kill,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'r> {
    session_id: &'r SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'r SessionSummary>,
}

#[derive(Serialize)]
struct Sessions {
    sessions: Vec<SessionSummary>,
}

#[derive(Serialize)]
struct Page {
    events: Vec<Json<'static>>,
    next: u64,
}

impl JsonRpc {
    /// A client that has said nothing; where it names no agent, it gets this one.
    pub fn new(agent: AgentType) -> Self {
        Self {
            agent,
            replies: Replies::default(),
            calls: BTreeMap::new(),
            watches: BTreeMap::new(),
            opening: BTreeMap::new(),
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
                let request = Request::read(&call.method, &call.params);
                let is_full = self.replies.open() >= OPEN_CALLS;
                let ticket = self.replies.ticket(call.id, batch);
                match request {
                    Ok(request) if is_full && !request.is_relief() => {
                        let message = "too many calls are open; wait for a reply";
                        let error = GatewayError::new(ErrorCode::Overloaded, message);
                        self.replies.give(ticket, Err(error), out);
                    }
                    Ok(request) => self.request(request, ticket, out),
                    Err(error) => self.replies.give(ticket, Err(error), out),
                }
            }
        }
    }

    fn request(&mut self, request: Request, ticket: Ticket, out: &mut Outbox) {
        if let Some(waiting) = request.session().and_then(|id| self.opening.get_mut(id)) {
            return waiting.push_back((request, ticket));
        }
        match request {
            Request::Open(open) => self.open(open, ticket, out),
            Request::Attach(attach) => {
                self.look_up(attach.session.clone(), Wanted::Attach(attach), ticket, out);
            }
            Request::Kill(id) if self.watches.contains_key(&id) => self.kill(id, ticket, out),
            Request::Kill(id) => self.look_up(id, Wanted::Kill, ticket, out),
            Request::Command(id, command) => self.command(id, command, ticket, out),
            Request::List { limit } => {
                let call = out.ask(Ask::Sessions { limit });
                self.calls.insert(call, Pending::Reply(ticket));
            }
            Request::Events { session, after, limit } => {
                let call = out.ask(Ask::Events { session, after, limit });
                self.calls.insert(call, Pending::Reply(ticket));
            }
        }
    }

    fn open(&mut self, open: Box<Open>, ticket: Ticket, out: &mut Outbox) {
        match open.session.clone() {
            None => {
                let agent = open.agent.unwrap_or(self.agent);
                self.start(open, agent, ticket, out);
            }
            Some(id) if open.changes_nothing() && self.is_shown(&id) => {
                self.go_on(id, open, ticket, out);
            }
            Some(id) => self.look_up(id, Wanted::Open(open), ticket, out),
        }
    }

    fn start(&mut self, open: Box<Open>, agent: AgentType, ticket: Ticket, out: &mut Outbox) {
        let new = NewSession {
            prompt: open.prompt.clone(),
            resume: open.session.clone(),
            config: open.config.clone(),
            ..NewSession::of(agent)
        };
        let call = out.ask(Ask::Start(Box::new(new)));
        self.calls.insert(call, Pending::Start(open, ticket));
    }

    /// Gives a prompt to a session that runs and is shown.
    fn go_on(&mut self, id: SessionId, open: Box<Open>, ticket: Ticket, out: &mut Outbox) {
        let Some(watch) = self.watches.get_mut(&id) else { return };
        if open.events {
            watch.show_events();
        }
        let Some(prompt) = open.prompt.clone() else {
            return self.replies.give(ticket, Ok::<_, Fault>(opened(&id, None)), out);
        };
        let text = prompt.text.clone();
        let call = out.command(&id, Command::Prompt(prompt));
        let (run, ticket) = if open.is_run { (Some(ticket), None) } else { (None, Some(ticket)) };
        watch.prompted(call, &text, run);
        self.calls.insert(call, Pending::Prompt(id, open, ticket));
    }

    fn command(&mut self, id: SessionId, command: Command, ticket: Ticket, out: &mut Outbox) {
        let text = match &command {
            // One that joins a turn begins none.
            Command::Prompt(Prompt { delivery: Some(Delivery::Steer), .. }) => None,
            Command::Prompt(prompt) => Some(prompt.text.clone()),
            Command::Start(_)
            | Command::Attach { .. }
            | Command::Interrupt
            | Command::Stop
            | Command::Finish
            | Command::Settle(_)
            | Command::Configure(_)
            | Command::Query { .. }
            | Command::Rewind { .. } => None,
        };
        let call = out.command(&id, command);
        match (text, self.watches.get_mut(&id)) {
            (Some(text), Some(watch)) => {
                watch.prompted(call, &text, None);
                self.calls.insert(call, Pending::Sent(id, ticket));
            }
            (Some(_) | None, _) => {
                self.calls.insert(call, Pending::Reply(ticket));
            }
        }
    }

    fn kill(&mut self, id: SessionId, ticket: Ticket, out: &mut Outbox) {
        let call = out.command(&id, Command::Stop);
        if let Some(watch) = self.watches.get_mut(&id) {
            watch.killed(call, ticket);
        }
        self.calls.insert(call, Pending::Kill(id));
    }

    fn look_up(&mut self, id: SessionId, wanted: Wanted, ticket: Ticket, out: &mut Outbox) {
        let call = out.ask(Ask::Session(id.clone()));
        self.opening.entry(id.clone()).or_default();
        self.calls.insert(call, Pending::Lookup(id, wanted, ticket));
    }

    /// What waited for a session goes on.
    fn opened(&mut self, id: &SessionId, out: &mut Outbox) {
        for (request, ticket) in self.opening.remove(id).into_iter().flatten() {
            self.request(request, ticket, out);
        }
    }

    fn is_shown(&self, id: &SessionId) -> bool {
        self.watches.get(id).is_some_and(Watch::is_shown)
    }

    fn found(
        &mut self,
        session: &SessionSummary,
        wanted: Wanted,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let id = &session.id;
        let is_over = session.state == SessionState::Ended;
        match wanted {
            Wanted::Open(open) if is_over => {
                // What waits for the session goes on once it is resumed.
                let agent = open.agent.unwrap_or(session.agent_type);
                return match self.watches.contains_key(id) {
                    true => drop(self.resuming.insert(id.clone(), (open, agent, ticket))),
                    false => self.start(open, agent, ticket, out),
                };
            }
            Wanted::Open(mut open) => {
                if let Some(error) = open.refused.take().or_else(|| unchangeable(session, &open)) {
                    self.replies.give(ticket, Err(error), out);
                } else {
                    if !self.is_shown(id) {
                        self.show(session, session.last_seq, open.events, false, out);
                    }
                    self.go_on(id.clone(), open, ticket, out);
                }
            }
            Wanted::Attach(Attach { after, events, include_partial_messages, .. }) => {
                let reply = opened(id, Some(session));
                self.replies.give(ticket, Ok::<_, Fault>(reply), out);
                self.show(session, after, events, include_partial_messages, out);
            }
            Wanted::Kill => {
                // Its end is waited for, and nothing is shown.
                let watch = Watch::new(id.clone(), session.last_seq);
                self.watches.insert(id.clone(), watch);
                out.follow(id, session.last_seq);
                self.kill(id.clone(), ticket, out);
            }
        }
        self.opened(id, out);
    }

    /// Shows a session's events after that number.
    fn show(
        &mut self,
        session: &SessionSummary,
        after: u64,
        events: bool,
        partial: bool,
        out: &mut Outbox,
    ) {
        let id = &session.id;
        let watch = self.watches.entry(id.clone());
        let watch = watch.or_insert_with(|| Watch::new(id.clone(), session.last_seq));
        watch.show(after, events, partial);
        out.follow(id, 0);
    }

    /// A session runs that this client started or resumed.
    fn started(
        &mut self,
        call: Call,
        session: &SessionSummary,
        after: u64,
        open: &Open,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let id = &session.id;
        self.watches.insert(id.clone(), Watch::new(id.clone(), after));
        let run = if open.is_run {
            Some(ticket)
        } else {
            self.replies.give(ticket, Ok::<_, Fault>(opened(id, None)), out);
            None
        };
        self.show(session, after, open.events, is_partial(open), out);
        if let (Some(prompt), Some(watch)) = (&open.prompt, self.watches.get_mut(id)) {
            watch.prompted(call, &prompt.text, run);
        }
        self.opened(id, out);
    }

    /// The engine did not take a prompt. If the session is over, it is resumed.
    fn refused(
        &mut self,
        id: SessionId,
        mut open: Box<Open>,
        ticket: Ticket,
        error: GatewayError,
        out: &mut Outbox,
    ) {
        let may_be_over = matches!(error.code, ErrorCode::SessionNotFound | ErrorCode::Conflict);
        if !may_be_over {
            return self.replies.give(ticket, Err(error), out);
        }
        open.refused = Some(error);
        match self.opening.get_mut(&id) {
            Some(waiting) => waiting.push_back((Request::Open(open), ticket)),
            None => self.look_up(id, Wanted::Open(open), ticket, out),
        }
    }

    fn failed(&mut self, call: Call, pending: Pending, error: GatewayError, out: &mut Outbox) {
        match pending {
            Pending::Reply(ticket) => self.replies.give(ticket, Err(error), out),
            Pending::Sent(id, ticket) => {
                self.watches.get_mut(&id).and_then(|watch| watch.refused(call));
                self.replies.give(ticket, Err(error), out);
            }
            Pending::Prompt(id, open, ticket) => {
                let run = self.watches.get_mut(&id).and_then(|watch| watch.refused(call));
                if let Some(ticket) = run.or(ticket) {
                    self.refused(id, open, ticket, error, out);
                }
            }
            Pending::Start(open, ticket) => {
                self.replies.give(ticket, Err(error), out);
                if let Some(id) = &open.session {
                    self.opened(id, out);
                }
            }
            Pending::Lookup(id, _, ticket) => {
                self.replies.give(ticket, Err(error), out);
                self.opened(&id, out);
            }
            Pending::Kill(id) => {
                let Some(watch) = self.watches.get_mut(&id) else { return };
                if let Some(ticket) = watch.spared(call) {
                    self.replies.give(ticket, Err(error), out);
                }
                if !self.is_shown(&id) {
                    self.watches.remove(&id);
                    out.leave(&id);
                }
            }
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
        let message = format!("a message of {bytes} bytes is too long; nothing of it was taken");
        refuse(Fault::invalid(message), out);
    }

    fn on_reply(&mut self, call: Call, reply: Result<Reply, GatewayError>, out: &mut Outbox) {
        let Some(pending) = self.calls.remove(&call) else { return };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return self.failed(call, pending, error, out),
        };
        match (pending, reply) {
            (Pending::Start(open, ticket), Reply::Started { session, after }) => {
                self.started(call, &session, after, &open, ticket, out);
            }
            (Pending::Lookup(_, wanted, ticket), Reply::Session(session)) => {
                self.found(&session, wanted, ticket, out);
            }
            (Pending::Prompt(id, _, ticket), Reply::Done(value)) => {
                if let Some(watch) = self.watches.get_mut(&id) {
                    watch.taken(call, &value);
                }
                if let Some(ticket) = ticket {
                    self.replies.give(ticket, Ok::<_, Fault>(opened(&id, None)), out);
                }
            }
            (Pending::Sent(id, ticket), Reply::Done(value)) => {
                if let Some(watch) = self.watches.get_mut(&id) {
                    watch.taken(call, &value);
                }
                self.replies.give(ticket, Ok::<_, Fault>(value), out);
            }
            // The end itself is the reply.
            (Pending::Kill(_), _) => {}
            (Pending::Reply(ticket), reply) => {
                let value = match reply {
                    Reply::Done(value) => value,
                    Reply::Sessions(sessions) => Json::of(&Sessions { sessions }),
                    Reply::Events { events, next } => {
                        let events = events.into_iter().map(Json::checked).collect();
                        Json::of(&Page { events, next })
                    }
                    Reply::Started { session, .. } | Reply::Session(session) => Json::of(&session),
                };
                self.replies.give(ticket, Ok::<_, Fault>(value), out);
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

    fn on_end(&mut self, session: &SessionId, out: &mut Outbox) {
        let Some(watch) = self.watches.remove(session) else { return };
        for (ticket, outcome) in watch.end() {
            self.replies.give(ticket, outcome, out);
        }
        if let Some((open, agent, ticket)) = self.resuming.remove(session) {
            self.start(open, agent, ticket, out);
        }
    }
}

/// Whether the client wants `stream_event` messages. The agent streams all the same: events have it.
fn is_partial(open: &Open) -> bool {
    open.config.include_partial_messages == Some(true)
}

/// Why a session that runs cannot take this, if it cannot.
fn unchangeable(session: &SessionSummary, open: &Open) -> Option<GatewayError> {
    let is_same = open.agent.is_none_or(|agent| agent == session.agent_type);
    let message = "the session runs: its agent, directory and options stay; use session/configure";
    let refused = !is_same || open.config != SessionConfig::default();
    refused.then(|| GatewayError::new(ErrorCode::Conflict, message))
}

fn opened(session_id: &SessionId, session: Option<&SessionSummary>) -> Json<'static> {
    Json::of(&Opened { session_id, session })
}

/// Answers what has no readable id.
fn refuse(fault: Fault, out: &mut Outbox) {
    out.say(wire::response(&Json::checked("null"), &Err(fault)).get());
}
