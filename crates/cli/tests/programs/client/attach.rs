//! `attach`: the view of `run` for a session that a server runs.

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::LocalModes;

use crate::client::harness::{EVERYWHERE, From, Machines, short};
use crate::pty::Pty;
use crate::shared::{error, text};

fn attach(machines: &Machines, from: From, id: &str) -> Pty {
    Pty::start(&mut machines.verb(from, &["attach", id]))
}

#[test]
fn a_permission_is_given_at_the_terminal() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines
            .session("/say one\n/write made.txt text\n/ask Tea? | Black | Green\n/say done");
        machines.request(&session);
        let mut pty = attach(&machines, from, short(&session));
        pty.expect("one");
        pty.expect("asks for permission");
        pty.expect("allow? ");
        pty.press("y");
        pty.expect("allowed");
        pty.expect("your choice? ");
        pty.press("2");
        pty.expect("done");
        // `attach` does not end the session.
        pty.expect(&format!("idle: agentwire send {}", short(&session)));
        assert!(machines.path("work/made.txt").exists());
        machines.told(from, &["send", short(&session), "/say once more"]);
        pty.expect("once more");
        machines.told(from, &["stop", short(&session)]);
        assert_eq!(pty.end(), Some(0), "{}", pty.shown);
    }
}

/// A client that is asking sees that another client has answered.
#[test]
fn the_first_answer_counts() {
    let machines = Machines::new();
    let session = machines.session("/bash echo hi\n/say done");
    let request = machines.request(&session);
    let mut one = attach(&machines, From::Here, short(&session));
    let mut two = attach(&machines, From::There, short(&session));
    one.expect("allow? ");
    two.expect("allow? ");
    machines.told(From::There, &["permit", "deny", &request]);
    for pty in [&mut one, &mut two] {
        pty.expect("answered by another client");
        pty.expect("done");
        assert!(pty.modes().contains(LocalModes::ICANON | LocalModes::ECHO));
    }
}

#[test]
fn leaving_does_not_interrupt() {
    let machines = Machines::new();
    let session = machines.session("/bash echo hi\n/say done");
    machines.request(&session);
    let mut pty = attach(&machines, From::Here, short(&session));
    pty.expect("allow? ");
    let pid = Pid::from_child(pty.child());
    kill_process(pid, Signal::INT).expect("it runs");
    pty.expect("keeps running");
    assert_eq!(pty.end(), Some(130));
    assert_eq!(machines.state(session.id()), "waitingPermission");
    // The next client is asked, and may interrupt.
    let mut pty = attach(&machines, From::Here, short(&session));
    pty.expect("allow? ");
    pty.press("i");
    pty.expect("interrupted");
    pty.expect("idle: ");
    assert_eq!(machines.state(session.id()), "idle");
}

/// In a pipe, nobody is asked, and nothing is denied because of that.
#[test]
fn in_a_pipe_it_is_only_shown() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines.session("/bash echo hi\n/say done");
        let request = machines.request(&session);
        let attached =
            machines.verb(from, &["attach", short(&session)]).spawn().expect("it starts");
        machines.told(from, &["permit", "allow", &request]);
        machines.until(&session, "turnCompleted", 0);
        machines.told(from, &["stop", short(&session)]);
        let output = attached.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", error(&output));
        let shown = text(&output.stdout);
        assert!(shown.contains("→ allowed") && shown.contains("\ndone\n"), "{shown}");
    }
}

#[test]
fn the_exit_code_tells_of_the_last_turn() {
    let machines = Machines::new();
    let session = machines.session("/fail no good");
    machines.until(&session, "turnFailed", 0);
    machines.told(From::Here, &["stop", short(&session)]);
    for from in EVERYWHERE {
        let output = machines.run(from, &["attach", short(&session)]);
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
    }
}

/// A read-only token gets one notice that it is read-only.
#[test]
fn who_may_only_watch_is_told() {
    let machines = Machines::new();
    let session = machines.session("/bash echo hi");
    let request = machines.request(&session);
    let token = machines.told(From::Here, &["token", "create", "--scope", "watch"]);
    let mut command = machines.verb(From::There, &["attach", short(&session)]);
    let mut pty = Pty::start(command.env("AGENTWIRE_TOKEN", token.trim()));
    pty.expect("allow? ");
    pty.press("y");
    pty.expect("needs the scope approve");
    assert_eq!(machines.state(session.id()), "waitingPermission");
    machines.told(From::Here, &["permit", "deny", &request]);
    pty.expect("denied");
}
