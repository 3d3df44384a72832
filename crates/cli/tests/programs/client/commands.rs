//! `send`, `interrupt` and `stop`.

use std::io::Write as _;
use std::process::Stdio;

use crate::client::harness::{EVERYWHERE, From, Machines, short};
use crate::pty::Pty;
use crate::shared::{error, text};

#[test]
fn a_prompt_is_sent_and_worked_off() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines.session("/say one");
        let last = machines.until(&session, "turnCompleted", 0).len() as u64;
        let output = machines.run(from, &["send", short(&session), "/say two"]);
        assert!(output.status.success(), "{}", error(&output));
        // Prints nothing when the output is not a terminal.
        assert_eq!((text(&output.stdout), error(&output)), (String::new(), String::new()));
        // Once the session accepts it, the session is busy until it is done.
        machines.told(from, &["wait", short(&session)]);
        let log = machines.told(from, &["logs", short(&session), "--after", &last.to_string()]);
        assert!(log.contains("\ntwo\n"), "{log}");
        let sent = machines.json(from, &["send", short(&session), "--json", "/say three"]);
        assert_eq!(
            (&sent["sessionId"], &sent["resumed"]),
            (&session.id().as_str().into(), &false.into())
        );
        assert!(sent["messageId"].is_string(), "{sent}");
    }
}

#[test]
fn a_prompt_comes_from_stdin() {
    let machines = Machines::new();
    let session = machines.session("/say one");
    for args in [["send", short(&session), "-"].as_slice(), &["send", short(&session)]] {
        let mut sending = machines.verb(From::Here, args);
        let mut sending = sending.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = sending.stdin.take().expect("stdin");
        stdin.write_all(b"/say from stdin\n").expect("it reads");
        drop(stdin);
        assert!(sending.wait().expect("it ends").success());
    }
    machines.told(From::Here, &["wait", short(&session)]);
    let log = machines.told(From::Here, &["logs", short(&session)]);
    assert_eq!(log.matches("\nfrom stdin\n").count(), 2, "{log}");
    let told = machines.refused(From::Here, &["send", short(&session), " "], 2);
    assert!(told.contains("the prompt is empty"), "{told}");
}

#[test]
fn with_wait_the_answer_is_printed_and_nothing_else() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines.session("/say one");
        machines.until(&session, "turnCompleted", 0);
        let id = short(&session);
        assert_eq!(machines.told(from, &["send", id, "--wait", "/think hm\n/say two"]), "two\n");
        let output = machines.run(from, &["send", id, "-w", "/say so\n/fail no good"]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "so\n".to_owned()));
        assert!(error(&output).contains("no good"), "{}", error(&output));
        // An ended session is resumed.
        machines.told(from, &["stop", id]);
        assert_eq!(machines.told(from, &["send", id, "--wait", "/say {turns}"]), "4\n");
        assert_eq!(machines.state(session.id()), "idle");
    }
}

#[test]
fn a_session_that_is_over_goes_on_with_the_prompt() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines.session("/say one");
        machines.until(&session, "turnCompleted", 0);
        machines.told(from, &["stop", short(&session)]);
        assert_eq!(machines.state(session.id()), "ended");
        let sent = machines.json(from, &["send", short(&session), "--json", "/say {turns} turns"]);
        assert_eq!(sent["resumed"], true);
        machines.told(from, &["wait", short(&session)]);
        let log = machines.told(from, &["logs", short(&session)]);
        assert!(log.contains("2 turns"), "{log}");
    }
}

#[test]
fn a_turn_is_interrupted_and_sessions_are_stopped() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let (one, two) = (machines.session("/hang"), machines.session("/hang"));
        for session in [&one, &two] {
            machines.until(session, "turnStarted", 0);
        }
        let output = machines.run(from, &["interrupt", short(&one)]);
        assert!(output.status.success(), "{}", error(&output));
        assert_eq!((text(&output.stdout), error(&output)), (String::new(), String::new()));
        let events = machines.until(&one, "turnFailed", 0);
        assert_eq!(events.last().expect("an event")["reason"], "interrupted");
        machines.told(from, &["stop", short(&one), short(&two)]);
        for session in [&one, &two] {
            assert_eq!(machines.state(session.id()), "ended");
        }
        // Stopping an ended session succeeds.
        machines.told(from, &["stop", short(&one)]);
        let told = machines.refused(from, &["interrupt", short(&one)], 1);
        assert!(told.contains("has ended"), "{told}");
        // If one session is unknown, none is stopped.
        let three = machines.session("/hang");
        let told = machines.refused(from, &["stop", short(&three), "beef0000"], 2);
        assert!(told.contains("there is no session beef0000"), "{told}");
        assert_ne!(machines.state(three.id()), "ended");
    }
}

#[test]
fn whoever_looks_is_told_what_was_done() {
    let machines = Machines::new();
    let session = machines.session("/say one");
    let mut pty = Pty::start(&mut machines.verb(From::Here, &["send", short(&session), "/hang"]));
    pty.expect(&format!("agentwire attach {}", short(&session)));
    assert_eq!(pty.end(), Some(0));
    let mut pty = Pty::start(&mut machines.verb(From::Here, &["stop", short(&session)]));
    pty.expect(" ended");
    assert_eq!(pty.end(), Some(0));
}
