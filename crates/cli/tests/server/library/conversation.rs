//! One conversation over every transport: the same events, the same answers, the same end.

use agentwire_client::protocol::Command;
use agentwire_client::transport::Call;
use agentwire_client::{
    AgentClient, AgentErrorType, ApprovalMode, ErrorCode, EventKind, Json, OnDrop, Profile,
    Request, ScriptedTransport, SessionFilter, SessionState, Settlement,
};
use agentwire_protocol::RequestId;

use crate::library::harness::{Gateway, WAYS, Way, assert_whole, next, rest, until};

const PROMPT: &str = "/think hm\n/say hello\n/write note.txt hi\n/ask Which? | this | that\n\
                      /usage 10 5 0 0";

/// The conversation without what differs between runs, and the id of the session.
async fn converse(client: &AgentClient, gateway: &Gateway, way: Way) -> (Vec<String>, String) {
    let session = client.create(gateway.request(PROMPT)).await.expect("a session");
    let mut events = session.events();
    let mut told: Vec<String> = Vec::new();
    while let Some(event) = next(&mut events).await.expect("an event") {
        tell(&mut told, &event.kind);
        match event.request() {
            Some(Request::Permission(asked)) => {
                assert_eq!(session.state(), SessionState::WaitingPermission, "{way:?}");
                assert_eq!(asked.tool_name().as_deref(), Some("Write"));
                let waiting = session.requests().await.expect("requests");
                assert_eq!(waiting.len(), 1, "{way:?}");
                assert_eq!(waiting.first().map(|open| open.seq), Some(event.seq), "{way:?}");
                assert_eq!(
                    session.snapshot(),
                    session.summary().await.expect("a summary"),
                    "{way:?}"
                );
                assert_eq!(asked.allow().await, Ok(true), "{way:?}");
                assert_eq!(asked.deny("too late").await, Ok(false), "{way:?}");
                let late =
                    Settlement::deny(RequestId::from(&*asked.request.request_id.decode()), "no");
                let late = session.settle(late).await.expect_err("it is settled");
                assert_eq!(late.code(), Some(ErrorCode::RequestSettled), "{way:?}");
            }
            Some(Request::Question(asked)) => {
                assert_eq!(session.state(), SessionState::WaitingQuestion, "{way:?}");
                assert_eq!(asked.questions().len(), 1);
                assert_eq!(
                    session.snapshot(),
                    session.summary().await.expect("a summary"),
                    "{way:?}"
                );
                assert_eq!(asked.answer(["that"]).await, Ok(true), "{way:?}");
            }
            Some(_) => panic!("{event:?}"),
            None => {}
        }
        match &event.kind {
            EventKind::TurnCompleted(turn) if turn.turn_number == 1 => {
                assert_eq!(session.state(), SessionState::Idle, "{way:?}");
                assert_eq!((session.usage().input_tokens, session.usage().output_tokens), (10, 5));
                session.prompt("/say turn {turns}").await.expect("a prompt");
            }
            EventKind::TurnCompleted(_) => session.stop().await.expect("accepted"),
            _ => {}
        }
    }
    assert_eq!(session.state(), SessionState::Ended, "{way:?}");
    let known = session.snapshot();
    let summary = session.ended().await.expect("a summary");
    assert_eq!(known, summary, "{way:?}");
    assert_eq!(known.turns, 2);
    (told, session.id().to_string())
}

/// Joins text chunks, which may be split differently.
fn tell(told: &mut Vec<String>, kind: &EventKind<'_>) {
    let name = kind.name();
    let more = match kind {
        EventKind::TextChunk(chunk) => chunk.content.to_string(),
        EventKind::ThinkingChunk(chunk) => chunk.content.to_string(),
        EventKind::ToolStarted(tool) => tool.tool_name.to_string(),
        EventKind::RequestSettled(settled) => settled.outcome.as_str().to_owned(),
        EventKind::FileChanged(file) => {
            file.file_path.to_string().rsplit('/').next().unwrap_or_default().to_owned()
        }
        EventKind::TurnCompleted(turn) => format!("{} {:?}", turn.turn_number, turn.usage),
        EventKind::StatusChanged(_) | EventKind::UsageReported(_) | EventKind::Other(_) => return,
        _ => String::new(),
    };
    match told.last_mut() {
        Some(last) if name.ends_with("Chunk") && last.starts_with(name) => last.push_str(&more),
        Some(_) | None => told.push(format!("{name} {more}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_tells_the_same_conversation() {
    let mut all = Vec::new();
    for way in WAYS {
        let mut gateway = Gateway::new();
        if let Way::Http(_) = way {
            gateway.serve(&[]);
        }
        let client = gateway.client(way).await;
        let (told, id) = converse(&client, &gateway, way).await;
        let written = std::fs::read_to_string(gateway.path("work").join("note.txt"));
        assert_eq!(written.expect("it was allowed").trim_end(), "hi", "{way:?}");
        let sessions = client.sessions(SessionFilter::default()).await.expect("sessions");
        assert_eq!(sessions.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), [id.as_str()]);
        assert!(client.requests().await.expect("requests").is_empty(), "{way:?}");
        let live = SessionFilter { only_live: true, limit: None, ..SessionFilter::default() };
        assert!(client.sessions(live).await.expect("sessions").is_empty(), "{way:?}");
        let details = client.details(&id.as_str().into()).await.expect("details");
        let work = gateway.path("work").canonicalize().expect("a directory");
        assert_eq!(details.config.working_directory.as_deref(), work.to_str(), "{way:?}");
        all.push(told);
        client.close().await;
    }
    let (first, others) = all.split_first().expect("some");
    assert!(first.iter().any(|told| told == "textChunk hello"), "{first:?}");
    assert!(first.iter().any(|told| told == "requestSettled allowed"), "{first:?}");
    for (told, way) in others.iter().zip(&WAYS[1..]) {
        assert_eq!(told, first, "{way:?}");
    }
}

/// A log has the same bytes over every transport.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_reads_the_same_log() {
    let mut gateway = Gateway::new();
    gateway.serve(&[]);
    let client = gateway.client(WAYS[0]).await;
    let (_, id) = converse(&client, &gateway, WAYS[0]).await;
    let mut logs = Vec::new();
    for way in WAYS {
        let client = gateway.client(way).await;
        let session = client.attach(id.as_str()).await.expect("a session");
        let all = rest(&mut session.events()).await;
        assert_whole(&all, 1);
        let late = rest(&mut session.events_after(7)).await;
        assert_eq!(late.as_slice(), all.get(7..).expect("events"), "{way:?}");
        let some = rest(&mut session.events_after(3).up_to(9)).await;
        assert_eq!(some.as_slice(), all.get(3..9).expect("events"), "{way:?}");
        let core = rest(&mut session.events().profile(Profile::Core)).await;
        assert!(core.len() < all.len() && core.iter().all(|(_, raw)| !raw.contains("native")));
        logs.push((all, core));
        client.close().await;
    }
    for (log, way) in logs.iter().zip(WAYS) {
        assert_eq!(Some(log), logs.first(), "{way:?}");
    }
    // The same with a scripted transport.
    let (log, core) = logs.first().expect("a log");
    let lines: Vec<&str> = log.iter().map(|(_, raw)| raw.as_str()).collect();
    let script = ScriptedTransport::new().transcript(&lines.join("\n")).expect("a script");
    let session = AgentClient::over(script).attach(id.as_str()).await.expect("a session");
    assert_eq!(&rest(&mut session.events()).await, log);
    assert_eq!(&rest(&mut session.events().profile(Profile::Core)).await, core);
}

/// If a rule settles a request first, that is not an error for a client that answers every request.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_a_rule_is_too_late_and_no_error() {
    for way in WAYS {
        let mut gateway = Gateway::new();
        if let Way::Http(_) = way {
            gateway.serve(&[]);
        }
        let client = gateway.client(way).await;
        let mut request = gateway.request("/bash ls");
        request.config.get_or_insert_default().approval_mode = Some(ApprovalMode::AskDangerous);
        let session = client.create(request).await.expect("a session");
        let mut events = session.events();
        let mut is_answered = None;
        while let Some(event) = next(&mut events).await.expect("an event") {
            if let Some(Request::Permission(asked)) = event.request() {
                // By now the rule has settled it.
                until(&mut session.events_after(event.seq), "requestSettled").await;
                is_answered = Some(asked.deny("no").await.expect("no error"));
            }
            if event.ends_turn() {
                break;
            }
        }
        assert_eq!(is_answered, Some(false), "{way:?}");
        client.close().await;
    }
}

/// Refusals have the same code over every transport, and the error names the agent.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_refuses_alike() {
    for way in WAYS {
        let mut gateway = Gateway::new();
        if let Way::Http(_) = way {
            gateway.serve(&[]);
        }
        let client = gateway.client(way).await;
        let missing = "11111111-1111-4111-8111-111111111111";
        let error = client.attach(missing).await.expect_err("there is none");
        assert_eq!(error.kind(), AgentErrorType::SessionNotFound, "{way:?}");
        assert_eq!(error.code(), Some(ErrorCode::SessionNotFound), "{way:?}");
        let long = gateway.request(&"x".repeat(100_001));
        let error = client.create(long).await.expect_err("it is too long");
        assert_eq!(error.code(), Some(ErrorCode::InvalidMessage), "{way:?}");
        assert_eq!(error.agent_type(), Some(agentwire_client::AgentType::Demo), "{way:?}");
        let session = client.create(gateway.request("/say hi")).await.expect("a session");
        until(&mut session.events(), "turnCompleted").await;
        let models = session.query("supportedModels", Vec::new()).await.expect("models");
        assert!(models.get().starts_with('['), "{way:?}: {models:?}");
        let error = session.query("nonsense", Vec::new()).await.expect_err("no such query");
        assert_eq!(error.code(), Some(ErrorCode::Unsupported), "{way:?}: {error}");
        session.finish().await.expect("it finishes");
        let ended = session.ended().await.expect("it ends");
        assert_eq!(ended.state, SessionState::Ended, "{way:?}");
        // A session that has ended may be stopped, and accepts nothing else.
        session.stop().await.expect("it has ended");
        session.cancellable(OnDrop::Interrupt).cancel().await.expect("it has ended");
        for error in [
            session.prompt("more").await.expect_err("it has ended"),
            session.interrupt().await.expect_err("it has ended"),
            session.finish().await.expect_err("it has ended"),
        ] {
            assert_eq!(error.code(), Some(ErrorCode::Conflict), "{way:?}: {error}");
            assert!(error.message().contains("has ended"), "{way:?}: {error}");
        }
        client.close().await;
    }
}

/// A repeated start is the same session, even if its answer never arrived.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_counts_once_over_every_way() {
    for way in WAYS {
        let mut gateway = Gateway::new();
        if let Way::Http(_) = way {
            gateway.serve(&[]);
        }
        let client = gateway.client(way).await;
        let start = |key: &str| {
            let request = Box::new(gateway.request("/say once"));
            client.transport().call(Call::Start { request, key: key.to_owned() })
        };
        let id = |reply: Json<'static>| {
            let session: serde_json::Value = reply.read().expect("a session");
            session.get("id").and_then(|id| id.as_str()).expect("an id").to_owned()
        };
        let first = id(start("a").await.expect("a session"));
        assert_eq!(id(start("a").await.expect("the same")), first, "{way:?}");
        let stop = Call::Command(first.as_str().into(), Command::Stop);
        client.transport().call(stop).await.expect("accepted");
        let session = client.attach(first.as_str()).await.expect("a session");
        session.ended().await.expect("it ends");
        assert_eq!(id(start("a").await.expect("the same")), first, "{way:?}");
        assert_ne!(id(start("b").await.expect("another")), first, "{way:?}");
        client.close().await;
    }
}

/// A session that has ended can be resumed, and its new events start there.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_over_every_way() {
    for way in WAYS {
        let mut gateway = Gateway::new();
        if let Way::Http(_) = way {
            gateway.serve(&[]);
        }
        let client = gateway.client(way).await;
        let session = client.create(gateway.request("/say one")).await.expect("a session");
        until(&mut session.events(), "turnCompleted").await;
        session.stop().await.expect("accepted");
        let before = session.ended().await.expect("it ends").last_seq;
        let resumed =
            client.resume(session.id().clone(), "/say {turns}").await.expect("it continues");
        assert_eq!(resumed.id(), session.id());
        let mut events = resumed.events();
        let first = next(&mut events).await.expect("an event").expect("an event");
        assert_eq!(first.seq, before + 1, "{way:?}");
        let done = until(&mut events, "turnCompleted").await;
        let EventKind::TurnCompleted(turn) = &done.kind else { panic!("{done:?}") };
        assert_eq!(turn.turn_number, 2, "{way:?}");
        // A reader that continues from before sees all of them.
        let old = session.events_after(before).up_to(done.seq);
        assert_whole(&rest(&mut { old }).await, before + 1);
        client.close().await;
    }
}
