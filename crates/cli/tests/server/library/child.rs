//! The child process of a client: it is restarted if it dies, and nothing of it is left at the end.

use std::time::Instant;

use agentwire_client::protocol::event::{SessionEndReason, TurnFailure};
use agentwire_client::{
    AgentClient, AgentErrorType, CancellationToken, EventKind, OnDrop, Prompt, SessionState,
    StdioTransport,
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::library::harness::{Gateway, Way, assert_whole, next, rest, until};
use crate::shared::{PATIENCE, naming};

const MESSAGE: &str = "11111111-1111-4111-8111-111111111111";

fn pid(child: &StdioTransport) -> Pid {
    let pid = child.pid().and_then(|pid| i32::try_from(pid).ok());
    pid.and_then(Pid::from_raw).expect("it runs")
}

async fn gone(pid: Pid) {
    let begun = Instant::now();
    while test_kill_process(pid).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it still runs");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_killed_is_started_again() {
    let gateway = Gateway::new();
    let child = gateway.child();
    let client = AgentClient::over(child.clone());
    let session =
        client.create(gateway.request("/repeat 100 word \n/hang")).await.expect("a session");
    let mut events = session.events();
    let started = until(&mut events, "turnStarted").await;
    let first = pid(&child);
    kill_process(first, Signal::KILL).expect("it is killed");
    let left = rest(&mut events).await;
    assert_whole(&left, started.seq + 1);
    let second = pid(&child);
    assert_ne!(second, first);
    // The session ended with the process that ran it, and reports that.
    assert_eq!(session.state(), SessionState::Ended);
    let ended = session.ended().await.expect("it has ended");
    assert_eq!(ended.reason, Some(SessionEndReason::Failed));
    // An accepted prompt stays accepted after the session has ended.
    let prompt = || Prompt { message_id: Some(MESSAGE.to_owned()), ..Prompt::text("/say once") };
    let again = client.resume(session.id().clone(), "").await.expect("it continues");
    again.prompt(prompt()).await.expect("accepted");
    let second = pid(&child);
    kill_process(second, Signal::KILL).expect("it is killed");
    again.ended().await.expect("it has ended");
    assert_eq!(again.prompt(prompt()).await.expect("it was accepted"), MESSAGE);
    again.prompt("/say another").await.expect_err("the session has ended");
    let third = pid(&child);
    assert_ne!(third, second);
    // The session can be resumed in the next process.
    let resumed = client.resume(session.id().clone(), "/say again").await.expect("it continues");
    until(&mut resumed.events(), "turnCompleted").await;
    client.close().await;
    gone(third).await;
    assert_eq!(naming(&gateway.path("data")), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_ends_with_its_client() {
    let gateway = Gateway::new();
    let child = gateway.child();
    let client = AgentClient::over(child.clone());
    let session = client.create(gateway.request("/hang")).await.expect("a session");
    let mut events = session.events();
    until(&mut events, "turnStarted").await;
    let pid = pid(&child);
    // It lives while anything still refers to it.
    drop((child, client));
    session.summary().await.expect("it answers");
    drop((session, events));
    gone(pid).await;
    let begun = Instant::now();
    while !naming(&gateway.path("data")).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "an agent still runs");
        tokio::task::yield_now().await;
    }
}

/// A reader does not start another child.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_closed_stays_so() {
    let gateway = Gateway::new();
    let child = gateway.child();
    let client = AgentClient::over(child.clone());
    let session = client.create(gateway.request("/hang")).await.expect("a session");
    let mut events = session.events();
    until(&mut events, "turnStarted").await;
    let first = pid(&child);
    let reading = tokio::spawn(async move { rest(&mut events).await });
    client.close().await;
    gone(first).await;
    // The stream ends although nobody is left to report the end.
    let read = reading.await.expect("it ends");
    assert!(read.last().is_some_and(|(_, raw)| raw.contains("\"sessionEnded\"")), "{read:?}");
    assert_eq!(child.pid(), None);
    let error = next(&mut session.events()).await.expect_err("it is closed");
    assert!(!error.is_retryable() && error.message().contains("was closed"), "{error}");
    client.requests().await.expect_err("it is closed");
    assert_eq!(naming(&gateway.path("data")), [""; 0]);
}

/// The error contains the child's last output.
#[tokio::test(flavor = "multi_thread")]
async fn why_a_child_does_not_run_is_told() {
    let gateway = Gateway::new();
    let client = AgentClient::over(StdioTransport::new("/nowhere/agentwire"));
    let error = client.requests().await.expect_err("there is none");
    assert_eq!(error.kind(), AgentErrorType::ConnectionFailed);
    assert!(!error.is_retryable() && error.message().contains("/nowhere/agentwire"), "{error}");
    let child = gateway.child().env("AGENTWIRE_CONFIG", "/nowhere/config.toml");
    let error = AgentClient::over(child).requests().await.expect_err("it cannot start");
    assert!(error.native_error().is_some_and(|words| words.contains("config.toml")), "{error:?}");
}

/// Dropping a guard interrupts, releasing it does not; a token ends a stream.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_cancelled_by_hold_and_by_token() {
    let gateway = Gateway::new();
    let client = gateway.client(Way::InProcess).await;
    let session = client.create(gateway.request("/hang")).await.expect("a session");
    let mut events = session.events();
    until(&mut events, "turnStarted").await;
    let released = session.cancellable(OnDrop::Stop).release();
    let held = released.cancellable(OnDrop::Interrupt);
    let mut watched = held.events();
    until(&mut watched, "turnStarted").await;
    drop(held);
    let failed = until(&mut events, "turnFailed").await;
    let EventKind::TurnFailed(turn) = &failed.kind else { panic!("{failed:?}") };
    assert_eq!(turn.reason, TurnFailure::Interrupted);
    assert!(failed.error().is_some_and(|error| error.agent_type().is_some()));
    // Its streams end with it.
    while next(&mut watched).await.expect("an event").is_some() {}
    let token = CancellationToken::new();
    let mut waiting = session.events_after(failed.seq).cancelled_by(token.clone());
    let waited =
        tokio::spawn(async move { while next(&mut waiting).await.expect("one").is_some() {} });
    token.cancel();
    waited.await.expect("it ends");
    assert!(session.summary().await.expect("it continues").state != SessionState::Ended);
    session.cancellable(OnDrop::Stop).cancel().await.expect("accepted");
    rest(&mut events).await;
    assert_eq!(session.state(), SessionState::Ended);
    client.close().await;
}
