//! How the program exits, and what it leaves behind.

use serde_json::{Value, json};

use crate::claude::client::ClaudeHome;

fn results(said: &[Value]) -> Vec<&str> {
    let results = said.iter().filter(|said| said["type"] == "result");
    results.filter_map(|result| result["result"].as_str()).collect()
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let home = ClaudeHome::new();
    let mut client = home.client(&[]);
    for words in ["one", "two", "three"] {
        client.prompt(&format!("/sleep 50\n/say {words}"));
    }
    let (said, code) = client.rest();
    assert_eq!(results(&said), ["one", "two", "three"]);
    assert_eq!(code, Some(0));
}

#[test]
fn an_idle_program_ends_with_its_input() {
    let home = ClaudeHome::new();
    let mut client = home.client(&[]);
    client.prompt("/say hello");
    client.until_type("result");
    assert_eq!(client.rest(), (Vec::new(), Some(0)));
    assert_eq!(home.client(&[]).rest(), (Vec::new(), Some(0)), "nothing was asked");
}

#[test]
fn who_wants_no_turn_ends_well() {
    let home = ClaudeHome::new();
    for subtypes in
        [&["initialize"][..], &["mcp_status"], &["interrupt"], &["mcp_status", "initialize"]]
    {
        let mut client = home.client(&[]);
        for subtype in subtypes {
            let request = serde_json::json!({ "type": "control_request", "request_id": subtype, "request": { "subtype": subtype } });
            client.send(&request);
        }
        let (said, code) = client.rest();
        let answers = said.iter().filter(|said| said["type"] == "control_response");
        assert!(
            answers.clone().all(|answer| answer["response"]["subtype"] == "success"),
            "{said:?}"
        );
        assert_eq!((answers.count(), code), (subtypes.len(), Some(0)), "{subtypes:?}");
    }
}

#[test]
fn a_message_that_cannot_be_read_has_its_result() {
    let home = ClaudeHome::new();
    let mut client = home.client(&[]);
    client.prompt("/say hello");
    client.until_type("result");
    client.send_raw(r#"{"type":"user","message":{"role":"user","content":7}}"#);
    let (said, code) = client.rest();
    let kinds: Vec<&str> = said.iter().filter_map(|said| said["type"].as_str()).collect();
    assert_eq!(kinds, ["system", "result"]);
    assert_eq!(
        (&said[1]["is_error"], &said[1]["terminal_reason"]),
        (&true.into(), &"aborted_streaming".into())
    );
    assert!(said[1]["total_cost_usd"].is_f64());
    assert_eq!(code, Some(1));
}

#[test]
fn an_error_as_the_last_result_is_an_exit_code() {
    let home = ClaudeHome::new();
    let mut client = home.client(&[]);
    client.prompt("/fail out of luck");
    let (said, code) = client.rest();
    assert_eq!(results(&said), ["out of luck"]);
    assert_eq!(code, Some(1));
    let mut client = home.client(&[]);
    client.prompt("/fail out of luck");
    client.prompt("/say better");
    assert_eq!(client.rest().1, Some(0), "the last one counts");
}

#[test]
fn an_agent_that_dies_is_told_and_ends_the_program() {
    let home = ClaudeHome::new();
    let mut client = home.client(&[]);
    client.prompt("/say begun\n/exit 3");
    let (said, code) = client.rest();
    let result = said.last().expect("a result");
    assert_eq!((&result["type"], &result["is_error"]), (&"result".into(), &true.into()));
    assert!(result["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{result}");
    assert_eq!(code, Some(1));
}

#[test]
fn what_asks_after_the_end_of_input_is_denied() {
    let home = ClaudeHome::new();
    let mut client = home.client(&["--permission-prompt-tool", "stdio"]);
    client.prompt("/sleep 100\n/write never.txt x\n/say over");
    let (said, code) = client.rest();
    assert_eq!(results(&said), ["over"]);
    assert_eq!(code, Some(0));
    assert!(!home.path("work/never.txt").exists());
}

/// There is nobody to ask after stdin ends, but the rules from the command line still apply.
#[test]
fn what_a_rule_allows_runs_to_the_end() {
    let home = ClaudeHome::new();
    let rules = ["--allowedTools", "Bash", "--permission-prompt-tool", "stdio"];
    let once = home.output(&["-p", "/bash touch a", "--allowedTools", "Bash"]);
    assert_eq!(once.status.code(), Some(0));
    assert!(home.path("work/a").exists());
    let mut client = home.client(&rules);
    for name in ["b", "c", "d"] {
        client.prompt(&format!("/sleep 50\n/bash touch {name}\n/write never.txt x\n/say {name}"));
    }
    let (said, code) = client.rest();
    assert_eq!((results(&said), code), (vec!["b", "c", "d"], Some(0)));
    for name in ["b", "c", "d"] {
        assert!(home.path("work").join(name).exists(), "{name}");
    }
    assert!(!home.path("work/never.txt").exists());
    let told = said.iter().map(Value::to_string).collect::<String>();
    assert!(told.contains("nobody is left to answer"), "{told}");
}

/// A signal after the end of input ends the last turn at once, and its result is reported.
#[test]
fn a_signal_after_the_end_of_input_ends_the_turn() {
    let home = ClaudeHome::new();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut client = home.client(&["--permission-mode", "bypassPermissions"]);
        client.prompt("/bash sleep 300");
        client.until_type("assistant");
        client.close_stdin();
        let program = rustix::process::Pid::from_raw(client.pid().cast_signed()).expect("a pid");
        let begun = std::time::Instant::now();
        rustix::process::kill_process(program, signal).expect("a signal");
        let (said, code) = client.rest();
        let result = said.last().expect("a result");
        assert_eq!((&result["type"], &result["is_error"]), (&"result".into(), &true.into()));
        assert_eq!(code, Some(0));
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_signal_ends_it_and_all_below() {
    let home = ClaudeHome::new();
    let mut client = home.client(&["--permission-mode", "bypassPermissions"]);
    // A name, not a pid: the command may run in its own pid namespace.
    let name = format!("left-behind-{}", std::process::id());
    client.prompt(&format!("/bash sh -c 'echo > began; sleep 300; true' {name} & sleep 300"));
    while !home.path("work/began").exists() {
        std::thread::yield_now();
    }
    assert!(runs(&name), "the command does not run");
    let program = rustix::process::Pid::from_raw(client.pid().cast_signed()).expect("a pid");
    rustix::process::kill_process(program, rustix::process::Signal::TERM).expect("a signal");
    assert_eq!(client.rest().1, Some(0));
    assert!(!runs(&name), "the command is still running");
}

/// Whether the command line of any process contains this.
fn runs(name: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(name))
}

#[test]
fn one_answer_in_each_form() {
    let home = ClaudeHome::new();
    let text = home.output(&["-p", "/say hello"]);
    assert_eq!((&*text.stdout, text.status.code()), (&b"hello\n"[..], Some(0)));
    let json = home.output(&["-p", "/say hello", "--output-format=json"]);
    let result: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(result["result"], "hello");
    let lines = home.output(&[
        "--output-format",
        "stream-json",
        "--verbose",
        "--print",
        "--",
        "/say hello",
    ]);
    let lines = String::from_utf8(lines.stdout).expect("UTF-8");
    let kinds: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["type"].clone())
        .collect();
    assert_eq!(kinds, ["system", "assistant", "result"]);
    let failed = home.output(&["-p", "/fail no luck"]);
    assert_eq!((&*failed.stdout, failed.status.code()), (&b"no luck\n"[..], Some(1)));
    let unknown = home.output(&["--no-such-flag"]);
    assert_eq!(unknown.stderr, b"error: unknown option '--no-such-flag'\n");
    assert_eq!(unknown.status.code(), Some(1));
    for flag in ["-v", "--version"] {
        assert_eq!(home.output(&[flag]).stdout, b"2.1.325 (Claude Code)\n");
    }
}

#[test]
fn separators_never_stand_on_the_wire() {
    let home = ClaudeHome::new();
    let output = home.output(&[
        "-p",
        "/say a\u{2028}b\u{2029}c",
        "--output-format=stream-json",
        "--verbose",
    ]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!text.contains(['\u{2028}', '\u{2029}']));
    assert!(text.contains("a\\u2028b\\u2029c"), "{text}");
}

#[test]
fn words_of_the_program_are_its_own() {
    let home = ClaudeHome::new();
    assert_eq!(home.output(&["-p", "--continue", "--fork-session", "/say {turns}"]).stdout, b"1\n");
    // A prompt that is the name of one of Claude's commands, and one that looks like a flag of ours.
    for prompt in ["mcp", "--config=x"] {
        let output = home.output(&["-p", "--output-format=json", "--", prompt]);
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (&result["type"], output.status.code()),
            (&"result".into(), Some(0)),
            "{prompt}"
        );
    }
    let refused = home.output(&["--log-level=x"]);
    assert_eq!(refused.stderr, b"error: unknown option '--log-level=x'\n");
}

#[test]
fn a_session_is_found_again() {
    let home = ClaudeHome::new();
    let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let chosen = home.output(&["-p", "/say {turns}", "--session-id", id, "--output-format=json"]);
    let result: Value = serde_json::from_slice(&chosen.stdout).expect("JSON");
    assert_eq!(result["session_id"], id);
    assert_eq!(home.output(&["-p", "/say {turns}", "--resume", id]).stdout, b"2\n");
    assert_eq!(home.output(&["-p", "/say {turns}", "--continue"]).stdout, b"3\n");
    let copy = home.output(&[
        "-p",
        "/say {turns}",
        "--resume",
        id,
        "--fork-session",
        "--output-format=json",
    ]);
    let result: Value = serde_json::from_slice(&copy.stdout).expect("JSON");
    assert_eq!(result["result"], "4");
    assert_ne!(result["session_id"], id);
    let taken = home.output(&["-p", "/say x", "--session-id", id]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(!taken.stderr.is_empty());
    let unknown =
        home.output(&["-p", "/say x", "--resume", "00000000-0000-4000-8000-000000000000"]);
    assert_eq!(unknown.status.code(), Some(1));
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(told.contains("No conversation found with session ID"), "{told}");
}

/// The command line is the whole configuration, as in Claude itself.
#[test]
fn a_resumed_session_keeps_no_flags() {
    let home = ClaudeHome::new();
    let id = "0f0e0d0c-0b0a-4908-8706-050403020100";
    let words = "/say {model} {mode} {system}";
    let flags = ["--model", "m", "--permission-mode", "acceptEdits", "--system-prompt", "be odd"];
    let first = [&["-p", words, "--session-id", id][..], &flags].concat();
    assert_eq!(home.output(&first).stdout, b"m acceptEdits be odd\n");
    for resume in [&["--resume", id, "--fork-session"][..], &["--resume", id], &["--continue"]] {
        let output = home.output(&[&["-p", words][..], resume].concat());
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "demo default", "{resume:?}");
    }
}

/// An MCP server that answers every call with "five".
const SERVER: &str = r#"while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"calc","version":"1"}}';;
    *'"tools/list"'*) result='{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"five"}]}';;
    *) continue;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;

#[test]
fn a_server_of_the_command_line_is_started_and_called() {
    let home = ClaudeHome::new();
    let server = serde_json::json!({ "command": "/bin/sh", "args": ["-c", SERVER] });
    let config = serde_json::json!({ "mcpServers": { "calc": server } }).to_string();
    let output = home.output(&[
        "-p",
        "/tool mcp__calc__add {}\n/say {result}",
        "--mcp-config",
        &config,
        "--allowedTools",
        "mcp__calc__add",
    ]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "five\n", "{stderr}");
}

/// An SDK receives no error for an answer, so an allow with an unknown field is denied, and the reason
/// names the field.
#[test]
fn what_allows_is_read_strictly() {
    let home = ClaudeHome::new();
    for (answer, said, runs) in [
        (json!({ "behavior": "allow", "update_input": {} }), "update_input", false),
        (json!({ "behavior": "allow", "updatedInputs": null }), "updatedInputs", false),
        (json!({ "behavior": "always" }), "always", false),
        (json!({ "behavior": "deny", "message": "no", "extra": 1 }), "no", false),
        (json!({ "behavior": "allow", "toolUseID": "t", "updatedPermissions": [] }), "made", true),
    ] {
        let mut client = home.client(&["--permission-prompt-tool", "stdio"]);
        client.prompt("/write made.txt x\n/say {result}");
        let asked = client.until_type("control_request");
        let response =
            json!({ "subtype": "success", "request_id": asked["request_id"], "response": answer });
        let line = json!({ "type": "control_response", "response": response });
        client.send(&line);
        let result = client.until_type("result").to_string();
        assert!(result.contains(said), "{answer}: {result}");
        assert_eq!(home.path("work/made.txt").exists(), runs, "{answer}");
        client.rest();
    }
}
