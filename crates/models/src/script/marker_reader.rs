//! Reads the words, numbers and JSON of one marker.

use std::str::FromStr;

use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a marker from left to right, up to and including its `]]`.
pub(super) struct MarkerReader<'text> {
    rest: &'text str,
}

impl<'text> MarkerReader<'text> {
    /// Starts after `[[`.
    pub(super) fn new(rest: &'text str) -> Self {
        Self { rest }
    }

    pub(super) fn rest(&self) -> &'text str {
        self.rest
    }

    /// The step's name.
    pub(super) fn name(&mut self) -> &'text str {
        self.split(|letter| !letter.is_ascii_lowercase())
    }

    /// The next word of the marker.
    pub(super) fn word(&mut self) -> Option<&'text str> {
        self.skip_blanks();
        let end = self.rest.find("]]").unwrap_or(self.rest.len());
        let word = self.rest.get(..end)?.split(char::is_whitespace).next()?;
        self.rest = self.rest.get(word.len()..)?;
        (!word.is_empty()).then_some(word)
    }

    /// Consumes the next word if it is this one.
    pub(super) fn consume(&mut self, word: &str) -> bool {
        let before = self.rest;
        let taken = self.word() == Some(word);
        if !taken {
            self.rest = before;
        }
        taken
    }

    pub(super) fn number<T: FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.word().ok_or_else(|| format!("a number is missing: {what}"))?;
        word.parse().map_err(|_| format!("`{word}` is not a valid number: {what}"))
    }

    pub(super) fn number_or<T: FromStr>(&mut self, what: &str, other: T) -> Result<T, String> {
        self.skip_blanks();
        if self.rest.starts_with("]]") { Ok(other) } else { self.number(what) }
    }

    /// `TIMES n`, if it is next.
    pub(super) fn times(&mut self) -> Result<Option<u32>, String> {
        if self.consume("TIMES") { self.number("how many attempts").map(Some) } else { Ok(None) }
    }

    /// An error type, if it is next: a word with an underscore, or all in capitals.
    pub(super) fn kind(&mut self) -> Option<String> {
        let before = self.rest;
        let kind = self.word().filter(|word| {
            let capitals = word.len() > 1 && !word.contains(|letter: char| !letter.is_uppercase());
            *word != "TIMES" && (word.contains('_') || capitals)
        });
        if kind.is_none() {
            self.rest = before;
        }
        kind.map(str::to_owned)
    }

    /// A JSON value, or `{}` if there is none. It ends where the JSON ends, not at the next `]]`.
    pub(super) fn json(&mut self) -> Result<Box<RawValue>, String> {
        self.skip_blanks();
        if self.rest.starts_with("]]") || self.rest.starts_with(";;") {
            return serde_json::from_str("{}").map_err(|error| error.to_string());
        }
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
        let value = match values.next() {
            Some(Ok(value)) => value.to_owned(),
            Some(Err(error)) => return Err(format!("the tool's input is not JSON: {error}")),
            None => return Err("the marker does not end: `]]` is missing".to_owned()),
        };
        self.rest = self.rest.get(values.byte_offset()..).unwrap_or_default();
        // A raw value may contain invalid text, such as half a surrogate pair.
        serde_json::from_str::<Value>(value.get())
            .map_err(|error| format!("the tool's input is not JSON: {error}"))?;
        Ok(value)
    }

    /// Everything up to `]]`, except one blank at the start, with `\n` and `\]` replaced.
    pub(super) fn text(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let start = self.rest.strip_prefix(char::is_whitespace).unwrap_or(self.rest);
        let mut letters = start.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some('n') => text.push('\n'),
                    Some(escaped @ ('\\' | ']' | '[')) => text.push(escaped),
                    Some(other) => text.extend(['\\', other]),
                    None => text.push('\\'),
                },
                // In `]]]` the last two close the marker.
                ']' if letters.as_str().starts_with(']') && !letters.as_str().starts_with("]]") => {
                    letters.next();
                    self.rest = letters.as_str();
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        Err("the marker does not end: `]]` is missing".to_owned())
    }

    pub(super) fn close(&mut self) -> Result<(), String> {
        self.skip_blanks();
        if let Some(rest) = self.rest.strip_prefix("]]") {
            self.rest = rest;
            return Ok(());
        }
        match self.word() {
            Some(word) => Err(format!("unexpected `{word}`")),
            None => Err("the marker does not end: `]]` is missing".to_owned()),
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn split(&mut self, end: impl Fn(char) -> bool) -> &'text str {
        let end = self.rest.find(end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
}
