//! `logs` and `attach`: the log as it is now and as it grows.

use std::io::{BufRead as _, BufReader, Read as _};

use crate::pty::Pty;
use crate::run::harness::{code, events};
use crate::shared::{Home, text};

fn session(home: &Home, prompt: &str) -> (String, Vec<u8>) {
    let output = home.run(&["run", "-a", "demo", "--format", "jsonl", prompt]);
    (events(&output.stdout)[0].session_id.to_string(), output.stdout)
}

#[test]
fn a_log_is_what_run_printed_byte_for_byte() {
    let home = Home::new();
    let (id, printed) = session(&home, "/read x\n/task T\n/say in\n/end\n/raw not json\n/say out");
    let output = home.run(&["logs", "--format", "jsonl", &id[..6]]);
    assert!(output.stdout == printed);
    let output = home.run(&["logs", "-f", "--format", "jsonl", &id]);
    assert!(output.stdout == printed, "a session that is over is followed to its end");
    let after = home.run(&["logs", "--format", "jsonl", "--after", "5", &id]);
    assert_eq!(events(&after.stdout)[0].seq, 6);
    assert_eq!(
        text(&after.stdout),
        text(&printed).split_inclusive('\n').skip(5).collect::<String>()
    );
    let none = home.run(&["logs", "--after", "100000", &id]);
    assert_eq!((code(none.status), none.stdout.len()), (Some(0), 0));
}

#[test]
fn native_is_what_the_agent_wrote() {
    let home = Home::new();
    let (id, printed) = session(&home, "/stderr aside\n/raw {\"a\": 1, \"a\": 2}\n/say out");
    let mut expected = Vec::new();
    for event in events(&printed) {
        let said = event.native.iter();
        said.filter(|line| line.stream == agentwire_protocol::Stream::Stdout)
            .for_each(|line| line.write_to(&mut expected));
    }
    let output = home.run(&["logs", "--native", &id]);
    assert!(output.stdout == expected);
    assert!(text(&output.stdout).contains("{\"a\": 1, \"a\": 2}\n"));
    assert!(!text(&output.stdout).contains("aside"));
}

#[test]
fn core_has_only_the_twelve() {
    let home = Home::new();
    let (id, _) = session(&home, "/think hmm\n/say out");
    let output = home.run(&["logs", "--format", "jsonl", "--profile", "core", &id]);
    let names: Vec<_> =
        events(&output.stdout).iter().map(|event| event.kind.name().to_owned()).collect();
    assert!(
        names.contains(&"textChunk".to_owned()) && !names.contains(&"thinkingChunk".to_owned())
    );
}

#[test]
fn as_text_a_log_is_the_whole_story() {
    let home = Home::new();
    let (id, _) = session(&home, "/think hmm\n/bash echo hi\n/say out");
    for verb in ["logs", "attach"] {
        let output = home.run(&[verb, &id]);
        assert_eq!(code(output.status), Some(0));
        let shown = text(&output.stdout);
        assert!(!shown.contains('\x1b'));
        for part in ["> /say out\n", "┊ hmm\n", "● Bash  echo hi\n  ✗ denied: ", "\nout\n\n✓ "]
        {
            assert!(shown.contains(part), "{verb}: {part:?} is not in {shown:?}");
        }
    }
}

/// Other processes can read a running session as far as it is, and follow it to its end.
#[test]
fn a_session_that_runs_elsewhere_is_followed_to_its_end() {
    let home = Home::new();
    let mut owner =
        Pty::start(&mut home.command(&["run", "-a", "demo", "/say one\n/bash echo hi\n/say two"]));
    owner.expect("allow? ");
    let id = session_of(&owner);
    let now = home.run(&["logs", &id]);
    assert!(text(&now.stdout).contains("\none\n") && !text(&now.stdout).contains("\ntwo\n"));

    let mut follower = home.command(&["logs", "-f", &id]).spawn().expect("it starts");
    let mut lines = BufReader::new(follower.stdout.take().expect("stdout"));
    let mut line = String::new();
    while !line.contains("echo hi") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("output") > 0);
    }
    let mut watcher = Pty::start(&mut home.command(&["attach", &id]));
    watcher.expect("(agentwire run)");
    watcher.expect("waiting for an answer");
    owner.press("y");
    watcher.expect("allowed");
    watcher.expect("\ntwo");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("UTF-8");
    assert!(rest.contains("two"), "{rest:?}");
    assert_eq!(code(follower.wait().expect("it ends")), Some(0));
    assert_eq!((owner.end(), watcher.end()), (Some(0), Some(0)));
}

/// The short id in the first line.
fn session_of(pty: &Pty) -> String {
    let line = pty.shown.lines().next().expect("a line");
    let id = line.rsplit(" · ").next().expect("an id");
    id.chars().take(8).collect()
}

/// Agent output never controls the terminal of a person who views it. Programs get it unchanged.
#[test]
fn nothing_that_was_said_drives_the_terminal() {
    let home = Home::new();
    let hostile =
        "/say red \u{1b}[31mb\u{1b}]0;title\u{7} \u{202e}back\u{2066} \u{9b}31m \u{7f} \u{200b}end";
    let (id, _) = session(&home, hostile);
    for args in [
        &["export", &*id][..],
        &["export", &id, "--format", "text"],
        &["export", &id, "--format", "markdown"],
        &["logs", &id],
        &["attach", &id],
        &["show", &id],
        &["show", &id, "--json"],
        &["ls"],
        &["ls", "--json"],
    ] {
        let mut pty = Pty::start(&mut home.command(args));
        assert_eq!(pty.end(), Some(0), "{args:?}: {}", pty.shown);
        let shown = &pty.shown;
        for drives in [
            "\u{1b}[31mb",
            "\u{1b}]0",
            "\u{7}",
            "\u{202e}",
            "\u{2066}",
            "\u{9b}",
            "\u{7f}",
            "\u{200b}",
        ] {
            assert!(!shown.contains(drives), "{args:?} {drives:?}: {shown:?}");
        }
    }
    let piped = text(&home.run(&["export", &id]).stdout);
    assert!(piped.contains('\u{202e}') && piped.contains('\u{9b}'), "{piped:?}");
}
