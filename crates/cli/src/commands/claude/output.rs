//! What goes to stdout, by `--output-format`. It is given every message as a line of JSON.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use serde::Deserialize;

use super::argv::{Invocation, OutputFormat};

/// Writes the messages of a run.
#[derive(Debug)]
pub(crate) struct Output<W> {
    format: Format,
    max_turns: Option<u32>,
    max_budget_usd: Option<f64>,
    /// Whether the last result was an error; none as long as there is no result.
    failed: Option<bool>,
    writer: W,
}

#[derive(Debug)]
enum Format {
    /// The text of the last result.
    Text(Option<String>),
    /// The last result.
    Json(Option<String>),
    /// All messages, in one array.
    Messages {
        first: bool,
    },
    Lines,
}

/// What the formats must know of a message.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    is_error: bool,
    result: Option<String>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(invocation: &Invocation, writer: W) -> Self {
        let format = match (invocation.output, invocation.verbose) {
            (OutputFormat::Text, _) => Format::Text(None),
            (OutputFormat::Json, false) => Format::Json(None),
            (OutputFormat::Json, true) => Format::Messages { first: true },
            (OutputFormat::StreamJson, _) => Format::Lines,
        };
        let config = &invocation.config;
        let (max_turns, max_budget_usd) = (config.max_turns, config.max_budget_usd);
        Self { format, max_turns, max_budget_usd, failed: None, writer }
    }

    /// A message, as one line without its end.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        // Only a result is read. Most lines are none, and need not be parsed to know it.
        let message = match line.contains("\"result\"") {
            true => serde_json::from_str::<Message>(line).ok(),
            false => None,
        };
        let result = message.filter(|message| message.kind == "result");
        if let Some(result) = &result {
            self.failed = Some(result.is_error || result.subtype.starts_with("error"));
        }
        match (&mut self.format, result) {
            (Format::Text(text), Some(result)) => {
                *text = Some(text_of(result, self.max_turns, self.max_budget_usd));
            }
            (Format::Json(last), Some(_)) => *last = Some(line.to_owned()),
            (Format::Text(_) | Format::Json(_), None) => {}
            (Format::Messages { first }, _) => {
                self.writer.write_all(if *first { b"[" } else { b"," })?;
                *first = false;
                self.writer.write_all(line.as_bytes())?;
            }
            (Format::Lines, _) => {
                self.writer.write_all(line.as_bytes())?;
                self.writer.write_all(b"\n")?;
                self.writer.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what waited for the end, and gives the exit code: 0 after a good last result, else 1.
    pub(crate) fn finish(mut self) -> io::Result<u8> {
        match &self.format {
            Format::Text(Some(text)) => self.writer.write_all(text.as_bytes())?,
            Format::Json(Some(line)) => writeln!(self.writer, "{line}")?,
            Format::Messages { first: false } => self.writer.write_all(b"]\n")?,
            Format::Messages { first: true } => self.writer.write_all(b"[]\n")?,
            Format::Text(None) | Format::Json(None) | Format::Lines => {}
        }
        self.writer.flush()?;
        Ok(self.code())
    }

    /// Idle streams end well; a run that had to answer and has no result does not.
    fn code(&self) -> u8 {
        let answers_once = match self.format {
            Format::Text(_) | Format::Json(_) | Format::Messages { .. } => true,
            Format::Lines => false,
        };
        u8::from(self.failed.unwrap_or(answers_once))
    }
}

/// The result as text. The program ends only the text of a success with a newline.
fn text_of(result: Message, max_turns: Option<u32>, max_budget_usd: Option<f64>) -> String {
    match (result.subtype.as_str(), max_turns, max_budget_usd) {
        ("error_max_turns", Some(turns), _) => format!("Error: Reached max turns ({turns})"),
        ("error_max_budget_usd", _, Some(budget)) => {
            format!("Error: Exceeded USD budget ({budget})")
        }
        ("error_max_structured_output_retries", _, _) => {
            "Error: Failed to provide valid structured output after maximum retries".to_owned()
        }
        (subtype, _, _) if subtype.starts_with("error") => "Execution error".to_owned(),
        _ => {
            let mut text = result.result.unwrap_or_default();
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text
        }
    }
}
