//! Sessions are stored, resumed, forked, limited and ended.

use serde_json::{Value, json};

use crate::demo_agent::harness::{DemoHome, SESSION, blocks, requests, result, text};

const OTHER: &str = "99999999-2222-4333-8444-555555555555";

#[test]
fn the_same_prompts_give_the_same_lines() {
    let run = || {
        let home = DemoHome::new();
        let mut demo = home.start(&["--include-partial-messages"]);
        demo.initialize(json!({}));
        demo.turn("/think a\n/say b\n/bash echo c\n/task d\n/say e\n/end");
        demo.turn("/fail f");
        demo.end();
        let directory = home.work().display().to_string();
        let stable = demo.written.iter().map(|line| {
            let mut line: Value = serde_json::from_str(&line.replace(&directory, "DIR")).unwrap();
            redact(&mut line);
            line.to_string()
        });
        stable.collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

/// Replaces times and the process id, the only parts that differ.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "timestamp" | "duration_ms" | "duration_api_ms" | "totalDurationMs" | "pid" => {
                        *field = Value::Null;
                    }
                    _ => redact(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        _ => {}
    }
}

#[test]
fn a_killed_conversation_is_resumed() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.turn("/say one\n/usage 1000 0");
    demo.prompt("/say two\n/hang");
    demo.until(|line| line["type"] == "assistant");
    demo.kill();
    // As if the kill had interrupted a write.
    let file = home.state().join(format!("{SESSION}.jsonl"));
    let mut kept = std::fs::read(&file).unwrap();
    kept.extend_from_slice(b"{\"type\":\"prompt\",\"te");
    std::fs::write(&file, kept).unwrap();

    let mut demo = home.start(&["--resume", SESSION]);
    let lines = demo.turn("/say {turns}\\n{prompts}");
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["session_id"], SESSION);
    assert_eq!(
        text(&lines),
        "3\n/say one\n/usage 1000 0\n/say two\n/hang\n/say {turns}\\n{prompts}"
    );
    let cost = result(&lines)["total_cost_usd"].as_f64().unwrap();
    assert!(cost > 0.003, "the past is counted: {cost}");
    demo.end();
    let mut demo = home.start(&[&format!("--resume={SESSION}")]);
    assert_eq!(text(&demo.turn("/say {turns}")), "4");
}

#[test]
fn ids_never_come_again_after_a_resume() {
    let home = DemoHome::new();
    let ids = |lines: &[Value]| -> Vec<String> {
        let ids =
            lines.iter().filter_map(|line| line["uuid"].as_str().or(line["request_id"].as_str()));
        ids.map(str::to_owned).collect()
    };
    let mut demo = home.start(&[]);
    let mut all = ids(&demo.turn("/bash true"));
    demo.kill();
    for _ in 0..2 {
        let mut demo = home.start(&["--resume", SESSION]);
        all.extend(ids(&demo.turn("/bash true")));
        demo.kill();
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn a_fork_is_a_conversation_of_its_own() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.turn("/say one");
    demo.end();
    let mut fork = home.start(&["--resume", SESSION, "--fork-session", "--session-id", OTHER]);
    let lines = fork.turn("/say {turns}");
    assert_eq!((text(&lines).as_str(), &lines[0]["session_id"]), ("2", &json!(OTHER)));
    fork.end();
    assert_eq!(text(&home.start(&["--resume", OTHER]).turn("/say {turns}")), "3");
    assert_eq!(text(&home.start(&["--resume", SESSION]).turn("/say {turns}")), "2");
}

#[test]
fn what_is_not_kept_cannot_be_resumed() {
    let home = DemoHome::new();
    let message = format!("No conversation found with session ID: {OTHER}");
    let mut demo = home.start(&["--resume", OTHER]);
    let end = demo.until_result();
    assert_eq!(end["errors"], json!([message]));
    assert_eq!(demo.end(), (Some(1), format!("{message}\n")));

    let mut demo = home.start(&["--resume", "../escape"]);
    assert_eq!(demo.until_result()["subtype"], "error_during_execution");
    assert_eq!(demo.end().0, Some(1));

    let mut demo = home.start(&["--no-session-persistence"]);
    demo.turn("/say secret");
    demo.end();
    assert!(!home.state().exists());
}

#[test]
fn an_id_is_given_once() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.turn("/say one");
    demo.end();
    let (code, stderr) = home.start(&[]).end();
    assert_eq!(
        (code, stderr),
        (Some(1), format!("Error: Session ID {SESSION} is already in use.\n"))
    );
}

#[test]
fn flags_are_read_as_claude_reads_them() {
    let home = DemoHome::new();
    for (flags, words) in [
        (vec!["--no-such-flag"], "error: unknown option '--no-such-flag'"),
        (vec!["--no-such-flag=3"], "error: unknown option '--no-such-flag=3'"),
        (vec!["--permission-mode=odd"], "argument 'odd' is invalid"),
        (vec!["--max-turns", "0"], "argument '0' is invalid"),
        (vec!["--session-id=odd"], "Must be a valid UUID"),
        (vec!["--anonymous", "--model"], "argument missing"),
        (vec!["--mcp-config", "{]"], "Invalid MCP configuration"),
    ] {
        let (code, stderr) = home.start(&flags).end();
        assert_eq!(code, Some(1), "{flags:?}");
        assert!(stderr.contains(words), "{flags:?}: {stderr}");
    }
    let mut demo = home.start(&[
        "--betas=a,b",
        "--setting-sources=",
        "--settings",
        "{}",
        "--fallback-model=x",
        "--add-dir=/tmp",
        "--max-thinking-tokens=5",
        "--system-prompt",
        "",
        "--tools=Read,Bash",
    ]);
    let lines = demo.turn("/say fine");
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["tools"], json!(["Bash", "Read"]));
    let mut version = std::process::Command::new(env!("CARGO_BIN_EXE_agentwire"));
    let version = version.args(["demo-agent", "--version"]).output().unwrap();
    assert!(String::from_utf8(version.stdout).unwrap().ends_with(" (demo)\n"));
}

#[test]
fn limits_end_the_turn() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--max-turns=2", "--permission-mode=bypassPermissions"]);
    let lines = demo.turn("/bash true\n/bash true\n/bash true");
    assert_eq!(blocks(&lines, "tool_use").len(), 2);
    let end = result(&lines);
    assert_eq!((&end["subtype"], &end["num_turns"]), (&json!("error_max_turns"), &json!(3)));
    assert_eq!(end["errors"], json!(["Reached maximum number of turns (2)"]));
    assert_eq!(result(&demo.turn("/bash true\n/say done"))["subtype"], "success");

    let home = DemoHome::new();
    let mut demo = home.start(&["--max-budget-usd=0.5"]);
    assert_eq!(result(&demo.turn("/say a\n/usage 100000 0"))["subtype"], "success");
    let lines = demo.turn("/bash touch made\n/usage 100000 0");
    let end = result(&lines);
    assert_eq!((&end["subtype"], &end["is_error"]), (&json!("error_max_budget_usd"), &json!(true)));
    assert_eq!(end["errors"], json!(["Reached maximum budget ($0.5)"]));
    assert!(requests(&lines, "can_use_tool").is_empty());
    assert_eq!(demo.end().0, Some(1));
}

#[test]
fn the_end_of_stdin_ends_it_when_it_is_done() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    assert_eq!(demo.end(), (Some(0), String::new()));
    assert!(demo.written.is_empty());

    let mut demo = home.start(&["--permission-mode=bypassPermissions"]);
    demo.prompt("/sleep 30\n/bash echo fin\n/say {result}");
    demo.prompt("/say queued");
    assert_eq!(demo.end().0, Some(0));
    let written = demo.written.join("\n");
    assert!(written.contains("\"fin\"") && written.contains("queued"), "{written}");

    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.prompt("/bash touch made\n/say {result}");
    demo.until_request("can_use_tool");
    demo.close_stdin();
    let lines = demo.finish_turn(|_| None);
    assert!(text(&lines).contains("stream closed before response received"));
    assert_eq!(demo.end().0, Some(0));
    assert!(!home.work().join("made").exists());

    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.prompt("/hang\n/say after");
    assert_eq!(demo.end().0, Some(0), "nobody is left to interrupt it");
}

#[test]
fn bad_lines_end_it_and_strange_ones_do_not() {
    for (line, words) in [
        ("this is not json", "Error parsing streaming input line"),
        ("null", "TypeError"),
        ("{\"type\":\"user\",\"message\":{\"role\":\"assistant\"}}", "got 'assistant'"),
        ("{\"type\":\"user\"}", "got 'undefined'"),
        ("{\"type\":\"control_request\",\"request_id\":\"x\"}", "Missing request"),
    ] {
        let home = DemoHome::new();
        let mut demo = home.start(&[]);
        demo.prompt("/hang");
        demo.until(|line| line["subtype"] == "init");
        demo.send_raw(line);
        assert_eq!(demo.next_line(), None, "{line}");
        let (code, stderr) = demo.end();
        assert_eq!(code, Some(1), "{line}");
        assert!(stderr.contains(words), "{line}: {stderr}");
    }
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    for line in [
        "",
        "  \r",
        "[1,2]",
        "\"text\"",
        "{\"type\":\"no_such\"}",
        "{\"type\":\"keep_alive\"}",
        "{\"type\":\"control_response\",\"response\":{\"request_id\":\"never\"}}",
        "{\"type\":\"control_cancel_request\",\"request_id\":\"never\"}",
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\"}]}}",
    ] {
        demo.send_raw(line);
    }
    demo.send_raw(
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"/say lone \\ud83d\"}}",
    );
    let lines = demo.finish_turn(|_| None);
    assert_eq!(text(&lines), "lone \u{fffd}");
}

#[test]
fn the_prompt_may_be_an_argument() {
    let home = DemoHome::new();
    let mut demo = home.start(&["/say from argv"]);
    assert_eq!(text(&demo.finish_turn(|_| None)), "from argv");
    assert_eq!(demo.next_line(), None);
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    use std::process::{Command, Stdio};
    let home = DemoHome::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_agentwire"))
        .args([
            "demo-agent",
            "--output-format=stream-json",
            "--verbose",
            "--include-partial-messages",
        ])
        .args(["--no-session-persistence", "/repeat 1000000000 word"])
        .current_dir(home.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
}
