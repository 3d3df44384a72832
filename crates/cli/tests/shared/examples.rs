//! Exchanges examples in documents: `jsonl client` blocks are sent, `jsonl server` blocks are expected.
//!
//! Each section is a separate connection. A line of the server needs to contain only the fields it shows;
//! `$name` matches anything, and has the same value everywhere.

use std::collections::BTreeMap;

use serde_json::Value;

type Names = BTreeMap<String, Value>;

/// A client of the documented program.
pub(crate) trait Wire {
    fn say(&mut self, line: &[u8]);
    fn read(&mut self) -> Value;
    /// Whether this line may arrive although the document does not show it.
    fn may_pass(&self, said: &Value) -> bool;
    fn close(self);
}

/// Exchanges the examples of a document in docs/protocols. Returns how many lines it shows.
pub(crate) fn exchange<W: Wire>(document: &str, connect: impl Fn() -> W) -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/");
    let text = std::fs::read_to_string(format!("{folder}{document}")).expect("the document");
    text.split("\n## ").map(|text| section(text, &connect)).sum()
}

fn section<W: Wire>(text: &str, connect: &impl Fn() -> W) -> usize {
    let blocks = text.split("```jsonl ").skip(1).filter_map(|block| block.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    if blocks.is_empty() {
        return 0;
    }
    let mut client = connect();
    let mut names = Names::new();
    let mut shown = 0;
    for block in blocks {
        let (side, lines) = block.split_once('\n').expect("lines");
        for line in lines.lines() {
            shown += 1;
            if side == "client" {
                let named = names.iter().fold(line.to_owned(), |line, (name, value)| {
                    line.replace(&format!("\"{name}\""), &value.to_string())
                });
                assert!(!named.contains("\"$"), "{named}");
                client.say(named.as_bytes());
            } else {
                expect(&mut client, &serde_json::from_str(line).expect(line), &mut names);
            }
        }
    }
    client.close();
    shown
}

fn expect(client: &mut impl Wire, expected: &Value, names: &mut Names) {
    loop {
        let said = client.read();
        let mut found = names.clone();
        if holds(&said, expected, &mut found) {
            *names = found;
            return;
        }
        assert!(client.may_pass(&said), "{said}\nis not\n{expected}");
    }
}

fn holds(seen: &Value, expected: &Value, names: &mut Names) -> bool {
    match (seen, expected) {
        (Value::Object(seen), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| seen.get(key).is_some_and(|seen| holds(seen, value, names))),
        // An empty list matches any list.
        (Value::Array(_), Value::Array(expected)) if expected.is_empty() => true,
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
