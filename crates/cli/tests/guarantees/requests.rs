//! R: permissions and questions.

use std::time::Duration;

use agentwire_protocol::event::{
    EventKind, RequestOutcome, RequestSettled, SettledBy, ToolFailure, TurnFailure,
};
use agentwire_protocol::session::OnLimit;
use agentwire_protocol::{AgentType, Command, ErrorCode, Event, Settlement};
use agentwire_sessions::settings::AgentCommand;

use crate::gateway::{Gateway, prompt, script, stop};
use crate::rounds;
use crate::shared::{AGENTWIRE, PATIENCE};

fn settled<'e>(events: &'e [Event<'static>]) -> Vec<&'e RequestSettled<'static>> {
    let settled = events.iter().filter_map(|event| match &event.kind {
        EventKind::RequestSettled(settled) => Some(settled),
        _ => None,
    });
    settled.collect()
}

/// Many clients answer at once: one wins, the others get an error, the agent receives one answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_the_first_answer_wins() {
    let gateway = Gateway::with(|settings| {
        // The agent's stdin is logged next to it.
        let parent = settings.data_dir.parent().expect("a directory").to_path_buf();
        let text = format!(
            "#!/bin/sh\ntee -a {}/stdin.log | {AGENTWIRE} demo-agent \"$@\"\n",
            parent.display()
        );
        let program = script(&parent, "agent.sh", &text);
        let state = format!("--state-dir={}/demo", parent.display());
        let command =
            AgentCommand { program: Some(program), args: vec![state], ..AgentCommand::default() };
        settings.agents.insert("claude", command);
    })
    .await;
    let session =
        gateway.hub.start(gateway.session(AgentType::Claude, "")).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    let rounds = rounds(20, 1000);
    for round in 0..rounds {
        prompt(&session, &format!("/write file{round} x")).await;
        let id = reader.request().await;
        let answers = (0..100).map(|client| {
            let (session, id) = (session.clone(), id.clone());
            tokio::spawn(async move {
                let answer = match client % 2 {
                    0 => Settlement::allow(id.as_str()),
                    _ => Settlement::deny(id.as_str(), "no"),
                };
                session.send(Command::Settle(answer)).await
            })
        });
        let answers: Vec<_> = answers.collect();
        let mut won = 0;
        for answer in answers {
            match answer.await.expect("an answer") {
                Ok(_) => won += 1,
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::RequestSettled, "{error}");
                    assert!(error.message.contains("by client"), "{error}");
                }
            }
        }
        assert_eq!(won, 1);
        reader.turn_end().await;
    }
    stop(&session).await;
    let events = gateway.events(&session).await;
    assert_eq!(settled(&events).len(), rounds);
    let stdin = std::fs::read_to_string(gateway.home.path("stdin.log")).expect("a log");
    assert_eq!(stdin.matches("\"behavior\":").count(), rounds);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_a_wrong_session_or_an_unknown_id_changes_nothing() {
    let gateway = Gateway::new().await;
    let asks = gateway.start("/write file x").await;
    let other = gateway.start("").await;
    let mut reader = gateway.reader(&asks).await;
    let id = reader.request().await;
    let wrong = other.send(Command::Settle(Settlement::allow(id.as_str()))).await;
    assert_eq!(wrong.expect_err("refused").code, ErrorCode::RequestNotFound);
    let unknown = asks.send(Command::Settle(Settlement::allow("nothing"))).await;
    assert_eq!(unknown.expect_err("refused").code, ErrorCode::RequestNotFound);
    asks.send(Command::Settle(Settlement::allow(id.as_str()))).await.expect("accepted");
    assert!(matches!(reader.turn_end().await.kind, EventKind::TurnCompleted(_)));
    stop(&asks).await;
    stop(&other).await;
}

/// However the waiting ends, it allows nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r2_silence_never_allows() {
    let timed = |timing: &mut agentwire_sessions::settings::Timing| {
        timing.request = Some(Duration::from_millis(200));
    };
    for ending in ["timeout", "interrupt", "stop", "shutdown"] {
        let gateway = match ending {
            "timeout" => Gateway::timed(timed).await,
            _ => Gateway::new().await,
        };
        let session = gateway.start("/write never.txt x").await;
        let mut reader = gateway.reader(&session).await;
        reader.request().await;
        match ending {
            "interrupt" => drop(
                session.send(Command::Interrupt { cancel_queued: false }).await.expect("accepted"),
            ),
            "stop" => drop(stop(&session).await),
            "shutdown" => gateway.hub.shutdown().await,
            _ => {}
        }
        if matches!(ending, "timeout" | "interrupt") {
            let end = reader.turn_end().await;
            if ending == "interrupt" {
                let EventKind::TurnFailed(failed) = end.kind else { panic!("{end:?}") };
                assert_eq!(failed.reason, TurnFailure::Interrupted);
            }
            stop(&session).await;
        }
        let events = gateway.events(&session).await;
        let settled = settled(&events);
        assert_eq!(settled.len(), 1, "{ending}");
        assert_eq!(settled[0].outcome, RequestOutcome::Denied, "{ending}");
        assert_eq!(settled[0].by, SettledBy::Gateway, "{ending}");
        assert!(settled[0].reason.is_some(), "{ending}");
        assert!(!gateway.home.path("work/never.txt").exists(), "{ending}");
        let failed = events.iter().any(|event| {
            matches!(&event.kind, EventKind::ToolFailed(tool) if matches!(tool.reason, ToolFailure::Denied | ToolFailure::Interrupted))
        });
        assert!(failed, "{ending}");
    }
}

/// An answer with a digest applies only to the input that was shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r3_the_answer_binds_to_what_was_shown() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/bash echo one").await;
    let mut reader = gateway.reader(&session).await;
    let raised = reader.until(|kind| matches!(kind, EventKind::RequestRaised(_))).await;
    let EventKind::RequestRaised(raised) = raised.kind else { panic!("another kind") };
    let id = raised.request_id.to_string();
    let wrong = Settlement { input_digest: Some("0".repeat(64)), ..Settlement::allow(id.as_str()) };
    let refused = session.send(Command::Settle(wrong)).await.expect_err("refused");
    assert_eq!(refused.code, ErrorCode::Conflict);
    let changed = agentwire_protocol::Json::of(&serde_json::json!({ "command": "echo two" }));
    let right = Settlement {
        input_digest: Some(raised.input_digest.clone()),
        updated_input: Some(changed.clone()),
        ..Settlement::allow(id.as_str())
    };
    session.send(Command::Settle(right)).await.expect("accepted");
    let settled = reader.until(|kind| matches!(kind, EventKind::RequestSettled(_))).await;
    let EventKind::RequestSettled(settled) = settled.kind else { panic!("another kind") };
    assert_eq!(settled.updated_input, Some(changed));
    let done = reader.until(|kind| matches!(kind, EventKind::ToolCompleted(_))).await;
    assert!(format!("{done:?}").contains("two"));
    stop(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r4_a_request_after_the_first_result_is_answered() {
    let gateway = Gateway::new().await;
    let session = gateway.start("/say first").await;
    let mut reader = gateway.reader(&session).await;
    reader.turn_end().await;
    for file in ["a", "b"] {
        prompt(&session, &format!("/write {file} x")).await;
        let id = reader.request().await;
        session.send(Command::Settle(Settlement::allow(id.as_str()))).await.expect("accepted");
        assert!(matches!(reader.turn_end().await.kind, EventKind::TurnCompleted(_)));
        assert!(gateway.home.path("work").join(file).exists());
    }
    stop(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r5_requests_of_nested_subagents_name_their_agent() {
    let gateway = Gateway::new().await;
    let nested = "/task one\n/task two\n/task three\n/write deep x\n/end\n/end\n/end";
    let session = gateway.start(nested).await;
    let mut reader = gateway.reader(&session).await;
    let mut parents = vec!["main".to_owned()];
    for _ in 0..3 {
        let spawned = reader.until(|kind| matches!(kind, EventKind::AgentSpawned(_))).await;
        let parent = spawned.parent_agent_id.expect("a parent").to_string();
        assert_eq!(Some(&parent), parents.last());
        parents.push(spawned.agent_id.to_string());
    }
    let raised = reader.until(|kind| matches!(kind, EventKind::RequestRaised(_))).await;
    assert_eq!(Some(&raised.agent_id.to_string()), parents.last());
    let EventKind::RequestRaised(request) = raised.kind else { panic!("another kind") };
    let id = request.request_id.to_string();
    session.send(Command::Settle(Settlement::allow(id.as_str()))).await.expect("accepted");
    assert!(matches!(reader.turn_end().await.kind, EventKind::TurnCompleted(_)));
    stop(&session).await;
}

fn is_limit(kind: &EventKind<'_>) -> bool {
    matches!(kind, EventKind::RequestRaised(request) if request.name.as_ref().is_some_and(|name| {
        ["maxTurns", "maxBudgetUsd"].contains(&&*name.decode())
    }))
}

/// At a limit the agent waits until somebody allows it to continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_pause_and_ask() {
    let gateway = Gateway::new().await;
    for (limit, allow) in [("turns", true), ("turns", false), ("budget", true), ("budget", false)] {
        let mut new = gateway.session(AgentType::Demo, "");
        new.config.approval_mode = Some(agentwire_protocol::ApprovalMode::AutoAll);
        match limit {
            "turns" => new.config.max_turns = Some(1),
            _ => new.config.max_budget_usd = Some(0.01),
        }
        let session = gateway.hub.start(new).await.expect("a session");
        let mut reader = gateway.reader(&session).await;
        if limit == "budget" {
            prompt(&session, "/usage 1000000 1000000 0 0\n/say expensive").await;
            reader.turn_end().await;
            prompt(&session, "/say more").await;
        } else {
            // Slow enough to be paused before it is done.
            prompt(&session, "/bash true\n/bash sleep 1\n/sleep 500\n/say more").await;
        }
        let raised = reader.until(is_limit).await;
        let EventKind::RequestRaised(raised) = raised.kind else { panic!("another kind") };
        // Even in a mode that allows everything.
        let waits =
            tokio::time::timeout(PATIENCE, session.until(|summary| summary.open_requests == 1));
        waits.await.expect("a session that waits");
        let id = raised.request_id.to_string();
        if allow {
            // Each further step asks again.
            let mut id = id;
            loop {
                session
                    .send(Command::Settle(Settlement::allow(id.as_str())))
                    .await
                    .expect("accepted");
                let next = reader
                    .until(|kind| {
                        is_limit(kind)
                            || matches!(
                                kind,
                                EventKind::TurnCompleted(_) | EventKind::TurnFailed(_)
                            )
                    })
                    .await;
                match next.kind {
                    EventKind::RequestRaised(raised) => id = raised.request_id.to_string(),
                    EventKind::TurnCompleted(_) => break,
                    kind => panic!("{kind:?}"),
                }
            }
        } else {
            let answer = Settlement::deny(id.as_str(), "enough");
            session.send(Command::Settle(answer)).await.expect("accepted");
            let end = reader.turn_end().await;
            let EventKind::TurnFailed(failed) = end.kind else { panic!("{end:?}") };
            let wanted = if limit == "turns" { TurnFailure::MaxTurns } else { TurnFailure::Budget };
            assert_eq!(failed.reason, wanted);
        }
        stop(&session).await;
    }
    let mut new =
        gateway.session(AgentType::Demo, "/bash true\n/bash sleep 1\n/sleep 500\n/bash true");
    new.config.approval_mode = Some(agentwire_protocol::ApprovalMode::AutoAll);
    new.config.max_turns = Some(1);
    new.config.on_limit = Some(OnLimit::Fail);
    let session = gateway.hub.start(new).await.expect("a session");
    let end = gateway.reader(&session).await.turn_end().await;
    let EventKind::TurnFailed(failed) = end.kind else { panic!("{end:?}") };
    assert_eq!(failed.reason, TurnFailure::MaxTurns);
    stop(&session).await;
}
