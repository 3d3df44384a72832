//! A transcript: both sides of a conversation, in order.

use std::io::{self, BufRead, BufReader, Read};

use agentwire_dialects::json::Scanner;
use agentwire_dialects::transcript;
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) struct Transcript {
    pub(super) entries: Vec<Entry>,
    /// The agent's exit code, if the transcript has it.
    pub(super) exit_code: Option<u8>,
}

pub(super) enum Entry {
    /// A line from the agent, and its time.
    Agent { line: String, at: Option<u64> },
    /// A line from the client, and its time.
    Client { line: String, at: Option<u64> },
}

/// Whether this line is a transcript entry.
pub(super) fn is_entry(scanner: &mut Scanner, line: &[u8]) -> bool {
    transcript::is_entry(scanner, line) || exit_code(line).is_some()
}

impl Transcript {
    pub(super) fn read(input: impl Read) -> io::Result<Self> {
        let mut scanner = Scanner::new();
        let mut entries = Vec::new();
        let mut code = None;
        for (number, line) in BufReader::new(input).split(b'\n').enumerate() {
            let line = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match (exit_code(&line), entry(&mut scanner, &line)) {
                (exit @ Some(_), _) => code = exit,
                (None, Some(entry)) => entries.push(entry),
                (None, None) => {
                    let what = format!("line {} is not a transcript entry", number + 1);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        Ok(Self { entries, exit_code: code })
    }
}

/// `{"dir":"exit","code":N}`; an end by a signal is encoded as in a shell.
fn exit_code(line: &[u8]) -> Option<u8> {
    let entry: Value = serde_json::from_slice(line).ok()?;
    if entry.get("dir")?.as_str()? != "exit" {
        return None;
    }
    let code = entry.get("code")?.as_i64()?;
    let code = if code < 0 { 128 - code } else { code };
    Some(u8::try_from(code).unwrap_or(1))
}

fn entry(scanner: &mut Scanner, line: &[u8]) -> Option<Entry> {
    let fields: Fields<'_> = match serde_json::from_slice(line) {
        Ok(fields) => fields,
        // Parsers disagree on its content; the agent's line is extracted all the same.
        Err(_) => {
            let line = String::from_utf8(transcript::agent_line(scanner, line)?).ok()?;
            return Some(Entry::Agent { line, at: None });
        }
    };
    let line = match fields.raw {
        Some(raw) => raw,
        None => fields.line?.get().to_owned(),
    };
    match fields.dir.as_str() {
        "out" => Some(Entry::Agent { line, at: fields.t_ms }),
        "in" => Some(Entry::Client { line, at: fields.t_ms }),
        _ => None,
    }
}

#[derive(serde::Deserialize)]
struct Fields<'e> {
    dir: String,
    #[serde(default)]
    t_ms: Option<u64>,
    #[serde(borrow, default)]
    line: Option<&'e RawValue>,
    #[serde(default)]
    raw: Option<String>,
}
