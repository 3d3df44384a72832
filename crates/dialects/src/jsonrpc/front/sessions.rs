//! Starts, looks up, continues and resumes sessions.

use agentwire_protocol::reply::PromptResult;
use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, GatewayError, Json, NewSession, Resume, SessionConfig,
    SessionId, SessionState, SessionSummary,
};
use serde::Serialize;

use super::params::{Attach, ClientCall, Open};
use super::replies::Ticket;
use super::watch::Watch;
use super::{JsonRpc, PendingCall};
use crate::front::{GatewayCall, Outbox};
use crate::jsonrpc::wire::Fault;

/// Why a session is looked up.
#[derive(Debug)]
pub(super) enum LookupReason {
    Open(Box<Open>),
    Attach(Attach),
    Kill,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenResult<'r> {
    session_id: &'r SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'r SessionSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<Resume>,
}

impl JsonRpc {
    pub(super) fn open(&mut self, open: Box<Open>, ticket: Ticket, out: &mut Outbox) {
        match open.session.clone() {
            None => {
                let agent = open.agent.unwrap_or(self.agent);
                self.start(open, agent, ticket, out);
            }
            // It is resumed once it has ended.
            Some(id) if self.watches.get(&id).is_some_and(Watch::is_ending) => {
                self.ending.insert(id.clone());
                let waiting = self.opening.entry(id).or_default();
                waiting.push_back((ClientCall::Open(open), ticket));
            }
            Some(id) if open.changes_nothing() && self.is_shown(&id) => {
                self.prompt_session(id, open, ticket, out);
            }
            Some(id) => self.look_up(id, LookupReason::Open(open), ticket, out),
        }
    }

    pub(super) fn start(
        &mut self,
        mut open: Box<Open>,
        agent: AgentType,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        // With a key, the content must be the same each time; the session chooses the id.
        if let Some(prompt) = open.prompt.as_mut().filter(|_| open.key.is_none()) {
            prompt.message_id.get_or_insert_with(|| out.message_id());
        }
        let mut new = NewSession {
            // A session reports a repeated prompt in the reply to a prompt, not to a start.
            prompt: open.prompt.clone().filter(|_| open.session.is_none()),
            resume: open.session.clone(),
            config: open.config.clone(),
            key: open.key.clone(),
            ..NewSession::of(agent)
        };
        new.config.fail_at_limits();
        let call = out.call(GatewayCall::Start(Box::new(new)));
        self.calls.insert(call, PendingCall::Start(open, ticket));
    }

    /// Sends a prompt to a session that runs and is shown.
    fn prompt_session(
        &mut self,
        id: SessionId,
        mut open: Box<Open>,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let Some(watch) = self.watches.get_mut(&id) else { return };
        if open.events {
            watch.show_events();
        }
        let Some(prompt) = &mut open.prompt else {
            return self.replies.give(ticket, Ok::<_, Fault>(opened(&id)), out);
        };
        let message_id = prompt.message_id.get_or_insert_with(|| out.message_id()).clone();
        let call = out.command(&id, Command::Prompt(prompt.clone()));
        let ticket = match open.is_run {
            true => {
                watch.prompted(call, message_id, ticket);
                None
            }
            false => Some(ticket),
        };
        self.calls.insert(call, PendingCall::Prompt(id, open, ticket));
    }

    pub(super) fn look_up(
        &mut self,
        id: SessionId,
        wanted: LookupReason,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let call = out.call(GatewayCall::Session(id.clone()));
        self.opening.entry(id.clone()).or_default();
        self.calls.insert(call, PendingCall::Lookup(id, wanted, ticket));
    }

    /// Handles the calls that waited for a session.
    pub(super) fn opened(&mut self, id: &SessionId, out: &mut Outbox) {
        for (request, ticket) in self.opening.remove(id).into_iter().flatten() {
            self.request(request, ticket, out);
        }
    }

    pub(super) fn is_shown(&self, id: &SessionId) -> bool {
        self.watches.get(id).is_some_and(Watch::is_shown)
    }

    pub(super) fn found(
        &mut self,
        session: &SessionSummary,
        wanted: LookupReason,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let id = &session.id;
        let is_over = session.state == SessionState::Ended;
        match wanted {
            LookupReason::Open(open) if is_over => {
                // Calls that wait for the session continue once it is resumed.
                let agent = open.agent.unwrap_or(session.agent_type);
                return match self.watches.contains_key(id) {
                    true => drop(self.resuming.insert(id.clone(), (open, agent, ticket))),
                    false => self.start(open, agent, ticket, out),
                };
            }
            LookupReason::Open(mut open) => {
                let opened = self.watches.get(id).and_then(|watch| watch.opened.as_ref());
                let refused = open.refused.take().map(|error| elsewhere(id, error));
                if let Some(error) = refused.or_else(|| unchangeable(session, &open, opened)) {
                    self.replies.give(ticket, Err(error), out);
                    if open.is_first && self.watches.get(id).is_some_and(Watch::is_idle) {
                        self.watches.remove(id);
                        out.unfollow(id);
                    }
                } else {
                    if !self.is_shown(id) {
                        open.is_first = true;
                        self.show(session, session.last_seq, open.events, false, out);
                    }
                    self.prompt_session(id.clone(), open, ticket, out);
                }
            }
            LookupReason::Attach(Attach { after, events, include_partial_messages, .. }) => {
                let (resume, after) = Resume::of(after, session.last_seq);
                let attached =
                    OpenResult { session_id: id, session: Some(session), resume: Some(resume) };
                let reply = Json::of(&attached);
                self.replies.give(ticket, Ok::<_, Fault>(reply), out);
                self.show(session, after, events, include_partial_messages, out);
            }
            LookupReason::Kill => {
                // Wait for its end and show nothing.
                let watch = Watch::new(id.clone(), session.last_seq);
                self.watches.insert(id.clone(), watch);
                out.follow(id, session.last_seq);
                self.kill(id.clone(), ticket, out);
            }
        }
        self.opened(id, out);
    }

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
    pub(super) fn started(
        &mut self,
        call: Call,
        session: &SessionSummary,
        after: u64,
        open: Box<Open>,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let id = &session.id;
        let mut watch = Watch::new(id.clone(), after);
        watch.opened = Some(open.config.clone());
        self.watches.insert(id.clone(), watch);
        self.show(session, after, open.events, is_partial(&open), out);
        let message_id = open.prompt.as_ref().and_then(|prompt| prompt.message_id.clone());
        match (message_id, self.watches.get_mut(id)) {
            _ if open.session.is_some() => self.prompt_session(id.clone(), open, ticket, out),
            (Some(message_id), Some(watch)) if open.is_run => {
                watch.prompted(call, message_id, ticket);
            }
            _ => self.replies.give(ticket, Ok::<_, Fault>(opened(id)), out),
        }
        self.opened(id, out);
    }

    /// The key was used before, for that session: the session is shown from its start.
    pub(super) fn started_before(
        &mut self,
        session: &SessionSummary,
        open: &Open,
        ticket: Ticket,
        out: &mut Outbox,
    ) {
        let attach = Attach {
            session: session.id.clone(),
            after: 0,
            events: open.events,
            include_partial_messages: is_partial(open),
        };
        self.found(session, LookupReason::Attach(attach), ticket, out);
    }

    /// The session accepted a prompt, or had accepted it before: then no turn answers it.
    pub(super) fn prompt_accepted(
        &mut self,
        call: Call,
        id: &SessionId,
        ticket: Option<Ticket>,
        reply: &Json<'_>,
        out: &mut Outbox,
    ) {
        if let Some(ticket) = ticket {
            return self.replies.give(ticket, Ok::<_, Fault>(opened(id)), out);
        }
        let Ok(PromptResult { message_id, repeated: true }) = reply.read() else { return };
        if let Some(run) = self.watches.get_mut(id).and_then(|watch| watch.refused(call)) {
            let message = format!("message {message_id} was already accepted; it counts once");
            self.replies.give(run, Err(GatewayError::new(ErrorCode::Conflict, message)), out);
        }
    }

    /// The session refused a prompt. If it has ended, it is resumed.
    pub(super) fn refused(
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
            Some(waiting) => waiting.push_back((ClientCall::Open(open), ticket)),
            None => self.look_up(id, LookupReason::Open(open), ticket, out),
        }
    }
}

/// Whether the client wants `stream_event` messages. The agent streams either way: events include the
/// pieces.
fn is_partial(open: &Open) -> bool {
    open.config.include_partial_messages == Some(true)
}

/// Why a running session cannot accept this, if it cannot. A value that the session already has is not a
/// change.
fn unchangeable(
    session: &SessionSummary,
    open: &Open,
    opened: Option<&SessionConfig>,
) -> Option<GatewayError> {
    let is_same = open.agent.is_none_or(|agent| agent == session.agent_type);
    let is = |given: &String, has: &Option<String>| has.as_ref() == Some(given);
    let mut change = open.config.clone();
    change.working_directory =
        change.working_directory.filter(|at| !is(at, &session.working_directory));
    change.model = change.model.filter(|model| !is(model, &session.model));
    let is_known = opened == Some(&open.config) || change == SessionConfig::default();
    let message =
        "the session is running: its agent, directory and options are fixed; use session/configure";
    (!is_same || !is_known).then(|| GatewayError::new(ErrorCode::Conflict, message))
}

/// Why a session that has not ended accepts no prompt here.
fn elsewhere(id: &SessionId, error: GatewayError) -> GatewayError {
    match error.code == ErrorCode::SessionNotFound {
        true => {
            let message = format!("session {id} runs in another process; attach to read it");
            GatewayError::new(error.code, message)
        }
        false => error,
    }
}

fn opened(session_id: &SessionId) -> Json<'static> {
    Json::of(&OpenResult { session_id, session: None, resume: None })
}
