//! Where a session comes from: the id it is given, what it resumes, what it is a fork of.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use agentwire_protocol::event::{EventKind, SessionEndReason};
use agentwire_protocol::{AgentType, ErrorCode, SessionId};
use agentwire_sessions::{NewSession, SessionHandle};

use crate::gateway::{Gateway, Reader, stop};
use crate::shared::PATIENCE;

const ID: &str = "11111111-2222-4333-8444-555555555555";
const OTHER: &str = "99999999-2222-4333-8444-555555555555";

async fn said(reader: &mut Reader) -> String {
    let end = reader.turn_end().await;
    let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
    turn.result.expect("an answer").to_string()
}

/// Starts a session, reads its first answer, stops it.
async fn one_turn(gateway: &Gateway, new: NewSession) -> (SessionHandle, String) {
    let after = match &new.resume {
        Some(id) if !new.fork => gateway.hub.summary(id).await.expect("a summary").last_seq,
        _ => 0,
    };
    let session = gateway.hub.start(new).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    reader.cursor = gateway.hub.events(session.id(), after).await.expect("a cursor");
    let said = said(&mut reader).await;
    stop(&session).await;
    (session, said)
}

fn demo(gateway: &Gateway, prompt: &str) -> NewSession {
    gateway.session(AgentType::Demo, prompt)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_the_id_it_is_given_and_no_other_has_it() {
    let gateway = Gateway::new().await;
    let wanted = |id: &str| NewSession { id: Some(id.into()), ..demo(&gateway, "/say {turns}") };
    let (session, _) = one_turn(&gateway, wanted(ID)).await;
    assert_eq!(session.id().as_str(), ID);
    let summary = gateway.hub.summary(session.id()).await.expect("a summary");
    assert_eq!(summary.native_session_id.as_deref(), Some(ID));
    let again = gateway.hub.start(wanted(ID)).await.expect_err("taken");
    assert_eq!(again.code, ErrorCode::Conflict);
    for id in ["", "no-uuid", "11111111222243338444555555555555", "../../../etc/passwd"] {
        let error = gateway.hub.start(wanted(id)).await.expect_err("not a UUID");
        assert_eq!(error.code, ErrorCode::InvalidMessage, "{id}");
    }
    // Of several starts at once, one succeeds.
    let starts = (0..8).map(|_| {
        let (hub, new) = (gateway.hub.clone(), wanted(OTHER));
        tokio::spawn(async move { hub.start(new).await })
    });
    let mut won = Vec::new();
    for start in starts.collect::<Vec<_>>() {
        match start.await.expect("an answer") {
            Ok(session) => won.push(session),
            Err(error) => assert_eq!(error.code, ErrorCode::Conflict, "{error}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert_eq!(said(&mut gateway.reader(&won[0]).await).await, "1");
    assert_eq!(stop(&won[0]).await.reason, Some(SessionEndReason::Completed));
    once_started(&gateway, &won[0]).await;
}

async fn once_started(gateway: &Gateway, session: &SessionHandle) {
    let events = gateway.events(session).await;
    let started = events.iter().filter(|e| matches!(e.kind, EventKind::SessionStarted(_)));
    assert_eq!(started.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_contradicts_itself_is_refused() {
    let gateway = Gateway::new().await;
    let (session, _) = one_turn(&gateway, demo(&gateway, "/say one")).await;
    let resume = Some(session.id().clone());
    for new in [
        NewSession { fork: true, ..demo(&gateway, "/say x") },
        NewSession {
            resume: resume.clone(),
            id: Some(SessionId::from(ID)),
            ..demo(&gateway, "/say x")
        },
        NewSession { resume, native_resume: Some(ID.to_owned()), ..demo(&gateway, "/say x") },
    ] {
        let error = gateway.hub.start(new).await.expect_err("a refusal");
        assert_eq!(error.code, ErrorCode::InvalidMessage, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_is_a_session_of_its_own() {
    let gateway = Gateway::new().await;
    let (first, _) = one_turn(&gateway, demo(&gateway, "/say one")).await;
    let before = gateway.events(&first).await;
    let from = |new: NewSession| NewSession {
        resume: Some(first.id().clone()),
        fork: true,
        config: Default::default(),
        ..new
    };
    let given = NewSession { id: Some(ID.into()), ..from(demo(&gateway, "/say {turns} {cwd}")) };
    let (fork, told) = one_turn(&gateway, given).await;
    // The fork knows the conversation and works in the same directory.
    let work = gateway.home.path("work").canonicalize().expect("a directory");
    assert_eq!(told, format!("2 {}", work.display()));
    assert_eq!(fork.id().as_str(), ID);
    let events = gateway.events(&fork).await;
    let EventKind::SessionStarted(started) = &events[0].kind else { panic!("{:?}", events[0]) };
    let origin = started.forked_from.as_ref().expect("an origin").to_string();
    assert_eq!(origin, first.id().as_str());
    assert_eq!(fork.summary().turns, 1);
    assert_eq!(gateway.events(&first).await, before);
    // A fork of the fork; each continues independently.
    let third = NewSession {
        resume: Some(fork.id().clone()),
        fork: true,
        ..demo(&gateway, "/say {turns}")
    };
    assert_eq!(one_turn(&gateway, third).await.1, "3");
    let on =
        |id: &SessionId| NewSession { resume: Some(id.clone()), ..demo(&gateway, "/say {turns}") };
    assert_eq!(one_turn(&gateway, on(fork.id())).await.1, "3");
    assert_eq!(one_turn(&gateway, on(first.id())).await.1, "2");
    let events = gateway.events(&fork).await;
    let origins = events.iter().filter(
        |e| matches!(&e.kind, EventKind::SessionStarted(started) if started.forked_from.is_some()),
    );
    assert_eq!(origins.count(), 1);
}

/// A running session can be forked, but not resumed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_runs_can_be_forked() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/say one").await;
    gateway.reader(&session).await.turn_end().await;
    let resume = Some(session.id().clone());
    let again = NewSession { resume: resume.clone(), ..demo(&gateway, "/say x") };
    assert_eq!(gateway.hub.start(again).await.expect_err("runs").code, ErrorCode::Conflict);
    let fork = NewSession { resume, fork: true, ..demo(&gateway, "/say {turns}") };
    assert_eq!(one_turn(&gateway, fork).await.1, "2");
    stop(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_the_agents_own_is_resumed_under_its_id() {
    let gateway = Gateway::new().await;
    let (session, _) = one_turn(&gateway, demo(&gateway, "/say one")).await;
    let native = session.id().as_str().to_owned();
    // A session ends before the hub releases it.
    while gateway.hub.session(session.id()).is_ok() {
        tokio::task::yield_now().await;
    }
    let gone = gateway.hub.forget(vec![session.id().clone()]).await.expect("forgotten");
    assert_eq!(gone, [session.id().clone()]);
    let resume =
        |prompt: &str| NewSession { native_resume: Some(native.clone()), ..demo(&gateway, prompt) };
    let fork = NewSession { fork: true, ..resume("/say {turns}") };
    let (fork, told) = one_turn(&gateway, fork).await;
    assert_eq!(told, "2");
    assert_ne!(fork.id().as_str(), native);
    let (again, told) = one_turn(&gateway, resume("/say {turns}")).await;
    assert_eq!((again.id().as_str(), told.as_str()), (native.as_str(), "2"));
    // The id is in use now, so the same conversation gets another.
    let (other, told) = one_turn(&gateway, resume("/say {turns}")).await;
    assert_ne!(other.id().as_str(), native);
    assert_eq!(told, "3");
    let other = gateway.hub.summary(other.id()).await.expect("a summary");
    assert_eq!(other.native_session_id, Some(native));
    // A conversation that the agent does not know does not become a new one.
    for fork in [false, true] {
        let unknown = NewSession {
            native_resume: Some(OTHER.to_owned()),
            fork,
            ..demo(&gateway, "/say fresh")
        };
        let session = gateway.hub.start(unknown).await.expect("a session");
        let ended = tokio::time::timeout(PATIENCE, session.ended()).await.expect("an end in time");
        assert_eq!(ended.reason, Some(SessionEndReason::Failed));
        let events = gateway.events(&session).await;
        assert!(!events.iter().any(|e| matches!(e.kind, EventKind::TextChunk(_))));
    }
}

/// An agent that continues the session itself has not made a fork.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_session_itself_is_never_taken_for_its_copy() {
    let text = "#!/bin/sh\n\
        case \"$*\" in *--fork-session*--session-id=*) told=$(cat told);; *) told=first;; esac\n\
        while read -r line; do case $line in *'\"user\"'*)\n\
        echo \"{\\\"type\\\":\\\"system\\\",\\\"subtype\\\":\\\"init\\\",\\\"session_id\\\":\\\"$told\\\"}\"\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"hi\"}'\n\
        ;; esac; done\n";
    let gateway = Gateway::script(text).await;
    let told = gateway.home.path("work/told");
    let new = |prompt: &str| gateway.session(AgentType::Claude, prompt);
    let session = gateway.hub.start(new("one")).await.expect("a session");
    gateway.reader(&session).await.turn_end().await;
    stop(&session).await;
    for (tells, reason) in
        [("first", SessionEndReason::Failed), ("copy", SessionEndReason::Completed)]
    {
        std::fs::write(&told, tells).expect("a file");
        let resume = Some(session.id().clone());
        let fork = NewSession { resume, fork: true, ..new("two") };
        let fork = gateway.hub.start(fork).await.expect("a session");
        gateway.reader(&fork).await.turn_end().await;
        if tells == "copy" {
            stop(&fork).await;
        }
        let ended = tokio::time::timeout(PATIENCE, fork.ended()).await.expect("an end in time");
        assert_eq!(ended.reason, Some(reason), "{tells}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_latest_of_a_directory_is_found() {
    let gateway = Gateway::new().await;
    let work = gateway.home.path("work");
    let elsewhere = gateway.home.path("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let latest = async |agent, at| gateway.hub.latest(agent, at).await.expect("an answer");
    assert_eq!(latest(AgentType::Demo, &work).await, None);
    let (first, _) = one_turn(&gateway, demo(&gateway, "/say one")).await;
    let (second, _) = one_turn(&gateway, demo(&gateway, "/say two")).await;
    let mut there = demo(&gateway, "/say three");
    there.config.working_directory = Some(elsewhere.to_string_lossy().into_owned());
    let (third, _) = one_turn(&gateway, there).await;
    assert_eq!(latest(AgentType::Demo, &work).await.as_ref(), Some(second.id()));
    assert_eq!(latest(AgentType::Demo, &elsewhere).await.as_ref(), Some(third.id()));
    assert_eq!(latest(AgentType::Claude, &work).await, None);
    // A resumed session becomes the latest.
    let resume = Some(first.id().clone());
    one_turn(&gateway, NewSession { resume, ..demo(&gateway, "/say four") }).await;
    let around = elsewhere.join("../work");
    assert_eq!(latest(AgentType::Demo, &around).await.as_ref(), Some(first.id()));
}
