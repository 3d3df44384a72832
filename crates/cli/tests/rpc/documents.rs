//! The examples of docs/protocols/jsonrpc.md, exchanged with the program.
//!
//! A section is a connection of its own. A line of the server need only name the fields it is about;
//! `$name` is whatever stood there first. The lines of a block may come in another order, since a reply
//! is not held back for what happens later. Messages that are not shown are passed over, nothing else is.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::client::Client;

type Names = BTreeMap<String, Value>;

#[test]
fn the_document_says_what_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/jsonrpc.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let shown: usize = text.split("\n## ").map(section).sum();
    assert!(shown > 15, "only {shown} lines are shown");
}

fn section(text: &str) -> usize {
    let blocks = text.split("```jsonl ").skip(1).filter_map(|block| block.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    if blocks.is_empty() {
        return 0;
    }
    let mut client = Client::new();
    let mut names = Names::new();
    let mut shown = 0;
    for block in blocks {
        let (side, lines) = block.split_once('\n').expect("lines");
        shown += lines.lines().count();
        if side == "server" {
            let lines = lines.lines().map(|line| serde_json::from_str(line).expect(line));
            expect(&mut client, lines.collect(), &mut names);
            continue;
        }
        for line in lines.lines() {
            let named = names.iter().fold(line.to_owned(), |line, (name, value)| {
                line.replace(&format!("\"{name}\""), &value.to_string())
            });
            assert!(!named.contains("\"$"), "{named}");
            client.say(named.as_bytes());
        }
    }
    client.close();
    shown
}

fn expect(client: &mut Client, mut expected: Vec<Value>, names: &mut Names) {
    while !expected.is_empty() {
        let said = client.read();
        let fitting = expected.iter().enumerate().find_map(|(at, line)| {
            let mut found = names.clone();
            holds(&said, line, &mut found).then_some((at, found))
        });
        match fitting {
            Some((at, found)) => {
                expected.remove(at);
                *names = found;
            }
            None => assert_eq!(said["method"], "message", "{said}\nis none of\n{expected:?}"),
        }
    }
}

fn holds(seen: &Value, expected: &Value, names: &mut Names) -> bool {
    match (seen, expected) {
        (Value::Object(seen), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| seen.get(key).is_some_and(|seen| holds(seen, value, names))),
        (Value::Array(seen), Value::Array(expected)) => {
            seen.len() == expected.len()
                && seen.iter().zip(expected).all(|(seen, value)| holds(seen, value, names))
        }
        (seen, Value::String(name)) if name.starts_with('$') => {
            names.entry(name.clone()).or_insert_with(|| seen.clone()) == seen
        }
        _ => seen == expected,
    }
}
