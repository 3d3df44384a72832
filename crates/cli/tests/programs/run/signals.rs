//! After a signal, or when a reader leaves or stops reading, the program exits and leaves nothing running.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::run::harness::{code, signal};
use crate::shared::{Home, naming};

/// Starts a turn and returns once a tool runs.
fn start(home: &Home, prompt: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let args = ["run", "-a", "demo", "--approval", "autoAll", "--format", "jsonl", prompt];
    let mut child = home.command(&args).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    while !line.contains(r#""type":"toolStarted""#) {
        line.clear();
        assert!(lines.read_line(&mut line).expect("output") > 0, "it ended");
    }
    (child, lines)
}

/// Reads its output until it exits.
fn end(mut child: Child, mut lines: BufReader<std::process::ChildStdout>) -> (ExitStatus, String) {
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("output");
    (child.wait().expect("it ends"), rest)
}

#[test]
fn an_interrupt_ends_the_turn() {
    let home = Home::new();
    let (child, lines) = start(&home, "/bash sleep 1000");
    signal(&child, Signal::INT);
    let (status, rest) = end(child, lines);
    assert_eq!(code(status), Some(130));
    assert!(rest.contains("turnFailed") && rest.contains("sessionEnded"), "{rest}");
    assert_eq!(naming(home.root()), Vec::<String>::new());
}

#[test]
fn a_second_interrupt_ends_the_session_and_a_third_does_not_wait() {
    let home = Home::new();
    // The tool ignores signals, and so do its children.
    let (mut child, lines) = start(&home, "/bash trap '' INT TERM; sleep 1000 & wait; sleep 1000");
    let mut told = BufReader::new(child.stderr.take().expect("stderr"));
    for says in ["interrupting", "stopping the session"] {
        signal(&child, Signal::INT);
        let mut line = String::new();
        told.read_line(&mut line).expect("output");
        assert!(line.contains(says), "{line}");
    }
    signal(&child, Signal::INT);
    let (status, _) = end(child, lines);
    assert_eq!(code(status), Some(130));
}

#[test]
fn a_termination_ends_the_session() {
    let home = Home::new();
    let (child, lines) = start(&home, "/bash sleep 1000");
    signal(&child, Signal::TERM);
    let (status, rest) = end(child, lines);
    assert_eq!(code(status), Some(130));
    assert!(rest.contains("sessionEnded"), "{rest}");
    assert_eq!(naming(home.root()), Vec::<String>::new());
}

#[test]
fn a_reader_who_goes_ends_it_quietly() {
    let home = Home::new();
    let (mut child, lines) = start(&home, "/bash sleep 0\n/repeat 100000 xxxxxxxxxxxxxxxx\n/hang");
    drop(lines);
    assert_eq!(code(child.wait().expect("it ends")), Some(0));
    let mut told = String::new();
    child.stderr.take().expect("stderr").read_to_string(&mut told).expect("UTF-8");
    assert_eq!(told, "");
    assert_eq!(naming(home.root()), Vec::<String>::new());
}

/// The first signal ends the session; then the program waits for its reader. The second signal ends that
/// wait.
#[test]
fn a_reader_who_does_not_read_does_not_keep_it_from_ending() {
    let home = Home::new();
    let (mut child, lines) = start(&home, "/bash sleep 0\n/pad 4000000\n/pad 4000000\n/hang");
    let process = Pid::from_child(&child);
    let ended = pidfd_open(process, PidfdFlags::empty()).expect("it runs");
    let moment = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        // Signals that arrive together count as one, so two may not be enough.
        kill_process(process, Signal::TERM).expect("it still exists");
        let mut polled = [PollFd::new(&ended, PollFlags::IN)];
        // The children of other tests end too.
        let ready = retry_on_intr(|| poll(&mut polled, Some(&moment))).expect("poll");
        if ready > 0 {
            break;
        }
        assert!(Instant::now() < deadline, "it does not end");
    }
    assert_eq!(code(child.wait().expect("it ends")), Some(130));
    drop(lines);
}
