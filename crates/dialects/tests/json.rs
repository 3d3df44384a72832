//! The scanner against serde_json: serde_json accepts what we call strict, with the same value.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use agentwire_dialects::json::{Fault, Scanner, Value, repair};
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value as Tree;

/// The value as serde_json has it.
fn tree(value: Value<'_>) -> Tree {
    if let Some(text) = value.string() {
        return Tree::String(text.into_owned());
    }
    if value.is_object() {
        return value.fields().map(|(key, value)| (key.into_owned(), tree(value))).collect();
    }
    if value.is_array() {
        return value.items().map(tree).collect();
    }
    serde_json::from_str(value.json().get()).expect("a literal")
}

fn check(text: &str) {
    let mut scanner = Scanner::new();
    let by_serde = serde_json::from_str::<Tree>(text);
    match scanner.scan(text) {
        Ok(document) => {
            assert_eq!(tree(document.root()), by_serde.expect("strict JSON is read by serde_json"));
        }
        Err(Fault::Loose) => {
            // A strict pass stops at the first fault: the rest may not be JSON at all.
            let Ok(mended) = repair(text) else {
                assert!(
                    serde_json::from_str::<IgnoredAny>(text).is_err(),
                    "{text} cannot be mended"
                );
                return;
            };
            let document =
                scanner.scan(&mended).unwrap_or_else(|_| panic!("{mended} is not strict"));
            assert_eq!(tree(document.root()), serde_json::from_str::<Tree>(&mended).expect("JSON"));
        }
        Err(Fault::Syntax) => assert!(by_serde.is_err(), "serde_json takes {text}"),
    }
}

fn json() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
        "[a-z \\\\\"/u0-9dD8]{0,90}".prop_map(|text| format!("\"{text}\"")),
        "(\\\\\\\\|\\\\\"|\\\\n|\\\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\u00e9|[a-z]{1,20}){0,20}"
            .prop_map(|text| format!("\"{text}\"")),
    ];
    let number = prop_oneof![
        "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|n| format!("{n:?}")),
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    let word = prop_oneof![Just("true"), Just("false"), Just("null"), Just("nul"), Just("NaN")];
    let leaf = prop_oneof![4 => text, 2 => number, 1 => word.prop_map(str::to_owned)];
    let space = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\t\r\n ")];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let key = prop_oneof![
            3 => "[a-c]{1,2}".prop_map(|key| format!("\"{key}\"")),
            1 => Just("\"\\u0061\"".to_owned()),
            1 => any::<String>().prop_map(|key| serde_json::to_string(&key).expect("a string")),
        ];
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 0..6), space.clone()).prop_map(
                |(items, space)| format!(
                    "[{space}{}{space}]",
                    items.join(&format!("{space},{space}"))
                )
            ),
            (proptest::collection::vec((key, inner), 0..8), space.clone()).prop_map(
                |(fields, space)| {
                    let fields: Vec<_> = fields
                        .iter()
                        .map(|(key, value)| format!("{key}{space}:{space}{value}"))
                        .collect();
                    format!("{{{space}{}{space}}}", fields.join(","))
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn json_of_any_shape(text in json()) {
        check(&text);
    }

    #[test]
    fn json_with_a_byte_changed(text in json(), at in any::<usize>(), byte in 0u8..128) {
        let mut bytes = text.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            check(&text);
        }
    }

    #[test]
    fn strings_of_any_length(text in "[\\x20-\\x7e\\\\\"é\u{2028}]{0,300}") {
        check(&serde_json::to_string(&text).expect("a string"));
        check(&format!("[\"{text}\"]"));
    }
}

#[test]
fn many_keys_are_told_apart_in_time() {
    let fields: Vec<_> = (0..50_000).map(|number| format!("\"key{number}\":{number}")).collect();
    let text = format!("{{{}}}", fields.join(","));
    check(&text);
    let doubled = format!("{{{},\"key7\":0}}", fields.join(","));
    assert_eq!(Scanner::new().scan(&doubled).err(), Some(Fault::Loose));
    check(&doubled);
}

#[test]
fn depth_is_bounded_and_mended() {
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Scanner::new().scan(&deep(60)).is_ok());
    for depth in [61, 200, 100_000] {
        let text = deep(depth);
        assert_eq!(Scanner::new().scan(&text).err(), Some(Fault::Loose));
        let mended = repair(&text).expect("it can be mended");
        assert!(Scanner::new().scan(&mended).is_ok());
    }
    assert_eq!(Scanner::new().scan(&"[".repeat(100_000)).err(), Some(Fault::Loose));
    assert!(repair(&"[".repeat(100_000)).is_err());
}
