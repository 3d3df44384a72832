//! The path of a line: records it byte for byte, has it translated, and produces its events.
//!
//! A translator can only emit kinds. The tape alone attaches the exact line to the first event that the
//! line produces, and turns a line that produces none into an `other` event; so no line can be lost,
//! whatever a translator does.

mod ending;

use std::borrow::Cow;
use std::collections::BTreeSet;

use agentwire_protocol::event::{
    AgentInfo, ErrorEvent, Other, RequestSettled, SessionEndReason, SessionEnded, SessionStarted,
    Status, StatusChanged, ToolKind,
};
use agentwire_protocol::json::{has_separator, on_one_line};
use agentwire_protocol::{
    AgentType, Call, Command, Event, EventKind, GatewayError, Json, Lines, MAIN_AGENT, Native,
    NativeLine, SessionConfig, Stream, Text,
};

use crate::agent::{AgentDialect, AgentTranslator, Exit, Setup};
use crate::json::{Fault, Scanner, repair, residue};

pub use ending::{Emitted, Ending, Recording};

/// The longest line that is stored whole.
pub const LINE_LIMIT: usize = 64 << 20;

/// An event before the session numbers it.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft<'a> {
    pub agent: Agent<'a>,
    pub kind: EventKind<'a>,
    /// The line that it carries.
    pub native: Option<Native<'a>>,
}

/// What the session adds to an event.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'s> {
    /// Unique across all sessions.
    pub id: &'s str,
    pub session_id: &'s str,
    /// Without gaps, from 1.
    pub seq: u64,
    /// RFC 3339 in UTC.
    pub timestamp: &'s str,
}

impl Draft<'_> {
    /// The event of this draft. It is lent to `then`, so nothing is copied to build it.
    pub fn stamp<T>(self, stamp: Stamp<'_>, then: impl FnOnce(Event<'_>) -> T) -> T {
        then(Event {
            id: Cow::Borrowed(stamp.id),
            session_id: Cow::Borrowed(stamp.session_id),
            seq: stamp.seq,
            timestamp: Cow::Borrowed(stamp.timestamp),
            kind: self.kind,
            agent_id: self.agent.id,
            parent_agent_id: self.agent.parent,
            native: Lines::Lent(self.native.as_slice()),
        })
    }
}

/// The agent that an event belongs to and, for a subagent, the agent that spawned it.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent<'a> {
    /// `main`, or the id of the tool call that spawned the subagent.
    pub id: Text<'a>,
    /// The agent that spawned it.
    pub parent: Option<Text<'a>>,
}

impl<'a> Agent<'a> {
    /// The agent that the session started.
    pub const fn main() -> Agent<'static> {
        Agent { id: Text::fixed(MAIN_AGENT), parent: None }
    }

    pub fn sub(id: impl Into<Text<'a>>, parent: impl Into<Text<'a>>) -> Self {
        Self { id: id.into(), parent: Some(parent.into()) }
    }
}

/// What a translator wants done to its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write this line, plus `\n`, to its stdin.
    Write(String),
    CloseStdin,
    Signal(Signal),
    /// Let the policy judge this call. The answer settles its request with a hook's output.
    Judge(Box<ScreenedCall>),
}

/// A tool call that the agent shows to the gateway's own hook before it makes the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenedCall {
    /// The id by which it is settled. Clients do not see this request.
    pub request_id: String,
    pub tool_name: Option<String>,
    pub tool_use_id: Option<String>,
    /// The call's input as JSON.
    pub input: Option<String>,
    /// Where the agent is.
    pub directory: Option<String>,
    /// The agent denies what it would have to ask about, so an allow by a rule must be explicit.
    pub is_refusing: bool,
}

/// A signal to a process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop the current work.
    Interrupt,
    /// End.
    Terminate,
}

/// A tool call that runs although the agent did not ask for it, or asked for something else.
#[derive(Clone, Debug)]
pub struct UnaskedCall {
    /// The agent's id of the call.
    pub tool_id: String,
    /// `None` if only its title is known.
    pub tool_name: Option<String>,
    /// The most dangerous kind reported for it.
    pub kind: ToolKind,
    /// The input, as far as it is known.
    pub input: Option<Json<'static>>,
    pub title: Option<String>,
    pub server: Option<String>,
}

/// Receives the output of a tape.
pub trait Sink {
    fn event(&mut self, draft: Draft<'_>);

    fn action(&mut self, _action: Action) {}

    fn reply(&mut self, _call: Call, _result: Result<Json<'static>, GatewayError>) {}

    /// A tool call runs that nobody was asked about.
    fn unasked(&mut self, _call: UnaskedCall) {}

    /// The output shows that a tool call has run, where no `toolCompleted` says so with certainty. Not
    /// `is_sure`: it ended with an error that may also be how the agent reports a denial.
    fn ran(&mut self, _tool_id: &str, _is_sure: bool) {}

    /// The agent does what the session must not allow and cannot be prevented from it: the session must
    /// end.
    fn broken(&mut self, _message: String) {}

    /// The line is done: what comes next belongs to another.
    fn line_end(&mut self) {}
}

impl<F: FnMut(Draft<'_>)> Sink for F {
    fn event(&mut self, draft: Draft<'_>) {
        self(draft);
    }
}

/// One session's tape: bytes of an agent in, events out.
pub struct Tape {
    dialect: &'static str,
    translator: Box<dyn AgentTranslator>,
    scanner: Scanner,
    session: Session,
    partial: Vec<u8>,
    /// The length of a line that grew too long to store.
    overlong: Option<u64>,
    limit: usize,
    track: Option<BTreeSet<String>>,
}

/// What the tape knows about the session as a whole.
struct Session {
    agent_type: AgentType,
    config: SessionConfig,
    recording: bool,
    started: bool,
    /// How a recording ends, as last reported.
    ending: Option<(SessionEndReason, Option<String>)>,
}

impl Tape {
    /// A tape of one recorded run: it starts with `sessionStarted`, and its end is the session's end.
    pub fn recording(dialect: &dyn AgentDialect) -> Self {
        Self::new(dialect, &Setup { recording: true, ..Setup::default() })
    }

    /// A tape of a session. Unless it is a recording, the tape does not report the session's start and end.
    pub fn new(dialect: &dyn AgentDialect, setup: &Setup) -> Self {
        Self {
            dialect: dialect.name(),
            translator: dialect.translator(setup),
            scanner: Scanner::new(),
            session: Session {
                agent_type: dialect.agent_type(),
                config: setup.config.clone(),
                recording: setup.recording,
                started: !setup.recording,
                ending: None,
            },
            partial: Vec::new(),
            overlong: None,
            limit: LINE_LIMIT,
            track: None,
        }
    }

    /// Stores lines whole up to this many bytes.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Records from now on which fields of the agent's lines are not read; see [`Self::residue`].
    pub fn track_residue(mut self) -> Self {
        self.track = Some(BTreeSet::new());
        self
    }

    /// The fields that were not read, each after the name of its message.
    pub fn residue(&self) -> impl Iterator<Item = &str> {
        self.track.iter().flatten().map(String::as_str)
    }

    /// Returns the residue and clears it: later fields are reported again.
    pub fn take_residue(&mut self) -> BTreeSet<String> {
        self.track.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The process has started.
    pub fn start(&mut self, sink: &mut dyn Sink) {
        self.translator.on_start(&mut Out::new(&mut self.session, sink, None));
    }

    /// Reads the next bytes of the agent's stdout, split anywhere.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn Sink) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() && self.overlong.is_none() && line.len() <= self.limit {
                self.line(line, sink);
            } else {
                self.keep(line);
                self.finish_line(false, sink);
            }
            sink.line_end();
        }
        self.keep(bytes);
    }

    /// How many bytes of an incomplete line are held.
    pub fn held(&self) -> usize {
        self.partial.len()
    }

    /// Takes the bytes of an incomplete line, for the caller to store elsewhere.
    pub fn take_held(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }

    /// Returns the bytes of such a line. The next bytes fed continue it.
    pub fn give_back(&mut self, line: Vec<u8>) {
        self.partial = line;
    }

    /// Counts bytes of a line that is too long to store. The next bytes fed continue it.
    pub fn skip(&mut self, bytes: u64) {
        self.partial = Vec::new();
        *self.overlong.get_or_insert(0) += bytes;
    }

    /// The output has ended: handles the rest of a line, then closes what is still open.
    pub fn end(&mut self, exit: Exit, sink: &mut dyn Sink) {
        if !self.partial.is_empty() || self.overlong.is_some() {
            self.finish_line(true, sink);
            sink.line_end();
        }
        let out = &mut Out::new(&mut self.session, sink, None);
        self.translator.on_exit(exit, out);
        out.finish();
    }

    /// Handles a client's command.
    pub fn command(
        &mut self,
        call: Call,
        command: &Command,
        sink: &mut dyn Sink,
    ) -> Result<(), GatewayError> {
        let out = &mut Out::new(&mut self.session, sink, None);
        self.translator.on_command(call, command, out)
    }

    /// Reads one whole line, without its line end.
    pub fn line(&mut self, line: &[u8], sink: &mut dyn Sink) {
        self.translate(line, false, sink);
    }

    fn keep(&mut self, bytes: &[u8]) {
        match &mut self.overlong {
            Some(length) => *length += bytes.len() as u64,
            None if self.partial.len() + bytes.len() > self.limit => {
                self.overlong = Some((self.partial.len() + bytes.len()) as u64);
                self.partial = Vec::new();
            }
            None => self.partial.extend_from_slice(bytes),
        }
    }

    fn finish_line(&mut self, unterminated: bool, sink: &mut dyn Sink) {
        if let Some(length) = self.overlong.take() {
            let out = &mut Out::new(&mut self.session, sink, None);
            out.emit(ErrorEvent {
                code: Some(Text::from("lineTooLong")),
                details: Some(Json::of(&serde_json::json!({ "bytes": length }))),
                ..ErrorEvent::new(format!("a line of {length} bytes is too long to keep"))
            });
            return;
        }
        let mut line = std::mem::take(&mut self.partial);
        self.translate(&line, unterminated, sink);
        if line.capacity() <= 1 << 20 {
            line.clear();
            self.partial = line;
        }
    }

    fn translate(&mut self, line: &[u8], unterminated: bool, sink: &mut dyn Sink) {
        let native = |line| Native {
            dialect: Cow::Borrowed(self.dialect),
            stream: Stream::Stdout,
            line,
            unterminated,
        };
        let Ok(text) = simdutf8::basic::from_utf8(line) else {
            let native = native(NativeLine::Bytes(Cow::Borrowed(line)));
            Out::new(&mut self.session, sink, Some(native)).keep("notUtf8");
            return;
        };
        let bare = bare(text);
        // The reading uses the line itself, or a copy that is repaired where our own lines require it; the
        // line is always stored as it is.
        let mended;
        let (document, exact) = match self.scanner.scan(bare) {
            Ok(document) if document.has_control_bytes() || has_separator(bare.as_bytes()) => {
                mended = on_one_line(bare).into_owned();
                match self.scanner.scan(&mended) {
                    Ok(document) => (document, false),
                    Err(_) => return self.keep_text(text, unterminated, sink),
                }
            }
            Ok(document) => (document, bare.len() == text.len()),
            Err(Fault::Loose) => {
                mended =
                    repair(bare).map(|text| on_one_line(&text).into_owned()).unwrap_or_default();
                match self.scanner.scan(&mended) {
                    Ok(document) => (document, false),
                    Err(_) => return self.keep_text(text, unterminated, sink),
                }
            }
            Err(Fault::Syntax) => return self.keep_text(text, unterminated, sink),
        };
        let native = native(if exact {
            NativeLine::Json(Json::trusted(text))
        } else {
            NativeLine::Text(Cow::Borrowed(text))
        });
        let out = &mut Out::new(&mut self.session, sink, Some(native));
        let message = document.root();
        if message.is_object() {
            self.translator.on_line(message, out);
        }
        if out.native.is_some() {
            let name =
                ["type", "method", "sessionUpdate"].into_iter().find_map(|name| message.read(name));
            out.emit(Other { name });
        }
        if let Some(track) = &mut self.track {
            let name =
                ["type", "method"].into_iter().find_map(|name| message.read::<Cow<'_, str>>(name));
            let name = name.as_deref().unwrap_or("-");
            track.extend(residue(document).into_iter().map(|path| format!("{name} {path}")));
        }
    }

    fn keep_text(&mut self, text: &str, unterminated: bool, sink: &mut dyn Sink) {
        let native = Native {
            dialect: Cow::Borrowed(self.dialect),
            stream: Stream::Stdout,
            line: NativeLine::Text(Cow::Borrowed(text)),
            unterminated,
        };
        let name = if text.trim().is_empty() { "blank" } else { "notJson" };
        Out::new(&mut self.session, sink, Some(native)).keep(name);
    }
}

/// A line without what may surround JSON.
pub(crate) fn bare(text: &str) -> &str {
    text.trim_start_matches('\u{FEFF}').trim_matches([' ', '\t', '\r'])
}

/// Where a translator puts the output of one line or command.
pub struct Out<'o> {
    session: &'o mut Session,
    sink: &'o mut dyn Sink,
    native: Option<Native<'o>>,
}

impl<'o> Out<'o> {
    fn new(session: &'o mut Session, sink: &'o mut dyn Sink, native: Option<Native<'o>>) -> Self {
        Self { session, sink, native }
    }

    /// Emits an event of the main agent.
    pub fn emit<'k>(&mut self, kind: impl Emitted<'k>) {
        self.put(&Agent::main(), kind);
    }

    pub fn emit_as<'k>(&mut self, agent: &Agent<'k>, kind: impl Emitted<'k>) {
        self.put(agent, kind);
    }

    /// A request of that agent was settled.
    pub fn settled<'k>(
        &mut self,
        agent: &Agent<'k>,
        id: &'k str,
        Ending { outcome, by }: Ending,
        reason: Option<Text<'k>>,
        updated_input: Option<Json<'k>>,
    ) {
        let request_id = Text::from(id);
        let client = None;
        self.put(agent, RequestSettled { request_id, outcome, by, client, reason, updated_input });
    }

    fn put<'k>(&mut self, agent: &Agent<'k>, kind: impl Into<EventKind<'k>>) {
        self.begin();
        let native = self.native.take();
        self.sink.event(Draft { agent: agent.clone(), kind: kind.into(), native });
    }

    /// The agent is ready and describes itself. The first time, this starts the session.
    pub fn ready(&mut self, info: AgentInfo<'_>) {
        if self.session.started {
            self.emit(StatusChanged::new(Status::Ready).info(info));
            return;
        }
        let mut config = self.session.config.shown();
        let known = |text: &Option<Text<'_>>| text.as_ref().map(Text::to_string);
        config.model = config.model.or(known(&info.model));
        config.working_directory = config.working_directory.or(known(&info.working_directory));
        self.start(config, Some(info));
    }

    /// Sets why the recording ends; the last reason wins. It is reported at the end of the recording. A
    /// live session ends by its own rules.
    pub fn end(&mut self, reason: SessionEndReason, error: Option<Text<'_>>) {
        self.session.ending = Some((reason, error.map(|error| error.to_string())));
    }

    /// `sessionEnded` is the last event of a recording.
    fn finish(&mut self) {
        if self.session.recording {
            let ending = self.session.ending.take().unwrap_or((SessionEndReason::Completed, None));
            self.put(
                &Agent::main(),
                SessionEnded { reason: ending.0, error: ending.1.map(Text::from) },
            );
        }
    }

    /// Whether this is one recorded run.
    pub fn is_recording(&self) -> bool {
        self.session.recording
    }

    /// The proof that outcomes need which only a recording can show.
    pub fn recording(&self) -> Option<Recording> {
        self.session.recording.then_some(Recording(()))
    }

    /// Writes a line to the agent's stdin: one JSON text. It stays one line, whatever a client put into it.
    pub fn write(&mut self, line: impl Into<String>) {
        let line = line.into();
        let line = match on_one_line(&line) {
            Cow::Borrowed(_) => line,
            Cow::Owned(line) => line,
        };
        self.sink.action(Action::Write(line));
    }

    pub fn act(&mut self, action: Action) {
        self.sink.action(action);
    }

    pub fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        self.sink.reply(call, result);
    }

    /// A tool call runs that nobody was asked about; see [`Sink::unasked`].
    pub fn unasked(&mut self, call: UnaskedCall) {
        self.sink.unasked(call);
    }

    /// A tool call has run; see [`Sink::ran`].
    pub fn ran(&mut self, tool_id: &str, is_sure: bool) {
        self.sink.ran(tool_id, is_sure);
    }

    /// The agent cannot be held to what the session promises; see [`Sink::broken`].
    pub fn broken(&mut self, message: String) {
        self.sink.broken(message);
    }

    /// The current line contains nothing that a unified event could carry.
    pub fn keep(&mut self, name: &str) {
        self.emit(Other::named(name));
    }

    /// Nothing comes before `sessionStarted`.
    fn begin(&mut self) {
        if !self.session.started {
            let config = self.session.config.shown();
            // The line belongs to the event that it produces, not to this one.
            let native = self.native.take();
            self.start(config, None);
            self.native = native;
        }
    }

    fn start(&mut self, config: SessionConfig, info: Option<AgentInfo<'_>>) {
        self.session.started = true;
        let agent_type = self.session.agent_type;
        self.put(&Agent::main(), SessionStarted { agent_type, config, info, forked_from: None });
    }
}
