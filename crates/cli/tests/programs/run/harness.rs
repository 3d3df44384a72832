//! Runs the demo agent with `agentwire run`, and reads its output.

use std::io::Write as _;
use std::process::{Child, ExitStatus, Output, Stdio};

use agentwire_protocol::Event;

use crate::shared::{Home, text};

pub(crate) fn demo(home: &Home, prompt: &str) -> Output {
    home.run(&["run", "-a", "demo", prompt])
}

/// Runs the program with `input` on stdin.
pub(crate) fn run_with(home: &Home, args: &[&str], input: &str) -> Output {
    let mut child = home.command(args).stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

pub(crate) fn code(status: ExitStatus) -> Option<i32> {
    status.code()
}

/// The printed events, one per line.
pub(crate) fn events(output: &[u8]) -> Vec<Event<'static>> {
    text(output).lines().map(|line| Event::from_json(line).expect("an event")).collect()
}

/// Sends a signal to that process only.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal)
        .expect("it runs");
}
