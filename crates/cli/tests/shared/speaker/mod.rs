//! The fronts: a row for each, and a client that knows its words. What it does not know it fails on.

mod backend;
pub(crate) mod claude;
mod rpc;
mod unified;

use std::path::Path;

use serde_json::{Value, json};

use crate::recording::Agent;

/// A front.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What its program is started with.
    pub(crate) args: &'static [&'static str],
    /// How many sessions its wire carries; 1 where it has one.
    pub(crate) sessions: usize,
    pub(crate) speaker: fn(&[&Case]) -> Box<dyn Speaker>,
}

/// Every front. To add one, add its speaker and its row here.
pub(crate) const FRONTS: &[Row] = &[unified::ROW, claude::ROW, backend::ROW, rpc::ROW];

pub(crate) fn front(name: &str) -> &'static Row {
    FRONTS.iter().find(|row| row.name == name).expect("a front")
}

/// A session to be driven.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) agent: Agent,
    /// What it is prompted with, one turn after the other.
    pub(crate) prompts: Vec<String>,
    /// What its agent plays, if it is a recording.
    pub(crate) recording: Option<Vec<u8>>,
}

/// What a line means for whoever drives the session of that number.
pub(crate) enum Heard {
    /// This is to be said in return.
    Answer(Value),
    /// What it was prompted with has its end.
    TurnOver(usize),
    /// It is over, and all of it was read.
    Over(usize),
    /// There is no such session.
    Refused(usize, String),
}

/// A client of one front.
pub(crate) trait Speaker {
    /// Starts a session, with a prompt.
    fn start(&mut self, session: usize, case: &Case, place: &Path) -> Vec<Value>;

    fn prompt(&mut self, session: usize, text: &str) -> Vec<Value>;

    /// Ends a session; nothing where the end of the wire does that.
    fn finish(&mut self, session: usize) -> Vec<Value>;

    /// Takes a line, and fails on what must not be.
    fn hear(&mut self, line: &str, heard: &mut Vec<Heard>);

    /// All was said: checks what is owed, and gives the exit code that must follow.
    fn end(&mut self) -> i32;
}

/// The first answer that a question offers, by the question's words.
pub(crate) fn answers(questions: &Value) -> Value {
    let questions = questions.as_array().cloned().unwrap_or_default();
    let answers = questions.iter().map(|question| {
        let key = question["id"].as_str().or(question["question"].as_str());
        let label = &question["options"][0]["label"];
        let label = if label.is_null() { json!("yes") } else { label.clone() };
        (key.expect("a question has words").to_owned(), label)
    });
    Value::Object(answers.collect())
}

/// The answer to a message for an MCP server of the client, which has none.
pub(crate) fn mcp_answer(message: &Value) -> Value {
    json!({ "mcp_response": { "jsonrpc": "2.0", "id": message["id"], "result": {} } })
}
