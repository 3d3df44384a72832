//! Reliable streams over a scripted gateway with paused time: broken connections, repeated events, missing
//! events, slow readers.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use agentwire_client::transport::{Calling, Opening};
use agentwire_client::{
    AgentClient, AgentError, AgentErrorType, AgentType, Call, CancellableSession,
    CancellationToken, ErrorCode, EventKind, Gap, GatewayError, OnDrop, Profile, Request,
    ScriptedTransport, SessionFilter, SessionId, SessionRequest, SessionState, Transport, Update,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";

fn event(seq: u64, kind: &str, more: Value) -> Value {
    let mut event = json!({
        "id": format!("e{seq}"), "sessionId": SESSION, "seq": seq, "type": kind,
        "timestamp": "2026-01-02T03:04:05Z", "agentId": "main",
    });
    if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
        event.extend(more);
    }
    event
}

/// A session with one turn of this many words.
fn session_events(words: u64) -> Vec<Value> {
    let mut events = vec![
        event(1, "sessionStarted", json!({ "agentType": "claude", "config": {} })),
        event(2, "turnStarted", json!({ "turnNumber": 1 })),
    ];
    events.extend((3..words + 3).map(|seq| event(seq, "textChunk", json!({ "content": "word " }))));
    let usage = json!({ "inputTokens": 3, "outputTokens": 4, "totalTokens": 7 });
    let last = words + 3;
    events.push(event(last, "turnCompleted", json!({ "turnNumber": 1, "usage": usage })));
    events.push(event(last + 1, "sessionEnded", json!({ "reason": "completed" })));
    events
}

async fn numbers(client: &AgentClient) -> Vec<Result<u64, AgentError>> {
    let session = client.attach(SESSION).await.expect("a session");
    let mut events = session.events();
    let mut read = Vec::new();
    while let Some(next) = events.try_next().await.transpose() {
        read.push(next.map(|event| event.seq));
    }
    read
}

fn all(last: u64) -> Vec<Result<u64, AgentError>> {
    (1..=last).map(Ok).collect()
}

#[tokio::test(start_paused = true)]
async fn cut_repeated_and_refused_connections_lose_nothing() {
    let script = ScriptedTransport::new().events(session_events(50)).expect("a script");
    let script = script.cut_after(7).cut_after(7).cut_after(30).cut_after(53).repeating(5);
    let client = AgentClient::over(script.clone());
    let session = client.attach(SESSION).await.expect("a session");
    let mut updates = session.updates_after(0);
    let (mut read, mut reported) = (Vec::new(), Vec::new());
    while let Some(update) = updates.try_next().await.expect("an update") {
        match update {
            Update::Events(lines) => read.extend(lines.iter().map(|(seq, _)| seq)),
            Update::Lost(why) => {
                assert!(why.is_retryable());
                reported.push("lost");
                let _ = script.clone().refusing_connections(3);
            }
            Update::Back => reported.push("back"),
            Update::Gap(gap) => panic!("{gap:?}"),
        }
    }
    assert_eq!(read, (1..=54).collect::<Vec<_>>());
    assert_eq!(updates.position(), 54);
    let times = reported.iter().filter(|reported| **reported == "lost").count();
    assert!(times >= 3 && reported.chunks(2).all(|pair| pair == ["lost", "back"]), "{reported:?}");
}

/// Missing events are reported, and the events after them are read.
#[tokio::test(start_paused = true)]
async fn a_gap_is_reported() {
    let script = ScriptedTransport::new().events(session_events(20)).expect("a script");
    let client = AgentClient::over(script.without(9).without(10).without(15));
    let read = numbers(&client).await;
    let gaps: Vec<_> = read.iter().filter_map(|it| it.as_ref().err()?.gap()).collect();
    let expected = [Gap::Skipped { from: 9, to: 10 }, Gap::Skipped { from: 15, to: 15 }];
    assert_eq!(gaps, expected);
    let events: Vec<u64> = read.into_iter().filter_map(Result::ok).collect();
    assert_eq!(events, (1..=24).filter(|seq| ![9, 10, 15].contains(seq)).collect::<Vec<_>>());
}

/// A log with fewer events than were read is another log.
#[tokio::test(start_paused = true)]
async fn a_shorter_log_is_a_gap() {
    let script = ScriptedTransport::new().events(session_events(2)).expect("a script");
    let session = AgentClient::over(script).attach(SESSION).await.expect("a session");
    let mut events = session.events_after(40);
    let error = events.try_next().await.expect_err("a gap");
    assert_eq!(error.gap(), Some(Gap::Forgotten { from: 7, to: 40 }));
    assert_eq!(error.kind(), AgentErrorType::ProtocolError);
    assert_eq!(events.try_next().await.expect("the end"), None);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_gateway_is_given_up() {
    let script =
        ScriptedTransport::new().events(session_events(20)).expect("a script").cut_after(5);
    let builder = AgentClient::builder().patience(Duration::from_secs(7));
    let client = builder.over(script.clone());
    let session = client.attach(SESSION).await.expect("a session");
    let mut events = session.events();
    for _ in 0..5 {
        events.try_next().await.expect("an event").expect("an event");
    }
    let _ = script.refusing_connections(usize::MAX);
    let begun = tokio::time::Instant::now();
    let error = events.try_next().await.expect_err("the stream gives up");
    assert_eq!(error.kind(), AgentErrorType::ConnectionFailed);
    assert!(begun.elapsed() >= Duration::from_secs(7));
}

/// A stream that starts while the gateway is unreachable waits for it.
#[tokio::test(start_paused = true)]
async fn a_stream_may_start_while_the_gateway_is_unreachable() {
    let script = ScriptedTransport::new().events(session_events(20)).expect("a script");
    let client = AgentClient::over(script.clone());
    let session = client.attach(SESSION).await.expect("a session");
    let _ = script.clone().refusing_connections(5);
    let away = AgentError::unreachable("the script", "it restarts");
    let _ = script.fail("show", away.clone()).fail("show", away);
    let mut updates = session.updates();
    assert!(matches!(updates.try_next().await, Ok(Some(Update::Lost(_)))));
    assert!(matches!(updates.try_next().await, Ok(Some(Update::Back))));
    assert!(matches!(updates.try_next().await, Ok(Some(Update::Events(_)))));
}

/// After the last event, the stream needs no confirmation from the gateway.
#[tokio::test(start_paused = true)]
async fn after_the_last_event_a_stream_needs_no_gateway() {
    let script = ScriptedTransport::new().events(session_events(2)).expect("a script").live();
    let session = AgentClient::over(script.clone()).attach(SESSION).await.expect("a session");
    let mut updates = session.updates_after(0);
    // One call is made before the connection opens.
    let closed = AgentError::new(AgentErrorType::ConnectionFailed, "the client was closed");
    let summary = session.snapshot();
    let _ = script.reply("show", &summary).fail("show", closed);
    while updates.try_next().await.expect("no error").is_some() {}
    assert_eq!(updates.position(), 6);
}

/// An unknown state of a newer gateway does not stop a stream.
#[tokio::test(start_paused = true)]
async fn an_unknown_state_does_not_stop_a_stream() {
    let script = ScriptedTransport::new().events(session_events(2)).expect("a script");
    let session = AgentClient::over(script.clone()).attach(SESSION).await.expect("a session");
    let _ = script.reply("show", &json!({ "lastSeq": 6, "state": "dreaming", "new": {} }));
    let mut events = session.events();
    for seq in 1..=6 {
        assert_eq!(events.try_next().await.expect("an event").expect("an event").seq, seq);
    }
    assert_eq!(events.try_next().await.expect("the end"), None);
}

/// A failed start stays a failure when it is repeated.
#[tokio::test(start_paused = true)]
async fn a_failed_start_stays_failed() {
    let request = SessionRequest::new(AgentType::Claude, "x");
    let script = || ScriptedTransport::new().events(session_events(2)).expect("a script");
    let session = AgentClient::over(script()).attach(SESSION).await.expect("a session");
    let failed =
        json!({ "state": "ended", "reason": "failed", "error": "no such program", "turns": 0 });
    let mut summary = serde_json::to_value(session.snapshot()).expect("JSON");
    if let (Some(summary), Value::Object(failed)) = (summary.as_object_mut(), failed) {
        summary.extend(failed);
    }
    let full = GatewayError::new(ErrorCode::Overloaded, "too much runs at once");
    let lost = AgentError::broken("the script", "the answer is lost");
    for (first, code, message) in [
        (AgentError::from(full), ErrorCode::Overloaded, "too much runs at once"),
        (lost.clone(), ErrorCode::StartFailed, "no such program"),
    ] {
        let client = AgentClient::over(script().fail("start", first).reply("start", &summary));
        let error = client.create(request.clone()).await.expect_err("it failed");
        assert_eq!((error.code(), error.message()), (Some(code), message));
    }
    // A session that started is a success, however it ended.
    if let Some(turns) = summary.get_mut("turns") {
        *turns = json!(1);
    }
    let client = AgentClient::over(script().fail("start", lost).reply("start", &summary));
    client.create(request).await.expect("a session");
}

/// If the gateway has never answered, the first failure is final; otherwise it is waited for.
#[tokio::test(start_paused = true)]
async fn only_a_known_gateway_is_waited_for() {
    let away = || AgentError::unreachable("the script", "nothing listens");
    let script = ScriptedTransport::new().events(session_events(2)).expect("a script");
    let client = AgentClient::over(script.clone().fail("show", away()).fail("start", away()));
    let begun = tokio::time::Instant::now();
    client.attach(SESSION).await.expect_err("no gateway is there");
    let request = SessionRequest::new(AgentType::Claude, "x");
    client.create(request.clone()).await.expect_err("no gateway is there");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    client.attach(SESSION).await.expect("a session");
    let _ = script.clone().fail("show", away()).fail("start", away()).fail("list", away());
    client.attach(SESSION).await.expect("it is back");
    client.create(request).await.expect("it is back");
    client.sessions(SessionFilter::default()).await.expect("it is back");
}

/// A guard that is dropped while the gateway is unreachable sends its command when it is back.
#[tokio::test(start_paused = true)]
async fn a_dropped_guard_repeats_its_command() {
    for on_drop in [OnDrop::Interrupt, OnDrop::Stop] {
        let script = ScriptedTransport::new().events(session_events(2)).expect("a script").live();
        let session = AgentClient::over(script.clone()).attach(SESSION).await.expect("a session");
        let away = AgentError::unreachable("the script", "it restarts");
        let name = if on_drop == OnDrop::Stop { "stop" } else { "interrupt" };
        let _ = script.clone().fail(name, away.clone()).fail(name, away);
        drop(session.cancellable(on_drop));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(script.commands().len(), 3, "{on_drop:?}");
    }
}

/// When the buffer is full, reading stops; nothing is dropped.
#[tokio::test(start_paused = true)]
async fn a_full_buffer_waits_for_its_reader() {
    const BUFFER: usize = 10_000;
    let script = ScriptedTransport::new().events(session_events(100_000)).expect("a script");
    let client = AgentClient::builder().buffer_bytes(BUFFER).over(script);
    let session = client.attach(SESSION).await.expect("a session");
    let mut events = session.events();
    let mut last = 0;
    while let Some(event) = events.try_next().await.expect("an event") {
        last += 1;
        assert_eq!(event.seq, last);
        assert!(events.buffered_bytes() <= BUFFER, "{}", events.buffered_bytes());
        if last.is_multiple_of(10_000) && last < 100_000 {
            // Let the follower fill the buffer.
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(events.buffered_bytes() > BUFFER / 2, "{}", events.buffered_bytes());
        }
    }
    assert_eq!(last, 100_004);
}

#[tokio::test(start_paused = true)]
async fn events_update_the_known_state() {
    let script =
        ScriptedTransport::new().events(session_events(3)).expect("a script").hold_after(1);
    let client = AgentClient::over(script.clone());
    let session = client.attach(SESSION).await.expect("a session");
    assert_eq!(session.state(), SessionState::Starting);
    session.prompt("go on").await.expect("a prompt");
    let mut events = session.events();
    let mut states = Vec::new();
    while events.try_next().await.expect("an event").is_some() {
        states.push(session.state());
    }
    let working = SessionState::Working;
    let expected = [
        SessionState::Starting,
        working,
        working,
        working,
        working,
        SessionState::Idle,
        SessionState::Ended,
    ];
    assert_eq!(states, expected);
    assert_eq!(session.usage().total_tokens, 7);
    // Events that are read again are not counted again.
    let mut again = session.events_after(0);
    while again.try_next().await.expect("an event").is_some() {}
    assert_eq!((session.usage().total_tokens, session.state()), (7, SessionState::Ended));
}

#[tokio::test(start_paused = true)]
async fn unknown_kinds_and_fields_survive() {
    let strange =
        event(1, "sessionStarted", json!({ "agentType": "demo", "config": {}, "new": 1 }));
    let stranger = event(2, "somethingElse", json!({ "deep": [{ "er": 1.0 }] }));
    let given = [strange.to_string(), stranger.to_string()];
    let script = ScriptedTransport::new().transcript(&given.join("\n\n")).expect("a script");
    let session = AgentClient::over(script).attach(SESSION).await.expect("a session");
    let mut events = session.events();
    for (seq, given) in (1..).zip(given) {
        let event = events.try_next().await.expect("an event").expect("an event");
        assert_eq!((event.seq, event.raw()), (seq, given.as_str()));
        assert_eq!(matches!(event.kind, EventKind::Unknown(_)), seq == 2);
    }
    assert!(ScriptedTransport::new().transcript("{\"no\":\"event\"}").is_err());
}

/// A session with events that the core profile leaves out, one of them the last.
fn with_statuses(words: u64) -> Vec<Value> {
    let status = || json!({ "type": "statusChanged", "status": "working" });
    let mut events = session_events(words);
    events.insert(3, status());
    events.push(status());
    for (seq, numbered) in (1..).zip(&mut events) {
        let (kind, mut more) =
            (numbered["type"].as_str().expect("a type").to_owned(), numbered.take());
        let fields = more.as_object_mut().expect("an event");
        ["id", "seq"].into_iter().for_each(|name| drop(fields.remove(name)));
        *numbered = event(seq, &kind, more);
    }
    events
}

async fn core(script: ScriptedTransport, up_to: Option<u64>) -> Vec<Result<u64, AgentError>> {
    let session = AgentClient::over(script).attach(SESSION).await.expect("a session");
    let events = session.events().profile(Profile::Core);
    let mut events = match up_to {
        Some(last) => events.up_to(last),
        None => events,
    };
    let mut read = Vec::new();
    while let Some(next) = events.try_next().await.transpose() {
        read.push(next.map(|event| event.seq));
    }
    read
}

/// Events that the profile leaves out are no gap, and the stream ends even if one of them is the last.
#[tokio::test(start_paused = true)]
async fn in_core_left_out_events_are_no_gap() {
    let script = || ScriptedTransport::new().events(with_statuses(40)).expect("a script");
    let shown = |last: u64| (1..=last).filter(|seq| *seq != 4).map(Ok).collect::<Vec<_>>();
    assert_eq!(core(script().cut_after(20).repeating(3), None).await, shown(45));
    // A live session, up to an event that is left out.
    assert_eq!(core(script().live(), Some(46)).await, shown(45));
    assert_eq!(core(script().live(), Some(4)).await, shown(3));
    // Where the end is known, a gap is distinguished from events that are left out.
    let read = core(script().without(9), None).await;
    let gaps: Vec<_> = read.iter().filter_map(|it| it.as_ref().err()?.gap()).collect();
    assert_eq!(gaps, [Gap::Skipped { from: 9, to: 9 }]);
}

/// However a guard is cancelled, it sends one command; a released one sends none.
#[tokio::test(start_paused = true)]
async fn a_cancelled_guard_sends_one_command() {
    let commands_after = async |cancel: &dyn Fn(&CancellationToken, CancellableSession)| {
        let events = session_events(2).into_iter().take(5);
        let script = ScriptedTransport::new().events(events).expect("a script").live();
        let session = AgentClient::over(script.clone()).attach(SESSION).await.expect("a session");
        let token = CancellationToken::new();
        let held = session.cancellable_by(&token, OnDrop::Interrupt);
        let mut events = held.events_after(5);
        cancel(&token, held);
        let ended = tokio::time::timeout(Duration::from_secs(3), events.try_next()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        (script.commands().len(), ended.is_ok())
    };
    assert_eq!(commands_after(&|token, held| (token.cancel(), drop(held)).1).await, (1, true));
    assert_eq!(commands_after(&|_, held| drop(held)).await, (1, true));
    assert_eq!(commands_after(&|_, held| drop(tokio::spawn(held.cancel()))).await, (1, true));
    assert_eq!(commands_after(&|_, held| drop(held.release())).await, (0, false));
}

/// The rest of a batch is not read after the token is cancelled.
#[tokio::test(start_paused = true)]
async fn a_cancelled_stream_ends_at_once() {
    let script = ScriptedTransport::new().events(session_events(50)).expect("a script");
    let session = AgentClient::over(script).attach(SESSION).await.expect("a session");
    let (one, other) = (CancellationToken::new(), CancellationToken::new());
    let mut events = session.events().cancelled_by(one.clone()).cancelled_by(other);
    events.try_next().await.expect("an event").expect("an event");
    one.cancel();
    assert_eq!(events.try_next().await.expect("the end"), None);
    assert_eq!(events.try_next().await.expect("the end"), None);
}

/// A panic in a transport is not the end of the session.
#[tokio::test(start_paused = true)]
async fn a_panic_is_reported() {
    #[derive(Debug)]
    struct Panics(ScriptedTransport);
    impl Transport for Panics {
        fn name(&self) -> String {
            "a transport that panics".to_owned()
        }
        fn call(&self, call: Call) -> Calling<'_> {
            self.0.call(call)
        }
        fn follow(&self, _session: &SessionId, _after: u64, _profile: Profile) -> Opening<'_> {
            panic!("it panics")
        }
    }
    let script = ScriptedTransport::new().events(session_events(5)).expect("a script").live();
    let session = AgentClient::over(Panics(script)).attach(SESSION).await.expect("a session");
    let mut events = session.events();
    let error = events.try_next().await.expect_err("the panic is reported");
    assert!(error.to_string().contains("failed to follow"), "{error}");
    assert_eq!(events.try_next().await.expect("the end"), None);
}

/// A gateway that refuses slowly is given up in the end.
#[tokio::test(start_paused = true)]
async fn a_slowly_refusing_gateway_is_given_up() {
    #[derive(Debug)]
    struct Slow(ScriptedTransport);
    impl Transport for Slow {
        fn name(&self) -> String {
            self.0.name()
        }
        fn call(&self, call: Call) -> Calling<'_> {
            self.0.call(call)
        }
        fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
            let session = session.clone();
            Box::pin(async move {
                if after > 0 {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    return Err(AgentError::broken("it", "slow"));
                }
                self.0.follow(&session, after, profile).await
            })
        }
    }
    let script =
        ScriptedTransport::new().events(session_events(20)).expect("a script").cut_after(5);
    let client = AgentClient::builder().patience(Duration::from_secs(100)).over(Slow(script));
    let session = client.attach(SESSION).await.expect("a session");
    let mut events = session.events();
    let given_up = async {
        loop {
            if let Err(error) = events.try_next().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(1000), given_up).await;
    assert_eq!(error.expect("the client gives up").kind(), AgentErrorType::ConnectionFailed);
    // Unlimited patience works too.
    let client = AgentClient::builder().patience(Duration::MAX);
    let script =
        ScriptedTransport::new().events(session_events(20)).expect("a script").cut_after(5);
    assert_eq!(numbers(&client.over(script)).await, all(24));
}

/// The state is right even if the client learnt of a request from a summary.
#[tokio::test(start_paused = true)]
async fn a_settled_request_is_no_longer_open() {
    let asked = |seq, id: &str, kind: &str| {
        let more = json!({ "requestId": id, "kind": kind, "inputDigest": "d" });
        event(seq, "requestRaised", more)
    };
    let settled = |seq, id: &str| {
        let more = json!({ "requestId": id, "outcome": "allowed", "by": "client" });
        event(seq, "requestSettled", more)
    };
    let mut events = session_events(0);
    events.truncate(2);
    events.extend([asked(3, "a", "permission"), settled(4, "a")]);
    events.extend([asked(5, "b", "hook"), settled(6, "b")]);
    let script = ScriptedTransport::new().events(events).expect("a script").hold_after(4);
    let session = AgentClient::over(script.live()).attach(SESSION).await.expect("a session");
    let mut events = session.events();
    for _ in 0..3 {
        events.try_next().await.expect("an event").expect("an event");
    }
    session.summary().await.expect("a summary");
    session.prompt("go on").await.expect("a prompt");
    for _ in 0..3 {
        events.try_next().await.expect("an event").expect("an event");
    }
    assert_ne!(session.state(), SessionState::WaitingPermission);
}

/// An input that cannot be serialized allows nothing.
#[tokio::test(start_paused = true)]
async fn an_invalid_input_is_refused() {
    let more = json!({
        "requestId": "r", "kind": "permission", "inputDigest": "d", "toolName": "Bash",
        "input": { "command": "ls" },
    });
    let events = [session_events(0).swap_remove(0), event(2, "requestRaised", more)];
    let script = ScriptedTransport::new().events(events).expect("a script").live();
    let client = AgentClient::over(script.clone());
    let session = client.attach(SESSION).await.expect("a session");
    let mut events = session.events_after(1);
    let event = events.try_next().await.expect("an event").expect("an event");
    let Some(Request::Permission(asked)) = event.request() else { panic!("{event:?}") };
    let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
    asked.allow_with(&unwritable).await.expect_err("it cannot be written");
    asked.allow_with(&Value::Null).await.expect_err("null is not an input");
    assert_eq!(script.commands().len(), 0);
    asked.allow_with(&json!({ "command": "pwd" })).await.expect("accepted");
    assert_eq!(script.commands().len(), 1);
}

/// Calls that count once are repeated; others are not.
#[tokio::test(start_paused = true)]
async fn calls_that_count_once_are_repeated() {
    let script = ScriptedTransport::new().events(session_events(1)).expect("a script");
    let lost = || AgentError::broken("the script", "it lost the answer");
    let script = script.fail("prompt", lost()).fail("prompt", lost()).fail("interrupt", lost());
    let session = AgentClient::over(script.clone()).attach(SESSION).await.expect("a session");
    let id = session.prompt("hello").await.expect("accepted");
    let said: Vec<_> = script.commands();
    assert_eq!(said.len(), 3);
    assert!(said.windows(2).all(|pair| pair.first() == pair.last()), "{said:?}");
    assert_eq!(id.len(), 36);
    session.interrupt().await.expect_err("it is not repeated");
    assert_eq!(script.commands().len(), 4);
}

proptest! {
    /// Wherever connections break and start: each event once, in order.
    #[test]
    fn every_event_is_read_once(
        cuts in prop::collection::vec(1_u64..40, 0..12),
        missing in prop::collection::btree_set(3_u64..38, 0..6),
        rewind in 0_u64..9,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let read = runtime.block_on(async {
            let script = ScriptedTransport::new().events(session_events(36)).expect("a script");
            let script = cuts.iter().fold(script, |script, seq| script.cut_after(*seq));
            let script = missing.iter().fold(script, |script, seq| script.without(*seq));
            numbers(&AgentClient::over(script.repeating(rewind))).await
        });
        let events: Vec<u64> = read.iter().filter_map(|it| it.as_ref().ok().copied()).collect();
        let expected: Vec<u64> = (1..=40).filter(|seq| !missing.contains(seq)).collect();
        prop_assert_eq!(events, expected);
        let gaps = read.iter().filter_map(|it| it.as_ref().err()?.gap());
        let reported: std::collections::BTreeSet<u64> = gaps
            .flat_map(|gap| match gap {
                Gap::Skipped { from, to } | Gap::Forgotten { from, to } => from..=to,
            })
            .collect();
        prop_assert_eq!(reported, missing);
        prop_assert!(read.iter().all(|it| it.as_ref().err().is_none_or(|it| it.gap().is_some())));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_stream_makes_no_calls() {
    let script = ScriptedTransport::new().events(session_events(1)).expect("a script");
    let client = AgentClient::over(script.clone());
    let session = client.attach(SESSION).await.expect("a session");
    let asked = script.calls().len();
    drop(session.events());
    let _unread = session.events();
    assert_eq!(session.events_after(5).up_to(5).try_next().await.expect("nothing"), None);
    assert_eq!(script.calls().len(), asked);
    assert_eq!(numbers(&client).await, all(5));
}
