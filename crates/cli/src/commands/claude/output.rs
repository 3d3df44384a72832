//! Writes messages, which are lines of JSON, to stdout as `--output-format` says.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use serde::Deserialize;

use super::argv::{Invocation, OutputFormat};

#[derive(Debug)]
pub(crate) struct Output<W> {
    format: Format,
    max_turns: Option<u32>,
    max_budget_usd: Option<f64>,
    writer: W,
}

#[derive(Debug)]
enum Format {
    /// The text of the last result.
    Text(Option<String>),
    Json(Option<String>),
    Messages {
        first: bool,
    },
}

/// The fields that the formats need.
#[derive(Deserialize)]
struct Message {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: String,
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    terminal_reason: String,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(invocation: &Invocation, writer: W) -> Self {
        let format = match (invocation.output, invocation.verbose) {
            (OutputFormat::Text, _) => Format::Text(None),
            (OutputFormat::Json, false) => Format::Json(None),
            // Not reached: a stream is written as it arrives.
            (OutputFormat::Json | OutputFormat::StreamJson, _) => Format::Messages { first: true },
        };
        let config = &invocation.config;
        let (max_turns, max_budget_usd) = (config.max_turns, config.max_budget_usd);
        Self { format, max_turns, max_budget_usd, writer }
    }

    /// Takes a message: one line without its end.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        // Only results are parsed. Most lines are not results, and a substring search shows that.
        let message = match line.contains("\"result\"") {
            true => serde_json::from_str::<Message>(line).ok(),
            false => None,
        };
        let result = message.filter(|message| message.kind == "result");
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
        }
        Ok(())
    }

    /// Writes what was held back until the end. Whether its last line has no newline.
    pub(crate) fn finish(mut self) -> io::Result<bool> {
        match &self.format {
            Format::Text(Some(text)) => self.writer.write_all(text.as_bytes())?,
            Format::Json(Some(line)) => writeln!(self.writer, "{line}")?,
            Format::Messages { first: false } => self.writer.write_all(b"]\n")?,
            Format::Messages { first: true } => self.writer.write_all(b"[]\n")?,
            Format::Text(None) | Format::Json(None) => {}
        }
        self.writer.flush()?;
        Ok(matches!(&self.format, Format::Text(Some(text)) if !text.ends_with('\n')))
    }
}

/// The result as text. The real program adds a newline to the text of a success only.
fn text_of(result: Message, max_turns: Option<u32>, max_budget_usd: Option<f64>) -> String {
    match (result.subtype.as_str(), max_turns, max_budget_usd) {
        ("error_max_turns", Some(turns), _) => format!("Error: Reached max turns ({turns})"),
        ("error_max_budget_usd", _, Some(budget)) => {
            format!("Error: Exceeded USD budget ({budget})")
        }
        ("error_max_structured_output_retries", _, _) => {
            "Error: Failed to provide valid structured output after maximum retries".to_owned()
        }
        // The model failed; print the reason, as the real program does.
        ("error_during_execution", _, _) if result.terminal_reason == "api_error" => {
            format!("{}\n", result.errors.join("\n").trim_end_matches('\n'))
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
