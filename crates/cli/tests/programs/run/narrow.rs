//! A narrow terminal, and one whose size changes.

use std::os::fd::OwnedFd;
use std::process::Command;

use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::pty::Pty;
use crate::run::harness::signal;
use crate::shared::Home;

const COLUMNS: u16 = 60;

/// Starts it on a terminal with that many columns, which can be resized.
fn start(command: &mut Command, columns: u16) -> (Pty, OwnedFd) {
    let mut kept = None;
    let pty = Pty::start_with(command, |command, terminal| {
        let copy = || terminal.try_clone().expect("a descriptor");
        resize(terminal, columns);
        command.stdin(copy()).stdout(copy()).stderr(copy());
        kept = Some(copy());
    });
    (pty, kept.expect("a terminal"))
}

/// The terminal is not the program's controlling one, so this sends no signal.
fn resize(terminal: &OwnedFd, columns: u16) {
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a size");
}

fn narrow(command: &mut Command) -> Pty {
    start(command, COLUMNS).0
}

/// Every line fits, unless it is a single word or a command to copy.
fn assert_fits(shown: &str) {
    assert!(!shown.contains('\x1b'), "{shown:?}");
    for line in shown.lines() {
        let text = line.trim_start_matches([' ', '→']);
        let is_whole = !text.contains(' ') || (text.starts_with('`') && text.ends_with('`'));
        assert!(is_whole || line.chars().count() <= usize::from(COLUMNS), "{line:?} in {shown}");
    }
}

#[test]
fn the_view_is_readable_at_60_columns() {
    let home = Home::new();
    let prompt = "/say The quick brown fox jumps over the lazy dog and then runs back home again\n\
                  /write made.txt one\n/ask Tea? | Black | Green\n/say done";
    let mut command = home.command(&["run", "-a", "demo", prompt]);
    let mut pty = narrow(command.env("NO_COLOR", "1"));
    pty.expect("allow? ");
    pty.press("y");
    pty.expect("your choice? ");
    pty.press("2");
    assert_eq!(pty.end(), Some(0), "{}", pty.shown);
    let shown = pty.shown.replace("\r\n", "\n");
    assert_fits(&shown);
    for part in [
        "\nThe quick brown fox jumps over the lazy dog and then runs\nback home again\n",
        "\n  [y] allow  [a] always in this session  [n] deny  [d] deny\n    with a message  [i] interrupt\n",
        "\n  [1…] choose  [t] type an answer  [n] decline  [i]\n    interrupt\n",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown:?}");
    }
}

/// A terminal that cannot erase gets no escape sequences, not even for progress.
#[test]
fn doctor_is_readable_at_60_columns_on_a_dumb_terminal() {
    let home = Home::new();
    assert!(home.run(&["run", "-a", "demo", "/say one"]).status.success());
    let mut pty = narrow(home.command(&["doctor"]).env("TERM", "dumb"));
    pty.end();
    let shown = pty.shown.replace("\r\n", "\n");
    assert!(shown.contains("✓ demo turn"), "{shown}");
    assert_fits(&shown);
}

#[test]
fn errors_wrap_at_words() {
    let home = Home::new();
    let mut pty = narrow(&mut home.command(&["show", "no-session-has-this-id-in-this-place"]));
    assert_eq!(pty.end(), Some(2));
    let shown = pty.shown.replace("\r\n", "\n");
    assert!(shown.starts_with("agentwire: ") && shown.contains("\n  "), "{shown:?}");
    assert_fits(&shown);
}

/// The terminal wraps a line that was drawn when it was wider. All rows of that line are erased.
#[test]
fn a_status_line_leaves_no_trace_when_the_terminal_becomes_narrower() {
    let home = Home::new();
    let prompt = format!("/bash sleep 600; : {}", "padding ".repeat(12));
    let args = ["run", "-a", "demo", "--approval", "autoAll", &prompt];
    let (mut pty, terminal) = start(&mut home.command(&args), 100);
    pty.expect(" s  Bash");
    resize(&terminal, COLUMNS);
    pty.expect("\r\x1b[1A\x1b[J");
    pty.expect("\r\x1b[K");
    let redrawn = pty.shown.rsplit("\r\x1b[1A\x1b[J").next().expect("a line");
    let line = redrawn.split("\r\x1b[K").next().expect("a line");
    assert!(line.contains(" s  Bash"), "{line:?}");
    assert!(line.chars().count() < usize::from(COLUMNS), "{line:?}");
    signal(pty.child(), Signal::INT);
    pty.expect("interrupting");
    signal(pty.child(), Signal::INT);
    assert_eq!(pty.end(), Some(130));
}

#[test]
fn a_question_is_redrawn_when_the_terminal_changes_its_size() {
    let home = Home::new();
    let mut command = home.command(&["run", "-a", "demo", "/bash echo hi"]);
    let (mut pty, terminal) = start(&mut command, 100);
    pty.expect("allow? ");
    resize(&terminal, COLUMNS);
    signal(pty.child(), Signal::WINCH);
    pty.expect("\r\x1b[Kallow? ");
    pty.press("y");
    assert_eq!(pty.end(), Some(0));
}
