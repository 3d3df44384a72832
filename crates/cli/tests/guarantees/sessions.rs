//! The life of a session: turns, interrupts, ends, and neighbours.

use std::time::Duration;

use agentwire_protocol::event::{EventKind, SessionEndReason, TurnFailure};
use agentwire_protocol::{AgentType, Command, Configure, ErrorCode, SessionState};

use crate::gateway::{Gateway, PATIENCE, prompt, stop};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_wait_for_the_turn_to_end() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/sleep 200\n/say one").await;
    prompt(&session, "/say two").await;
    prompt(&session, "/say three").await;
    let mut reader = gateway.reader(&session).await;
    for wanted in ["one", "two", "three"] {
        let end = reader.turn_end().await;
        let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
        assert_eq!(turn.result.expect("an answer").to_string(), wanted);
    }
    assert_eq!(stop(&session).await.turns, 3);
}

/// Whatever the agent does, an interrupt is answered, and the session takes the next prompt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p4_an_interrupt_ends_the_turn() {
    let gateway = Gateway::new().await;
    for busy in ["/hang", "/sleep 100000", "/ask Which? | a | b", "/bash sleep 1000"] {
        let session = gateway.start_free(busy).await;
        let mut reader = gateway.reader(&session).await;
        reader.until(|kind| matches!(kind, EventKind::TurnStarted(_))).await;
        if busy.starts_with("/ask") {
            reader.request().await;
        }
        session.send(Command::Interrupt).await.expect("taken");
        let end = reader.turn_end().await;
        let EventKind::TurnFailed(failed) = end.kind else { panic!("{busy}: {end:?}") };
        assert_eq!(failed.reason, TurnFailure::Interrupted, "{busy}");
        prompt(&session, "/say on").await;
        assert!(matches!(reader.turn_end().await.kind, EventKind::TurnCompleted(_)), "{busy}");
        stop(&session).await;
    }
}

/// An agent that heeds neither words nor signals is ended all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p4_an_agent_that_ignores_everything_is_ended() {
    let deaf = "#!/bin/sh\ntrap '' INT TERM HUP\n\
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"x\"}'\n\
        while :; do sleep 1; done\n";
    let mut gateway = Gateway::script(deaf).await;
    let mut settings = gateway.hub.settings().clone();
    settings.timing.stop = Duration::from_millis(100);
    settings.timing.signal = Duration::from_millis(100);
    settings.timing.interrupt = Duration::from_millis(100);
    settings.data_dir = gateway.dir.path().join("other");
    gateway.hub = agentwire_sessions::Hub::open(settings).await.expect("a hub");
    let session = gateway.hub.start(gateway.session(AgentType::Claude, "hello")).await;
    let session = session.expect("a session");
    let mut reader = gateway.reader(&session).await;
    reader
        .until(|kind| matches!(kind, EventKind::StatusChanged(_) | EventKind::TurnStarted(_)))
        .await;
    session.send(Command::Interrupt).await.expect("taken");
    let summary = tokio::time::timeout(PATIENCE, session.ended()).await.expect("an end in time");
    assert_eq!(summary.state, SessionState::Ended);
}

/// An agent that dies, prints rubbish or does not start: an event with the reason, a true state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_agent_is_told_with_its_reason() {
    for (text, wanted) in [
        ("#!/bin/sh\necho 'no such model' >&2\nexit 7\n", "code 7: no such model"),
        ("#!/bin/sh\nkill -9 $$\n", "signal 9"),
        ("#!/bin/sh\necho rubbish\necho more >&2\nexit 1\n", "code 1: more"),
        ("#!/nonexistent/interpreter\n", "failed to start"),
    ] {
        let gateway = Gateway::script(text).await;
        let started = gateway.hub.start(gateway.session(AgentType::Claude, "hello")).await;
        let session = match started {
            Ok(session) => session,
            Err(error) => {
                assert!(error.message.contains(wanted), "{error}");
                assert_eq!(error.code, ErrorCode::StartFailed);
                continue;
            }
        };
        let summary = tokio::time::timeout(PATIENCE, session.ended()).await.expect("an end");
        assert_eq!(summary.reason, Some(SessionEndReason::Failed));
        let error = summary.error.expect("a reason");
        assert!(error.contains(wanted), "{error}");
        let events = gateway.events(&session).await;
        assert!(matches!(events.last().map(|e| &e.kind), Some(EventKind::SessionEnded(_))));
        assert!(events.iter().any(|e| matches!(e.kind, EventKind::TurnFailed(_))), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn model_and_mode_change_and_queries_are_answered() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/say {model} {mode}").await;
    let mut reader = gateway.reader(&session).await;
    reader.turn_end().await;
    let change = Configure {
        model: Some("other-model".to_owned()),
        approval_mode: Some(agentwire_protocol::ApprovalMode::AutoEdit),
        ..Configure::default()
    };
    session.send(Command::Configure(change)).await.expect("taken");
    prompt(&session, "/say {model} {mode}").await;
    let end = reader.turn_end().await;
    let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
    let said = turn.result.expect("an answer").to_string();
    assert!(said.contains("other-model acceptEdits"), "{said}");
    let query = |method: &str| Command::Query { method: method.to_owned(), args: Vec::new() };
    let models = session.send(query("supportedModels")).await.expect("an answer");
    assert!(models.get().starts_with('['), "{}", models.get());
    let unknown = session.send(query("nonsense")).await.expect_err("refused");
    assert_eq!(unknown.code, ErrorCode::Unsupported);
    let summary = stop(&session).await;
    assert_eq!(summary.model.as_deref(), Some("other-model"));
}

/// Agents that run a process for each turn are the same to the caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_per_turn_is_one_session() {
    let text = "#!/bin/sh\nprompt=$(cat)\n\
        echo '{\"type\":\"thread.started\",\"thread_id\":\"0199a213-81c0-7800-8aa1-bbab2a035a53\"}'\n\
        echo '{\"type\":\"turn.started\"}'\n\
        echo \"{\\\"type\\\":\\\"item.completed\\\",\\\"item\\\":{\\\"id\\\":\\\"i0\\\",\\\"type\\\":\\\"agent_message\\\",\\\"text\\\":\\\"$prompt $# $2\\\"}}\"\n\
        case $prompt in slow*) sleep 1000;; esac\n\
        echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"cached_input_tokens\":0,\"output_tokens\":1}}'\n";
    let gateway = Gateway::with(|settings| {
        let parent = settings.data_dir.parent().expect("a directory").to_path_buf();
        let program = crate::gateway::script(&parent, "codex.sh", text);
        settings.agents.insert(
            "codex",
            agentwire_sessions::settings::AgentCommand {
                program: Some(program),
                ..Default::default()
            },
        );
    })
    .await;
    let mut new = gateway.session(AgentType::Codex, "one");
    new.config.driver = Some("exec".to_owned());
    let session = gateway.hub.start(new).await.expect("a session");
    prompt(&session, "two").await;
    let mut reader = gateway.reader(&session).await;
    for _ in 0..2 {
        let end = reader.turn_end().await;
        assert!(matches!(end.kind, EventKind::TurnCompleted(_)), "{end:?}");
    }
    prompt(&session, "slow").await;
    reader.until(|kind| matches!(kind, EventKind::TextChunk(_))).await;
    session.send(Command::Interrupt).await.expect("taken");
    let end = reader.turn_end().await;
    let EventKind::TurnFailed(failed) = end.kind else { panic!("{end:?}") };
    assert_eq!(failed.reason, TurnFailure::Interrupted);
    prompt(&session, "four").await;
    assert!(matches!(reader.turn_end().await.kind, EventKind::TurnCompleted(_)));
    let summary = stop(&session).await;
    assert_eq!(summary.turns, 4);
    assert_eq!(summary.native_session_id.as_deref(), Some("0199a213-81c0-7800-8aa1-bbab2a035a53"));
    let events = gateway.events(&session).await;
    let ended = events.iter().filter(|e| matches!(e.kind, EventKind::SessionEnded(_)));
    assert_eq!(ended.count(), 1);
}

/// A session that floods, hangs or crashes leaves the others alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p7_neighbours_go_on() {
    let gateway = Gateway::new().await;
    let flood = gateway.start_free(&"/repeat 100000 flood \n".repeat(20)).await;
    let hang = gateway.start("/hang").await;
    let crash = gateway.start("/exit 3").await;
    let mut neighbours = Vec::new();
    for number in 0..20 {
        neighbours.push((number, gateway.start(&format!("/say neighbour {number}")).await));
    }
    for (number, session) in &neighbours {
        let end = gateway.reader(session).await.turn_end().await;
        let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
        let said = turn.result.expect("an answer").to_string();
        assert_eq!(said, format!("neighbour {number}"));
    }
    let summary = tokio::time::timeout(PATIENCE, crash.ended()).await.expect("an end");
    assert_eq!(summary.reason, Some(SessionEndReason::Failed));
    for session in [&flood, &hang] {
        stop(session).await;
    }
    gateway.hub.shutdown().await;
}
