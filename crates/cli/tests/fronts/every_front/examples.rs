//! Every JSON example of the specifications, exchanged with the program.
//!
//! `examples/*.json` contains the examples as steps. The client's messages are sent; the server's must
//! arrive, with the same keys and types. `$name` has the same value everywhere, `=text` is exactly that
//! text, and the fields in `WORDS` must have the same value.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::every_front::program::start;
use crate::recording::DEMO;
use crate::shared::Program;
use crate::speaker::front;

/// Fields that identify a message.
const WORDS: [&str; 12] = [
    "type",
    "subtype",
    "role",
    "name",
    "callback_type",
    "tool_name",
    "hook_event",
    "hook_event_name",
    "server_name",
    "code",
    "method",
    "jsonrpc",
];

#[derive(Deserialize)]
struct Example {
    title: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    Client(Value),
    Server(Value),
    /// All of these arrive, in any order.
    Unordered(Vec<Value>),
}

pub(crate) type Names = BTreeMap<String, Value>;

fn exchange(front_name: &str, text: &str) {
    let examples: Vec<Example> = serde_json::from_str(text).expect("examples");
    for Example { title, steps } in examples {
        let mut program = start(front(front_name).args, DEMO);
        let mut names =
            Names::from([("$work".to_owned(), program.home().work().to_string_lossy().into())]);
        for step in steps {
            match step {
                Step::Client(message) => program.say(named(&message, &names)),
                Step::Server(shown) => expect(&mut program, &[shown], &mut names, &title),
                Step::Unordered(shown) => expect(&mut program, &shown, &mut names, &title),
            }
        }
        program.hang_up();
        while program.line().is_some() {}
        assert_eq!(program.end_alone().stderr, "", "{title}");
    }
}

/// Reads until lines like those shown have arrived. Fails if it would have to skip an answer.
pub(crate) fn expect(program: &mut Program, shown: &[Value], names: &mut Names, title: &str) {
    let mut left: Vec<&Value> = shown.iter().collect();
    let mut passed = Vec::new();
    while !left.is_empty() {
        let Some(line) = program.line() else {
            panic!("{title}: {left:?} never came, but\n{}", passed.join("\n"));
        };
        let said: Value = serde_json::from_str(&line).expect("a line is JSON");
        let found = left.iter().position(|shown| {
            let mut found = names.clone();
            let is_like = is_like(&said, shown, "", &mut found);
            if is_like {
                *names = found;
            }
            is_like
        });
        if let Some(found) = found {
            left.remove(found);
            continue;
        }
        let answers = ["result", "control_response", "control_request", "callback.request"];
        let kind = said["payload"]["type"].as_str().or(said["type"].as_str());
        let is_answer = kind.is_some_and(|kind| answers.contains(&kind))
            || said.get("error").is_some()
            || said["payload"].get("code").is_some();
        let passed_over = passed.join("\n");
        assert!(!is_answer, "{title}: instead of\n{left:?}\ncame\n{passed_over}\n{line}");
        passed.push(line);
    }
}

fn is_like(said: &Value, shown: &Value, key: &str, names: &mut Names) -> bool {
    match shown {
        Value::Object(fields) => fields
            .iter()
            .all(|(key, shown)| said.get(key).is_some_and(|said| is_like(said, shown, key, names))),
        Value::Array(shown) => said.as_array().is_some_and(|said| {
            shown.iter().all(|shown| said.iter().any(|said| is_like(said, shown, "", names)))
        }),
        Value::String(text) if text.starts_with('$') => {
            names.entry(text.clone()).or_insert_with(|| said.clone()) == said
        }
        Value::String(text) => match text.strip_prefix('=') {
            // The text itself, or the number written out.
            Some(text) => {
                said == text || said.as_number().map(ToString::to_string).as_deref() == Some(text)
            }
            None if WORDS.contains(&key) => said == text.as_str(),
            None => said.is_string(),
        },
        Value::Bool(_) if key == "is_error" || key == "success" => said == shown,
        Value::Bool(_) => said.is_boolean(),
        Value::Number(_) => said.is_number(),
        Value::Null => said.is_null(),
    }
}

/// The message with its `$name`s replaced.
pub(crate) fn named(message: &Value, names: &Names) -> Value {
    match message {
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), named(value, names))).collect()
        }
        Value::Array(values) => values.iter().map(|value| named(value, names)).collect(),
        Value::String(text) if text.starts_with('$') => names[text].clone(),
        other => other.clone(),
    }
}

#[test]
fn claude_stream_json() {
    exchange("claude", include_str!("examples/claude-stream-json.json"));
}

#[test]
fn claude_sdk_protocol() {
    exchange("claude", include_str!("examples/claude-sdk-protocol.json"));
}

#[test]
fn backend_ndjson() {
    exchange("backend", include_str!("examples/backend-ndjson.json"));
}
