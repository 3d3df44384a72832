//! The board, tested against its specification.

use std::time::Instant;

use serde_json::{Value, json};

use crate::shared::{Answer, PATIENCE, Server};
use crate::specified::{board as check, is_uuid};

/// Creates a session of the board and returns its id.
fn begin(server: &Server, prompt: &str) -> String {
    let created = server.post("/api/sessions", &json!({ "agentId": "demo", "prompt": prompt }));
    let names: Vec<&String> = created.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["id", "state"]);
    assert_eq!(created["state"], "running");
    let id = created["id"].as_str().expect("an id").to_owned();
    assert!(is_uuid(&id), "{id}");
    id
}

fn state(server: &Server, session: &str) -> String {
    let shown = server.get(&format!("/api/sessions/{session}"));
    let names: Vec<&String> = shown.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["id", "state"]);
    assert_eq!(shown["id"], session);
    shown["state"].as_str().expect("a state").to_owned()
}

/// The first state that is not `running`. It must not change after that.
fn final_state(server: &Server, session: &str) -> String {
    let begun = Instant::now();
    let first = loop {
        match state(server, session).as_str() {
            "running" => assert!(begun.elapsed() < PATIENCE, "it never ends"),
            other => break other.to_owned(),
        }
    };
    server.until(session, "sessionEnded");
    assert_eq!(state(server, session), first);
    first
}

fn cancel(server: &Server, session: &str) -> Answer {
    server.ask("POST", &format!("/api/sessions/{session}/cancel"), None)
}

/// All events up to the end.
fn watched(server: &Server, session: &str) -> Vec<Value> {
    let mut socket = server.socket(&format!("/ws/sessions/{session}"));
    let told = std::iter::from_fn(|| socket.next());
    told.map(|text| serde_json::from_str(&text).expect("JSON")).collect()
}

fn page(server: &Server, session: &str, offset: usize, limit: usize) -> (Vec<Value>, usize) {
    let path = format!("/api/sessions/{session}/events?offset={offset}&limit={limit}");
    let page = server.get(&path);
    let names: Vec<&String> = page.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["events", "offset", "total"]);
    assert_eq!(page["offset"], offset);
    let total = page["total"].as_u64().expect("a number");
    (page["events"].as_array().expect("events").clone(), usize::try_from(total).expect("a size"))
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("a type")).collect()
}

#[test]
fn a_session_is_done_after_its_turn_and_can_be_read_in_every_way() {
    let server = Server::start();
    let session = begin(&server, "/think first\n/say one\\ntwo\n/read nothing\n/say three");
    // Live, then closed at the end.
    let mut socket = server.socket(&format!("/ws/sessions/{session}"));
    let live: Vec<Value> = std::iter::from_fn(|| socket.next())
        .map(|text| serde_json::from_str(&text).expect("JSON"))
        .collect();
    // §6.3: plan → log* → action → toolResult → log*
    assert_eq!(kinds(&live), ["plan", "log", "log", "action", "toolResult", "log"]);
    live.iter().for_each(|event| check(event, &session));
    assert_eq!(final_state(&server, &session), "done");
    let whole = page(&server, &session, 0, 1000);
    assert_eq!(whole, (live.clone(), live.len()));
    let again = server.get(&format!("/api/sessions/{session}/events"));
    assert_eq!(again["events"], json!(live));
    let part = page(&server, &session, 1, 2);
    assert_eq!(part, (live[1..3].to_vec(), live.len()));
    // There is nothing past the end.
    for offset in [live.len(), live.len() + 1, 1 << 52] {
        assert_eq!(page(&server, &session, offset, 10), (Vec::new(), live.len()));
    }
    for query in ["limit=x", "offset=-1", "offset=x"] {
        let path = format!("/api/sessions/{session}/events?{query}");
        let refused = server.ask("GET", &path, None);
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalidMessage"), "{query}");
    }
    let clamped = server.get(&format!("/api/sessions/{session}/events?limit=-1"));
    assert_eq!(clamped["events"], json!(live[..1]));
    // A second reading after the end gives the same events, and closes.
    assert_eq!(watched(&server, &session), live);
    let nobody = "00000000-0000-4000-8000-000000000000";
    for path in [format!("/api/sessions/{nobody}"), format!("/api/sessions/{nobody}/events")] {
        assert_eq!(server.ask("GET", &path, None).code(), "sessionNotFound");
    }
    assert_eq!(cancel(&server, nobody).code(), "sessionNotFound");
    let bearer = format!("Bearer {}", server.token);
    let path = format!("/ws/sessions/{nobody}");
    let refused = server.socket_at(&server.http, &path, &[("authorization", &bearer)]);
    assert_eq!(refused.err(), Some(404));
}

#[test]
fn the_specifications_request_works_in_the_projects_directory() {
    let server = Server::with_settings("[projects]\nmy-project = \"WORK/there\"\n");
    let there = server.work().join("there");
    std::fs::create_dir(&there).expect("a directory");
    for (project, directory) in [("my-project", &there), ("another", &server.work())] {
        let body = json!({ "agentId": "demo", "projectId": project, "prompt": "/say {cwd}" });
        let created = server.post("/api/sessions", &body);
        let session = created["id"].as_str().expect("an id").to_owned();
        let told = watched(&server, &session);
        let directory = directory.canonicalize().expect("a directory");
        assert_eq!(told[0]["payload"]["line"], json!(directory));
    }
    for body in [
        json!({ "agentId": "nobody", "prompt": "x" }),
        json!({ "agentId": "demo", "prompt": "" }),
        json!({ "agentId": "demo" }),
        json!({ "prompt": "x" }),
        json!({ "agentId": "demo", "prompt": "x", "model": "y" }),
        json!([]),
    ] {
        let refused = server.ask("POST", "/api/sessions", Some(&body));
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalidMessage"), "{body}");
    }
}

/// However a session ends, that is its state from then on, even after a restart, and there is exactly one
/// end.
#[test]
fn a_session_ends_as_its_turn_did() {
    let server = Server::start();
    let hang = |then: &dyn Fn(&str)| {
        let session = begin(&server, "/say one\n/hang");
        server.until(&session, "turnStarted");
        assert_eq!(state(&server, &session), "running");
        then(&session);
        session
    };
    let sessions = [
        (begin(&server, "/say fine"), "done", None),
        (begin(&server, "/say one\n/fail no model"), "failed", Some("Session failed: no model")),
        (
            begin(&server, "/say one\n/exit 3"),
            "failed",
            Some("Session failed: the agent exited with code 3"),
        ),
        (
            hang(&|session| {
                server.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
            }),
            "cancelled",
            None,
        ),
        (
            hang(&|session| {
                let answer = cancel(&server, session);
                assert_eq!((answer.status, &answer.json()["state"]), (200, &json!("cancelled")));
                let answer = cancel(&server, session);
                assert_eq!((answer.status, &answer.json()["state"]), (200, &json!("cancelled")));
            }),
            "cancelled",
            None,
        ),
    ];
    let mut told = Vec::new();
    for (session, wanted, message) in &sessions {
        assert_eq!(final_state(&server, session), *wanted, "{session}");
        let events = watched(&server, session);
        events.iter().for_each(|event| check(event, session));
        let ends: Vec<&str> = kinds(&events)
            .into_iter()
            .filter(|kind| ["error", "cancelled"].contains(kind))
            .collect();
        let expected: &[&str] = match *wanted {
            "failed" => &["error"],
            "cancelled" => &["cancelled"],
            _ => &[],
        };
        assert_eq!(ends, expected, "{events:?}");
        let last = events.last().expect("an event");
        assert!(expected.is_empty() || last["type"] == expected[0], "{events:?}");
        if let Some(message) = message {
            assert_eq!(last["payload"]["message"], *message);
        }
        // Cancelling a session that has ended returns how it ended.
        let late = cancel(&server, session);
        assert_eq!((late.status, &late.json()["state"]), (200, &json!(*wanted)));
        // §7.6: read back, it has one end, with the same reason.
        let file = server.work().join("board.jsonl");
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        std::fs::write(&file, lines).expect("a file");
        let back = server.verb(&["translate", "--from", "claude", &file.to_string_lossy()]);
        let back: Vec<Value> =
            back.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let ends: Vec<&Value> = back.iter().filter(|it| it["type"] == "sessionEnded").collect();
        assert_eq!(ends.len(), 1);
        let reason = if *wanted == "done" { "completed" } else { wanted };
        assert_eq!(ends[0]["reason"], reason);
        told.push(events);
    }
    let server = server.again();
    for ((session, wanted, _), told) in sessions.iter().zip(told) {
        assert_eq!(state(&server, session), *wanted);
        assert_eq!(watched(&server, session), told);
        assert_eq!(page(&server, session, 0, 1000), (told.clone(), told.len()));
    }
}

#[test]
fn who_comes_late_and_who_comes_early_see_the_same() {
    let server = Server::start();
    let session = begin(&server, "/say first\n/write a.txt x\n/edit a.txt | x | y\n/plan a | b");
    let told = std::thread::scope(|scope| {
        let watch = || scope.spawn(|| watched(&server, &session));
        let early: Vec<_> = (0..3).map(|_| watch()).collect();
        for _ in 0..2 {
            server.until_open(&session);
            assert_eq!(state(&server, &session), "running");
            let inbox = server.get("/v1/requests?state=open");
            let id = inbox["requests"][0]["requestId"].as_str().expect("an id").to_owned();
            let place = format!("/v1/sessions/{session}/requests/{id}");
            server.post(&place, &json!({ "behavior": "allow" }));
        }
        let late = watch();
        let told: Vec<Vec<Value>> =
            early.into_iter().chain([late]).map(|it| it.join().expect("a list")).collect();
        told
    });
    assert!(told.iter().all(|list| *list == told[0]));
    let told = &told[0];
    told.iter().for_each(|event| check(event, &session));
    let names = kinds(told);
    for kind in ["log", "diff", "action", "toolResult", "plan"] {
        assert!(names.contains(&kind), "{names:?}");
    }
    let of = |kind: &str| {
        told.iter().rfind(|event| event["type"] == kind).expect("one")["payload"].clone()
    };
    let diff = of("diff");
    assert!(diff["file"].as_str().is_some_and(|file| file.ends_with("a.txt")), "{diff}");
    let text = diff["diff"].as_str().expect("a diff");
    assert!(text.contains("@@") && text.contains("-x") && text.contains("+y"), "{diff}");
    assert_eq!(of("plan")["message"], "[>] a\n[ ] b");
    let waits = |event: &&Value| {
        let line = event["payload"]["line"].as_str();
        line.is_some_and(|line| line.starts_with("Waiting for permission: "))
    };
    assert_eq!(told.iter().filter(waits).count(), 2);
    assert_eq!(final_state(&server, &session), "done");
}

#[test]
fn a_socket_closes_with_a_reason() {
    let server = Server::start();
    let session = begin(&server, "/say one");
    let mut socket = server.socket(&format!("/ws/sessions/{session}"));
    assert_eq!(socket.farewell(), (1000, "the session has ended".to_owned()));
    // A session of another front may never end: for the board it is done when its turn is.
    let other = server.session("/say one");
    let mut socket = server.socket(&format!("/ws/sessions/{other}"));
    assert_eq!(socket.farewell(), (1000, "the session has ended".to_owned()));
    assert_eq!(state(&server, &other), "done");
    assert_eq!(server.get(&format!("/v1/sessions/{other}"))["state"], "idle");
    let hangs = begin(&server, "/hang");
    let mut talks = server.socket(&format!("/ws/sessions/{hangs}"));
    talks.text(&"x".repeat(8 << 10));
    assert_eq!(talks.farewell(), (1009, "the message is too long".to_owned()));
    let mut socket = server.socket(&format!("/ws/sessions/{hangs}"));
    assert_eq!(server.stop(), Some(0));
    assert_eq!(socket.farewell(), (1001, "the server is stopping".to_owned()));
}

/// A silent connection would be considered dead after a while.
#[test]
fn a_watcher_of_a_quiet_session_is_asked_whether_it_is_there() {
    let server = Server::start();
    let session = begin(&server, "/hang");
    let mut socket = server.socket(&format!("/ws/sessions/{session}"));
    socket.pinged();
    cancel(&server, &session);
    assert_eq!(socket.farewell().0, 1000);
}

#[test]
fn pages_are_parts_of_one_list_however_long_it_is() {
    let server = Server::start();
    let lines: String = (0..2000).map(|number| format!("{number}\\n")).collect();
    let session = begin(&server, &format!("/say {lines}\n/hang"));
    server.until(&session, "turnStarted");
    // Also while the list grows.
    let begun = Instant::now();
    while page(&server, &session, 0, 1).1 < 2000 {
        assert!(begun.elapsed() < PATIENCE);
    }
    cancel(&server, &session);
    let told = watched(&server, &session);
    // The agent reports the interrupt.
    assert_eq!(kinds(&told[2000..]), ["log", "cancelled"]);
    for (number, event) in told.iter().take(2000).enumerate() {
        assert_eq!(event["payload"]["line"], number.to_string());
    }
    for limit in [97, 1000] {
        let mut paged = Vec::new();
        while paged.len() < told.len() {
            let (events, total) = page(&server, &session, paged.len(), limit);
            assert_eq!((events.len(), total), (limit.min(told.len() - paged.len()), told.len()));
            paged.extend(events);
        }
        assert_eq!(paged, told);
    }
    for offset in [1999, 3, 1024, 255, 256, 257, 0] {
        assert_eq!(page(&server, &session, offset, 2).0, told[offset..offset + 2]);
    }
}

/// A page holds up to 8 MiB, or a single event of any size.
#[test]
fn pages_are_bounded_in_bytes() {
    let server = Server::start();
    let session = begin(&server, "/pad 3000000\n/pad 3000000\n/pad 3000000\n/blob 9000000\n/say x");
    assert_eq!(final_state(&server, &session), "done");
    let told = watched(&server, &session);
    assert!(told.iter().any(|event| event.to_string().len() > 8 << 20));
    let (mut paged, mut pages) = (Vec::new(), 0);
    while paged.len() < told.len() {
        let (events, total) = page(&server, &session, paged.len(), 1000);
        assert_eq!(total, told.len());
        let bytes: usize = events.iter().map(|event| event.to_string().len()).sum();
        assert!(events.len() == 1 || bytes <= 8 << 20, "{} events: {bytes}", events.len());
        paged.extend(events);
        pages += 1;
    }
    assert!(paged == told && pages >= 3, "{pages}");
}

#[test]
fn a_request_that_is_sent_again_begins_nothing() {
    let server = Server::start();
    let bearer = format!("Bearer {}", server.token);
    let body = json!({ "agentId": "demo", "prompt": "/say once" }).to_string();
    let begin = |key: &str| {
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        let answer = server.raw("POST", "/api/sessions", &headers, body.as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let ids: Vec<Value> = std::thread::scope(|scope| {
        let sent: Vec<_> = (0..5).map(|_| scope.spawn(|| begin("k")["id"].clone())).collect();
        sent.into_iter().map(|sent| sent.join().expect("an id")).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let session = ids[0].as_str().expect("an id");
    assert_eq!(final_state(&server, session), "done");
    // Also after it has ended.
    assert_eq!(begin("k"), json!({ "id": session, "state": "done" }));
    assert_ne!(begin("other")["id"], session);
    assert_eq!(kinds(&watched(&server, session)), ["log"]);
}

/// However a cancel and the end of the session overlap, the answer says how it ended.
#[test]
fn who_cancels_as_it_ends_is_told_how_it_ended() {
    let server = Server::start();
    for pause in 0..8 {
        let session = begin(&server, &format!("/sleep {}\n/say one", 10 * pause));
        if pause % 2 == 1 {
            server.until(&session, "turnCompleted");
        }
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let sent: Vec<_> = (0..2).map(|_| scope.spawn(|| cancel(&server, &session))).collect();
            sent.into_iter().map(|sent| sent.join().expect("an answer")).collect()
        });
        let ended = state(&server, &session);
        assert!(["done", "cancelled"].contains(&ended.as_str()), "{ended}");
        assert!(pause % 2 == 0 || ended == "done");
        for answer in answers {
            assert_eq!((answer.status, &answer.json()["state"]), (200, &json!(ended)));
        }
    }
}

#[test]
fn what_another_process_runs_is_cancelled_there() {
    let server = Server::start();
    let other = server.beside();
    let session = begin(&other, "/hang");
    other.until(&session, "turnStarted");
    assert_eq!(state(&server, &session), "running");
    let refused = cancel(&server, &session);
    assert_eq!((refused.status, refused.code().as_str()), (409, "conflict"));
    assert_eq!(cancel(&other, &session).json()["state"], "cancelled");
    assert_eq!(cancel(&server, &session).json()["state"], "cancelled");
}

/// Claude, as recorded: its turn ends while a subagent continues in the background and sends a request.
const BACKGROUND: &str = r#"#!/bin/sh
recorded=FIXTURE
until_has() { while read -r line; do case "$line" in *"$1"*) return;; esac; done; }
until_has '"initialize"'
id=$(printf '%s' "$line" | sed 's/.*"request_id": *"\([^"]*\)".*/\1/')
sed -n 1p "$recorded" | sed "s/req-init/$id/"
until_has '"user"'
sed -n 2,13p "$recorded"
until_has '"control_response"'
sed -n 14,21p "$recorded"
cat > /dev/null
"#;

/// A session whose turn has ended, and the request of its subagent.
fn in_background(server: &Server) -> (String, String) {
    let created = server.post("/api/sessions", &json!({ "agentId": "claude", "prompt": "go" }));
    let session = created["id"].as_str().expect("an id").to_owned();
    server.until(&session, "turnCompleted");
    server.until_open(&session);
    assert_eq!(state(server, &session), "running");
    let inbox = server.get("/v1/requests?state=open");
    let id = inbox["requests"][0]["requestId"].as_str().expect("an id").to_owned();
    (session, id)
}

fn background() -> Server {
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../dialects/fixtures/claude/real-i3-subagent-background-default/agent.jsonl"
    );
    Server::with_script(&BACKGROUND.replace("FIXTURE", fixture))
}

#[test]
fn what_works_in_the_background_is_not_cut_off() {
    let server = background();
    let (session, id) = in_background(&server);
    server.post(&format!("/v1/sessions/{session}/requests/{id}"), &json!({ "behavior": "allow" }));
    let told = watched(&server, &session);
    let last = told.last().expect("an event");
    assert_eq!(last["payload"]["line"], "The subagent said 4.", "{told:?}");
    assert_eq!(final_state(&server, &session), "done");
}

#[test]
fn what_works_in_the_background_can_be_cancelled() {
    let server = background();
    let (session, _) = in_background(&server);
    // Commands that stop something are never refused for their form.
    let cancelled =
        server.ask("POST", &format!("/api/sessions/{session}/cancel"), Some(&json!({ "x": 1 })));
    assert_eq!(cancelled.json()["state"], "cancelled");
    assert_eq!(final_state(&server, &session), "cancelled");
    let told = watched(&server, &session);
    assert_eq!(kinds(&told).last(), Some(&"cancelled"), "{told:?}");
}

/// Anyone who sees that a session failed can also read why.
#[test]
fn what_failed_has_its_error() {
    let server = Server::start();
    for _ in 0..5 {
        let session = begin(&server, "/fail no model");
        let begun = Instant::now();
        while state(&server, &session) == "running" {
            assert!(begun.elapsed() < PATIENCE, "it never ends");
        }
        assert_eq!(kinds(&page(&server, &session, 0, 100).0).last(), Some(&"error"));
        assert_eq!(state(&server, &session), "failed");
    }
    // A session of another front continues. It is unknown whether this was its end, but the close reason
    // says that much.
    let other = server.session("/fail no model");
    let mut socket = server.socket(&format!("/ws/sessions/{other}"));
    let why = "the turn failed; the session waits for a prompt";
    assert_eq!(socket.farewell(), (1000, why.to_owned()));
}
