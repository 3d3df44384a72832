//! A session that this client watches: what is shown of it, and which turn answers which run.

use std::collections::VecDeque;

use agentwire_protocol::event::{Status, StatusChanged, TurnFailure, TurnOrigin, TurnStarted};
use agentwire_protocol::{
    Call, ErrorCode, Event, EventKind, GatewayError, Json, MAIN_AGENT, SessionId, Text,
};
use serde::{Deserialize, Serialize};

use super::replies::Ticket;
use crate::claude::render::{Options, Renderer};
use crate::front::Outbox;
use crate::json::Scanner;
use crate::jsonrpc::wire::Notification;

/// How many prompts are remembered until their turns begin.
const WAITING_LIMIT: usize = 1024;

/// A session that this client watches.
#[derive(Debug)]
pub(super) struct Watch {
    id: SessionId,
    /// What the client sees; nothing, if it only waits for the end.
    view: Option<View>,
    /// The last event that counted for turns. Those that are shown again do not count again.
    counted: u64,
    /// Prompts whose turn has not begun, in order.
    waiting: VecDeque<Waiting>,
    /// The runs that the present turn answers.
    turn: Vec<Ticket>,
    /// The present turn's prompt, until the agent has repeated it.
    echo: Option<String>,
    /// The last result, until its turn is over.
    result: Option<String>,
    /// Calls that wait for the end.
    kills: Vec<(Call, Ticket)>,
    /// Why it ended.
    error: Option<String>,
    scanner: Scanner,
}

#[derive(Debug)]
struct View {
    renderer: Renderer,
    /// What comes up to here is only learned from.
    after: u64,
    events: bool,
}

/// A prompt whose turn has not begun.
#[derive(Debug)]
struct Waiting {
    call: Call,
    text: String,
    message_id: Option<String>,
    /// None for a prompt whose result nobody waits for.
    run: Option<Ticket>,
}

/// A run that is over.
pub(super) type Finished = (Ticket, Result<Json<'static>, GatewayError>);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageParams<'p> {
    session_id: &'p SessionId,
    message: Json<'p>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventParams<'p> {
    session_id: &'p SessionId,
    event: Json<'p>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestParams<'p, R: Serialize> {
    session_id: &'p SessionId,
    request: R,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettledParams<'p> {
    session_id: &'p SessionId,
    request_id: &'p Text<'p>,
    outcome: &'static str,
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'p Text<'p>>,
}

impl Watch {
    /// Nothing of it is shown; what happens after that number counts.
    pub(super) fn new(id: SessionId, after: u64) -> Self {
        Self {
            id,
            view: None,
            counted: after,
            waiting: VecDeque::new(),
            turn: Vec::new(),
            echo: None,
            result: None,
            kills: Vec::new(),
            error: None,
            scanner: Scanner::new(),
        }
    }

    /// Shows what comes after that number. The events must then come from the first on: what is shown
    /// builds on them.
    pub(super) fn show(&mut self, after: u64, events: bool, partial: bool) {
        let renderer = Renderer::new(Options { partial });
        self.view = Some(View { renderer, after, events });
    }

    pub(super) fn is_shown(&self) -> bool {
        self.view.is_some()
    }

    /// Shows unified events too, from now on.
    pub(super) fn show_events(&mut self) {
        if let Some(view) = &mut self.view {
            view.events = true;
        }
    }

    /// A prompt was sent.
    pub(super) fn prompted(&mut self, call: Call, text: &str, run: Option<Ticket>) {
        if self.waiting.len() >= WAITING_LIMIT {
            let forgotten = self.waiting.iter().position(|prompt| prompt.run.is_none());
            forgotten.and_then(|at| self.waiting.remove(at));
        }
        let text = text.to_owned();
        self.waiting.push_back(Waiting { call, text, message_id: None, run });
    }

    /// The prompt was taken under that id.
    pub(super) fn taken(&mut self, call: Call, reply: &Json<'_>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Taken {
            message_id: String,
        }
        let waiting = self.waiting.iter_mut().find(|prompt| prompt.call == call);
        if let (Some(waiting), Ok(taken)) = (waiting, reply.read::<Taken>()) {
            waiting.message_id = Some(taken.message_id);
        }
    }

    /// The prompt was refused. Gives the run that waits for it.
    pub(super) fn refused(&mut self, call: Call) -> Option<Ticket> {
        let at = self.waiting.iter().position(|prompt| prompt.call == call)?;
        self.waiting.remove(at)?.run
    }

    /// Somebody waits for the end.
    pub(super) fn killed(&mut self, call: Call, ticket: Ticket) {
        self.kills.push((call, ticket));
    }

    /// The session is not told to end after all.
    pub(super) fn spared(&mut self, call: Call) -> Option<Ticket> {
        let at = self.kills.iter().position(|(kill, _)| *kill == call)?;
        Some(self.kills.remove(at).1)
    }

    /// Shows an event, and gives the runs that it ends.
    pub(super) fn event(&mut self, text: &str, out: &mut Outbox) -> Vec<Finished> {
        let Ok(event) = Event::from_json(text) else { return Vec::new() };
        self.tell(&event, text, out);
        if event.seq <= self.counted || event.agent_id != *MAIN_AGENT {
            return Vec::new();
        }
        self.counted = event.seq;
        self.count(&event.kind)
    }

    fn tell(&mut self, event: &Event<'_>, text: &str, out: &mut Outbox) {
        let Some(view) = &mut self.view else { return };
        let session_id = &self.id;
        let is_shown = event.seq > view.after;
        if is_shown && view.events {
            let event = Json::checked(text);
            out.say_json(&Notification::new("event", EventParams { session_id, event }));
        }
        let waits = event.seq > self.counted && !(self.turn.is_empty() && self.waiting.is_empty());
        view.renderer.event(event, &mut |line| {
            let sort = sort(&mut self.scanner, line);
            if waits && sort == Sort::Result {
                self.result = Some(line.to_owned());
            }
            if is_shown && sort != Sort::Other {
                let message = Json::checked(line);
                out.say_json(&Notification::new("message", MessageParams { session_id, message }));
            }
        });
        if !is_shown {
            return;
        }
        if let EventKind::RequestRaised(request) = &event.kind {
            out.say_json(&Notification::new("request", RequestParams { session_id, request }));
        } else if let EventKind::RequestSettled(settled) = &event.kind {
            let params = SettledParams {
                session_id,
                request_id: &settled.request_id,
                outcome: settled.outcome.as_str(),
                by: settled.by.as_str(),
                reason: settled.reason.as_ref(),
            };
            out.say_json(&Notification::new("request/settled", params));
        }
    }

    fn count(&mut self, kind: &EventKind<'_>) -> Vec<Finished> {
        match kind {
            EventKind::TurnStarted(turn) => {
                self.turn_started(turn);
                Vec::new()
            }
            EventKind::TurnCompleted(_) => self.turn_over(None),
            EventKind::TurnFailed(turn) => {
                let died = turn.reason == TurnFailure::Died;
                self.turn_over(died.then(|| turn.error.to_string()))
            }
            EventKind::StatusChanged(status) => self.status(status),
            EventKind::SessionEnded(ended) => {
                self.error = ended.error.as_ref().map(Text::to_string);
                Vec::new()
            }
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
            | EventKind::AgentSpawned(_)
            | EventKind::AgentFinished(_)
            | EventKind::RequestRaised(_)
            | EventKind::RequestSettled(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => Vec::new(),
        }
    }

    fn turn_started(&mut self, turn: &TurnStarted<'_>) {
        let Some(prompt) = &turn.prompt else {
            if turn.origin == TurnOrigin::Prompt {
                self.turn.extend(self.waiting.pop_front().and_then(|prompt| prompt.run));
            }
            return;
        };
        let prompt = prompt.decode();
        // An agent that took several prompts into one turn has joined their texts.
        let mut rest = Some(&*prompt);
        while let Some(text) = rest {
            let Some((at, left)) = self.next(text) else { break };
            rest = left;
            self.turn.extend(self.waiting.remove(at).and_then(|prompt| prompt.run));
        }
        self.echo = Some(prompt.into_owned());
    }

    /// The prompt that this text is or begins with, and what is left then.
    fn next<'t>(&self, text: &'t str) -> Option<(usize, Option<&'t str>)> {
        let whole = self.waiting.iter().position(|prompt| prompt.text == text);
        whole.map(|at| (at, None)).or_else(|| {
            self.waiting.iter().enumerate().find_map(|(at, prompt)| {
                let left = text.strip_prefix(&prompt.text)?.strip_prefix("\n\n")?;
                Some((at, Some(left)))
            })
        })
    }

    fn status(&mut self, status: &StatusChanged<'_>) -> Vec<Finished> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Details {
            message_id: String,
        }
        let Some(message) = &status.message else { return Vec::new() };
        let message = message.decode();
        if status.status == Status::Prompted {
            // A prompt that joins a turn shares its result; the turn's own is only repeated.
            if self.echo.as_deref() == Some(&*message) {
                self.echo = None;
            } else if let Some((at, None)) = self.next(&message) {
                self.turn.extend(self.waiting.remove(at).and_then(|prompt| prompt.run));
            }
        } else if status.status == Status::Queue && message == "cancelled" {
            let details = status.details.as_ref();
            let named = details.and_then(|details| details.read::<Details>().ok());
            let at = named.and_then(|Details { message_id }| {
                let id = Some(message_id);
                self.waiting.iter().position(|prompt| prompt.message_id == id)
            });
            let run = at.and_then(|at| self.waiting.remove(at)).and_then(|prompt| prompt.run);
            let error = || GatewayError::new(ErrorCode::Conflict, "the prompt was cancelled");
            return run.into_iter().map(|run| (run, Err(error()))).collect();
        }
        Vec::new()
    }

    fn turn_over(&mut self, died: Option<String>) -> Vec<Finished> {
        self.echo = None;
        let outcome = match (died, self.result.take()) {
            (None, Some(result)) => Ok(with_session(&result, &self.id)),
            (None, None) => Err(failed("the turn ended without a result".to_owned())),
            (Some(error), _) => Err(failed(error)),
        };
        self.turn.drain(..).map(|run| (run, outcome.clone())).collect()
    }

    /// The session is over: no run gets a result any more, and whoever waited for this has it.
    pub(super) fn end(self) -> Vec<Finished> {
        let error =
            self.error.unwrap_or_else(|| "the session ended before the turn did".to_owned());
        let waiting = self.waiting.into_iter().filter_map(|prompt| prompt.run);
        let runs = self.turn.into_iter().chain(waiting);
        let runs = runs.map(|run| (run, Err(failed(error.clone()))));
        let kills = self.kills.into_iter().map(|(_, ticket)| (ticket, Ok(Json::checked("{}"))));
        runs.chain(kills).collect()
    }
}

fn failed(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::AgentFailed, message)
}

/// What a line of Claude's is to a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Result,
    Message,
    /// Not one of the messages that are promised, such as `command_lifecycle`; the events have it.
    Other,
}

fn sort(scanner: &mut Scanner, line: &str) -> Sort {
    let Ok(document) = scanner.scan_tolerant(line) else { return Sort::Other };
    // Of a doubled name most readers take the last.
    let kind = document.root().fields().filter(|(name, _)| name == "type").last();
    match kind.and_then(|(_, kind)| kind.string()).as_deref() {
        Some("result") => Sort::Result,
        Some("assistant" | "user" | "system" | "stream_event") => Sort::Message,
        Some(_) | None => Sort::Other,
    }
}

/// The agent's own text with our id as its last field.
fn with_session(result: &str, id: &SessionId) -> Json<'static> {
    let fields = result.trim_end().strip_suffix('}').unwrap_or(result);
    Json::checked(format!("{fields},\"sessionId\":{}}}", Json::of(id).get()))
}
