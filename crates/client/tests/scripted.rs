//! A script works the same in any order of its methods.

use agentwire_client::protocol::ListQuery;
use agentwire_client::{
    AgentClient, AgentError, AgentType, Call, ScriptedTransport, Session, SessionConfig,
    SessionFilter, SessionId, SessionRequest, SessionState,
};
use serde_json::Value;

fn line(session: &str, seq: u64, kind: &str) -> String {
    format!(
        r#"{{"id":"e{seq}","sessionId":"{session}","seq":{seq},"timestamp":"2026-01-02T03:04:05Z",{kind}}}"#
    )
}

/// This many text events.
fn texts(session: &str, count: u64) -> String {
    let text = r#""type":"textChunk","content":"x""#;
    (1..=count).map(|seq| line(session, seq, text) + "\n").collect()
}

async fn read(session: &Session) -> Vec<Result<u64, AgentError>> {
    let mut events = session.events();
    let mut all = Vec::new();
    loop {
        match events.try_next().await {
            Ok(Some(event)) => all.push(Ok(event.seq)),
            Ok(None) => return all,
            Err(error) => all.push(Err(error)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn script_methods_work_in_any_order() {
    let faults = |script: ScriptedTransport| script.hold_after(4).cut_after(2).without(3);
    let recorded =
        |script: ScriptedTransport| script.transcript(&texts("a", 6)).expect("a recording");
    for script in
        [faults(recorded(ScriptedTransport::new())), recorded(faults(ScriptedTransport::new()))]
    {
        let session = AgentClient::over(script.clone()).attach("a").await.expect("a session");
        assert_eq!(session.snapshot().last_seq, 4);
        session.prompt("go on").await.expect("accepted");
        let all = read(&session).await;
        let seen: Vec<u64> = all.iter().filter_map(|read| read.as_ref().ok().copied()).collect();
        assert_eq!(seen, [1, 2, 4, 5, 6]);
        assert_eq!(all.iter().filter(|read| read.is_err()).count(), 1, "{all:?}");
    }
}

#[tokio::test]
async fn sessions_are_filtered() {
    let end = |session: &str| line(session, 2, r#""type":"sessionEnded","reason":"completed""#);
    let mut recording = String::new();
    for session in ["a", "b", "c", "d"] {
        recording += &texts(session, 1);
        if session == "b" {
            recording += &end(session);
            recording.push('\n');
        }
    }
    let script = ScriptedTransport::new().transcript(&recording).expect("a recording").live();
    let client = AgentClient::over(script);
    for (only_live, limit, expected) in [
        (false, None, vec!["d", "c", "b", "a"]),
        (true, None, vec!["d", "c", "a"]),
        (true, Some(2), vec!["d", "c"]),
    ] {
        let filter = SessionFilter { only_live, limit, ..SessionFilter::default() };
        let listed = client.sessions(filter).await.expect("sessions");
        let ids: Vec<SessionId> = listed.into_iter().map(|summary| summary.id).collect();
        assert_eq!(ids, expected.into_iter().map(SessionId::from).collect::<Vec<_>>());
    }
    let page = ListQuery {
        live: true,
        after: Some("d".to_owned()),
        limit: Some(1),
        ..ListQuery::default()
    };
    let page = Call::List(Box::new(page));
    let page = client.transport().call(page).await.expect("a page").read::<Value>().expect("JSON");
    assert_eq!(page.pointer("/sessions/0/id").and_then(Value::as_str), Some("c"));
    assert_eq!(page.get("next").and_then(Value::as_str), Some("c"));
}

/// A created session starts before its first event; reading changes its state.
#[tokio::test]
async fn a_created_session_starts_before_its_first_event() {
    let mut recording = texts("a", 2);
    recording += &line("a", 3, r#""type":"sessionEnded","reason":"completed""#);
    let script = ScriptedTransport::new().transcript(&recording).expect("a recording");
    let request = SessionRequest::new(AgentType::Codex, "x");
    let session = AgentClient::over(script).create(request).await.expect("a session");
    let created = session.snapshot();
    assert_eq!((created.state, created.last_seq), (SessionState::Starting, 0));
    assert_eq!(session.agent_type(), AgentType::Codex);
    assert_eq!(read(&session).await, [Ok(1), Ok(2), Ok(3)]);
    assert_eq!(session.state(), SessionState::Ended);
}

/// The working directory comes from the client or from the session; a resumed session keeps its own.
#[tokio::test]
async fn the_working_directory_is_sent() {
    let script = ScriptedTransport::new().transcript(&texts("a", 1)).expect("a recording");
    let client = AgentClient::builder().working_directory("/here").over(script.clone());
    let request = SessionRequest::new(AgentType::Demo, "x");
    let there =
        SessionConfig { working_directory: Some("/there".to_owned()), ..SessionConfig::default() };
    client.create(request.clone()).await.expect("a session");
    client.create(request.with_config(there)).await.expect("a session");
    client.resume("a", "x").await.expect("a session");
    let directories: Vec<_> = script
        .calls()
        .into_iter()
        .filter_map(|call| {
            let Call::Start { request, .. } = call else { return None };
            Some(request.config.and_then(|it| it.working_directory))
        })
        .collect();
    assert_eq!(directories, [Some("/here".to_owned()), Some("/there".to_owned()), None]);
}
