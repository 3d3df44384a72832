//! A session that this client watches: what is shown of it, and which turn answers which run.

use std::collections::BTreeMap;

use agentwire_protocol::event::{AgentInfo, Status, StatusChanged, TurnFailure};
use agentwire_protocol::{
    Call, ErrorCode, Event, EventKind, GatewayError, Json, JsonObject, MAIN_AGENT, SessionConfig,
    SessionId, Text,
};
use serde::Deserialize;

use super::notifications::{
    EndedParams, EventParams, MessageParams, RequestParams, SettledParams, SystemMessage,
};
use super::replies::Ticket;
use crate::claude::render::{Options, Renderer, system_message};
use crate::front::Outbox;
use crate::json::{self, Scanner};
use crate::jsonrpc::wire::Notification;

#[derive(Debug)]
pub(super) struct Watch {
    id: SessionId,
    /// What the client sees; `None` if it only waits for the end.
    view: Option<View>,
    /// The last event that arrived.
    seen: u64,
    /// The last event that counted for turns. Events that are shown again do not count again.
    counted: u64,
    /// Runs whose turn has not started.
    waiting: Vec<PendingRun>,
    /// The runs that the current turn answers.
    turn: Vec<Ticket>,
    /// The last result, until its turn ends.
    result: Option<String>,
    /// Requests that are not sent yet, with their notifications: a request that a rule settles is never
    /// sent.
    raised: Vec<(String, Json<'static>)>,
    /// What the agent has reported about itself.
    info: BTreeMap<&'static str, Json<'static>>,
    /// The config that this client started it with.
    pub(super) opened: Option<SessionConfig>,
    /// Calls that wait for the end.
    kills: Vec<(Call, Ticket)>,
    /// Why it ended.
    error: Option<String>,
    scanner: Scanner,
}

#[derive(Debug)]
struct View {
    renderer: Renderer,
    /// Events up to this one only update the state; of them, only open requests are shown.
    after: u64,
    events: bool,
}

/// A run whose turn has not started.
#[derive(Debug)]
struct PendingRun {
    call: Call,
    message_id: String,
    run: Ticket,
}

pub(super) type FinishedRun = (Ticket, Result<Json<'static>, GatewayError>);

impl Watch {
    /// Shows nothing yet; events after that number count for turns.
    pub(super) fn new(id: SessionId, after: u64) -> Self {
        Self {
            id,
            view: None,
            seen: 0,
            counted: after,
            waiting: Vec::new(),
            turn: Vec::new(),
            result: None,
            raised: Vec::new(),
            info: BTreeMap::new(),
            opened: None,
            kills: Vec::new(),
            error: None,
            scanner: Scanner::new(),
        }
    }

    /// Shows the events after that number, and the open requests. The events must then come from the first
    /// one on: the rendering builds on them.
    pub(super) fn show(&mut self, after: u64, events: bool, partial: bool) {
        let renderer = Renderer::new(Options { partial });
        self.raised.clear();
        self.view = Some(View { renderer, after, events });
    }

    pub(super) fn is_shown(&self) -> bool {
        self.view.is_some()
    }

    /// Also shows unified events, from now on.
    pub(super) fn show_events(&mut self) {
        if let Some(view) = &mut self.view {
            view.events = true;
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        !self.kills.is_empty()
    }

    /// Whether no call waits for it.
    pub(super) fn is_idle(&self) -> bool {
        self.kills.is_empty() && self.turn.is_empty() && self.waiting.is_empty()
    }

    /// What the agent has reported about itself.
    pub(super) fn greeting(&self) -> Json<'static> {
        Json::of(&self.info)
    }

    /// The prompt of a run was sent with that id.
    pub(super) fn prompted(&mut self, call: Call, message_id: String, run: Ticket) {
        self.waiting.push(PendingRun { call, message_id, run });
    }

    /// The prompt was refused. Returns the run that waits for it.
    pub(super) fn refused(&mut self, call: Call) -> Option<Ticket> {
        let at = self.waiting.iter().position(|prompt| prompt.call == call)?;
        Some(self.waiting.remove(at).run)
    }

    /// A call waits for the end.
    pub(super) fn killed(&mut self, call: Call, ticket: Ticket) {
        self.kills.push((call, ticket));
    }

    /// The session does not end after all.
    pub(super) fn spared(&mut self, call: Call) -> Option<Ticket> {
        let at = self.kills.iter().position(|(kill, _)| *kill == call)?;
        Some(self.kills.remove(at).1)
    }

    /// Shows an event and returns the runs that it ends.
    pub(super) fn event(&mut self, text: &str, out: &mut Outbox) -> Vec<FinishedRun> {
        let Ok(event) = Event::from_json(text) else { return Vec::new() };
        self.seen = event.seq;
        self.show_event(&event, text, out);
        if event.seq <= self.counted || event.agent_id != *MAIN_AGENT {
            return Vec::new();
        }
        self.counted = event.seq;
        self.count(&event.kind)
    }

    fn show_event(&mut self, event: &Event<'_>, text: &str, out: &mut Outbox) {
        let Some(view) = &mut self.view else { return };
        let session_id = &self.id;
        let is_shown = event.seq > view.after;
        if is_shown && view.events {
            let event = Json::trusted(text);
            out.send_json(&Notification::new("event", EventParams { session_id, event }));
        }
        let waits = event.seq > self.counted && !(self.turn.is_empty() && self.waiting.is_empty());
        let mut is_said = false;
        view.renderer.event(event, &mut |line| {
            is_said = true;
            let sort = sort(&mut self.scanner, line);
            // The agent's own text is passed on unchanged, except for lone surrogates, which would make the
            // whole frame unreadable.
            let line = json::without_lone_surrogates(line);
            if waits && sort == LineKind::Result {
                self.result = Some(line.clone().into_owned());
            }
            if is_shown && sort != LineKind::Other {
                let message = Json::trusted(line);
                out.send_json(&Notification::new("message", MessageParams { session_id, message }));
            }
        });
        let say = |subtype, message, code| {
            let message = system_message(event, subtype, SystemMessage { message, code });
            Notification::new("message", MessageParams { session_id, message })
        };
        let (agent_id, parent_agent_id) = (&event.agent_id, event.parent_agent_id.as_ref());
        if let EventKind::RequestRaised(request) = &event.kind {
            let id = request.request_id.decode().into_owned();
            let params = RequestParams { session_id, agent_id, parent_agent_id, request };
            self.raised.push((id, Json::of(&Notification::new("request", params))));
        } else if let EventKind::RequestSettled(settled) = &event.kind {
            let id = settled.request_id.decode();
            if self.raised.extract_if(.., |(raised, _)| *raised == id).next().is_some() || !is_shown
            {
                return;
            }
            let params = SettledParams {
                session_id,
                agent_id,
                parent_agent_id,
                request_id: &settled.request_id,
                outcome: settled.outcome.as_str(),
                by: settled.by.as_str(),
                client: settled.client.as_ref(),
                reason: settled.reason.as_ref(),
            };
            out.send_json(&Notification::new("request/settled", params));
        } else if let EventKind::SessionStarted(started) = &event.kind {
            started.info.iter().for_each(|info| update_info(&mut self.info, info));
        } else if let EventKind::StatusChanged(status) = &event.kind {
            status.info.iter().for_each(|info| update_info(&mut self.info, info));
            if let (Status::Warning, Some(message), true, false) =
                (status.status, &status.message, is_shown, is_said)
            {
                out.send_json(&say("warning", message, None));
            }
        } else if let (EventKind::Error(error), true, false) = (&event.kind, is_shown, is_said) {
            out.send_json(&say("error", &error.message, error.code.as_ref()));
        } else if let (EventKind::SessionEnded(ended), true) = (&event.kind, is_shown) {
            let params =
                EndedParams { session_id, reason: ended.reason, error: ended.error.as_ref() };
            out.send_json(&Notification::new("session/ended", params));
        }
    }

    /// All events that became durable together were shown: the requests that are still open go to the
    /// client.
    pub(super) fn pause(&mut self, out: &mut Outbox) {
        if self.view.as_ref().is_none_or(|view| self.seen < view.after) {
            return;
        }
        for (_, request) in self.raised.drain(..) {
            out.send(request.get());
        }
    }

    fn count(&mut self, kind: &EventKind<'_>) -> Vec<FinishedRun> {
        match kind {
            EventKind::TurnStarted(turn) => {
                // An agent may combine several prompts into one turn.
                for id in &turn.message_ids {
                    let run = self.take(&id.decode());
                    self.turn.extend(run);
                }
                Vec::new()
            }
            EventKind::TurnCompleted(_) => self.turn_ended(None),
            EventKind::TurnFailed(turn) => {
                let died = turn.reason == TurnFailure::Died;
                self.turn_ended(died.then(|| turn.error.to_string()))
            }
            EventKind::StatusChanged(status) => self.status(status),
            EventKind::SessionEnded(ended) => {
                self.error = ended.error.as_ref().map(Text::to_string);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn status(&mut self, status: &StatusChanged<'_>) -> Vec<FinishedRun> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Details {
            message_id: String,
        }
        let is_cancelled = match (status.status, &status.message) {
            (Status::Prompted, _) => false,
            (Status::Queue, Some(message)) if *message == *"cancelled" => true,
            _ => return Vec::new(),
        };
        let details = status.details.as_ref().and_then(|details| details.read::<Details>().ok());
        let Some(run) = details.and_then(|details| self.take(&details.message_id)) else {
            return Vec::new();
        };
        if is_cancelled {
            let error = GatewayError::new(ErrorCode::Conflict, "the prompt was cancelled");
            return vec![(run, Err(error))];
        }
        // A prompt that joins a turn shares its result.
        self.turn.push(run);
        Vec::new()
    }

    /// The run whose prompt has that id.
    fn take(&mut self, message_id: &str) -> Option<Ticket> {
        let at = self.waiting.iter().position(|prompt| prompt.message_id == message_id)?;
        Some(self.waiting.remove(at).run)
    }

    fn turn_ended(&mut self, died: Option<String>) -> Vec<FinishedRun> {
        let outcome = match (died, self.result.take()) {
            (None, Some(result)) => Ok(with_session(&result, &self.id)),
            (None, None) => Err(failed("the turn ended without a result".to_owned())),
            (Some(error), _) => Err(failed(error)),
        };
        self.turn.drain(..).map(|run| (run, outcome.clone())).collect()
    }

    /// Its events cannot be read: the outcome is unknown.
    pub(super) fn lost(self, error: &GatewayError) -> Vec<FinishedRun> {
        let runs = self.turn.into_iter().chain(self.waiting.into_iter().map(|prompt| prompt.run));
        let tickets = runs.chain(self.kills.into_iter().map(|(_, ticket)| ticket));
        tickets.map(|ticket| (ticket, Err(error.clone()))).collect()
    }

    /// The session has ended: no run gets a result any more, and the calls that waited for the end get
    /// their reply.
    pub(super) fn end(self) -> Vec<FinishedRun> {
        let error =
            self.error.unwrap_or_else(|| "the session ended before the turn did".to_owned());
        let waiting = self.waiting.into_iter().map(|prompt| prompt.run);
        let runs = self.turn.into_iter().chain(waiting);
        let runs = runs.map(|run| (run, Err(failed(error.clone()))));
        let kills = self.kills.into_iter().map(|(_, ticket)| (ticket, Ok(Json::EMPTY)));
        runs.chain(kills).collect()
    }
}

fn update_info(known: &mut BTreeMap<&'static str, Json<'static>>, info: &AgentInfo<'_>) {
    let told = [
        ("commands", &info.commands),
        ("agents", &info.agents),
        ("models", &info.models),
        ("account", &info.account),
    ];
    for (name, told) in told {
        if let Some(told) = told {
            known.insert(name, told.clone().into_owned());
        }
    }
}

fn failed(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::AgentFailed, message)
}

/// What one of Claude's lines is to a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Result,
    Message,
    /// Not one of the documented messages, such as `command_lifecycle`; the events include it.
    Other,
}

fn sort(scanner: &mut Scanner, line: &str) -> LineKind {
    let Ok(document) = scanner.scan_tolerant(line) else { return LineKind::Other };
    // Of duplicate names, most readers use the last.
    let kind = document.root().fields().filter(|(name, _)| name == "type").last();
    match kind.and_then(|(_, kind)| kind.string()).as_deref() {
        Some("result") => LineKind::Result,
        Some("assistant" | "user" | "system" | "stream_event") => LineKind::Message,
        Some(_) | None => LineKind::Other,
    }
}

/// The agent's own text with our id as its last field.
fn with_session(result: &str, id: &SessionId) -> Json<'static> {
    JsonObject::extending(&Json::trusted(result)).raw("sessionId", &Json::of(id)).finish()
}
