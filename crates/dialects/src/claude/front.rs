//! We serve it: a client that speaks to `claude` speaks to any agent.
//!
//! One session on one wire. It starts with the client's first word, since what the agent is started
//! with comes in `initialize`; it ends when the client has said all and the agent has done all.

mod answers;
mod control;
mod initialize;
mod prompt;
mod requests;

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::event::{AgentInfo, EventKind, RequestSettled, SettledBy, input_digest};
use agentwire_protocol::{
    Call, Command, ErrorCode, Event, GatewayError, Json, NewSession, Prompt, SessionId,
    SessionState, Settlement, Text,
};
use serde::Deserialize;
use serde_json::json;

use self::answers::Answer;
use self::control::Control;
use self::initialize::Flavour;
use self::requests::Shown;
pub(crate) use self::requests::suggestions;
use super::render::{Options as Rendering, Renderer};
use crate::front::{Ask, Front, Outbox, Reply};

/// How much may wait until the session runs; until then no more is read.
const EARLY_LIMIT: usize = 64;

/// What a client of Claude's wire is served with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The session that its first word starts. With a prompt it starts at once, and takes no more.
    pub new: NewSession,
    /// Whether the client is asked for permissions; else what needs one is refused.
    pub asks_client: bool,
    /// Whether it wants text as it comes.
    pub partial: bool,
    /// Whether its messages are said back to it once they are taken.
    pub replays: bool,
    /// The process that it takes for `claude`.
    pub pid: u32,
}

/// A client of Claude's wire.
pub struct ClaudeFront {
    options: Options,
    stage: Stage,
    flavour: Flavour,
    renderer: Renderer,
    calls: BTreeMap<Call, Then>,
    /// What came before the session ran.
    early: VecDeque<Early>,
    /// What the client is to be asked, unless it is settled at once.
    raised: Vec<(String, Vec<u8>, Shown)>,
    /// What the client was asked and has not answered.
    shown: BTreeMap<String, Shown>,
    /// What the agent said of itself.
    info: AgentInfo<'static>,
    /// Control requests that wait until the agent has said what it is.
    greetings: Vec<String>,
    is_ready: bool,
    failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Waiting,
    Starting,
    Running(SessionId),
    Over,
}

/// What came before the session ran.
enum Early {
    Prompt(Prompt, Option<Json<'static>>),
    Control(Control),
}

/// What a reply is for.
enum Then {
    Start,
    /// With what is said back.
    Prompt(Option<Json<'static>>),
    Control(Control),
    Settle(String),
}

/// What every line has.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
}

impl ClaudeFront {
    /// A client to be served.
    pub fn new(options: Options) -> Self {
        Self {
            renderer: Renderer::new(Rendering { partial: options.partial }).only_named(),
            options,
            stage: Stage::Waiting,
            flavour: Flavour::Control,
            calls: BTreeMap::new(),
            early: VecDeque::new(),
            raised: Vec::new(),
            shown: BTreeMap::new(),
            info: AgentInfo::default(),
            greetings: Vec::new(),
            is_ready: false,
            failure: None,
        }
    }

    /// Why no session came about, in words.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn line(&mut self, text: &str, out: &mut Outbox) -> Result<(), String> {
        let head: Head = serde_json::from_str(text).map_err(|error| unread(&error))?;
        match head.kind.as_str() {
            "user" => {
                let prompt = prompt::read(text)?;
                if let Some(id) = &prompt.message_id {
                    self.renderer.name(id);
                }
                let replay = if self.options.replays { prompt::message(text) } else { None };
                match self.stage.clone() {
                    Stage::Running(session) => self.prompt(&session, prompt, replay, out),
                    Stage::Waiting | Stage::Starting | Stage::Over => {
                        self.early.push_back(Early::Prompt(prompt, replay));
                        self.start(out);
                    }
                }
            }
            "control_request" => {
                let (control, fields) = Control::read(text)?;
                if control.subtype == "initialize" {
                    return self.initialize(control, &fields, out);
                }
                match self.stage.clone() {
                    Stage::Running(session) => self.control(&session, control, out),
                    Stage::Waiting | Stage::Starting | Stage::Over => {
                        self.early.push_back(Early::Control(control));
                        self.start(out);
                    }
                }
            }
            "control_response" | "callback.response" => {
                let answer = match head.kind.as_str() {
                    "control_response" => Answer::control(text)?,
                    _ => Answer::callback(text)?,
                };
                self.answer(answer, out);
            }
            // Heartbeats, requests taken back, and what newer clients say.
            _ => {}
        }
        Ok(())
    }

    fn initialize(
        &mut self,
        control: Control,
        fields: &BTreeMap<String, Json<'static>>,
        out: &mut Outbox,
    ) -> Result<(), String> {
        if self.stage != Stage::Waiting {
            control::fail(&control.id, "Already initialized", out);
            return Ok(());
        }
        match initialize::apply(fields, &mut self.options.new.config) {
            Ok(flavour) => {
                self.flavour = flavour;
                self.early.push_back(Early::Control(control));
                self.start(out);
            }
            Err(error) => control::fail(&control.id, &error, out),
        }
        Ok(())
    }

    fn prompt(
        &mut self,
        session: &SessionId,
        prompt: Prompt,
        replay: Option<Json<'static>>,
        out: &mut Outbox,
    ) {
        let call = out.command(session, Command::Prompt(prompt));
        self.calls.insert(call, Then::Prompt(replay));
    }

    fn start(&mut self, out: &mut Outbox) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::Starting;
            let call = out.ask(Ask::Start(Box::new(self.options.new.clone())));
            self.calls.insert(call, Then::Start);
        }
    }

    fn started(&mut self, reply: Result<Reply, GatewayError>, out: &mut Outbox) {
        let (session, after) = match reply {
            Ok(Reply::Started { session, after }) => (session, after),
            Ok(_) => return self.failed("the session did not start", out),
            Err(error) if error.code == ErrorCode::SessionNotFound => {
                let id = self.options.new.resume.as_ref().map_or("", SessionId::as_str);
                return self.failed(&format!("No conversation found with session ID: {id}"), out);
            }
            Err(error) => return self.failed(&error.message, out),
        };
        // Where one process serves one turn, there is nobody to wait for.
        self.is_ready = session.state != SessionState::Starting;
        self.stage = Stage::Running(session.id.clone());
        out.follow(&session.id, after);
        if self.options.new.prompt.is_some() {
            out.finish(&session.id);
        }
        for early in std::mem::take(&mut self.early) {
            match early {
                Early::Prompt(prompt, replay) => self.prompt(&session.id, prompt, replay, out),
                Early::Control(control) => self.control(&session.id, control, out),
            }
        }
    }

    /// There is no session: who waits for something is told, and the program ends.
    fn failed(&mut self, message: &str, out: &mut Outbox) {
        self.stage = Stage::Over;
        self.failure = Some(message.to_owned());
        for early in std::mem::take(&mut self.early) {
            if let Early::Control(control) = early {
                control::fail(&control.id, message, out);
            }
        }
        let id = self.options.new.id.as_ref().or(self.options.new.resume.as_ref());
        let id = id.map_or("", SessionId::as_str);
        say_failure(id, message, out);
        out.close(1);
    }

    fn event(&mut self, event: &Event<'_>, out: &mut Outbox) {
        self.renderer.event(event, &mut |line| out.say(line));
        match &event.kind {
            EventKind::RequestRaised(request) => self.raised(event, request, out),
            EventKind::RequestSettled(settled) => self.settled(settled, out),
            EventKind::StatusChanged(status) => {
                if let Some(info) = &status.info {
                    self.told(info, out);
                }
            }
            EventKind::SessionStarted(started) => {
                if let Some(info) = &started.info {
                    self.told(info, out);
                }
            }
            EventKind::TurnStarted(_) | EventKind::SessionEnded(_) => self.greet(out),
            EventKind::TurnCompleted(_)
            | EventKind::TurnFailed(_)
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
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => {}
        }
    }

    /// The agent said what it is.
    fn told(&mut self, info: &AgentInfo<'_>, out: &mut Outbox) {
        let keep = |kept: &mut Option<Json<'static>>, told: &Option<Json<'_>>| {
            if let Some(told) = told {
                *kept = Some(told.clone().into_owned());
            }
        };
        keep(&mut self.info.commands, &info.commands);
        keep(&mut self.info.agents, &info.agents);
        keep(&mut self.info.models, &info.models);
        keep(&mut self.info.account, &info.account);
        keep(&mut self.info.mcp_servers, &info.mcp_servers);
        if let Some(mode) = &info.mode {
            self.info.mode = Some(mode.clone().into_owned());
        }
        if let Some(model) = &info.model {
            self.info.model = Some(Text::from(model.to_string()));
        }
        self.greet(out);
    }

    fn settled(&mut self, settled: &RequestSettled<'_>, out: &mut Outbox) {
        let id = settled.request_id.decode();
        self.raised.retain(|(raised, ..)| *raised != id);
        let Some(shown) = self.shown.remove(&*id) else { return };
        let ours = shown.is_answered && settled.by == SettledBy::Client;
        if !ours && self.flavour == Flavour::Control {
            out.say_json(&json!({ "type": "control_cancel_request", "request_id": id }));
        }
    }

    fn answer(&mut self, answer: Answer, out: &mut Outbox) {
        let Stage::Running(session) = self.stage.clone() else { return };
        // An answer to what was never asked, or is over, is passed over as Claude does.
        let Some(shown) = self.shown.get_mut(&answer.id) else { return };
        shown.is_answered = true;
        let settlement = answer.settlement(shown);
        let call = out.command(&session, Command::Settle(settlement));
        self.calls.insert(call, Then::Settle(answer.id));
    }
}

impl Front for ClaudeFront {
    fn on_open(&mut self, out: &mut Outbox) {
        if self.options.new.prompt.is_some() {
            self.start(out);
        }
    }

    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let read = std::str::from_utf8(line)
            .map_err(|_| "the line is not UTF-8".to_owned())
            .and_then(|text| self.line(text, out));
        if let Err(error) = read {
            control::fail(&control::id(line), &error, out);
        }
    }

    fn is_full(&self) -> bool {
        self.early.len() >= EARLY_LIMIT
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        let message = format!("a line of {bytes} bytes is too long; nothing of it was taken");
        control::fail("", &message, out);
    }

    fn on_reply(&mut self, call: Call, reply: Result<Reply, GatewayError>, out: &mut Outbox) {
        match (self.calls.remove(&call), reply) {
            (Some(Then::Start), reply) => self.started(reply, out),
            (Some(Then::Control(control)), reply) => self.replied(control, reply, out),
            (Some(Then::Prompt(Some(message))), Ok(reply)) => self.replay(message, reply, out),
            (Some(Then::Prompt(_)), Err(error)) => {
                let Stage::Running(session) = &self.stage else { return };
                say_failure(session.as_str(), &error.message, out);
            }
            (Some(Then::Settle(id)), Err(error)) => self.not_settled(&id, &error, out),
            (Some(Then::Prompt(None) | Then::Settle(_)), Ok(_)) | (None, _) => {}
        }
    }

    fn on_event(&mut self, _session: &SessionId, event: &str, out: &mut Outbox) {
        if let Ok(event) = Event::from_json(event) {
            self.event(&event, out);
        }
    }

    fn on_pause(&mut self, _session: &SessionId, out: &mut Outbox) {
        for (id, line, shown) in std::mem::take(&mut self.raised) {
            out.say(line);
            self.shown.insert(id, shown);
        }
    }

    fn on_end(&mut self, _session: &SessionId, out: &mut Outbox) {
        self.stage = Stage::Over;
        let is_error = self.renderer.last_result().is_none_or(|result| result.is_error);
        out.close(u8::from(is_error));
    }

    fn on_close(&mut self, out: &mut Outbox) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::Over;
            out.close(0);
        }
    }
}

impl ClaudeFront {
    /// Says a message back, by the id it was taken under.
    fn replay(&mut self, message: Json<'static>, reply: Reply, out: &mut Outbox) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Taken {
            message_id: String,
        }
        let Stage::Running(session) = &self.stage else { return };
        let Reply::Done(taken) = reply else { return };
        let Ok(taken) = taken.read::<Taken>() else { return };
        out.say_json(&BTreeMap::from([
            ("type", Json::of(&"user")),
            ("message", message),
            ("parent_tool_use_id", Json::checked("null")),
            ("session_id", Json::of(session)),
            ("uuid", Json::of(&taken.message_id)),
            ("isReplay", Json::of(&true)),
        ]));
    }

    /// An answer that the agent cannot take: it must not wait for ever for another.
    fn not_settled(&mut self, id: &str, error: &GatewayError, out: &mut Outbox) {
        let over = matches!(error.code, ErrorCode::RequestSettled | ErrorCode::RequestNotFound);
        let Stage::Running(session) = self.stage.clone() else { return };
        let Some(shown) = self.shown.get_mut(id).filter(|_| !over) else { return };
        if std::mem::replace(&mut shown.is_refused, true) {
            return;
        }
        let settlement = Settlement::deny(id, error.message.clone());
        let call = out.command(&session, Command::Settle(settlement));
        self.calls.insert(call, Then::Settle(id.to_owned()));
    }
}

/// The result of a prompt that never became a turn.
fn say_failure(session: &str, message: &str, out: &mut Outbox) {
    out.say_json(&json!({
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": true,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "session_id": session,
        "stop_reason": null,
        "total_cost_usd": 0,
        "usage": { "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 },
        "modelUsage": {},
        "permission_denials": [],
        "errors": [message],
        "uuid": uuid(&[session, message]),
    }));
}

/// The same words, the same id: nothing here draws lots.
fn uuid(of: &[&str]) -> String {
    let hex = input_digest(Some(&Json::of(&of)));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn unread(error: &serde_json::Error) -> String {
    format!("failed to read the line: {error}")
}
