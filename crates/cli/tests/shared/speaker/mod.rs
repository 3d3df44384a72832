//! The fronts, one row each, with a client that knows its format and fails on anything else.

mod backend;
pub(crate) mod claude;
mod rpc;
mod unified;

use std::path::Path;

use serde_json::{Value, json};

use crate::recording::Agent;

pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) args: &'static [&'static str],
    /// Sessions per connection.
    pub(crate) sessions: usize,
    pub(crate) speaker: fn(&[&Case]) -> Box<dyn Speaker>,
}

/// Every front. To add one, add its speaker and its row here.
pub(crate) const FRONTS: &[Row] = &[unified::ROW, claude::ROW, backend::ROW, rpc::ROW];

pub(crate) fn front(name: &str) -> &'static Row {
    FRONTS.iter().find(|row| row.name == name).expect("a front")
}

/// A session to drive.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) agent: Agent,
    /// One prompt per turn.
    pub(crate) prompts: Vec<String>,
    /// What its agent plays, if it is a recording.
    pub(crate) recording: Option<Vec<u8>>,
}

/// What a line means for the driver. The number is that of the session.
pub(crate) enum Heard {
    /// Send this in return.
    Answer(Value),
    /// A prompt's turn has ended.
    TurnOver(usize),
    /// The session has ended, and everything was read.
    Over(usize),
    /// The session was refused.
    Refused(usize, String),
}

/// A client of one front.
pub(crate) trait Speaker {
    fn start(&mut self, session: usize, case: &Case, place: &Path) -> Vec<Value>;

    fn prompt(&mut self, session: usize, text: &str) -> Vec<Value>;

    /// Ends a session; empty if closing the connection does that.
    fn finish(&mut self, session: usize) -> Vec<Value>;

    /// Checks a line, and panics on an unexpected one.
    fn hear(&mut self, line: &str, heard: &mut Vec<Heard>);

    /// After the last line: checks that nothing is missing, and returns the expected exit code.
    fn end(&mut self) -> i32;
}

/// The first option of each question, by the question's text.
pub(crate) fn answers(questions: &Value) -> Value {
    let questions = questions.as_array().cloned().unwrap_or_default();
    let answers = questions.iter().map(|question| {
        let key = question["id"].as_str().or(question["question"].as_str());
        let label = &question["options"][0]["label"];
        let label = if label.is_null() { json!("yes") } else { label.clone() };
        (key.expect("a question has a text").to_owned(), label)
    });
    Value::Object(answers.collect())
}

/// The answer to a message for an MCP server of the client: an empty result.
pub(crate) fn mcp_answer(message: &Value) -> Value {
    json!({ "mcp_response": { "jsonrpc": "2.0", "id": message["id"], "result": {} } })
}
