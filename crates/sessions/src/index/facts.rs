//! What a session's events say that is worth counting or finding. Text that comes in pieces is put
//! together first, so that a word that was cut is found.

use std::collections::{BTreeMap, BTreeSet};

use agentwire_protocol::event::{RequestKind, Status, ToolStarted};
use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{AgentType, Event, EventKind, Json, Text, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock;

/// A longer text is stored in pieces, cut between words where possible.
const PIECE: usize = 16 * 1024;

/// How many texts may be unfinished at once; the oldest are stored as they are.
const OPEN_LIMIT: usize = 64;

/// How many requests of a session are followed at once.
const REQUESTS_LIMIT: usize = 1024;

/// The arguments of a call that are texts to find: what runs, and where.
const ARGUMENTS: [&str; 12] = [
    "command",
    "cmd",
    "script",
    "path",
    "file_path",
    "filePath",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "description",
    "cwd",
];

/// What is known of a session from the events so far, as far as later events need it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Follower {
    pub(super) agent: Option<AgentType>,
    pub(super) directory: Option<String>,
    model: Option<String>,
    /// Tool calls of the running turn.
    calls: u64,
    /// How long it has waited for people, in milliseconds.
    waited: u64,
    /// The open requests to people, and since when there are any, in milliseconds.
    asked: BTreeSet<String>,
    since: u64,
    /// Texts whose end has not come yet, by the agent, the type and the block.
    open: BTreeMap<String, Piece>,
}

/// A text, or the part of it that came so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) kind: String,
    /// The number of the event in which it starts.
    pub(super) seq: u64,
    pub(super) time: String,
    pub(super) text: String,
}

/// A turn that ended, or the part of one model in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) seq: u64,
    pub(super) part: u64,
    /// In milliseconds since 1970.
    pub(super) ended: u64,
    pub(super) model: Option<String>,
    pub(super) usage: TokenUsage,
    pub(super) cost: Option<f64>,
    pub(super) turns: u64,
    pub(super) calls: u64,
    pub(super) waited: u64,
}

/// What some events add.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) texts: Vec<Piece>,
    pub(super) turns: Vec<Turn>,
}

impl Follower {
    pub(super) fn read(&mut self, event: &Event<'_>, facts: &mut Facts) {
        let at = Place { seq: event.seq, time: &event.timestamp, agent: &event.agent_id };
        match &event.kind {
            EventKind::SessionStarted(started) => {
                self.agent = Some(started.agent_type);
                self.model = started.config.model.clone().or(self.model.take());
                let directory = started.config.working_directory.clone();
                self.directory = directory.or(self.directory.take());
                if let Some(info) = &started.info {
                    self.model = info.model.as_ref().map(Text::to_string).or(self.model.take());
                }
            }
            EventKind::TextChunk(chunk) => {
                let block = chunk.block_id.as_ref();
                self.chunk(at, "textChunk", block, &chunk.content, chunk.is_complete, facts);
            }
            EventKind::ThinkingChunk(chunk) => {
                let block = chunk.block_id.as_ref();
                self.chunk(at, "thinkingChunk", block, &chunk.content, chunk.is_complete, facts);
            }
            EventKind::TurnStarted(turn) => {
                (self.calls, self.waited) = (0, 0);
                if let Some(prompt) = &turn.prompt {
                    facts.add(at, "turnStarted", &prompt.decode());
                }
            }
            EventKind::ToolStarted(tool) => {
                self.calls += 1;
                facts.add(at, "toolStarted", &tool_text(tool));
            }
            EventKind::FileChanged(file) => {
                let moved = file.moved_to.as_ref().map(Text::decode).unwrap_or_default();
                facts.add(at, "fileChanged", &format!("{}\n{moved}", file.file_path.decode()));
            }
            EventKind::TurnCompleted(turn) => {
                self.turn_ended(at, turn.usage, turn.cost_usd, &turn.models, facts);
            }
            EventKind::TurnFailed(turn) => {
                let usage = turn.usage.unwrap_or_default();
                self.turn_ended(at, usage, turn.cost_usd, &turn.models, facts);
            }
            EventKind::StatusChanged(status) => {
                if let Some(model) = status.info.as_ref().and_then(|info| info.model.as_ref()) {
                    self.model = Some(model.to_string());
                }
                if let (Status::Model, Some(model)) = (status.status, &status.message) {
                    self.model = Some(model.to_string());
                }
            }
            EventKind::RequestRaised(request) => {
                let to_people =
                    matches!(request.kind, RequestKind::Permission | RequestKind::Question);
                if to_people && self.asked.len() < REQUESTS_LIMIT {
                    if self.asked.is_empty() {
                        self.since = at.milliseconds();
                    }
                    self.asked.insert(request.request_id.to_string());
                }
            }
            EventKind::RequestSettled(request) => {
                let was_asked = self.asked.remove(&*request.request_id.decode());
                if was_asked && self.asked.is_empty() {
                    self.waited += at.milliseconds().saturating_sub(self.since);
                }
            }
            EventKind::SessionEnded(_) => {
                self.asked.clear();
                self.close_all(facts);
            }
            _ => {}
        }
    }

    /// A piece of a text.
    fn chunk(
        &mut self,
        at: Place<'_>,
        kind: &str,
        block: Option<&Text<'_>>,
        content: &Text<'_>,
        is_complete: bool,
        facts: &mut Facts,
    ) {
        let block = block.map(Text::decode).unwrap_or_default();
        let key = format!("{}\n{kind}\n{block}", at.agent.decode());
        let open = self.open.entry(key.clone()).or_insert_with(|| Piece {
            kind: kind.to_owned(),
            seq: at.seq,
            time: at.time.to_owned(),
            text: String::new(),
        });
        open.text.push_str(&content.decode());
        while open.text.len() > PIECE {
            let rest = open.text.split_off(cut(&open.text));
            let next = Piece { text: rest, seq: at.seq, time: at.time.to_owned(), ..open.clone() };
            facts.push(std::mem::replace(open, next));
        }
        if is_complete {
            self.open.remove(&key).into_iter().for_each(|piece| facts.push(piece));
        } else if self.open.len() > OPEN_LIMIT {
            self.close_all(facts);
        }
    }

    fn close_all(&mut self, facts: &mut Facts) {
        std::mem::take(&mut self.open).into_values().for_each(|piece| facts.push(piece));
    }

    fn turn_ended(
        &mut self,
        at: Place<'_>,
        usage: TokenUsage,
        cost: Option<f64>,
        models: &[ModelUsage],
        facts: &mut Facts,
    ) {
        self.close_all(facts);
        let ended = at.milliseconds();
        if !self.asked.is_empty() {
            self.waited += ended.saturating_sub(std::mem::replace(&mut self.since, ended));
        }
        let (calls, waited) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.waited));
        let whole = Turn {
            seq: at.seq,
            part: 0,
            ended,
            model: self.model.clone(),
            usage,
            cost,
            turns: 1,
            calls,
            waited,
        };
        // Several models share a turn: the first has its turn and its calls.
        let has_costs = models.iter().any(|model| model.cost_usd.is_some());
        match models {
            [] => facts.turns.push(whole),
            models => facts.turns.extend((0..).zip(models).map(|(part, model)| Turn {
                part,
                model: Some(model.model.clone()),
                usage: model.usage,
                cost: if has_costs { model.cost_usd } else { cost.filter(|_| part == 0) },
                turns: u64::from(part == 0),
                calls: if part == 0 { calls } else { 0 },
                waited: if part == 0 { waited } else { 0 },
                ..whole
            })),
        }
    }
}

/// Which event something comes from.
#[derive(Clone, Copy)]
struct Place<'a> {
    seq: u64,
    time: &'a str,
    agent: &'a Text<'a>,
}

impl Place<'_> {
    fn milliseconds(&self) -> u64 {
        clock::nanoseconds(self.time).unwrap_or(0) / 1_000_000
    }
}

impl Facts {
    fn add(&mut self, at: Place<'_>, kind: &str, text: &str) {
        let (seq, time) = (at.seq, at.time);
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(cut(rest));
            let (kind, time, text) = (kind.to_owned(), time.to_owned(), piece.to_owned());
            self.push(Piece { kind, seq, time, text });
            rest = more;
        }
    }

    fn push(&mut self, piece: Piece) {
        if piece.text.contains(char::is_alphanumeric) {
            self.texts.push(piece);
        }
    }
}

/// Where to end a piece of this text: at its end, or between two words.
fn cut(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let most = text.floor_char_boundary(PIECE);
    let space = text.get(..most).and_then(|piece| piece.rfind(char::is_whitespace));
    space.filter(|space| *space > 0).unwrap_or(most)
}

/// The title of a call, its tool, what it runs and where.
fn tool_text(tool: &ToolStarted<'_>) -> String {
    let mut text = tool.tool_name.to_string();
    if let Some(title) = tool.title.as_ref().filter(|title| **title != tool.tool_name) {
        text.push('\n');
        text.push_str(&title.decode());
    }
    let arguments = tool.arguments.as_ref().and_then(|json: &Json<'_>| json.read::<Value>().ok());
    for name in ARGUMENTS {
        let value = arguments.as_ref().and_then(|arguments| arguments.get(name));
        match value {
            Some(Value::String(value)) => {
                text.push('\n');
                text.push_str(value);
            }
            Some(Value::Array(words)) => {
                text.push('\n');
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                text.push_str(&words.join(" "));
            }
            Some(_) | None => {}
        }
    }
    text
}
