//! On a terminal: the view, the questions and the keys.

use std::io::Read as _;
use std::process::Stdio;

use rustix::process::Signal;
use rustix::termios::LocalModes;

use crate::pty::Pty;
use crate::run::harness::signal;
use crate::shared::{Home, naming};

fn demo(home: &Home, prompt: &str) -> std::process::Command {
    home.command(&["run", "-a", "demo", prompt])
}

/// The screen after transient lines are erased.
fn screen(shown: &str) -> String {
    let lines = shown.split("\r\n").map(|line| line.rsplit("\r\x1b[K").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_permission_is_given_by_a_key() {
    let home = Home::new();
    let mut command = demo(&home, "/think hmm\n/write made.txt one\\ntwo\n/say done");
    let mut pty = Pty::start(command.env("NO_COLOR", "1"));
    pty.expect("allow? ");
    assert!(!pty.modes().intersects(LocalModes::ICANON | LocalModes::ECHO));
    pty.press("y");
    assert_eq!(pty.end(), Some(0), "{}", pty.shown);
    let shown = pty.shown.replace("\r\n", "\n");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    for part in [
        "┊ hmm\n",
        "● Write  made.txt\n",
        "? Write asks for permission\n  made.txt\n  1 + one\n  2 + two\n",
        "[y] allow  [a] always in this session  [n] deny  [d] deny with a message  [i] interrupt\n",
        "  → allowed\n  ✓ ",
        "± created made.txt  +2 −0\n",
        "\ndone\n\n✓ ",
        "agentwire run --resume ",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown:?}");
    }
    assert!(home.work().join("made.txt").exists());
}

#[test]
fn the_terminal_is_as_it_was_once_it_is_answered() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/bash echo hi\n/hang"));
    pty.expect("allow? ");
    pty.press("n");
    pty.expect("denied");
    pty.expect("ctrl-c interrupts");
    assert!(pty.modes().contains(LocalModes::ICANON | LocalModes::ECHO));
    signal(pty.child(), Signal::INT);
    assert_eq!(pty.end(), Some(130));
    assert_eq!(naming(home.root()), Vec::<String>::new());
}

#[test]
fn an_interrupt_at_a_question_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/bash echo hi"));
    pty.expect("allow? ");
    signal(pty.child(), Signal::INT);
    pty.expect("session ");
    assert!(pty.modes().contains(LocalModes::ICANON | LocalModes::ECHO));
    assert_eq!(pty.end(), Some(130));
    assert!(pty.shown.contains("the turn was interrupted"), "{:?}", pty.shown);
}

/// While the program was stopped, another one may have used the terminal, so the question is asked again.
#[test]
fn a_question_is_shown_again_when_it_comes_back() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/bash echo hi\n/say done"));
    pty.expect("allow? ");
    signal(pty.child(), Signal::CONT);
    pty.expect("asks for permission");
    pty.expect("allow? ");
    pty.press("y");
    assert_eq!(pty.end(), Some(0));
}

#[test]
fn a_question_that_waits_too_long_vanishes_and_is_denied() {
    let home = Home::new();
    let mut command = demo(&home, "/bash echo hi\n/say done");
    let mut pty = Pty::start(command.env("AGENTWIRE_REQUEST_TIMEOUT", "1"));
    pty.expect("allow? ");
    pty.expect("nobody answered within 1 s");
    pty.expect("session ");
    assert!(pty.modes().contains(LocalModes::ICANON | LocalModes::ECHO));
    assert_eq!(pty.end(), Some(4));
    assert!(!screen(&pty.shown).contains("allow? "), "{:?}", pty.shown);
}

/// Keys typed before the question was shown, pasted text and invalid answers do not answer it.
#[test]
fn nobody_allows_by_accident() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/sleep 1500\n/bash touch made\n/say done"));
    pty.expect("demo");
    pty.press("y");
    pty.press("y\n");
    pty.expect("allow? ");
    for keys in ["\n", "yes please", "\x1b[A", "x", "1"] {
        pty.press(keys);
        pty.expect("\x07");
    }
    pty.press("d");
    pty.expect("message for the agent");
    pty.press("not like this\n");
    assert_eq!(pty.end(), Some(0));
    assert!(screen(&pty.shown).contains("denied"), "{:?}", pty.shown);
    assert!(pty.shown.contains("not like this"), "{:?}", pty.shown);
    assert!(!home.work().join("made").exists());
}

#[test]
fn questions_are_answered_by_number_and_by_words() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/ask Tea? | Black | Green\n/ask Why? | So | Thus"));
    pty.expect("1. Black");
    pty.expect("your choice? ");
    pty.press("2");
    pty.expect("Why?");
    pty.expect("your choice? ");
    pty.press("t");
    pty.expect("your answer");
    pty.press("because\n");
    assert_eq!(pty.end(), Some(0));
    assert!(pty.shown.contains("\"Tea?\"=\"Green\""), "{:?}", pty.shown);
    assert!(pty.shown.contains("\"Why?\"=\"because\""), "{:?}", pty.shown);
}

#[test]
fn always_holds_for_the_session() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/bash echo one\n/bash echo one\n/say done"));
    pty.expect("allow? ");
    pty.press("a");
    assert_eq!(pty.end(), Some(0));
    assert_eq!(pty.shown.matches("asks for permission").count(), 1, "{:?}", pty.shown);
}

#[test]
fn subagents_are_indented_and_named() {
    let home = Home::new();
    let prompt = "/task Look\n/bash echo deep\n/say found\n/end\n/say done";
    let mut pty = Pty::start(demo(&home, prompt).env("TERM", "dumb"));
    pty.expect("(general-purpose)");
    pty.expect("allow? ");
    pty.press("y");
    assert_eq!(pty.end(), Some(0));
    let shown = pty.shown.replace("\r\n", "\n");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    assert!(shown.contains("▸ general-purpose  Look\n  ● Bash  echo deep\n"), "{shown:?}");
    assert!(shown.contains("\n  found\n\n◂ general-purpose  "), "{shown:?}");
    assert!(shown.contains("\n\ndone\n"), "{shown:?}");
}

#[test]
fn a_spinner_turns_while_nothing_comes_and_leaves_no_trace() {
    let home = Home::new();
    let mut pty = Pty::start(&mut demo(&home, "/say before\n/sleep 1500\n/say after"));
    pty.expect("ctrl-c interrupts");
    assert_eq!(pty.end(), Some(0));
    let screen = screen(&pty.shown);
    assert!(!screen.contains("ctrl-c"), "{screen:?}");
    assert!(screen.contains("\nbefore\n\nafter\n"), "{screen:?}");
}

/// stdout is a pipe and stderr a terminal: the answer goes to the pipe, everything else to the terminal.
#[test]
fn a_pipe_and_a_terminal_share_the_work() {
    let home = Home::new();
    let mut command = demo(&home, "/say one\n/bash echo hi\n/say two");
    let mut pty = Pty::start_with(&mut command, |command, terminal| {
        let copy = || Stdio::from(terminal.try_clone().expect("a descriptor"));
        command.stdin(copy()).stderr(copy()).stdout(Stdio::piped());
    });
    let mut stdout = pty.child().stdout.take().expect("stdout");
    pty.expect("allow? ");
    pty.press("y");
    assert_eq!(pty.end(), Some(0));
    let mut answer = String::new();
    stdout.read_to_string(&mut answer).expect("UTF-8");
    assert_eq!(answer, "one\n\ntwo\n");
    assert!(pty.shown.contains("Bash") && !pty.shown.contains("two"), "{:?}", pty.shown);
}

/// With a prompt in a pipe, questions are asked on the controlling terminal. This test has none.
#[test]
fn without_a_controlling_terminal_a_piped_prompt_asks_nobody() {
    let home = Home::new();
    let mut command = home.command(&["run", "-a", "demo", "-"]);
    let mut pty = Pty::start_with(&mut command, |command, _| {
        command.stdin(Stdio::piped());
    });
    let mut stdin = pty.child().stdin.take().expect("stdin");
    std::io::Write::write_all(&mut stdin, b"/bash echo hi").expect("it reads");
    drop(stdin);
    assert_eq!(pty.end(), Some(4));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let home = Home::new();
    let mut pty =
        Pty::start(&mut demo(&home, "/say a\u{1b}]0;title\u{7}b\n/bash printf '\\033[2J'"));
    pty.expect("allow? ");
    pty.press("y");
    assert_eq!(pty.end(), Some(0));
    assert!(!pty.shown.contains("\x1b]0;") && !pty.shown.contains("\x1b[2J"), "{:?}", pty.shown);
    assert!(pty.shown.contains("a\\x1b]0;title\\x07b"), "{:?}", pty.shown);
}

#[test]
fn a_prompt_is_asked_for_if_there_is_none() {
    let home = Home::new();
    let mut first = home.command(&["run", "-a", "demo", "--format", "jsonl", "/say one"]);
    let output = first.output().expect("it runs");
    let id = crate::run::harness::events(&output.stdout)[0].session_id.to_string();
    // The demo agent needs no prompt: without one it plays its tour.
    let mut pty = Pty::start(&mut home.command(&["run", "--resume", &id]));
    pty.expect("allow? ");
    pty.press("i");
    assert_eq!(pty.end(), Some(130));
}
