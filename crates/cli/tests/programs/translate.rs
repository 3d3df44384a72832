//! `agentwire translate` as a program, over real pipes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use agentwire_protocol::Event;

fn agentwire(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = agentwire(args).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin");
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().expect("the program ends")
    })
}

fn native(output: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event = Event::from_json(std::str::from_utf8(line).expect("UTF-8")).expect("an event");
        event.native.iter().for_each(|native| native.write_to(&mut bytes));
    }
    bytes
}

fn fixtures(dialect: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures").join(dialect);
    let cases = fs::read_dir(folder).expect("fixtures");
    let mut files: Vec<_> =
        cases.map(|case| case.expect("a case").path().join("agent.jsonl")).collect();
    files.sort();
    files
}

/// Any bytes: exit code 0, events numbered from 1 without gaps, and the input byte for byte.
#[test]
fn every_case_comes_back_byte_for_byte() {
    for dialect in ["claude", "codex", "gemini", "acp"] {
        for file in fixtures(dialect) {
            let input = fs::read(&file).expect("a fixture");
            let output = run(&["translate", "--from", dialect], &input);
            assert!(output.status.success(), "{}", file.display());
            assert!(native(&output.stdout) == input, "{}", file.display());
            let seqs = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for (at, line) in seqs.enumerate() {
                let event =
                    Event::from_json(std::str::from_utf8(line).expect("UTF-8")).expect("an event");
                assert_eq!(event.seq, at as u64 + 1);
                assert!(event.id.ends_with(&format!("-{}", event.seq)));
            }
        }
    }
}

/// `--from auto` recognizes the wire of every recording of a real program.
#[test]
fn auto_finds_the_dialect() {
    for dialect in ["claude", "codex", "gemini", "acp"] {
        for file in fixtures(dialect) {
            let name = file.parent().and_then(Path::file_name).expect("a name").to_string_lossy();
            if !name.starts_with("real-") || name == "real-exec-no-json" {
                continue;
            }
            let input = fs::read(&file).expect("a fixture");
            let output = run(&["translate"], &input);
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name}");
            let first = output.stdout.split(|byte| *byte == b'\n').find(|line| !line.is_empty());
            let text = String::from_utf8_lossy(first.expect("an event")).into_owned();
            let agent = if dialect == "acp" { "acp" } else { dialect };
            assert!(text.contains(&format!("\"agentType\":\"{agent}\"")), "{name}: {text}");
        }
    }
}

/// In a pipe, each line is written as soon as it is read.
#[test]
fn lines_come_out_one_by_one() {
    let mut child =
        agentwire(&["translate", "--from", "gemini"]).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let init = r#"{"type":"init","session_id":"s","model":"m"}"#;
    let user = r#"{"type":"message","role":"user","content":"hi"}"#;
    for (line, kind) in [(init, "sessionStarted"), (user, "turnStarted")] {
        writeln!(stdin, "{line}").expect("stdin accepts a line");
        let event = lines.next().expect("a line").expect("UTF-8");
        assert!(event.contains(kind), "{event}");
    }
    drop(stdin);
    assert_eq!(lines.count(), 2);
    assert!(child.wait().expect("the program ends").success());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child =
        agentwire(&["translate", "--from", "gemini"]).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = child.stdout.take().expect("stdout");
    writeln!(stdin, "{{}}").expect("stdin accepts a line");
    let mut byte = [0; 1];
    stdout.read_exact(&mut byte).expect("output");
    drop(stdout);
    while stdin.write_all(&[b'\n'; 65536]).is_ok() {}
    drop(stdin);
    assert!(child.wait().expect("the program ends").success());
}

#[test]
fn nothing_and_nonsense_are_no_errors() {
    let empty = run(&["translate"], b"");
    assert!(empty.status.success());
    assert!(String::from_utf8_lossy(&empty.stderr).contains("empty"));
    let nonsense = run(&["translate"], b"what\n\xff\xfe\n");
    assert!(nonsense.status.success());
    assert_eq!(native(&nonsense.stdout), b"what\n\xff\xfe\n");
    assert!(String::from_utf8_lossy(&nonsense.stderr).contains("--from"));
}

#[test]
fn core_has_only_the_specification_s_types() {
    let input = fs::read(&fixtures("gemini")[10]).expect("a fixture");
    let output = run(&["translate", "--from", "gemini", "--profile", "core"], &input);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("turnStarted") && !text.contains("\"native\""), "{text}");
}

/// `--to claude`: another agent's turns as Claude's messages, with chunks on request; Claude's own lines
/// except control lines.
#[test]
fn messages_are_written_as_claude_prints_them() {
    let input = concat!(
        "{\"type\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}\n",
        "{\"type\":\"message\",\"role\":\"user\",\"content\":\"hi\"}\n",
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Hello\",\"delta\":true}\n",
        "{\"type\":\"result\",\"status\":\"success\",\"stats\":{\"duration_ms\":7}}\n",
    );
    let kinds = |args: &[&str], input: &str| -> Vec<String> {
        let output = run(
            &[&["translate", "--to", "claude", "--session-id", "s-1"], args].concat(),
            input.as_bytes(),
        );
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).expect("UTF-8");
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        let messages: Vec<_> = lines.lines().map(read).collect();
        assert!(messages.iter().all(|message| message["session_id"] == "s-1"), "{lines}");
        let kind = |message: &serde_json::Value| message["type"].as_str().map(str::to_owned);
        messages.iter().filter_map(kind).collect()
    };
    assert_eq!(kinds(&[], input), ["system", "assistant", "result"]);
    let pieces = kinds(&["--include-partial-messages"], input);
    assert_eq!(pieces.iter().filter(|kind| *kind == "stream_event").count(), 6);
    let claude = "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s-1\"}\n{\"type\":\"keep_alive\"}\n";
    assert_eq!(kinds(&["--from", "claude"], claude), ["system", "result"]);
}

#[test]
fn transcripts_are_unwrapped() {
    let transcript = concat!(
        "{\"dir\":\"in\",\"t_ms\":1,\"line\":{\"type\":\"message\"}}\n",
        "{\"dir\": \"out\", \"t_ms\": 2, \"line\": {\"type\": \"init\", \"session_id\": \"s\"}}\n",
        "{\"dir\":\"out\",\"t_ms\":3,\"line\":{\"type\":\"x\",\"a\":1,\"a\":2}}\n",
        "{\"dir\":\"out\",\"t_ms\":4,\"raw\":\"not \\\"JSON\\\"\"}\n",
        "{\"dir\":\"out\",\"line\":{\"b\":1,\"b\":2},\"note\":\"after\"}\n",
        "what\n",
    );
    let output = run(&["translate", "--from", "gemini", "--transcript"], transcript.as_bytes());
    let lines = "{\"type\": \"init\", \"session_id\": \"s\"}\n{\"type\":\"x\",\"a\":1,\"a\":2}\nnot \"JSON\"\n{\"b\":1,\"b\":2}\n";
    assert!(String::from_utf8_lossy(&output.stderr).contains("skipped 1 line that"));
    assert_eq!(String::from_utf8(native(&output.stdout)).expect("UTF-8"), lines);
    let hint = run(&["translate"], transcript.as_bytes());
    assert!(String::from_utf8_lossy(&hint.stderr).contains("--transcript"));
}

/// A line may be long, loose or start with a byte order mark, and is still recognized.
#[test]
fn auto_reads_as_the_tape_does() {
    let long = "x".repeat(3 << 20);
    let lines = [
        format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":\"{long}\"}}\n"),
        "{\"type\":\"message\",\"role\":\"user\",\"content\":\"\\ud83d\"}\n".to_owned(),
        "\u{FEFF}{\"type\":\"message\",\"role\":\"user\",\"content\":\"\"}".to_owned(),
    ];
    for line in lines {
        let output = run(&["translate"], line.as_bytes());
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains("\"agentType\":\"gemini\""), "{}", text.get(..300).unwrap_or(&text));
    }
}

#[test]
fn the_summary_counts() {
    let output = run(&["translate", "--from", "gemini", "--summary"], b"{}\nx\n");
    let summary = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(summary.starts_with("2 lines, 5 bytes in; 4 events"), "{summary}");
    assert!(summary.contains("2 other"), "{summary}");
}

#[test]
fn files_are_read_and_missing_ones_named() {
    let file = &fixtures("gemini")[12];
    let output = run(&["translate", file.to_str().expect("UTF-8")], b"");
    assert_eq!(native(&output.stdout), fs::read(file).expect("a fixture"));
    let missing = run(&["translate", "no/such/file"], b"");
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no/such/file"));
}

#[test]
fn schemas_and_completions_are_printed() {
    for (of, word) in [("event", "sessionStarted"), ("request", "approvalMode")] {
        let output = run(&["schema", of], b"");
        let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(schema.to_string().contains(word));
    }
    assert!(
        String::from_utf8_lossy(&run(&["completions", "bash"], b"").stdout).contains("translate")
    );
}

#[test]
fn wrong_words_are_refused_with_what_is_right() {
    let output = run(&["translate", "--from", "hal"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("codex-exec"));
}
