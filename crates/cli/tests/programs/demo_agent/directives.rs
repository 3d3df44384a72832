//! Each directive does what the table says.

use serde_json::json;

use crate::demo_agent::harness::{DemoHome, blocks, requests, result, text};

#[test]
fn says_and_thinks_with_escapes_and_placeholders() {
    let home = DemoHome::new();
    let mut demo =
        home.start(&["--model=demo-x", "--permission-mode=plan", "--system-prompt", "Be kind."]);
    let lines = demo.turn(
        "words that are no directive\n/think hm {model}\n/say a\\nb\\\\n {model} {mode} {system} {turns} \
         {other} {\n/say {cwd}",
    );
    assert_eq!(blocks(&lines, "thinking")[0]["thinking"], "hm demo-x");
    let said = format!("a\nb\\n demo-x plan Be kind. 1 {{other}} {{{}", home.work().display());
    assert_eq!(text(&lines), said);
    assert_eq!(result(&lines)["result"], home.work().display().to_string());

    let lines = demo.turn("/say {turns}: {prompt}");
    assert_eq!(text(&lines), "2: /say {turns}: {prompt}");
    assert_eq!(demo.end(), (Some(0), String::new()));
}

#[test]
fn streams_words_then_the_whole_block() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    let lines = demo.turn("/say one two  three\\nfour");
    let events: Vec<_> = lines.iter().filter(|line| line["type"] == "stream_event").collect();
    let kinds: Vec<_> = events.iter().map(|line| line["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"message_start"));
    assert_eq!(kinds.last(), Some(&"message_stop"));
    let deltas = events.iter().filter_map(|line| line["event"]["delta"]["text"].as_str());
    let deltas: Vec<_> = deltas.collect();
    assert_eq!(deltas, ["one ", "two ", " ", "three\n", "four"]);
    assert_eq!(text(&lines), deltas.concat());
    let place_of = |kind: &str| {
        lines.iter().position(|line| line["event"]["type"] == kind || line["type"] == kind).unwrap()
    };
    assert!(place_of("assistant") < place_of("content_block_stop"), "whole before its stop");
}

#[test]
fn pads_repeats_and_blobs() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    let lines = demo.turn("/pad 100000");
    assert_eq!(text(&lines), "B".repeat(100_000));

    let lines = demo.turn("/repeat 3000 ab\\n");
    let deltas = lines.iter().filter(|line| line["event"]["delta"]["text"] == "ab\n").count();
    assert_eq!((deltas, text(&lines)), (3000, "ab\n".repeat(3000)));

    let lines = demo.turn("/blob 70000");
    assert_eq!(blocks(&lines, "tool_result")[0]["content"], "B".repeat(70_000));
}

#[test]
fn a_flood_is_many_blocks_and_none_is_lost() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    let piece = "x".repeat(1000);
    let lines = demo.turn(&format!("/repeat 2500 {piece}"));
    assert_eq!(text(&lines), piece.repeat(2500));
    assert!(blocks(&lines, "text").len() > 1);
}

#[test]
fn works_on_real_files() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let lines = demo.turn("/write a/b.txt one\\ntwo\\nthree\\n\n/read a/b.txt\n/say [{result}]");
    assert_eq!(home.file("a/b.txt"), "one\ntwo\nthree\n");
    assert_eq!(text(&lines), "[1\tone\n2\ttwo\n3\tthree\n4\t]");
    assert_eq!(requests(&lines, "can_use_tool").len(), 1, "a read asks nobody");

    let lines = demo.turn("/edit a/b.txt | two | 2");
    assert_eq!(home.file("a/b.txt"), "one\n2\nthree\n");
    let changed = lines.iter().find(|line| line["tool_use_result"].is_object()).unwrap();
    assert_eq!(
        changed["tool_use_result"]["structuredPatch"][0]["lines"],
        json!([" one", "-two", "+2", " three"])
    );

    let lines = demo.turn("/edit a/b.txt | nowhere | x\n/read gone.txt");
    let failed = blocks(&lines, "tool_result");
    assert!(failed.iter().all(|block| block["is_error"] == true), "{failed:?}");
    assert_eq!(home.file("a/b.txt"), "one\n2\nthree\n");
}

#[test]
fn runs_real_commands() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--allowedTools=Bash"]);
    let lines = demo.turn("/bash pwd; echo err >&2\n/say {result}");
    assert_eq!(text(&lines), format!("{}\nerr", home.work().display()));

    let lines = demo.turn("/bash echo no; exit 3");
    let block = &blocks(&lines, "tool_result")[0];
    assert_eq!((&block["content"], &block["is_error"]), (&json!("Exit code 3\nno"), &json!(true)));

    let lines = demo.turn("/bash head -c 100000 /dev/zero | tr '\\0' x");
    let shown = blocks(&lines, "tool_result")[0]["content"].as_str().unwrap().to_owned();
    assert!(shown.len() < 31_000 && shown.contains("70000 bytes truncated"), "{}", shown.len());

    let lines = demo.turn("/tool Bash {\"command\":\"sleep 100\",\"timeout\":20}");
    let shown = blocks(&lines, "tool_result")[0]["content"].as_str().unwrap().to_owned();
    assert!(shown.starts_with("Command timed out"), "{shown}");
}

#[test]
fn what_a_command_leaves_behind_holds_up_nobody() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--allowedTools=Bash"]);
    let lines = demo.turn("/bash sleep 100 & echo $!\n/say {result}");
    let pid = text(&lines);
    let pid: i32 = pid.trim().parse().expect("the pid of the sleep");
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it still runs");
}

#[test]
fn asks_and_says_the_answer_back() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let answering = |request: &serde_json::Value| {
        let mut input = request["input"].clone();
        assert_eq!(input["questions"][0]["options"][1]["label"], "Coffee");
        input["answers"] = json!({ "What to drink?": "Coffee" });
        Some(json!({ "behavior": "allow", "updatedInput": input }))
    };
    let lines = demo.turn_with("/ask What to drink? | Tea | Coffee", answering);
    assert_eq!(text(&lines), "Coffee");
    let lines = demo.turn("/ask Really? | Yes");
    assert_eq!(text(&lines), "No answer.");
}

#[test]
fn plans_and_reports_usage_at_the_known_rates() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    let lines = demo.turn("/plan First | Second\n/say x\n/usage 1000000 100000 10000 1000");
    let todos = lines.iter().find(|line| line["tool_use_result"]["newTodos"].is_array()).unwrap();
    assert_eq!(todos["tool_use_result"]["newTodos"][1]["content"], "Second");
    let end = result(&lines);
    assert_eq!(end["usage"]["input_tokens"], 1_000_000);
    assert_eq!(end["usage"]["output_tokens"], 100_000);
    assert_eq!(end["usage"]["cache_read_input_tokens"], 10_000);
    assert_eq!(end["usage"]["cache_creation_input_tokens"], 1000);
    let cost = 3.0 + 1.5 + 0.003 + 0.00375;
    assert!((end["total_cost_usd"].as_f64().unwrap() - cost).abs() < 1e-12);
    let lines = demo.turn("/usage 1 1");
    let end = result(&lines);
    assert_eq!(end["usage"]["input_tokens"], 1);
    assert_eq!(end["modelUsage"]["demo"]["inputTokens"], 1_000_001);
    assert!((end["total_cost_usd"].as_f64().unwrap() - cost - 0.000_018).abs() < 1e-12);
}

#[test]
fn subagents_nest() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--forward-subagent-text"]);
    let script = "/task outer\n/say out\n/task inner\n/bash echo deep\n/say in {result}\n/end\n/say back\n\
                  /end\n/say {result}";
    let lines = demo.turn(script);
    let calls: Vec<_> = blocks(&lines, "tool_use");
    let id = |at: usize| calls[at]["id"].clone();
    assert_eq!((&calls[0]["name"], &calls[2]["name"]), (&json!("Task"), &json!("Bash")));
    let parent = |said: &str| {
        let fits = |line: &&serde_json::Value| {
            line["type"] == "assistant" && line["message"]["content"][0]["text"] == said
        };
        lines.iter().find(fits).unwrap()["parent_tool_use_id"].clone()
    };
    assert_eq!(parent("out"), id(0));
    assert_eq!(parent("in deep"), id(1));
    assert_eq!(parent("back"), id(0));
    assert_eq!(result(&lines)["result"], "back");
    let asked = requests(&lines, "can_use_tool");
    let started = |id: &serde_json::Value| {
        let fits = |line: &&serde_json::Value| {
            line["subtype"] == "task_started" && line["tool_use_id"] == *id
        };
        lines.iter().find(fits).unwrap()["task_id"].clone()
    };
    assert_eq!(asked[0]["request"]["agent_id"], started(&id(1)));
}

#[test]
fn what_subagents_say_is_left_out_unless_asked_for() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let lines = demo.turn("/task quiet\n/say secret\n/end");
    assert!(lines.iter().all(|line| line["message"]["content"][0]["text"] != "secret"));
    assert_eq!(
        blocks(&lines, "tool_result")[0]["content"][0]["text"],
        "secret",
        "it is its report"
    );
}

#[test]
fn fails_and_goes_on() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    let lines = demo.turn("/say before\n/fail out of luck\n/say never");
    let end = result(&lines);
    assert_eq!((&end["is_error"], &end["result"]), (&json!(true), &json!("out of luck")));
    assert_eq!(end["terminal_reason"], "api_error");
    assert_eq!(text(&lines).matches("never").count(), 0);
    assert_eq!(text(&demo.turn("/say alive")), "alive");
    demo.turn("/fail again");
    assert_eq!(demo.end().0, Some(1), "the last turn failed");
}

#[test]
fn exits_at_once() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.prompt("/say before\n/stderr a word\n/exit 7\n/say never");
    demo.until(|line| line["type"] == "assistant");
    let (code, stderr) = demo.end();
    assert_eq!((code, stderr.as_str()), (Some(7), "a word\n"));
    assert!(!demo.written.iter().any(|line| line.contains("never") && line.contains("assistant")));
}

#[test]
fn raw_lines_are_exact() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.turn("/raw {\"type\": \"odd\",  \"id\":1,\"id\":2}\n/raw not json \\n {model}");
    assert!(demo.written.iter().any(|line| line == "{\"type\": \"odd\",  \"id\":1,\"id\":2}"));
    assert!(demo.written.iter().any(|line| line == "not json \\n {model}"));
}

#[test]
fn wrong_directives_are_told() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let lines = demo.turn("/sleep soon\n/nothing\n/tool Bash {\n/say on");
    let said = text(&lines);
    for words in
        ["/sleep: expected MS", "unknown directive /nothing", "/tool: expected NAME JSON", "on"]
    {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[test]
fn unknown_tools_and_wrong_inputs_are_refused() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--disallowedTools=TodoWrite"]);
    let lines = demo.turn("/tool NoSuch {}\n/tool Bash {\"cmd\":\"ls\"}\n/plan a");
    let results = blocks(&lines, "tool_result");
    let content = |at: usize| results[at]["content"].as_str().unwrap().to_owned();
    assert!(content(0).contains("No such tool available: NoSuch"));
    assert!(content(1).contains("The required parameter `command` is missing"));
    assert!(content(2).contains("No such tool available: TodoWrite"));
    assert!(requests(&lines, "can_use_tool").is_empty());
}

#[test]
fn line_separators_are_escaped() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    let lines = demo.turn("/say a\u{2028}b\u{2029}c");
    assert_eq!(text(&lines), "a\u{2028}b\u{2029}c");
    assert!(!demo.written.iter().any(|line| line.contains(['\u{2028}', '\u{2029}'])));
}
