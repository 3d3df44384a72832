//! Exchanges the JSON blocks of docs/protocols/backend.md with the program.
//!
//! The blocks under one heading are one connection. `jsonl client` lines are sent. `jsonl backend` lines
//! must arrive next; an object needs to contain only the fields it shows. A string that starts with `$`
//! matches anything, and has the same value everywhere.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::backend::client::Client;

#[test]
fn the_document_says_what_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols/backend.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let mut exchanged = 0;
    for section in text.split("\n#") {
        exchanged += exchange(section);
    }
    assert!(exchanged >= 20, "only {exchanged} lines are exchanged");
}

fn exchange(section: &str) -> usize {
    let blocks = blocks(section);
    if blocks.is_empty() {
        return 0;
    }
    let mut client = Client::new();
    let mut names = BTreeMap::new();
    let mut exchanged = 0;
    for (is_said, lines) in blocks {
        for line in lines {
            exchanged += 1;
            let mut message: Value = serde_json::from_str(line).expect(line);
            if is_said {
                fill(&mut message, &names);
                client.send(&message);
                continue;
            }
            let frame = client.frame();
            assert!(holds(&frame, &message, &mut names), "{frame}\nis not\n{message}");
        }
    }
    let unread = client.rest();
    assert!(unread.is_empty(), "unread: {unread:?}");
    exchanged
}

/// The blocks to exchange, and whether the client sends them.
fn blocks(section: &str) -> Vec<(bool, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut lines = section.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info {
            "jsonl client" => blocks.push((true, body)),
            "jsonl backend" => blocks.push((false, body)),
            _ => {}
        }
    }
    blocks
}

fn fill(value: &mut Value, names: &BTreeMap<String, Value>) {
    match value {
        Value::String(text) => {
            if let Some(known) = names.get(text) {
                *value = known.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn holds(seen: &Value, expected: &Value, names: &mut BTreeMap<String, Value>) -> bool {
    match (seen, expected) {
        (_, Value::String(name)) if name.starts_with('$') => {
            names.entry(name.clone()).or_insert_with(|| seen.clone()) == seen
        }
        (Value::Object(seen), Value::Object(expected)) => expected
            .iter()
            .all(|(name, value)| seen.get(name).is_some_and(|seen| holds(seen, value, names))),
        (Value::Array(seen), Value::Array(expected)) => {
            seen.len() == expected.len()
                && seen.iter().zip(expected).all(|(seen, expected)| holds(seen, expected, names))
        }
        _ => seen == expected,
    }
}
