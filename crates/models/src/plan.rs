//! What a response will be, before an API puts it into its words.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::usage::Usage;

/// A response of the model.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Unlike that of any other response, also of servers before; letters and digits.
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) end: End,
    pub(crate) usage: Usage,
    /// Headers that the script asks for.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Another attempt goes differently.
    pub(crate) passing: bool,
}

/// A part of a response.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Thinking(Deltas),
    Text(Deltas),
    Tool(Call),
    /// An event that is not what the API says it is.
    Garbage,
}

/// A text in the pieces in which it is streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deltas {
    pub(crate) pieces: Vec<String>,
    /// Before each piece.
    pub(crate) pause: Duration,
    /// The stream breaks within this block: it is not closed.
    pub(crate) open: bool,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Unique among all calls; letters and digits.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: ToolKind,
    /// As the script has it, byte for byte.
    pub(crate) input: Box<RawValue>,
    /// Before each piece in which the input is streamed.
    pub(crate) pause: Duration,
}

/// What a tool takes, and who runs it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum ToolKind {
    /// JSON; the program runs it.
    #[default]
    Function,
    /// A text, which a script has as a JSON string; the program runs it.
    Freeform,
    /// Fields of a part of its own; the program runs it.
    Part,
    /// Likewise, but the API runs it, so that a call does not end the response.
    Hosted,
}

/// How a response ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Stop(Stop),
    /// Nothing more comes, until the client leaves.
    Hang,
    /// The connection is cut.
    Cut,
    /// An error: the answer itself if there are no blocks, else an event in the stream.
    Fail(Failure),
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// It had said all.
    End,
    /// It called tools.
    Tools,
    /// It ran into its limit.
    MaxTokens,
    /// It would not.
    Refusal,
    /// Any other reason, in the API's own word.
    Other(String),
}

/// An error of the API.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// In the API's own word; else what the API says for the status.
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
}

impl Plan {
    /// A response that says nothing.
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

    /// Pieces that together are the text: words, and of a long text several at once.
    pub(crate) fn words(text: &str) -> Self {
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

impl Call {
    /// The input as a value.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.input.get()).unwrap_or_default()
    }

    /// The input's text in the pieces in which it is streamed.
    pub(crate) fn pieces(&self) -> Vec<String> {
        pieces(self.input.get())
    }
}

/// A text that is no prose in the pieces in which it is streamed.
pub(crate) fn pieces(text: &str) -> Vec<String> {
    const CHARACTERS: usize = 16;
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(CHARACTERS).map(|piece| piece.iter().collect()).collect()
}
