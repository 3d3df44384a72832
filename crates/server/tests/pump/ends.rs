//! How a connection ends, and what happens to its sessions.

use std::time::Duration;

use agentwire_protocol::{
    AgentType, ErrorCode, NewSession, SessionConfig, SessionId, SessionState,
};

use crate::harness::{Gateway, PATIENCE, types};

async fn idle(gateway: &Gateway) {
    for session in gateway.hub.running() {
        let ended = tokio::time::timeout(PATIENCE, session.ended()).await;
        ended.expect("the session ends");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_finish_when_the_client_says_no_more() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    client.start("hello").await;
    client.hang_up().await;
    let (rest, code) = client.rest().await;
    let types = types(&rest);
    assert!(types.contains(&"turnCompleted"), "{types:?}");
    assert_eq!((types.last(), code), (Some(&"sessionEnded"), 0));
    idle(&gateway).await;
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_can_answer_any_more_is_denied() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    client.start("ASK").await;
    client.event("requestRaised").await;
    client.hang_up().await;
    let (rest, code) = client.rest().await;
    let settled = rest.iter().find(|frame| frame["type"] == "requestSettled");
    let outcome = &settled.expect("it is settled")["outcome"];
    assert_ne!(outcome, "allowed", "{rest:?}");
    assert_eq!((types(&rest).last(), code), (Some(&"sessionEnded"), 0));
    let answer = std::fs::read_to_string(gateway.work().join("answer")).unwrap_or_default();
    assert!(!answer.contains("allow"), "{answer}");
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_goes_on_and_on_is_stopped_after_a_while() {
    let gateway = Gateway::new().await;
    let mut client =
        gateway.client_of(agentwire_dialects::unified::Unified::default(), Some(Duration::ZERO));
    client.start("HANG").await;
    client.event("turnStarted").await;
    client.hang_up().await;
    let (rest, code) = client.rest().await;
    assert!(types(&rest).contains(&"turnFailed"), "{:?}", types(&rest));
    assert_eq!((types(&rest).last(), code), (Some(&"sessionEnded"), 0));
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_vanishes_takes_its_sessions_with_it() {
    let gateway = Gateway::new().await;
    let mut staying = gateway.client();
    let other = staying.start("HANG").await;
    let mut client = gateway.client();
    client.start("FLOOD").await;
    client.event("textChunk").await;
    assert_eq!(client.vanish().await, 0);
    for session in gateway.hub.running() {
        if session.id().as_str() != other {
            let ended = tokio::time::timeout(PATIENCE, session.ended()).await;
            ended.expect("the session ends");
        }
    }
    let others = gateway.hub.session(&SessionId::from(other)).expect("it runs");
    let state = others.summary().state;
    assert!(state != SessionState::Ended, "the other client's session goes on");
    staying.hang_up().await;
    staying.stop();
    assert_eq!(staying.rest().await.1, 0);
    idle(&gateway).await;
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stops_in_order_when_it_is_told_to() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    client.start("HANG").await;
    client.event("turnStarted").await;
    client.stop();
    let (rest, code) = client.rest().await;
    assert!(types(&rest).contains(&"turnFailed"), "{:?}", types(&rest));
    assert_eq!((types(&rest).last(), code), (Some(&"sessionEnded"), 0));
    idle(&gateway).await;
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_starts_once_all_is_ended() {
    let gateway = Gateway::new().await;
    gateway.hub.shutdown().await;
    let new = NewSession {
        config: SessionConfig {
            working_directory: Some(gateway.work().display().to_string()),
            ..SessionConfig::default()
        },
        ..NewSession::of(AgentType::Claude)
    };
    let refused = gateway.hub.start(new).await.map(|_| ()).map_err(|error| error.code);
    assert_eq!(refused, Err(ErrorCode::Overloaded));
    assert!(gateway.hub.running().is_empty());
}
