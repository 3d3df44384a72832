//! `run` in a project that is not trusted yet.

use std::fs;
use std::process::Command;

use crate::pty::Pty;
use crate::run::harness::code;
use crate::shared::{Home, text};

/// A home whose `claude` logs its arguments, in a project with a hook.
fn home() -> Home {
    let home = Home::new();
    // The demo agent does not know this flag.
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> ../argv.log\n\
         for word do shift; [ \"$word\" = --strict-mcp-config ] || set -- \"$@\" \"$word\"; done\n\
         exec {} demo-agent --state-dir=../demo \"$@\"\n",
        env!("CARGO_BIN_EXE_agentwire")
    );
    home.program("claude", &script);
    fs::create_dir(home.work().join(".claude")).expect("a directory");
    let settings = r#"{"statusLine":{"type":"command","command":"evil --now"}}"#;
    fs::write(home.work().join(".claude/settings.json"), settings).expect("a file");
    home
}

fn claude(home: &Home, more: &[&str]) -> Command {
    home.command(&[&["run", "-a", "claude"], more, &["/say hello"]].concat())
}

fn is_trusted(home: &Home) -> bool {
    let log = fs::read_to_string(home.work().join("../argv.log")).expect("a logged start");
    !log.lines().last().expect("a logged start").contains("--setting-sources=user")
}

#[test]
fn without_a_terminal_the_project_is_not_trusted_and_that_is_said() {
    let home = home();
    let output = claude(&home, &[]).output().expect("it runs");
    let told = text(&output.stderr);
    assert_eq!((code(output.status), &*text(&output.stdout)), (Some(4), "hello\n"), "{told}");
    assert!(told.contains("starts without the project's settings"), "{told}");
    assert!(told.contains("--trust"), "{told}");
    assert!(!is_trusted(&home));
    for (more, variable) in [(&["--trust"][..], "ask"), (&[], "ask"), (&[], "always")] {
        let mut command = claude(&home, more);
        let output = command.env("AGENTWIRE_TRUST", variable).output().expect("it runs");
        assert_eq!(code(output.status), Some(0), "{}", text(&output.stderr));
        assert!(is_trusted(&home));
    }
    // After trust is revoked, the question is asked again.
    let trusted = text(&home.run(&["trust", "ls"]).stdout);
    let directory = home.work().canonicalize().expect("a directory");
    assert!(trusted.contains(&*directory.to_string_lossy()), "{trusted}");
    for expected in [Some(0), Some(2)] {
        assert_eq!(code(home.run(&["trust", "revoke", "."]).status), expected);
    }
    assert_eq!(text(&home.run(&["trust", "ls"]).stdout), "");
    let output = claude(&home, &[]).output().expect("it runs");
    assert_eq!(code(output.status), Some(4), "{}", text(&output.stderr));
    let mut command = claude(&home, &[]);
    let output = command.env("AGENTWIRE_TRUST", "never").output().expect("it runs");
    assert_eq!(code(output.status), Some(0), "{}", text(&output.stderr));
    assert!(!is_trusted(&home));
}

#[test]
fn on_a_terminal_it_is_asked_once() {
    let home = home();
    let mut pty = Pty::start(claude(&home, &[]).env("NO_COLOR", "1"));
    pty.expect("allow? ");
    assert!(!home.work().join("../argv.log").exists());
    pty.press("y");
    assert_eq!(pty.end(), Some(0), "{}", pty.shown);
    let shown = pty.shown.replace("\r\n", "\n");
    for part in [
        "? Trust the files in ",
        ".claude/settings.json\n",
        "statusLine: evil --now\n",
        "[y] allow  [n] deny",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown:?}");
    }
    assert!(is_trusted(&home));
    let mut pty = Pty::start(claude(&home, &[]).env("NO_COLOR", "1"));
    assert_eq!(pty.end(), Some(0), "{}", pty.shown);
    assert!(!pty.shown.contains("allow? "), "{}", pty.shown);
}
