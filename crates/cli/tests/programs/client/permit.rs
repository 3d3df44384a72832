//! `permit`: lists and answers requests.

use crate::client::harness::{EVERYWHERE, From, Machines, short};

#[test]
fn what_is_asked_is_listed_and_answered() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let tool = machines.session("/write made.txt one");
        let asks = machines.session("/ask Tea? | Black | Green");
        let refused = machines.session("/bash touch never");
        let [of_tool, of_question, of_refused] =
            [&tool, &asks, &refused].map(|session| machines.request(session));

        let listed = machines.told(from, &["permit", "ls"]);
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(lines.len(), 4, "{listed}");
        assert!(lines[0].starts_with("RID "), "{listed}");
        for (session, what) in [
            (&tool, "Write made.txt"),
            (&asks, "Tea?  1. Black  2. Green"),
            (&refused, "Bash touch never"),
        ] {
            let line = lines.iter().find(|line| line.contains(short(session)));
            assert!(line.is_some_and(|line| line.contains(what)), "{what}: {listed}");
        }
        let name = |request: &str| {
            let is_its =
                |line: &&&str| line.split(' ').next().is_some_and(|name| request.starts_with(name));
            let line = lines.iter().skip(1).find(is_its).expect("a line");
            line.split(' ').next().expect("a name").to_owned()
        };

        let told = machines.refused(from, &["permit", "answer", &of_tool, "yes"], 2);
        assert!(told.contains("permit allow"), "{told}");
        let told = machines.refused(from, &["permit", "allow", &of_question], 2);
        assert!(told.contains("permit answer"), "{told}");
        let told = machines.refused(from, &["permit", "answer", &of_question, "1", "2"], 2);
        assert!(told.contains("the request has 1 question, but you gave 2 answers"), "{told}");

        assert_eq!(machines.told(from, &["permit", "allow", &name(&of_tool)]), "");
        machines.told(from, &["permit", "answer", &name(&of_question), "2"]);
        machines.told(from, &["permit", "deny", &of_refused, "--message", "not today"]);
        for session in [&tool, &asks, &refused] {
            machines.until(session, "turnCompleted", 0);
        }
        assert!(machines.path("work/made.txt").exists() && !machines.path("work/never").exists());
        let log = machines.told(from, &["logs", short(&asks)]);
        assert!(log.contains("\"Tea?\"=\"Green\""), "{log}");
        let log = machines.told(from, &["logs", short(&refused)]);
        assert!(log.contains("not today"), "{log}");
        assert_eq!(machines.told(from, &["permit", "ls"]), "");
    }
}

/// The first answer counts; the second gets an error that names the first.
#[test]
fn who_comes_second_is_told() {
    for from in EVERYWHERE {
        let machines = Machines::new();
        let session = machines.session("/bash echo hi\n/hang");
        let request = machines.request(&session);
        machines.told(from, &["permit", "deny", &request]);
        let told = machines.refused(from, &["permit", "allow", &request], 1);
        assert!(told.contains("already settled: denied by operator"), "{told}");
        let told = machines.refused(from, &["permit", "allow", "nothing-like-it"], 2);
        assert!(told.contains("no pending request nothing-like-it"), "{told}");
    }
}

#[test]
fn a_tool_runs_with_other_input_and_its_like_unasked() {
    let machines = Machines::new();
    let session = machines.session("/bash echo one > a.txt\n/say done");
    let request = machines.request(&session);
    let other = r#"{"command":"echo two > b.txt"}"#;
    machines.told(From::There, &["permit", "allow", &request, "--input", other]);
    machines.until(&session, "turnCompleted", 0);
    assert!(machines.path("work/b.txt").exists() && !machines.path("work/a.txt").exists());
    let told = machines.refused(From::Here, &["permit", "allow", "x", "--input", "[]"], 2);
    assert!(told.contains("expected an object"), "{told}");

    let session = machines.session("/bash echo one\n/bash echo one\n/say done");
    let request = machines.request(&session);
    machines.told(From::There, &["permit", "allow", &request, "--remember", "session"]);
    let events = machines.until(&session, "turnCompleted", 0);
    let settled = events.iter().filter(|event| event["type"] == "requestSettled");
    let by: Vec<_> = settled.map(|event| &event["by"]).collect();
    assert_eq!(by, ["client", "policy"], "{events:?}");
}

/// A prefix of one character is refused. A short prefix after `SESSION/` is enough.
#[test]
fn a_name_of_several_is_refused() {
    let machines = Machines::new();
    let sessions: Vec<_> = (0..20).map(|_| machines.session("/bash true")).collect();
    let requests: Vec<String> = sessions.iter().map(|session| machines.request(session)).collect();
    let listed = machines.json(From::Here, &["permit", "ls", "--json"]);
    assert_eq!(listed["requests"].as_array().map(Vec::len), Some(20));
    let told = machines.refused(From::Here, &["permit", "allow", &requests[0][..1]], 2);
    assert!(told.contains("no pending request"), "{told}");
    let name = format!("{}/{}", short(&sessions[3]), &requests[3][..4]);
    machines.told(From::Here, &["permit", "allow", &name]);
    machines.until(&sessions[3], "turnCompleted", 0);
    assert_eq!(machines.state(sessions[4].id()), "waitingPermission");
}
