//! L1, L6: what a crash of the gateway leaves behind.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use agentwire_protocol::event::{EventKind, RequestOutcome, SettledBy};
use agentwire_protocol::{Event, SessionId, SessionState};
use agentwire_sessions::{Hub, NewSession};

use crate::gateway::{Gateway, settings};
use crate::rounds;
use crate::shared::{Home, working_in};

fn run(home: &Home, prompt: &str) -> Child {
    let args = ["run", "-a", "demo", "--approval", "autoAll", "--format", "jsonl", "--", prompt];
    home.command(&args).stderr(Stdio::null()).spawn().expect("agentwire")
}

/// However early or late the gateway is killed, nothing that a client saw is missing or changed, and there
/// is no gap.
#[test]
fn l1_nothing_seen_is_lost_when_the_gateway_is_killed() {
    let home = Home::new();
    let prompt = "/repeat 300 word \n/blob 2000\n/bash echo hi\n".repeat(40);
    let mut sessions = std::collections::BTreeMap::new();
    for round in 0..rounds(50, 200) {
        let mut child = run(&home, &prompt);
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let mut seen = Vec::new();
        // At a different point in each round, between lines or within one.
        for _ in 0..(round * 37) % 120 {
            if stdout.read_until(b'\n', &mut seen).expect("output") == 0 {
                break;
            }
        }
        child.kill().expect("kill");
        // Output that was still in the pipe counts as seen.
        stdout.read_to_end(&mut seen).expect("output");
        child.wait().expect("an end");
        let whole = seen.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        seen.truncate(whole);
        if let Some(line) = seen.split(|byte| *byte == b'\n').next().filter(|line| !line.is_empty())
        {
            let event = Event::from_json(std::str::from_utf8(line).expect("UTF-8")).expect("JSON");
            sessions.insert(event.session_id.into_owned(), seen);
        }
    }
    assert!(sessions.len() > 10);
    for (id, seen) in &sessions {
        let logged = home.run(&["logs", id, "--format", "jsonl"]);
        assert!(logged.status.success(), "{}", String::from_utf8_lossy(&logged.stderr));
        assert!(
            logged.stdout.starts_with(seen),
            "a client of {id} saw events that are not in the log"
        );
        let events: Vec<_> = std::str::from_utf8(&logged.stdout)
            .expect("UTF-8")
            .lines()
            .map(|line| Event::from_json(line).expect("an event"))
            .collect();
        for (at, event) in events.iter().enumerate() {
            assert_eq!(event.seq, at as u64 + 1);
        }
        let last = &events.last().expect("an event").kind;
        assert!(matches!(last, EventKind::SessionEnded(_)), "{last:?}");
    }
    assert_eq!(survivors(home.root()), Vec::<String>::new());
}

/// Processes that still work in this directory after some seconds.
pub(crate) fn survivors(dir: &Path) -> Vec<String> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    loop {
        let found = working_in(dir);
        if found.is_empty() || std::time::Instant::now() > deadline {
            return found;
        }
        std::thread::yield_now();
    }
}

/// A session whose gateway was killed is closed by the next gateway, and can be resumed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l6_a_restart_closes_what_was_open() {
    let home = Home::new();
    // A gateway in another process that is killed while a permission request is open.
    let prompt = "/task sub\n/write never.txt x\n/end";
    let own = std::env::current_exe().expect("this program");
    let mut holder = Command::new(own)
        .args(["--exact", "restart::l6_holder", "--ignored", "--nocapture"])
        .env("AGENTWIRE_TEST_HOLD", home.root())
        .env("AGENTWIRE_TEST_PROMPT", prompt)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program");
    let mut stdout = BufReader::new(holder.stdout.take().expect("stdout"));
    let id = loop {
        let mut line = String::new();
        assert!(stdout.read_line(&mut line).expect("output") > 0, "the holder ended");
        if let Some((_, id)) = line.trim().split_once("waits ") {
            break SessionId::from(id);
        }
    };
    holder.kill().expect("kill");
    holder.wait().expect("an end");

    let hub = Hub::open(settings(home.root())).await.expect("a hub");
    let summary = hub.summary(&id).await.expect("the session");
    assert_eq!(summary.state, SessionState::Ended);
    assert_eq!(summary.open_requests, 0);
    let gateway = Gateway { hub, home };
    let mut cursor = gateway.hub.events(&id, 0).await.expect("a cursor");
    let mut events = Vec::new();
    while let Some(batch) = cursor.next().await.expect("the log can be read") {
        for (_, line) in batch.events() {
            events.push(Event::from_json(std::str::from_utf8(line).expect("UTF-8")).expect("JSON"));
        }
    }
    let is = |kind: fn(&EventKind<'_>) -> bool| events.iter().filter(|e| kind(&e.kind)).count();
    assert_eq!(is(|kind| matches!(kind, EventKind::TurnStarted(_))), 1);
    assert_eq!(is(|kind| matches!(kind, EventKind::TurnFailed(_))), 1);
    assert_eq!(is(|kind| matches!(kind, EventKind::AgentFinished(_))), 1);
    assert_eq!(is(|kind| matches!(kind, EventKind::SessionEnded(_))), 1);
    let started = is(|kind| matches!(kind, EventKind::ToolStarted(_)));
    let closed = is(|kind| matches!(kind, EventKind::ToolFailed(_) | EventKind::ToolCompleted(_)));
    assert_eq!(started, closed);
    assert!(events.iter().any(|event| matches!(
        &event.kind,
        EventKind::RequestSettled(settled)
            if settled.outcome == RequestOutcome::Denied && settled.by == SettledBy::Gateway
    )));
    assert!(!gateway.home.path("never.txt").exists());

    // The resumed session has the same log and the same conversation, and the old prompt is not sent again.
    let resumed = gateway
        .hub
        .start(NewSession {
            resume: Some(id.clone()),
            ..gateway.session(agentwire_protocol::AgentType::Demo, "/say turns {turns}")
        })
        .await
        .expect("resumed");
    assert_eq!(resumed.id(), &id);
    let mut reader = gateway.reader(&resumed).await;
    let said = reader
        .until(|kind| matches!(kind, EventKind::TurnCompleted(turn) if turn.turn_number == 2))
        .await;
    let EventKind::TurnCompleted(turn) = said.kind else { panic!("another kind") };
    assert_eq!(turn.result.expect("an answer").to_string(), "turns 2");
    crate::gateway::stop(&resumed).await;
}

/// A gateway to be killed while a request is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by l6_a_restart_closes_what_was_open"]
async fn l6_holder() {
    let Some(dir) = std::env::var_os("AGENTWIRE_TEST_HOLD") else { return };
    let prompt = std::env::var("AGENTWIRE_TEST_PROMPT").expect("a prompt");
    let hub = Hub::open(settings(Path::new(&dir))).await.expect("a hub");
    let work = Path::new(&dir).join("work");
    std::fs::create_dir_all(&work).expect("a directory");
    let session = hub
        .start(NewSession {
            prompt: Some(agentwire_protocol::Prompt::text(prompt)),
            config: agentwire_protocol::SessionConfig {
                working_directory: Some(work.to_string_lossy().into_owned()),
                ..Default::default()
            },
            ..NewSession::of(agentwire_protocol::AgentType::Demo)
        })
        .await
        .expect("a session");
    session.until(|summary| summary.open_requests > 0).await;
    #[expect(clippy::print_stdout, reason = "the parent test reads it")]
    {
        println!("waits {}", session.id());
    }
    std::future::pending::<()>().await;
}

/// An id that the agent does not know is an error, never a new conversation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l6_a_resume_that_fails_is_told() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/say one").await;
    gateway.reader(&session).await.turn_end().await;
    crate::gateway::stop(&session).await;
    std::fs::remove_dir_all(gateway.home.path("data/demo")).expect("conversations");
    let resumed = gateway
        .hub
        .start(NewSession {
            resume: Some(session.id().clone()),
            ..gateway.session(agentwire_protocol::AgentType::Demo, "/say two")
        })
        .await;
    // Either the start fails or the session ends with the error.
    if let Ok(resumed) = resumed {
        let summary = resumed.ended().await;
        assert_eq!(summary.reason, Some(agentwire_protocol::event::SessionEndReason::Failed));
        let events = gateway.events(&resumed).await;
        let said = events.iter().any(|event| {
            matches!(&event.kind, EventKind::TextChunk(chunk) if chunk.content.to_string().contains("two"))
        });
        assert!(!said);
    }
}

/// An agent that opens another conversation than the one to resume, or reports none, ends the session. The
/// session can still be resumed with the right id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l6_another_conversation_is_never_taken_for_the_one_to_resume() {
    let text = "#!/bin/sh\n\
        case \"$*\" in *--resume=*) told=$(cat told);; *) told=first;; esac\n\
        while read -r line; do case $line in *'\"user\"'*)\n\
        [ \"$told\" ] && echo \"{\\\"type\\\":\\\"system\\\",\\\"subtype\\\":\\\"init\\\",\\\"session_id\\\":\\\"$told\\\"}\"\n\
        echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}'\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"hi\"}'\n\
        [ \"$told\" = other ] && echo \"{\\\"type\\\":\\\"system\\\",\\\"subtype\\\":\\\"init\\\",\\\"session_id\\\":\\\"$told\\\"}\"\n\
        ;; esac; done\n";
    let gateway = Gateway::script(text).await;
    let told = gateway.home.path("work/told");
    let claude = agentwire_protocol::AgentType::Claude;
    let session = gateway.hub.start(gateway.session(claude, "one")).await.expect("a session");
    gateway.reader(&session).await.turn_end().await;
    let ended = crate::gateway::stop(&session).await;
    assert_eq!(ended.native_session_id.as_deref(), Some("first"));
    for (tells, is_right) in [("other", false), ("", false), ("first", true)] {
        std::fs::write(&told, tells).expect("a file");
        let resumed = gateway
            .hub
            .start(NewSession {
                resume: Some(session.id().clone()),
                ..gateway.session(claude, "two")
            })
            .await
            .expect("a session that starts");
        if is_right {
            resumed.until(|summary| summary.state == SessionState::Idle).await;
            crate::gateway::stop(&resumed).await;
        }
        let ended = tokio::time::timeout(crate::shared::PATIENCE, resumed.ended()).await;
        let ended = ended.expect("an end in time");
        let wanted = match is_right {
            true => agentwire_protocol::event::SessionEndReason::Completed,
            false => agentwire_protocol::event::SessionEndReason::Failed,
        };
        assert_eq!(ended.reason, Some(wanted), "{tells:?}: {ended:?}");
        assert_eq!(ended.native_session_id.as_deref(), Some("first"), "{tells:?}");
    }
}
