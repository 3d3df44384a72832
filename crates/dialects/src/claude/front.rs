//! Serves Claude's wire: a client that speaks to `claude` can speak to any agent.
//!
//! One session on one wire. It starts with `initialize` or the first prompt, because `initialize` has the
//! options that the agent is started with. It ends when the client has sent everything and the agent has
//! done everything.

mod answers;
mod control;
mod initialize;
mod lines;
mod prompt;
mod requests;

pub(crate) use self::prompt::{content as user_content, image as block_image};

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::event::{AgentInfo, EventKind, SessionEndReason, Status, UsageReported};
use agentwire_protocol::reply::PromptResult;
use agentwire_protocol::{
    Call, Command, ErrorCode, Event, Json, NewSession, Prompt, SessionId, SessionState, Text,
};

use self::control::{Control, Fields};
use self::initialize::Flavour;
use self::lines::{ClientMessage, UnreadableLine};
use self::requests::ShownRequest;
use super::render::{Options as Rendering, Renderer};
use crate::front::{Front, GatewayCall, GatewayReply, GatewayResult, Outbox};

/// How many bytes may wait until the session runs.
const EARLY_BYTES: usize = 64 << 20;

/// How many refused prompts may wait for the end of the running turn.
const REFUSALS: usize = 256;

/// How many lines may wait while the session starts; then no more are read.
const EARLY_LINES: usize = 64;

/// How a client of Claude's wire is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The session to start. With a prompt it starts at once, and accepts no more.
    pub new: NewSession,
    /// Whether the client is asked for permissions. If not, whatever needs one is refused.
    pub asks_client: bool,
    /// Whether the client wants text as it is written.
    pub partial: bool,
    /// Whether messages are repeated to the client once they are accepted.
    pub replays: bool,
    /// Whether the mode may change to one in which nothing is asked.
    pub may_bypass: bool,
    /// The process id that the client sees as that of `claude`.
    pub pid: u32,
}

/// Serves one client of Claude's wire.
pub struct ClaudeFront {
    options: Options,
    stage: Stage,
    flavour: Flavour,
    renderer: Renderer,
    calls: BTreeMap<Call, PendingCall>,
    /// What arrived before the session ran, and how many bytes it had.
    early: VecDeque<EarlyMessage>,
    early_bytes: usize,
    /// Why prompts were refused, held until the running turn has its result.
    refusals: Vec<String>,
    /// Requests to put to the client, unless they are settled at once.
    raised: Vec<(String, Vec<u8>, ShownRequest)>,
    /// Requests that were put to the client and are not settled.
    shown: BTreeMap<String, ShownRequest>,
    /// What the agent reported about itself.
    info: AgentInfo<'static>,
    /// How full the agent's context is.
    usage: UsageReported<'static>,
    /// Control requests that wait until the agent has reported what it is.
    greetings: Vec<String>,
    /// How many queries about the agent are open.
    inquiries: usize,
    /// The agent starts only later, so greetings do not wait for it.
    starts_later: bool,
    is_ready: bool,
    /// A prompt was sent, or the session failed: to end without a result is then an error.
    is_owing: bool,
    failure: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Waiting,
    Starting,
    Running(SessionId),
    Ended,
}

/// What arrived before the session ran.
enum EarlyMessage {
    Prompt(Prompt, Option<Json<'static>>),
    Control(Control),
}

/// What a reply is for.
enum PendingCall {
    Start,
    /// With the message to repeat.
    Prompt(Option<Json<'static>>),
    Control(Control),
    /// A query about the agent, for this field.
    Inquiry(&'static str),
    /// A mode set by an answer.
    Mode,
    Settle(String),
}

impl ClaudeFront {
    pub fn new(options: Options) -> Self {
        Self {
            renderer: Renderer::new(Rendering { partial: options.partial })
                .only_named()
                .of(options.new.agent),
            options,
            stage: Stage::Waiting,
            flavour: Flavour::Control,
            calls: BTreeMap::new(),
            early: VecDeque::new(),
            early_bytes: 0,
            refusals: Vec::new(),
            raised: Vec::new(),
            shown: BTreeMap::new(),
            info: AgentInfo::default(),
            usage: UsageReported::default(),
            greetings: Vec::new(),
            inquiries: 0,
            starts_later: false,
            is_ready: false,
            is_owing: false,
            failure: None,
        }
    }

    /// Why no session was started.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn take(&mut self, said: ClientMessage, bytes: usize, out: &mut Outbox) {
        match (said, self.stage.clone()) {
            (ClientMessage::Prompt(prompt, replay), stage) => {
                if let Some(id) = &prompt.message_id {
                    self.renderer.name(id);
                }
                self.is_owing = true;
                match stage {
                    Stage::Running(session) => self.prompt(&session, prompt, replay, out),
                    Stage::Waiting | Stage::Starting | Stage::Ended => {
                        self.hold_early(EarlyMessage::Prompt(prompt, replay), bytes, out);
                        self.start(out);
                    }
                }
            }
            (ClientMessage::Control(control, fields), _) if control.subtype == "initialize" => {
                self.initialize(control, &fields, bytes, out);
            }
            (ClientMessage::Control(control, _), Stage::Running(session)) => {
                self.control(&session, control, out);
            }
            // Only `initialize` has the options that the session is started with, so others wait.
            (
                ClientMessage::Control(control, _),
                Stage::Waiting | Stage::Starting | Stage::Ended,
            ) => {
                self.hold_early(EarlyMessage::Control(control), bytes, out);
            }
            (ClientMessage::Answer(answer), _) => self.answer(answer, out),
            (ClientMessage::Nothing, _) => {}
        }
    }

    /// Holds what arrived before the session runs, if there is room.
    fn hold_early(&mut self, early: EarlyMessage, bytes: usize, out: &mut Outbox) {
        if self.early_bytes + bytes <= EARLY_BYTES {
            self.early_bytes += bytes;
            self.early.push_back(early);
            return;
        }
        let why = "too much input before the session runs; wait for answers";
        match early {
            EarlyMessage::Prompt(..) => self.refuse(why, out),
            EarlyMessage::Control(control) => control::fail(&control.id, why, out),
        }
    }

    /// A refused prompt gets a result too, after that of the running turn: clients take the next result as
    /// the end of what they wait for.
    fn refuse(&mut self, why: &str, out: &mut Outbox) {
        if self.renderer.is_in_turn() && self.refusals.len() < REFUSALS {
            return self.refusals.push(why.to_owned());
        }
        self.send_refusal(why, out);
    }

    fn send_refusal(&mut self, why: &str, out: &mut Outbox) {
        let new = &self.options.new;
        let session = match &self.stage {
            Stage::Running(session) => Some(session),
            Stage::Waiting | Stage::Starting | Stage::Ended => {
                new.id.as_ref().or(new.resume.as_ref())
            }
        };
        let session = session.map_or("", SessionId::as_str).to_owned();
        self.renderer.refused(&session, why, &mut |line| out.send(line));
    }

    fn initialize(&mut self, control: Control, fields: &Fields, bytes: usize, out: &mut Outbox) {
        if self.stage != Stage::Waiting {
            return control::fail(&control.id, "Already initialized", out);
        }
        match initialize::apply(fields, &mut self.options.new.config) {
            Ok(flavour) => {
                self.flavour = flavour;
                self.hold_early(EarlyMessage::Control(control), bytes, out);
                self.start(out);
            }
            Err(error) => control::fail(&control.id, &error, out),
        }
    }

    fn prompt(
        &mut self,
        session: &SessionId,
        prompt: Prompt,
        replay: Option<Json<'static>>,
        out: &mut Outbox,
    ) {
        let call = out.command(session, Command::Prompt(prompt));
        self.calls.insert(call, PendingCall::Prompt(replay));
    }

    fn start(&mut self, out: &mut Outbox) {
        if self.stage == Stage::Waiting {
            self.stage = Stage::Starting;
            let call = out.call(GatewayCall::Start(Box::new(self.options.new.clone())));
            self.calls.insert(call, PendingCall::Start);
        }
    }

    fn started(&mut self, reply: GatewayResult, out: &mut Outbox) {
        let (session, after) = match reply {
            Ok(GatewayReply::Started { session, after }) => (session, after),
            Ok(_) => return self.failed("the session did not start", out),
            Err(error) if error.code == ErrorCode::SessionNotFound => {
                let id = self.options.new.resume.as_ref().map_or("", SessionId::as_str);
                return self.failed(&format!("No conversation found with session ID: {id}"), out);
            }
            Err(error) => return self.failed(&error.message, out),
        };
        // If each process serves one turn, there is nothing to wait for.
        self.is_ready = session.state != SessionState::Starting;
        self.stage = Stage::Running(session.id.clone());
        out.follow(&session.id, after);
        if self.options.new.prompt.is_some() {
            out.finish(&session.id);
        }
        self.early_bytes = 0;
        for early in std::mem::take(&mut self.early) {
            match early {
                EarlyMessage::Prompt(prompt, replay) => {
                    self.prompt(&session.id, prompt, replay, out);
                }
                EarlyMessage::Control(control) => self.control(&session.id, control, out),
            }
        }
    }

    /// No session was started: reports that to everything that waits, then closes.
    fn failed(&mut self, message: &str, out: &mut Outbox) {
        self.stage = Stage::Ended;
        self.failure = Some(message.to_owned());
        for early in std::mem::take(&mut self.early) {
            if let EarlyMessage::Control(control) = early {
                control::fail(&control.id, message, out);
            }
        }
        self.refuse(message, out);
        out.close(1);
    }

    fn event(&mut self, event: &Event<'_>, out: &mut Outbox) {
        // After a result, a client may not answer any more.
        if let EventKind::TurnCompleted(_) | EventKind::TurnFailed(_) = event.kind {
            self.put_questions(out);
        }
        self.renderer.event(event, &mut |line| out.send(line));
        if !self.renderer.is_in_turn() {
            for why in std::mem::take(&mut self.refusals) {
                self.send_refusal(&why, out);
            }
        }
        if let EventKind::RequestRaised(request) = &event.kind {
            self.raised(event, request, out);
        } else if let EventKind::RequestSettled(settled) = &event.kind {
            self.settled(settled, out);
        } else if let EventKind::StatusChanged(status) = &event.kind {
            status.info.iter().for_each(|info| self.told(info, out));
            if status.status == Status::Waiting && !self.is_ready {
                self.starts_later = true;
                self.greet(out);
            }
        } else if let EventKind::SessionStarted(started) = &event.kind {
            started.info.iter().for_each(|info| self.told(info, out));
        } else if let EventKind::UsageReported(usage) = &event.kind {
            self.usage.context_used = usage.context_used.or(self.usage.context_used);
            self.usage.context_size = usage.context_size.or(self.usage.context_size);
        } else if let EventKind::TurnStarted(_) = &event.kind {
            self.ready(out);
        } else if let EventKind::SessionEnded(ended) = &event.kind {
            self.is_owing |= ended.reason == SessionEndReason::Failed;
            self.inquiries = 0;
            self.ready(out);
        }
    }

    /// The agent reported what it is.
    fn told(&mut self, info: &AgentInfo<'_>, out: &mut Outbox) {
        let hold_early = |kept: &mut Option<Json<'static>>, told: &Option<Json<'_>>| {
            if let Some(told) = told {
                *kept = Some(told.clone().into_owned());
            }
        };
        hold_early(&mut self.info.commands, &info.commands);
        hold_early(&mut self.info.agents, &info.agents);
        hold_early(&mut self.info.models, &info.models);
        hold_early(&mut self.info.account, &info.account);
        if let Some(mode) = &info.mode {
            self.info.mode = Some(mode.clone().into_owned());
        }
        if let Some(model) = &info.model {
            self.info.model = Some(Text::from(model.to_string()));
        }
        self.ready(out);
    }
}

impl Front for ClaudeFront {
    fn on_open(&mut self, out: &mut Outbox) {
        if self.options.new.prompt.is_some() {
            self.is_owing = true;
            self.start(out);
        }
    }

    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let read = match std::str::from_utf8(line) {
            Ok(text) => lines::read(text, self.options.replays, self.renderer.speaks_claude()),
            Err(_) => {
                Err(UnreadableLine { why: "the line is not UTF-8".to_owned(), is_prompt: false })
            }
        };
        match read {
            Ok(said) => self.take(said, line.len(), out),
            Err(UnreadableLine { why, is_prompt: true }) => self.refuse(&why, out),
            Err(UnreadableLine { why, is_prompt: false }) => {
                control::fail(&control::id(line), &why, out);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.stage == Stage::Starting && self.early.len() >= EARLY_LINES
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        let message = format!("a line of {bytes} bytes is too long; nothing of it was accepted");
        control::fail("", &message, out);
    }

    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox) {
        match (self.calls.remove(&call), reply) {
            (Some(PendingCall::Start), reply) => self.started(reply, out),
            (Some(PendingCall::Control(control)), reply) => self.replied(control, reply, out),
            (Some(PendingCall::Prompt(Some(message))), Ok(reply)) => {
                self.replay(message, reply, out);
            }
            (Some(PendingCall::Prompt(_)), Err(error)) => self.refuse(&error.message, out),
            (Some(PendingCall::Inquiry(of)), reply) => self.learned(of, reply, out),
            (Some(PendingCall::Mode), Err(error)) => {
                let Stage::Running(session) = &self.stage else { return };
                let why = format!("failed to change the mode: {}", error.message);
                self.renderer.warn(session.as_str(), &why, &mut |line| out.send(line));
            }
            (Some(PendingCall::Settle(id)), Err(error)) => self.not_settled(&id, &error, out),
            (
                Some(PendingCall::Prompt(None) | PendingCall::Mode | PendingCall::Settle(_)),
                Ok(_),
            )
            | (None, _) => {}
        }
    }

    fn on_event(&mut self, _session: &SessionId, event: &str, out: &mut Outbox) {
        if let Ok(event) = Event::from_json(event) {
            self.event(&event, out);
        }
    }

    fn on_pause(&mut self, _session: &SessionId, out: &mut Outbox) {
        self.put_questions(out);
    }

    fn on_end(&mut self, _session: &SessionId, out: &mut Outbox) {
        self.stage = Stage::Ended;
        let is_error = self.renderer.last_is_error().unwrap_or(self.is_owing);
        out.close(u8::from(is_error));
    }

    fn on_close(&mut self, out: &mut Outbox) {
        if self.stage != Stage::Waiting {
            return;
        }
        if !self.early.is_empty() {
            return self.start(out);
        }
        self.stage = Stage::Ended;
        out.close(u8::from(self.renderer.last_is_error() == Some(true)));
    }
}

impl ClaudeFront {
    /// Puts the open requests to the client.
    fn put_questions(&mut self, out: &mut Outbox) {
        for (id, line, shown) in std::mem::take(&mut self.raised) {
            out.send(line);
            self.shown.insert(id, shown);
        }
    }

    /// Repeats a message to the client, with the id under which it was accepted.
    fn replay(&mut self, message: Json<'static>, reply: GatewayReply, out: &mut Outbox) {
        let Stage::Running(session) = &self.stage else { return };
        let GatewayReply::Done(taken) = reply else { return };
        let Ok(taken) = taken.read::<PromptResult>() else { return };
        out.send_json(&BTreeMap::from([
            ("type", Json::of(&"user")),
            ("message", message),
            ("parent_tool_use_id", Json::trusted("null")),
            ("session_id", Json::of(session)),
            ("uuid", Json::of(&taken.message_id)),
            ("isReplay", Json::of(&true)),
        ]));
    }
}
