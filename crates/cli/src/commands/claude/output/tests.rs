use std::ffi::OsString;
use std::path::Path;

use agentwire_protocol::AgentType;

use super::Output;
use crate::commands::claude::argv::{Asked, parse};

const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/w"}"#;
const GOOD: &str = r#"{"is_error":false,"subtype":"success","result":"Hello","type":"result"}"#;
const API_ERROR: &str =
    r#"{"is_error":true,"subtype":"success","result":"API Error: 400","type":"result"}"#;
const TURNS: &str =
    r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached"]}"#;
const BUDGET: &str = r#"{"type": "result", "subtype": "error_max_budget_usd", "is_error": true}"#;
const CUT: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;
/// Speaks of results, and is none.
const ASSISTANT: &str = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"\"result\""}]},"x":"result"}"#;

fn written(args: &[&str], lines: &[&str]) -> (String, u8) {
    let Asked::Session(given) = parse(args.iter().map(OsString::from)).unwrap() else {
        panic!("no session");
    };
    let invocation = given.with(AgentType::Demo, Path::new("/w")).unwrap();
    let mut out = Vec::new();
    let mut output = Output::new(&invocation, &mut out);
    for line in lines {
        output.line(line).unwrap();
    }
    let code = output.finish().unwrap();
    (String::from_utf8(out).unwrap(), code)
}

#[test]
fn text_is_that_of_the_last_result() {
    let check = |args: &[&str], line: &str, text: &str, code: u8| {
        let args = [&["-p", "hi"], args].concat();
        assert_eq!(written(&args, &[INIT, ASSISTANT, line]), (text.to_owned(), code), "{line}");
    };
    check(&[], GOOD, "Hello\n", 0);
    check(&[], &GOOD.replace("Hello", "Hello\\n"), "Hello\n", 0);
    check(&[], API_ERROR, "API Error: 400\n", 1);
    check(&["--max-turns=3"], TURNS, "Error: Reached max turns (3)", 1);
    check(&["--max-budget-usd=0.5"], BUDGET, "Error: Exceeded USD budget (0.5)", 1);
    check(&[], CUT, "Execution error", 1);
    check(&[], ASSISTANT, "", 1);
}

#[test]
fn json_is_the_last_result_or_all_messages() {
    let lines = [INIT, ASSISTANT, GOOD];
    let (text, code) = written(&["-p", "hi", "--output-format=json"], &lines);
    assert_eq!((text, code), (format!("{GOOD}\n"), 0));
    let (text, code) = written(&["-p", "hi", "--output-format=json", "--verbose"], &lines);
    assert_eq!((text, code), (format!("[{}]\n", lines.join(",")), 0));
    let (text, code) = written(&["-p", "hi", "--output-format=json"], &[INIT, TURNS]);
    assert_eq!((text, code), (format!("{TURNS}\n"), 1));
}

#[test]
fn a_stream_is_every_line_and_ends_as_its_last_result() {
    let args = ["--output-format=stream-json", "--verbose"];
    let check = |lines: &[&str], code: u8| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(written(&args, lines), (text, code));
    };
    check(&[], 0);
    check(&[INIT, GOOD], 0);
    check(&[INIT, CUT], 1);
    check(&[INIT, CUT, INIT, GOOD], 0);
    check(&["not json \"result\""], 0);
}
