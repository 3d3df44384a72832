//! The report: a table of programs, and what is new in each.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::residue::{Observed, Residue};
use super::scenarios::Column;

const HEAD: [&str; 6] = ["program", "pinned", "found", "scenarios", "new messages", "new fields"];

/// How many characters of an error to show.
const ERROR: usize = 300;

pub(super) struct Report {
    pub(super) rows: Vec<Row>,
}

/// The results of one program.
pub(super) struct Row {
    name: String,
    pinned: String,
    version: String,
    passed: usize,
    failed: BTreeMap<String, String>,
    new: Residue,
    examples: BTreeMap<String, String>,
}

impl Row {
    pub(super) fn new(column: Column, observed: Observed, known: &Residue) -> Self {
        let (passed, failed): (Vec<_>, Vec<_>) =
            column.scenarios.into_iter().partition(|(_, error)| error.is_none());
        let failed = failed.into_iter().map(|(name, error)| (name, error.unwrap_or_default()));
        Self {
            name: column.name,
            pinned: column.pinned,
            version: column.version,
            passed: passed.len(),
            failed: failed.collect(),
            new: observed.residue.beyond(known),
            examples: observed.examples,
        }
    }

    fn has_drift(&self) -> bool {
        !self.failed.is_empty() || self.new != Residue::default()
    }

    fn cells(&self) -> [String; 6] {
        let failed = self.failed.len();
        let scenarios = match failed {
            0 => format!("{} passed", self.passed),
            _ => format!("{} passed, {failed} failed", self.passed),
        };
        [
            self.name.clone(),
            self.pinned.clone(),
            self.version.clone(),
            scenarios,
            self.new.messages.len().to_string(),
            self.new.fields.len().to_string(),
        ]
    }

    /// What to look at: its type, its name, and details.
    fn findings(&self) -> impl Iterator<Item = (&'static str, &str, Option<String>)> {
        let failed = self.failed.iter().map(|(name, error)| {
            let words = error.split_whitespace().collect::<Vec<_>>().join(" ");
            ("failed", name.as_str(), Some(words.chars().take(ERROR).collect()))
        });
        let messages = self
            .new
            .messages
            .iter()
            .map(|name| ("new message", name.as_str(), self.examples.get(name).cloned()));
        let fields = self.new.fields.iter().map(|name| ("new field", name.as_str(), None));
        failed.chain(messages).chain(fields)
    }
}

impl Report {
    pub(super) fn has_drift(&self) -> bool {
        self.rows.iter().any(Row::has_drift)
    }

    /// Plain text for a terminal.
    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = std::iter::once(HEAD.map(str::to_owned))
            .chain(self.rows.iter().map(Row::cells))
            .collect();
        let mut widths = [0; HEAD.len()];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &rows {
            let cells: Vec<_> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            let _ = writeln!(text, "{}", cells.join("  ").trim_end());
        }
        for row in self.rows.iter().filter(|row| row.has_drift()) {
            let _ = writeln!(text, "\n{} {}", row.name, row.version);
            for (what, name, more) in row.findings() {
                let _ = writeln!(text, "  {what:11}  {}", printable(name));
                if let Some(more) = more {
                    let _ = writeln!(text, "  {:11}  {}", "", printable(&more));
                }
            }
        }
        text + "\n" + self.verdict() + "\n"
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&HEAD.map(str::to_owned)) + &line(&HEAD.map(|_| "---".to_owned()));
        for row in &self.rows {
            text += &line(&row.cells());
        }
        for row in self.rows.iter().filter(|row| row.has_drift()) {
            let _ = writeln!(text, "\n## {} {}\n", row.name, row.version);
            for (what, name, more) in row.findings() {
                let _ = write!(text, "- {what}: {}", quoted(name));
                match more {
                    Some(more) => drop(writeln!(text, ": {}", quoted(&more))),
                    None => text.push('\n'),
                }
            }
        }
        text + "\n" + self.verdict() + "\n"
    }

    pub(super) fn json(&self) -> String {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let messages: Vec<Value> = row
                    .new
                    .messages
                    .iter()
                    .map(|name| json!({ "name": name, "example": row.examples.get(name) }))
                    .collect();
                json!({
                    "name": row.name, "pinned": row.pinned, "version": row.version,
                    "passed": row.passed, "failed": row.failed,
                    "newMessages": messages, "newFields": row.new.fields,
                })
            })
            .collect();
        format!("{:#}\n", json!({ "drift": self.has_drift(), "programs": rows }))
    }

    fn verdict(&self) -> &'static str {
        if self.has_drift() { "drift found" } else { "nothing new" }
    }
}

/// Removes control characters.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// As Markdown code.
fn quoted(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let (fence, text) = ("`".repeat(longest + 1), printable(text));
    match longest {
        0 => format!("{fence}{text}{fence}"),
        _ => format!("{fence} {text} {fence}"),
    }
}
