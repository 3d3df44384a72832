//! Cuts `native` out of an event's JSON and leaves every other byte as it is.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

const NATIVE: &[u8] = b"\"native\"";

/// The event without its field `native`. The text must be valid JSON; anything else than an object stays as
/// it is. It is not decoded: the values are skipped, and the field is found by its place.
pub(super) fn without_native(line: &str) -> Cow<'_, str> {
    let Some(cut) = native_field(line.as_bytes()) else { return line.into() };
    let (before, after) = (line.get(..cut.start), line.get(cut.end..));
    let (Some(before), Some(after)) = (before, after) else { return line.into() };
    let mut lean = String::with_capacity(before.len() + after.len());
    lean.push_str(before);
    lean.push_str(after);
    Cow::Owned(lean)
}

/// Where the field is, with one of the commas beside it.
fn native_field(text: &[u8]) -> Option<Range<usize>> {
    let mut at = after_space(text, 0);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    let mut comma = None;
    at = after_space(text, at + 1);
    while text.get(at) == Some(&b'"') {
        let name = at..after_string(text, at)?;
        let colon = after_space(text, name.end);
        let value = after_space(text, colon + 1);
        let end = after_space(text, after_value(text, value)?);
        if text.get(name.clone()) == Some(NATIVE) {
            return Some(match (comma, text.get(end)) {
                (Some(comma), _) => comma..end,
                (None, Some(b',')) => name.start..end + 1,
                (None, _) => name.start..end,
            });
        }
        if text.get(end) != Some(&b',') {
            return None;
        }
        comma = Some(end);
        at = after_space(text, end + 1);
    }
    None
}

fn after_space(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The place after the string that starts here.
fn after_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        let found = at + memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// The place after the value that starts here.
fn after_value(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => {
                at = after_string(text, at)?;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            // The end of the object that contains this value.
            b'}' | b']' if depth == 0 => return Some(at),
            b'}' | b']' if depth == 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    #[test]
    fn only_the_events_own_field_is_cut_out() {
        for (line, expected) in [
            (r#"{"id":"a","seq":1,"native":[{"line":"x"}]}"#, r#"{"id":"a","seq":1}"#),
            (
                r#"{"id":"a", "native" : [1,[2],{}] ,"x":{"native":1}}"#,
                r#"{"id":"a","x":{"native":1}}"#,
            ),
            (r#"{"native":"a\"}]\\","b":[]}"#, r#"{"b":[]}"#),
            (r#"{"native":7}"#, "{}"),
            (
                r#"{"a":{"native":[1]},"b":"\"native\":1"}"#,
                r#"{"a":{"native":[1]},"b":"\"native\":1"}"#,
            ),
            (r#"{"text":"native","n":"\\","native":null}"#, r#"{"text":"native","n":"\\"}"#),
            ("{}", "{}"),
            ("[1]", "[1]"),
            ("", ""),
        ] {
            assert_eq!(without_native(line), expected, "{line}");
        }
    }

    #[test]
    fn a_text_that_is_cut_off_stays_as_it_is() {
        let line = r#"{"id":"a","native":[{"line":"x\""}"#;
        for end in 0..line.len() {
            assert_eq!(without_native(&line[..end]), line[..end]);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            r#"[\\"{}\[\],:a-c]{0,6}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            let name = prop_oneof![Just("native".to_owned()), r#"[a-c"\\,]{0,3}"#];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..4)
                    .prop_map(|fields| Value::Object(Map::from_iter(fields))),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_the_same_as_removing_the_field(fields in prop::collection::vec(value(), 0..4), at in 0_usize..5, native in value()) {
            let mut names: Vec<_> = fields.iter().enumerate().map(|(n, field)| (format!("f{n}"), field)).collect();
            let at = at.min(names.len());
            names.insert(at, ("native".to_owned(), &native));
            for spaces in ["", " ", "\n\t "] {
                let text = names.iter().map(|(name, value)| {
                    format!("{spaces}{}{spaces}:{spaces}{value}{spaces}", json!(name))
                });
                let text = format!("{{{}}}", text.collect::<Vec<_>>().join(","));
                let mut expected: Value = serde_json::from_str(&text).unwrap();
                expected.as_object_mut().unwrap().remove("native");
                let lean = without_native(&text);
                prop_assert_eq!(serde_json::from_str::<Value>(&lean).unwrap(), expected);
            }
        }
    }
}
