use std::ffi::OsString;
use std::path::Path;

use agentwire_protocol::AgentType;

use super::Output;
use crate::commands::claude::argv::{Action, parse};

const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/w"}"#;
const GOOD: &str = r#"{"is_error":false,"subtype":"success","result":"Hello","type":"result"}"#;
const API_ERROR: &str =
    r#"{"is_error":true,"subtype":"success","result":"API Error: 400","type":"result"}"#;
const TURNS: &str =
    r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached"]}"#;
const BUDGET: &str = r#"{"type": "result", "subtype": "error_max_budget_usd", "is_error": true}"#;
const CUT: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;
/// Mentions results, but is not one.
const ASSISTANT: &str = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"\"result\""}]},"x":"result"}"#;

fn written(args: &[&str], lines: &[&str]) -> String {
    let Action::Session(given) = parse(args.iter().map(OsString::from)).unwrap() else {
        panic!("no session");
    };
    let invocation = given.with(AgentType::Demo, Path::new("/w")).unwrap();
    let mut out = Vec::new();
    let mut output = Output::new(&invocation, &mut out);
    for line in lines {
        output.line(line).unwrap();
    }
    output.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn text_is_that_of_the_last_result() {
    let check = |args: &[&str], line: &str, text: &str| {
        let args = [&["-p", "hi"], args].concat();
        assert_eq!(written(&args, &[INIT, ASSISTANT, line]), text, "{line}");
    };
    check(&[], GOOD, "Hello\n");
    check(&[], &GOOD.replace("Hello", "Hello\\n"), "Hello\n");
    check(&[], API_ERROR, "API Error: 400\n");
    check(&["--max-turns=3"], TURNS, "Error: Reached max turns (3)");
    check(&["--max-budget-usd=0.5"], BUDGET, "Error: Exceeded USD budget (0.5)");
    check(&[], CUT, "Execution error");
    check(&[], ASSISTANT, "");
}

#[test]
fn json_is_the_last_result_or_all_messages() {
    let lines = [INIT, ASSISTANT, GOOD];
    let json = ["-p", "hi", "--output-format=json"];
    assert_eq!(written(&json, &lines), format!("{GOOD}\n"));
    assert_eq!(written(&json, &[INIT, TURNS]), format!("{TURNS}\n"));
    let all = written(&["-p", "hi", "--output-format=json", "--verbose"], &lines);
    assert_eq!(all, format!("[{}]\n", lines.join(",")));
}
