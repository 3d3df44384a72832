//! A response before an API writes it in its own format.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::usage::Usage;

#[derive(Clone, Debug)]
pub(crate) struct ResponsePlan {
    /// Unique, also across servers; letters and digits.
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) end: End,
    pub(crate) usage: Usage,
    /// Headers that the script sets.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The fault of this attempt is not in all attempts.
    pub(crate) passing: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    Thinking(Deltas),
    Text(Deltas),
    Tool(ToolCall),
    /// An event that is not valid JSON.
    Garbage,
}

/// A text, split into the pieces that are streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deltas {
    pub(crate) pieces: Vec<String>,
    /// The pause before each piece.
    pub(crate) pause: Duration,
    /// The stream breaks inside this block, so it is not closed.
    pub(crate) open: bool,
}

/// A tool call.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    /// Unique among all calls; letters and digits.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
    /// Byte for byte as in the script.
    pub(crate) input: Box<RawValue>,
    /// The pause before each piece of the input.
    pub(crate) pause: Duration,
}

/// What input a tool takes, and who runs it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ToolKind {
    /// JSON input; the program runs it.
    #[default]
    Function,
    /// Text input, which a script writes as a JSON string; the program runs it.
    Freeform,
    /// The fields of its own item; the program runs it.
    Part,
    /// The fields of its own item; the API runs it, so a call does not end the response.
    Hosted,
}

#[derive(Clone, Debug)]
pub(crate) enum End {
    Stop(Stop),
    /// Nothing more is sent until the client disconnects.
    Hang,
    /// The connection is cut.
    Cut,
    /// An error: the whole answer if there are no blocks, otherwise an event in the stream.
    Fail(Failure),
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// It was finished.
    End,
    /// It called tools.
    Tools,
    /// It reached its token limit.
    MaxTokens,
    /// It refused.
    Refusal,
    /// Another reason, in the API's own format.
    Other(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// The API's error type; by default the one for the status.
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
    /// In seconds.
    pub(crate) retry_after: Option<u64>,
}

impl ResponsePlan {
    pub(crate) fn empty(id: &str, model: &str) -> Self {
        Self {
            id: id.to_owned(),
            model: model.to_owned(),
            blocks: Vec::new(),
            end: End::Stop(Stop::End),
            usage: Usage::default(),
            headers: Vec::new(),
            passing: false,
        }
    }

    pub(crate) fn thinking_pieces(&self) -> u64 {
        let pieces = self.blocks.iter().map(|block| match block {
            Block::Thinking(deltas) => deltas.pieces.len() as u64,
            _ => 0,
        });
        pieces.sum()
    }
}

impl Failure {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, kind: None, message: message.into(), retry_after: None }
    }
}

impl Deltas {
    pub(crate) fn new(pieces: Vec<String>) -> Self {
        Self { pieces, ..Self::default() }
    }

    pub(crate) fn after(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Splits a text into words; a long text into groups of words.
    pub(crate) fn split_words(text: &str) -> Self {
        const MOST: usize = 10_000;
        let least = text.len() / MOST;
        let mut pieces = vec![String::new()];
        for word in text.split_inclusive(char::is_whitespace) {
            match pieces.last_mut() {
                Some(piece) if piece.len() <= least => piece.push_str(word),
                _ => pieces.push(word.to_owned()),
            }
        }
        Self::new(pieces)
    }

    pub(crate) fn text(&self) -> String {
        self.pieces.concat()
    }
}

impl ToolCall {
    /// The parsed input.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.input.get()).unwrap_or_default()
    }

    /// The input's text, split into the pieces that are streamed.
    pub(crate) fn pieces(&self) -> Vec<String> {
        pieces(self.input.get())
    }
}

/// Splits a text that is not prose into pieces of equal length.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    const CHARACTERS: usize = 16;
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(CHARACTERS).map(|piece| piece.iter().collect()).collect()
}
