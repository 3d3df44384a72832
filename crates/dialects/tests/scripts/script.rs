//! The text of a script: its input lines are played, and their output is written below them.

use serde_json::Value;
use similar::TextDiff;

use crate::agent::Agent;
use crate::front::Client;
use crate::launch::{Files, launched};

/// The script with the current output of each line. A script is right if nothing changes.
fn play(name: &str, script: &str) -> String {
    let mut stage = Stage::default();
    let mut shared: Vec<&str> = Vec::new();
    let mut is_shared = true;
    let mut played = String::new();
    for (number, line) in (1..).zip(script.lines()) {
        if line.starts_with("    ") {
            // The expected output.
            continue;
        }
        played.push_str(line);
        played.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with("---") {
            is_shared = false;
            stage = Stage::default();
            for line in &shared {
                stage.step(line).unwrap_or_else(|why| panic!("{name}, line {number}: {why}"));
            }
            continue;
        }
        if is_shared {
            shared.push(line);
        }
        let came = stage.step(line).unwrap_or_else(|why| panic!("{name}, line {number}: {why}"));
        for came in came {
            assert!(!came.contains(['\n', '\u{2028}', '\u{2029}']), "one line: {came}");
            played.push_str("    ");
            played.push_str(&masked(&came));
            played.push('\n');
        }
    }
    played
}

/// Masks what differs with each release.
fn masked(line: &str) -> String {
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    line.replace(&version, "\"version\":\"{version}\"")
}

/// A script that is not right.
pub(crate) struct ScriptError {
    /// The script with the current output.
    pub(crate) played: String,
    /// A readable difference.
    pub(crate) difference: String,
}

pub(crate) fn check(name: &str, script: &str) -> Result<(), ScriptError> {
    let played = play(name, script);
    if played == script {
        return Ok(());
    }
    let diff = TextDiff::from_lines(script, &played);
    let header = format!("{name}, as it should be");
    let difference = diff.unified_diff().context_radius(4).header(&header, "as it is").to_string();
    Err(ScriptError { played, difference })
}

/// What is on stage: an agent's session, or a front's client.
#[derive(Default)]
pub(crate) struct Stage {
    agent: Option<Agent>,
    client: Option<Client>,
    files: Files,
}

impl Stage {
    /// Plays one line and returns its output.
    pub(crate) fn step(&mut self, line: &str) -> Result<Vec<String>, String> {
        let (who, what) = line.split_once("> ").ok_or(format!("no such line: {line}"))?;
        let what = what.trim();
        Ok(match (who, &mut self.agent, &mut self.client) {
            ("launch", ..) => launched(what, &mut self.files),
            ("session", None, None) => {
                let (agent, came) = Agent::start(what);
                self.agent = Some(agent);
                came
            }
            ("front", None, None) => {
                let (client, came) = Client::open(what);
                self.client = Some(client);
                came
            }
            ("agent" | "client", Some(agent), None) => agent.step(who, what),
            ("client" | "gateway" | "log", None, Some(client)) => client.step(who, what),
            _ => return Err(format!("nobody is there for {line}")),
        })
    }
}

/// `NAME JSON`, where the JSON may be left out.
pub(crate) fn named(what: &str) -> (&str, Value) {
    let (name, fields) = what.split_once(' ').unwrap_or((what, "{}"));
    (name, json(fields))
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The text of an event that is not a line: it is in parentheses.
pub(crate) fn happening(what: &str) -> Option<&str> {
    what.strip_prefix('(')?.strip_suffix(')')
}

/// The bytes of a line: verbatim, or an escape for what a script cannot show.
pub(crate) fn bytes(what: &str) -> Option<Vec<u8>> {
    let Some(happening) = happening(what) else { return Some(what.as_bytes().to_vec()) };
    if let Some(text) = happening.strip_prefix("text ") {
        return Some(json(text).as_str().expect("a text").as_bytes().to_vec());
    }
    let hex = happening.strip_prefix("bytes ")?;
    let byte = |byte: &str| u8::from_str_radix(byte, 16).expect("a byte in hex");
    Some(hex.split(' ').map(byte).collect())
}
