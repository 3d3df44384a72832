//! Without a terminal: clean output, exit codes, and no prompts.

use std::fs;
use std::process::{Output, Stdio};

use agentwire_protocol::EventKind;

use crate::run::harness::{code, demo, events, run_with};
use crate::shared::{Home, naming, text};

#[test]
fn a_pipe_gets_the_answer_and_nothing_else() {
    let home = Home::new();
    let output = demo(&home, "/think hmm\n/read a.txt\n/say one\n/say two\n\\nlines");
    assert_eq!(code(output.status), Some(0));
    assert_eq!(text(&output.stdout).lines().next(), Some("one"));
    let output = demo(&home, "/say hello");
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("hello\n".into(), String::new()));
}

#[test]
fn agents_cannot_send_escapes_even_through_a_pipe() {
    let home = Home::new();
    let output = demo(&home, "/say a\u{1b}[31mb\u{202e}c");
    assert_eq!(text(&output.stdout), "a\\x1b[31mb\\u{202e}c\n");
}

/// Variables that configure agentwire itself may contain credentials, so agents do not inherit them.
#[test]
fn an_agent_does_not_see_what_is_agentwires_own() {
    let home = Home::new();
    let args = ["run", "-a", "demo", "--approval", "autoAll", "--format", "jsonl", "/bash env"];
    let mut command = home.command(&args);
    let own = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES", "AGENTWIRE_TOKEN"];
    for name in own.iter().chain(&["NOTIFY_SOCKET"]) {
        command.env(name, "aw-own-secret");
    }
    let output = command.env("AW_INHERITED", "aw-other").output().expect("the program runs");
    let told = text(&output.stdout);
    assert!(told.contains("AW_INHERITED=aw-other"), "{told}");
    assert!(!told.contains("aw-own-secret"), "{told}");
}

#[test]
fn jsonl_is_every_event_once() {
    let home = Home::new();
    let output = home.run(&["run", "-a", "demo", "--format", "jsonl", "/read x\n/say hi"]);
    assert_eq!(code(output.status), Some(0));
    let events = events(&output.stdout);
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event.seq, seq);
    }
    let names: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("sessionStarted", "sessionEnded"));
    assert!(names.contains(&"turnCompleted"));

    let output = home.run(&["run", "-a", "demo", "--format=jsonl", "--profile=core", "/say hi"]);
    let core = crate::run::harness::events(&output.stdout);
    assert!(core.iter().all(|event| event.native.is_empty()));
    assert!(!core.iter().any(|event| event.kind.name() == "statusChanged"));
}

#[test]
fn what_nobody_can_be_asked_is_denied_and_said() {
    let home = Home::new();
    let output = demo(&home, "/write made.txt x\n/say on");
    assert_eq!(code(output.status), Some(4));
    assert_eq!(text(&output.stdout), "on\n");
    let told = text(&output.stderr);
    assert!(
        told.contains("agentwire: denied: Write  made.txt: there is no terminal to ask on\n"),
        "{told}"
    );
    assert!(told.contains("--allow"), "{told}");
    assert!(!home.work().join("made.txt").exists());

    let output = demo(&home, "/ask Tea? | Yes | No");
    assert_eq!(code(output.status), Some(4));
    assert!(text(&output.stderr).contains("denied: Tea?"));

    let output = home.run(&["run", "-a", "demo", "--format", "jsonl", "/write made.txt x"]);
    assert_eq!(code(output.status), Some(4));
    assert_eq!(
        events(&output.stdout).iter().filter(|event| event.kind.name() == "requestSettled").count(),
        1
    );
}

#[test]
fn rules_and_modes_allow() {
    let home = Home::new();
    let run =
        |flags: &[&str], prompt| home.run(&[&["run", "-a", "demo"], flags, &[prompt]].concat());
    let output = run(&["--approval", "autoAll"], "/write a.txt x\n/say ok");
    assert_eq!((code(output.status), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(home.work().join("a.txt")).expect("it was written"), "x");
    let output = run(&["--allow", "Bash(echo hi)"], "/bash echo hi\n/say {result}");
    assert_eq!((code(output.status), text(&output.stdout)), (Some(0), "hi\n".into()));
    let output = run(&["--approval", "autoAll", "--block", "Bash"], "/bash touch made\n/say on");
    // Claude and the demo agent do not offer a blocked tool at all.
    assert_eq!((code(output.status), text(&output.stdout)), (Some(0), "on\n".into()));
    assert!(!home.work().join("made").exists(), "what is blocked does not run");
}

#[test]
fn options_reach_the_agent() {
    let home = Home::new();
    fs::create_dir(home.work().join("sub")).expect("a directory");
    let output = home.run(&[
        "run",
        "-a",
        "demo",
        "-C",
        "sub",
        "-m",
        "m-1",
        "--system",
        "be brief",
        "/say {model} {system} {cwd}",
    ]);
    let sub = home.work().join("sub").canonicalize().expect("it exists");
    assert_eq!(text(&output.stdout), format!("m-1 be brief {}\n", sub.display()));
}

#[test]
fn a_limit_is_an_end_where_nobody_can_be_asked() {
    let home = Home::new();
    let output =
        home.run(&["run", "-a", "demo", "--max-turns", "1", "/read a\n/read b\n/say done"]);
    assert_eq!(code(output.status), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("reached its step limit"), "{}", text(&output.stderr));
}

/// One error, with the agent's own message and the meaning of its exit code.
#[test]
fn an_agent_that_does_not_start_is_told_once() {
    let home = Home::new();
    let config = home.work().join("config.toml");
    let run = |agent: &str, driver: &str, script: &str| {
        let text = format!(
            "[limits]\ncall_timeout = 1\n[agents.{agent}]\ncommand = ['sh', '-c', '{script}', 'sh']\n"
        );
        fs::write(&config, text).expect("a file");
        let config = config.to_str().expect("a path");
        home.run(&["--config", config, "run", "-a", agent, "--driver", driver, "hello"])
    };
    let drivers = [
        ("claude", "stream-json"),
        ("codex", "app-server"),
        ("codex", "exec"),
        ("gemini", "acp"),
        ("gemini", "stream-json"),
        ("acp", "acp"),
    ];
    for (agent, driver) in drivers {
        for (script, said) in [
            (
                "echo no flux >&2; exit 7",
                "the agent exited with code 7 before it said anything: no flux",
            ),
            ("echo no flux >&2; exec sleep 600", "said nothing for 1 s after its start: no flux"),
        ] {
            let output = run(agent, driver, script);
            let errors = text(&output.stderr);
            assert_eq!(code(output.status), Some(3), "{agent} {driver}: {errors}");
            assert_eq!(errors.matches(said).count(), 1, "{agent} {driver}: {errors}");
            assert!(errors.lines().count() <= 2, "{agent} {driver}: {errors}");
        }
    }
    // The meaning of the exit code comes first.
    let output = run("gemini", "stream-json", "echo no key >&2; exit 41");
    let errors = text(&output.stderr);
    assert!(errors.contains("gemini is not signed in: no key; run `gemini` once"), "{errors}");
    assert!(naming(home.root()).is_empty());
}

#[test]
fn failures_are_told_and_counted() {
    let home = Home::new();
    let output = demo(&home, "/say half\n/fail boom");
    assert_eq!((code(output.status), text(&output.stdout)), (Some(1), "half\n".into()));
    assert!(text(&output.stderr).contains("boom"));
    let output = demo(&home, "/stderr last words\n/exit 3");
    assert_eq!(code(output.status), Some(1));
    assert!(text(&output.stderr).contains("exited with code 3"), "{}", text(&output.stderr));
}

#[test]
fn a_prompt_comes_from_anywhere() {
    let home = Home::new();
    let output = run_with(&home, &["run", "-a", "demo"], "/say piped\n");
    assert_eq!(text(&output.stdout), "piped\n");
    let output = run_with(&home, &["run", "-a", "demo", "-"], "/say dash");
    assert_eq!(text(&output.stdout), "dash\n");
    let output = home.run(&["run", "-a", "demo", "--", "--help\n/say {prompt}"]);
    assert!(text(&output.stdout).starts_with("--help"), "{}", text(&output.stdout));
    let long = format!("/say {}", "x".repeat(300_000));
    assert_eq!(run_with(&home, &["run", "-a", "demo"], &long).stdout.len(), 300_001);
}

/// The prompt of the first turn in the output of `--format jsonl`.
fn prompted(output: &Output) -> String {
    assert_eq!(code(output.status), Some(0), "{}", text(&output.stderr));
    let events = events(&output.stdout);
    let prompt = events.iter().find_map(|event| match &event.kind {
        EventKind::TurnStarted(turn) => turn.prompt.as_ref().map(ToString::to_string),
        _ => None,
    });
    prompt.expect("a turn with a prompt")
}

#[test]
fn what_is_piped_in_follows_the_prompt() {
    let home = Home::new();
    let args = ["run", "-a", "demo", "--format", "jsonl", "/say hi"];
    for (input, prompt) in [
        ("one\ntwo\n", "/say hi\n\none\ntwo"),
        ("/say ho", "/say hi\n\n/say ho"),
        ("", "/say hi"),
        (" \n\n", "/say hi"),
    ] {
        let output = run_with(&home, &args, input);
        assert_eq!(prompted(&output), prompt);
        assert_eq!(text(&output.stderr), "");
    }
    // A file is read, and the null device is not.
    let file = home.work().join("notes.txt");
    fs::write(&file, "from a file\n").expect("a file");
    let file = fs::File::open(file).expect("a file");
    let output = home.command(&args).stdin(file).output().expect("it runs");
    assert_eq!(prompted(&output), "/say hi\n\nfrom a file");
    assert_eq!(prompted(&home.run(&args)), "/say hi");
    let mut child = home.command(&args).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin");
    std::io::Write::write_all(&mut stdin, b"not UTF-8: \xff").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(output.status), Some(2));
    assert!(text(&output.stderr).contains("not UTF-8"), "{}", text(&output.stderr));
}

#[test]
fn a_pipe_that_nobody_writes_to_does_not_hold_up_a_prompt() {
    let home = Home::new();
    let args = ["run", "-a", "demo", "--format", "jsonl", "/say hi"];
    let mut child = home.command(&args).stdin(Stdio::piped()).spawn().expect("it starts");
    let open = child.stdin.take().expect("stdin");
    let output = child.wait_with_output().expect("it ends");
    drop(open);
    assert_eq!(prompted(&output), "/say hi");
    let note = text(&output.stderr);
    assert!(note.starts_with("agentwire: nothing on stdin for 3 s"), "{note}");
    assert_eq!(note.lines().count(), 1, "{note}");
}

#[test]
fn a_denial_by_a_rule_is_told_once() {
    let home = Home::new();
    let output = home.run(&[
        "run",
        "-a",
        "demo",
        "--approval",
        "autoAll",
        "--block",
        "Bash(rm *)",
        "/bash rm -rf x",
    ]);
    let told = text(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("Bash(rm *)"), "{told}");
}

#[test]
fn without_a_prompt_the_demo_agent_plays_its_tour() {
    let home = Home::new();
    let output = home.run(&["run", "-a", "demo"]);
    assert_eq!(code(output.status), Some(4), "the tour asks");
    assert!(text(&output.stdout).contains("demo agent"));
}

#[test]
fn the_agent_is_the_one_that_is_there() {
    let home = Home::new();
    let output =
        home.command(&["run", "/say hi"]).env("PATH", "/nowhere").output().expect("it runs");
    assert_eq!(text(&output.stdout), "hi\n");
    assert!(text(&output.stderr).contains("demo agent"), "{}", text(&output.stderr));
}

#[test]
fn a_session_goes_on() {
    let home = Home::new();
    let first = home.run(&["run", "-a", "demo", "--format", "jsonl", "/say one"]);
    let id = events(&first.stdout)[0].session_id.to_string();
    let output = home.run(&["run", "--resume", &id[..8], "/say turn {turns}"]);
    assert_eq!((code(output.status), text(&output.stdout)), (Some(0), "turn 2\n".into()));
    let log = home.run(&["logs", "--format", "jsonl", &id]);
    let last = events(&first.stdout).len();
    assert_eq!(events(&log.stdout)[last].kind.name(), "sessionStarted", "it follows the first");
}

#[test]
fn wrong_input_is_told_with_its_remedy() {
    let home = Home::new();
    let cases: [(&[&str], i32, &str); 12] = [
        (&["run", "-a", "claude", "hi"], 3, "AGENTWIRE_CLAUDE_BIN"),
        (&["run", "-a", "codex", "hi"], 3, "npm install -g @openai/codex"),
        (&["run", "-a", "demo", "-C", "/no/such", "hi"], 2, "/no/such"),
        (&["run", "-a", "demo", "--resume", "abcdef", "hi"], 2, "agentwire ls"),
        (&["run", "-a", "nobody", "hi"], 2, "claude, codex, gemini, acp, demo"),
        (
            &["run", "-a", "demo", "--approval", "yes", "hi"],
            2,
            "ask, askDangerous, autoEdit, autoAll",
        ),
        (&["run", "-a", "demo", "--sandbox", "yes", "hi"], 2, "readOnly"),
        (&["run", "-a", "demo", "--max-turns", "0", "hi"], 2, "from 1 to 1000"),
        (&["run", "-a", "demo", "--max-budget=-1", "hi"], 2, "0.50"),
        (&["run", "-a", "demo", ""], 2, "the prompt is empty"),
        (&["logs", "abcdef"], 2, "agentwire ls"),
        (&["attach", "abcdef"], 2, "agentwire ls"),
    ];
    for (args, exit, says) in cases {
        let output = home.run(args);
        let told = text(&output.stderr);
        assert_eq!(code(output.status), Some(exit), "{args:?}: {told}");
        assert!(told.contains(says), "{args:?}: {told}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let output = run_with(&home, &["run", "-a", "demo", "-"], "");
    assert_eq!(code(output.status), Some(2));
}
