//! Structured output for agents that do not support it.

use agentwire_protocol::command::Delivery;
use agentwire_protocol::event::{EventKind, Status, TurnCompleted, TurnFailure};
use agentwire_protocol::session::OnLimit;
use agentwire_protocol::{AgentType, Command, ErrorCode, Event, Prompt, SessionConfig, Settlement};
use serde_json::{Value, json};

use crate::harness::{Session, carriers, count};

const ACP: (AgentType, &str) = (AgentType::Acp, include_str!("acp.sh"));
const GEMINI: (AgentType, &str) = (AgentType::Gemini, include_str!("gemini.sh"));

fn config(driver: Option<&str>) -> SessionConfig {
    let schema = json!({
        "type": "object", "properties": { "answer": { "type": "integer" } }, "required": ["answer"],
    });
    let format = json!({ "type": "json_schema", "schema": schema });
    serde_json::from_value(json!({ "outputFormat": format, "driver": driver })).unwrap()
}

/// The same for a session that fails at its limits.
fn limited(max_turns: Option<u32>, max_budget_tokens: Option<u64>) -> SessionConfig {
    let on_limit = Some(OnLimit::Fail);
    SessionConfig { max_turns, max_budget_tokens, on_limit, ..config(None) }
}

async fn completed(session: &mut Session) -> TurnCompleted<'static> {
    session
        .until(|kind| match kind {
            EventKind::TurnCompleted(turn) => Some((**turn).clone()),
            EventKind::TurnFailed(failed) => panic!("the turn failed: {failed:?}"),
            _ => None,
        })
        .await
}

/// The numbers of the turns that started and ended, in order.
fn turns(events: &[Event<'_>]) -> Vec<(&'static str, u64)> {
    let turn = |event: &Event<'_>| match &event.kind {
        EventKind::TurnStarted(turn) => Some(("started", turn.turn_number)),
        EventKind::TurnCompleted(turn) => Some(("completed", turn.turn_number)),
        EventKind::TurnFailed(turn) => Some(("failed", turn.turn_number)),
        _ => None,
    };
    events.iter().filter_map(turn).collect()
}

fn is_answer(turn: &TurnCompleted<'_>) -> bool {
    let answer = turn.structured_output.as_ref().map(|answer| answer.read::<Value>().unwrap());
    answer == Some(json!({ "answer": 42 }))
}

#[tokio::test]
async fn an_answer_that_matches_is_the_structured_output() {
    for plan in ["PLAN-good what is it?", "PLAN-fenced what is it?"] {
        let mut session = Session::start(ACP, config(None), plan).await;
        let turn = completed(&mut session).await;
        assert!(is_answer(&turn), "{turn:?}");
        let result = turn.result.unwrap().to_string();
        assert_eq!(serde_json::from_str::<Value>(&result).unwrap(), json!({ "answer": 42 }));
        // What was really sent is reported, and does not become the title.
        let told = session.seen.iter().find_map(|event| match &event.kind {
            EventKind::TurnStarted(turn) => turn.prompt.as_ref().map(ToString::to_string),
            _ => None,
        });
        let told = told.unwrap();
        assert!(told.starts_with(plan) && told.contains("agentwire added"), "{told}");
        assert!(session.heard().contains("agentwire added"));
        assert_eq!(session.handle.summary().title.as_deref(), Some(plan));
        session.end().await;
    }
}

#[tokio::test]
async fn an_answer_that_does_not_match_is_asked_for_again_in_the_same_turn() {
    let mut session = Session::start(ACP, config(None), "PLAN-mended").await;
    let turn = completed(&mut session).await;
    assert!(is_answer(&turn), "{turn:?}");
    assert_eq!((turn.usage.input_tokens, turn.usage.output_tokens), (20, 4));
    session.prompt("PLAN-good").await;
    let turn = completed(&mut session).await;
    assert_eq!((turn.turn_number, turn.usage.input_tokens), (2, 10));
    assert_eq!(session.handle.summary().usage.input_tokens, 30);
    let events = session.end().await;
    let expected = [("started", 1), ("completed", 1), ("started", 2), ("completed", 2)];
    assert_eq!(turns(&events), expected);
    let notices = events.iter().filter_map(|event| match &event.kind {
        EventKind::StatusChanged(status) if status.status == Status::Notice => Some(status),
        _ => None,
    });
    let notices: Vec<_> = notices.collect();
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    let details = notice.details.as_ref().unwrap().read::<Value>().unwrap();
    assert!(details["prompt"].as_str().unwrap().contains("was not accepted"), "{details}");
    // The line that ends the first answer is in the log once.
    assert_eq!(carriers(&events, "end_turn").len(), 3);
}

#[tokio::test]
async fn two_answers_that_do_not_match_fail_the_turn() {
    let mut session = Session::start(ACP, config(None), "PLAN-never").await;
    let failed = session.failed().await;
    assert_eq!(failed.reason, TurnFailure::Error);
    assert_eq!(failed.error_type.unwrap().to_string(), "error_max_structured_output_retries");
    assert!(failed.error.to_string().contains("not JSON"), "{}", failed.error);
    assert_eq!(failed.usage.unwrap().input_tokens, 20);
    session.prompt("PLAN-good").await;
    assert!(is_answer(&completed(&mut session).await));
    let events = session.end().await;
    let expected = [("started", 1), ("failed", 1), ("started", 2), ("completed", 2)];
    assert_eq!(turns(&events), expected);
}

#[tokio::test]
async fn a_prompt_that_waits_begins_after_the_second_answer() {
    let mut session = Session::start(ACP, config(None), "").await;
    session.prompt("PLAN-mended").await;
    session.prompt("PLAN-good").await;
    session.prompt("PLAN-never").await;
    assert!(is_answer(&completed(&mut session).await));
    assert!(is_answer(&completed(&mut session).await));
    session.failed().await;
    let events = session.end().await;
    let expected = ["started", "completed", "started", "completed", "started", "failed"];
    let numbers = [1, 1, 2, 2, 3, 3];
    assert_eq!(turns(&events), expected.into_iter().zip(numbers).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_second_answer_can_be_interrupted_and_what_waits_cancelled() {
    let mut session = Session::start(ACP, config(None), "PLAN-hangs").await;
    session
        .until(|kind| match kind {
            EventKind::TextChunk(text) if text.content == *"well" => Some(()),
            _ => None,
        })
        .await;
    session.prompt("PLAN-good").await;
    let interrupt = Command::Interrupt { cancel_queued: true };
    let reply = session.handle.send(interrupt).await.unwrap().read::<Value>().unwrap();
    assert_eq!(reply["cancelled"].as_array().unwrap().len(), 1, "{reply}");
    assert_eq!(session.failed().await.reason, TurnFailure::Interrupted);
    let events = session.end().await;
    assert_eq!(turns(&events), [("started", 1), ("failed", 1)]);
}

#[tokio::test]
async fn a_turn_ends_however_the_agent_does() {
    let mut session = Session::start(ACP, config(None), "PLAN-dies").await;
    assert_eq!(session.failed().await.reason, TurnFailure::Died);
    let events = session.over().await;
    assert_eq!(turns(&events), [("started", 1), ("failed", 1)]);
    // So does one that is stopped.
    let session = Session::start(ACP, config(None), "PLAN-hangs").await;
    let events = session.end().await;
    let started = count(&events, |kind| matches!(kind, EventKind::TurnStarted(_)));
    let ended = |kind: &EventKind<'_>| {
        matches!(kind, EventKind::TurnCompleted(_) | EventKind::TurnFailed(_))
    };
    assert_eq!(started, count(&events, ended), "{events:#?}");
}

#[tokio::test]
async fn where_a_process_serves_one_turn_the_second_answer_has_its_own() {
    let config = config(Some("stream-json"));
    let mut session = Session::start(GEMINI, config, "what is it?").await;
    let turn = completed(&mut session).await;
    assert!(is_answer(&turn), "{turn:?}");
    assert_eq!(turn.usage.input_tokens, 20);
    assert!(session.heard().contains("was not accepted"));
    let events = session.end().await;
    assert_eq!(turns(&events), [("started", 1), ("completed", 1)]);
}

#[tokio::test]
async fn a_limit_that_the_second_answer_would_pass_ends_the_turn_before_it() {
    for plan in ["PLAN-mended", "PLAN-never"] {
        let dollars = SessionConfig { max_budget_usd: Some(0.00005), ..limited(None, None) };
        for (config, reason) in [
            (limited(Some(1), None), TurnFailure::MaxTurns),
            (limited(None, Some(12)), TurnFailure::Budget),
            (dollars, TurnFailure::Budget),
        ] {
            let mut session = Session::start(ACP, config, plan).await;
            let failed = session.failed().await;
            assert_eq!((failed.reason, failed.turn_number), (reason, 1), "{failed:?}");
            assert_eq!(failed.usage.unwrap().input_tokens, 10);
            // Steps count per turn, a budget per session.
            session.prompt("PLAN-good").await;
            if reason == TurnFailure::MaxTurns {
                assert!(is_answer(&completed(&mut session).await));
            } else {
                assert_eq!(session.failed().await.reason, reason);
            }
            assert!(!session.heard().contains("was not accepted"));
            session.end().await;
        }
    }
    let config = SessionConfig {
        max_turns: Some(1),
        on_limit: Some(OnLimit::Fail),
        ..config(Some("stream-json"))
    };
    let mut session = Session::start(GEMINI, config, "what is it?").await;
    assert_eq!(session.failed().await.reason, TurnFailure::MaxTurns);
    assert!(!session.heard().contains("was not accepted"));
    session.end().await;
}

#[tokio::test]
async fn a_limit_that_leaves_room_for_the_second_answer_lets_it_come() {
    for config in [limited(Some(2), None), limited(None, Some(13))] {
        let mut session = Session::start(ACP, config.clone(), "PLAN-mended").await;
        let turn = completed(&mut session).await;
        assert!(is_answer(&turn), "{turn:?}");
        assert_eq!(turn.usage.total_tokens, 24);
        session.end().await;
        let mut session = Session::start(ACP, config, "PLAN-never").await;
        let failed = session.failed().await;
        assert_eq!(failed.reason, TurnFailure::Error);
        assert_eq!(failed.error_type.unwrap().to_string(), "error_max_structured_output_retries");
        session.end().await;
    }
}

#[tokio::test]
async fn a_turn_that_a_limit_cuts_off_ends_well_only_with_an_answer() {
    let config = || SessionConfig { max_budget_usd: Some(0.5), ..limited(None, None) };
    let mut session = Session::start(ACP, config(), "PLAN-spent").await;
    assert!(is_answer(&completed(&mut session).await));
    session.end().await;
    for (plan, tokens) in [("PLAN-spoilt", 10), ("PLAN-late", 20)] {
        let mut session = Session::start(ACP, config(), plan).await;
        let failed = session.failed().await;
        assert_eq!(failed.reason, TurnFailure::Budget, "{failed:?}");
        assert!(failed.error.to_string().contains("$0.5"), "{}", failed.error);
        assert_eq!(failed.usage.unwrap().input_tokens, tokens);
        let events = session.end().await;
        assert_eq!(turns(&events), [("started", 1), ("failed", 1)]);
    }
}

#[tokio::test]
async fn at_a_limit_the_second_answer_waits_until_somebody_allows_it() {
    let config = SessionConfig { max_turns: Some(1), ..config(None) };
    let mut session = Session::start(ACP, config.clone(), "PLAN-mended").await;
    let request = session.request().await;
    assert_eq!(request.name.as_ref().unwrap().to_string(), "maxTurns");
    assert!(!session.heard().contains("was not accepted"));
    session.settle(Settlement::allow(&*request.request_id.decode())).await.unwrap();
    assert!(is_answer(&completed(&mut session).await));
    session.end().await;

    let mut session = Session::start(ACP, config, "PLAN-mended").await;
    let request = session.request().await;
    session.settle(Settlement::deny(&*request.request_id.decode(), "no")).await.unwrap();
    assert_eq!(session.failed().await.reason, TurnFailure::MaxTurns);
    session.prompt("PLAN-good").await;
    assert!(is_answer(&completed(&mut session).await));
    assert!(!session.heard().contains("was not accepted"));
    session.end().await;
}

/// Starts a turn that runs until it is interrupted.
async fn running(config: SessionConfig, plan: &str, said: &'static str) -> Session {
    let mut session = Session::start(ACP, config, plan).await;
    session
        .until(|kind| match kind {
            EventKind::TextChunk(text) if text.content == *said => Some(()),
            _ => None,
        })
        .await;
    session
}

#[tokio::test]
async fn a_prompt_that_waits_is_not_given_past_a_limit() {
    let config = limited(None, Some(12));
    let mut session = running(config, "PLAN-spent", "{\"answer\":42}").await;
    session.prompt("PLAN-good").await;
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    assert!(is_answer(&completed(&mut session).await));
    assert_eq!(session.failed().await.reason, TurnFailure::Budget);
    assert!(!session.heard().contains("PLAN-good"));
    session.end().await;
}

#[tokio::test]
async fn a_prompt_for_now_interrupts_the_second_answer() {
    let mut session = running(config(None), "PLAN-hangs", "well").await;
    let now = Prompt { delivery: Some(Delivery::Now), ..Prompt::text("PLAN-good") };
    session.handle.send(Command::Prompt(now)).await.unwrap();
    assert_eq!(session.failed().await.reason, TurnFailure::Interrupted);
    assert!(is_answer(&completed(&mut session).await));
    session.end().await;
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused_at_the_start() {
    let wrong =
        json!({ "outputFormat": { "type": "json_schema", "schema": { "type": "strang" } } });
    for agent in [ACP, GEMINI] {
        let wrong = serde_json::from_value(wrong.clone()).unwrap();
        let error = Session::try_start(agent, wrong, "hi").await.err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidMessage);
        assert!(error.message.starts_with("outputFormat: "), "{}", error.message);
    }
}
