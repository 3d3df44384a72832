//! The life of a session: turns, interrupts, ends, and other sessions.

use std::time::Duration;

use agentwire_protocol::event::{EventKind, SessionEndReason, TurnFailure};
use agentwire_protocol::{
    AgentType, Command, Configure, ErrorCode, Json, Prompt, SessionState, Settlement, Text,
};
use serde_json::{Value, json};

use crate::gateway::{Gateway, prompt, stop};
use crate::shared::PATIENCE;

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

/// Whatever the agent is doing, an interrupt ends the turn, and the session accepts the next prompt.
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
        session.send(Command::Interrupt { cancel_queued: false }).await.expect("accepted");
        let end = reader.turn_end().await;
        let EventKind::TurnFailed(failed) = end.kind else { panic!("{busy}: {end:?}") };
        assert_eq!(failed.reason, TurnFailure::Interrupted, "{busy}");
        prompt(&session, "/say on").await;
        assert!(matches!(reader.turn_end().await.kind, EventKind::TurnCompleted(_)), "{busy}");
        stop(&session).await;
    }
}

fn named(text: &str, id: &str) -> Command {
    Command::Prompt(Prompt { message_id: Some(id.to_owned()), ..Prompt::text(text) })
}

/// The reply to an interrupt says what happens to the queued prompts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_may_give_up_what_waits() {
    let ids = [1, 2].map(|n| format!("00000000-0000-4000-8000-00000000000{n}"));
    for cancel_queued in [false, true] {
        let gateway = Gateway::new().await;
        let session = gateway.start("/hang").await;
        let mut reader = gateway.reader(&session).await;
        reader.until(|kind| matches!(kind, EventKind::TurnStarted(_))).await;
        for id in &ids {
            session.send(named("/say on", id)).await.expect("accepted");
        }
        let reply = session.send(Command::Interrupt { cancel_queued }).await.expect("accepted");
        let reply: Value = reply.read().expect("JSON");
        let expected = match cancel_queued {
            false => json!({ "stillQueued": ids }),
            true => json!({ "stillQueued": [], "cancelled": ids }),
        };
        assert_eq!(reply, expected);
        reader.turn_end().await;
        if !cancel_queued {
            reader.turn_end().await;
            reader.turn_end().await;
        }
        let idle = session.until(|summary| summary.state == SessionState::Idle);
        tokio::time::timeout(PATIENCE, idle).await.expect("idle in time");
        assert_eq!(stop(&session).await.turns, if cancel_queued { 1 } else { 3 });
    }
}

/// A prompt may consist of content blocks alone. An empty one starts no session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_is_looked_at_before_anything_is_kept() {
    let gateway = Gateway::new().await;
    let content = Json::of(&json!([{ "type": "text", "text": "/say blocks" }]));
    let blocks = Prompt { content: Some(content), ..Prompt::default() };
    let long = "x".repeat(4 * agentwire_protocol::session::PROMPT_LIMIT * 64 + 1);
    for (agent, prompt, code) in [
        (AgentType::Demo, Prompt::default(), ErrorCode::InvalidMessage),
        (AgentType::Demo, Prompt::text(long), ErrorCode::InvalidMessage),
        (AgentType::Codex, blocks.clone(), ErrorCode::Unsupported),
    ] {
        let mut new = gateway.session(agent, "");
        new.prompt = Some(prompt);
        assert_eq!(gateway.hub.start(new).await.expect_err("refused").code, code);
    }
    let kept = gateway.hub.sessions(Default::default()).await.expect("a list");
    assert!(kept.is_empty(), "{kept:?}");
    let mut new = gateway.session(AgentType::Demo, "");
    new.prompt = Some(blocks);
    let session = gateway.hub.start(new).await.expect("a session");
    let end = gateway.reader(&session).await.turn_end().await;
    let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
    assert_eq!(turn.result.expect("an answer").to_string(), "blocks");
    stop(&session).await;
}

/// A session that ends before its agent ends the agent, however much it prints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_over_listens_no_more() {
    let loud = "#!/bin/sh\nwhile :; do echo '{\"type\":\"noise\"}'; done\n";
    let gateway = Gateway::script(loud).await;
    let mut new = gateway.session(AgentType::Claude, "");
    new.prompt = Some(Prompt { message_id: Some("no UUID".to_owned()), ..Prompt::text("hello") });
    let session = gateway.hub.start(new).await.expect("a session");
    let summary = tokio::time::timeout(PATIENCE, session.ended()).await.expect("an end in time");
    assert_eq!(summary.reason, Some(SessionEndReason::Failed));
    let events = gateway.events(&session).await;
    assert!(matches!(events.last().map(|e| &e.kind), Some(EventKind::SessionEnded(_))));
    let work = gateway.home.path("work");
    assert_eq!(crate::restart::survivors(&work), Vec::<String>::new());
}

/// A prompt that is held at a limit and then refused by the agent is a failed turn, under its own id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_prompt_that_is_refused_is_told() {
    let gateway = Gateway::new().await;
    let mut new = gateway.session(AgentType::Demo, "/say one");
    new.config.max_budget_tokens = Some(1);
    let session = gateway.hub.start(new).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    reader.turn_end().await;
    session.send(named("/say two", "no UUID")).await.expect("it waits");
    let id = reader.request().await;
    session.send(Command::Settle(Settlement::allow(id.as_str()))).await.expect("accepted");
    let begun = reader.until(|kind| matches!(kind, EventKind::TurnStarted(_))).await;
    let EventKind::TurnStarted(turn) = begun.kind else { unreachable!() };
    assert_eq!(turn.message_ids, [Text::from("no UUID")]);
    assert!(matches!(reader.turn_end().await.kind, EventKind::TurnFailed(_)));
    stop(&session).await;
}

/// The number of sessions is limited, and a session that ends makes room for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_bounded() {
    let gateway = Gateway::with(|settings| settings.sessions = Some(1)).await;
    let session = gateway.start("").await;
    let new = || gateway.session(AgentType::Demo, "");
    let refused = gateway.hub.start(new()).await.expect_err("refused");
    assert_eq!(refused.code, ErrorCode::Overloaded);
    stop(&session).await;
    let next = async {
        loop {
            match gateway.hub.start(new()).await {
                Ok(session) => return session,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let next = tokio::time::timeout(PATIENCE, next).await.expect("room in time");
    stop(&next).await;
}

/// An agent that ignores both messages and signals is still ended.
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
    settings.data_dir = gateway.home.path("other");
    gateway.hub = agentwire_sessions::Hub::open(settings).await.expect("a hub");
    let session = gateway.hub.start(gateway.session(AgentType::Claude, "hello")).await;
    let session = session.expect("a session");
    let mut reader = gateway.reader(&session).await;
    reader
        .until(|kind| matches!(kind, EventKind::StatusChanged(_) | EventKind::TurnStarted(_)))
        .await;
    session.send(Command::Interrupt { cancel_queued: false }).await.expect("accepted");
    let summary = tokio::time::timeout(PATIENCE, session.ended()).await.expect("an end in time");
    assert_eq!(summary.state, SessionState::Ended);
}

/// An agent that dies, prints garbage or does not start: an event has the reason, and the state is correct.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_agent_is_told_with_its_reason() {
    for (text, wanted) in [
        (
            "#!/bin/sh\necho 'no such model' >&2\nexit 7\n",
            "code 7 before it said anything: no such model",
        ),
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
        model: Some(Some("other-model".to_owned())),
        approval_mode: Some(agentwire_protocol::ApprovalMode::AutoEdit),
        ..Configure::default()
    };
    session.send(Command::Configure(change)).await.expect("accepted");
    prompt(&session, "/say {model} {mode}").await;
    let end = reader.turn_end().await;
    let EventKind::TurnCompleted(turn) = end.kind else { panic!("{end:?}") };
    let said = turn.result.expect("an answer").to_string();
    assert!(said.contains("other-model acceptEdits"), "{said}");
    assert_eq!(session.summary().approval_mode, Some(agentwire_protocol::ApprovalMode::AutoEdit));
    let query = |method: &str| Command::Query { method: method.to_owned(), args: Vec::new() };
    let models = session.send(query("supportedModels")).await.expect("an answer");
    assert!(models.get().starts_with('['), "{}", models.get());
    let unknown = session.send(query("nonsense")).await.expect_err("refused");
    assert_eq!(unknown.code, ErrorCode::Unsupported);
    let summary = stop(&session).await;
    assert_eq!(summary.model.as_deref(), Some("other-model"));
}

/// Agents that run one process per turn look the same to the caller.
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
    session.send(Command::Interrupt { cancel_queued: false }).await.expect("accepted");
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

/// A session that floods, hangs or crashes does not affect the others.
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

/// A process that failed to write the end of one of its sessions closes it later, without help from another
/// process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_its_process_left_open_is_closed_by_whoever_looks() {
    let gateway = Gateway::new().await;
    let (one, two) = (gateway.start("/hang").await, gateway.start("").await);
    stop(&two).await;
    while gateway.hub.session(two.id()).is_ok() {
        tokio::task::yield_now().await;
    }
    let owner = gateway.hub.record(one.id()).await.expect("a record").owner;
    let mut record = gateway.hub.record(two.id()).await.expect("a record");
    record.owner = owner;
    record.summary.state = SessionState::Idle;
    let left = agentwire_sessions::store::Append { batch: None, record, keys: Vec::new() };
    gateway.hub.log().store().append(&[&left]).expect("it is stored");
    let live = agentwire_sessions::store::Filter { live: true, ..Default::default() };
    let live = gateway.hub.sessions(live).await.expect("a list");
    assert_eq!(live.iter().map(|session| &session.id).collect::<Vec<_>>(), [one.id()]);
    let summary = gateway.hub.summary(two.id()).await.expect("a session");
    assert_eq!(summary.state, SessionState::Ended);
    assert_eq!(gateway.hub.summary(one.id()).await.expect("a session").reason, None);
    stop(&one).await;
}

/// A session ends when its gateway is dropped, even if nobody stopped it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_does_not_outlive_its_hub() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/hang").await;
    let mut reader = gateway.reader(&session).await;
    reader.until(|kind| matches!(kind, EventKind::TurnStarted(_))).await;
    let Gateway { hub, home: _home } = gateway;
    drop((session, hub));
    reader.until(|kind| matches!(kind, EventKind::SessionEnded(_))).await;
}
