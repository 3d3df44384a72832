//! Spans and their attributes.

use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{Event, Text, TokenUsage};
use sha2::{Digest as _, Sha256};

use super::attributes::usage;

/// The longest text in a span, in characters.
pub(super) const CONTENT: usize = 16 << 10;

/// The longest error message in a span, in characters.
pub(super) const WORDS: usize = 500;

/// A finished piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub(crate) trace: [u8; 16],
    pub(crate) id: [u8; 8],
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: String,
    /// Nanoseconds since 1970.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) events: Vec<SpanEvent>,
    /// Why it failed, if it did.
    pub(crate) error: Option<String>,
}

/// Something that happened during a span.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpanEvent {
    pub(crate) time: u64,
    pub(crate) name: &'static str,
    pub(crate) attributes: Vec<Attribute>,
}

pub(crate) type Attribute = (&'static str, Value);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Number(i64),
    Real(f64),
    List(Vec<String>),
}

impl Span {
    pub(crate) fn cost(&self) -> usize {
        let of = |(key, value): &Attribute| {
            key.len()
                + match value {
                    Value::Text(text) => text.len(),
                    Value::Number(_) | Value::Real(_) => 8,
                    Value::List(texts) => texts.iter().map(String::len).sum(),
                }
        };
        let events = self.events.iter().flat_map(|event| &event.attributes);
        size_of::<Self>()
            + self.name.len()
            + self.attributes.iter().chain(events).map(of).sum::<usize>()
            + (self.attributes.len() + 2 * self.events.len()) * size_of::<Attribute>()
    }

    pub(super) fn new(
        trace: [u8; 16],
        parent: Option<[u8; 8]>,
        event: &Event<'_>,
        start: u64,
        name: String,
    ) -> Self {
        Self {
            trace,
            id: digest("span", &event.id),
            parent,
            name,
            start,
            end: start,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    pub(super) fn put(&mut self, key: &'static str, value: Value) {
        self.attributes.push((key, value));
    }

    pub(super) fn text(&mut self, key: &'static str, text: &str) {
        self.put(key, Value::Text(text.to_owned()));
    }

    pub(super) fn maybe(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    /// What a turn used, and the model that it used first.
    pub(super) fn used(
        &mut self,
        used: Option<&TokenUsage>,
        dollars: Option<f64>,
        models: &[ModelUsage],
    ) {
        if let Some(used) = used {
            usage(used, &mut self.attributes);
        }
        if let Some(dollars) = dollars {
            self.put("agentwire.cost.usd", Value::Real(dollars));
        }
        self.model(models.first().map(|model| model.model.as_str()));
    }

    /// Sets the model that answered, unless it is already known.
    pub(super) fn model(&mut self, model: Option<&str>) {
        const KEY: &str = "gen_ai.response.model";
        if !self.attributes.iter().any(|(key, _)| *key == KEY) {
            self.maybe(KEY, model);
        }
    }

    pub(super) fn fail(&mut self, kind: &'static str, words: Option<&Text<'_>>) {
        self.text("error.type", kind);
        let words = words.map(|words| bounded(&words.decode(), WORDS));
        self.error = Some(words.unwrap_or_else(|| kind.to_owned()));
    }
}

pub(super) fn number_of(number: u64) -> Value {
    Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

pub(super) fn content(text: &str) -> Value {
    Value::Text(bounded(text, CONTENT))
}

pub(super) fn bounded(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// An id derived from the event that opens the span: every reader of the log computes the same one.
pub(super) fn digest<const N: usize>(what: &str, event: &str) -> [u8; N] {
    let digest = Sha256::digest(format!("{what}/{event}"));
    digest.first_chunk::<N>().copied().unwrap_or([1; N])
}
