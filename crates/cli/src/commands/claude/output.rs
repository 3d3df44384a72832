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
    writer: W,
}

#[derive(Debug)]
enum Format {
    /// The text of the last result.
    Text(Option<String>),
    /// The last result.
    Json(Option<String>),
    /// All messages, in one array.
    Messages { first: bool },
}

/// What the formats must know of a message.
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
            // A stream is written as it comes, and never asks here.
            (OutputFormat::Json | OutputFormat::StreamJson, _) => Format::Messages { first: true },
        };
        let config = &invocation.config;
        let (max_turns, max_budget_usd) = (config.max_turns, config.max_budget_usd);
        Self { format, max_turns, max_budget_usd, writer }
    }

    /// A message, as one line without its end.
    pub(crate) fn line(&mut self, line: &str) -> io::Result<()> {
        // Only a result is read. Most lines are none, and need not be parsed to know it.
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

    /// Writes what waited for the end.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match &self.format {
            Format::Text(Some(text)) => self.writer.write_all(text.as_bytes())?,
            Format::Json(Some(line)) => writeln!(self.writer, "{line}")?,
            Format::Messages { first: false } => self.writer.write_all(b"]\n")?,
            Format::Messages { first: true } => self.writer.write_all(b"[]\n")?,
            Format::Text(None) | Format::Json(None) => {}
        }
        self.writer.flush()
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
        // The model failed: say why, as the program does.
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
