//! Each limit, the answer about it, and what waits meanwhile: no process, no clock.

use agentwire_dialects::describe::AgentTools;
use agentwire_dialects::tape::Agent;
use serde_json::{Value, json};

use super::super::pending_prompt::HELD_LIMIT;
use super::*;

fn limits(config: &Value) -> Limits {
    let config: SessionConfig = serde_json::from_value(config.clone()).expect("a configuration");
    Limits::new(&config, None)
}

/// A session that used `tokens` in earlier turns.
fn session(tokens: u64) -> DerivedState {
    let record = json!({
        "summary": {
            "id": "s", "agentType": "demo", "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": 0, "turns": 0, "openRequests": 0, "usage": usage(tokens),
        },
        "owner": null, "config": {}, "open": {},
    });
    let record = serde_json::from_value(record).expect("a record");
    DerivedState::new(record, &AgentTools::UNKNOWN, false)
}

fn usage(output: u64) -> TokenUsage {
    TokenUsage { output_tokens: output, total_tokens: output, ..TokenUsage::default() }
}

fn name(limits: &Limits, state: &DerivedState) -> Option<&'static str> {
    limits.reached(state).map(|reached| reached.name)
}

fn request(id: &str) -> PendingRequest {
    let request = RequestRaised::new(id, RequestKind::Permission, None);
    PendingRequest::new(&request, &Agent::main(), Asker::Agent, &AgentTools::UNKNOWN)
}

fn prompt(text: &str) -> PendingPrompt {
    PendingPrompt::from(Prompt::text(text.to_owned()))
}

/// Reaches the limit and asks about it.
fn ask(limits: &mut Limits, state: &DerivedState) -> ReachedLimit {
    let reached = limits.reached(state).expect("a limit is reached");
    assert_eq!(limits.meet(reached.clone()), AtLimit::Ask(reached.clone()));
    reached
}

#[test]
fn a_turn_may_use_its_steps_and_no_more() {
    let limits = limits(&json!({ "maxTurns": 2 }));
    let mut state = session(0);
    for (steps, expected) in [(0, None), (2, None), (3, Some("maxTurns"))] {
        state.running.steps = steps;
        assert_eq!(name(&limits, &state), expected, "{steps}");
    }
    let reached = limits.reached(&state).expect("it is reached");
    assert_eq!(reached.failure, TurnFailure::MaxTurns);
    assert_eq!(reached.message, "the turn has reached its limit of 2 steps");
}

#[test]
fn tokens_count_for_the_session_and_the_running_turn() {
    let limits = limits(&json!({ "maxBudgetTokens": 100 }));
    let mut state = session(60);
    for (running, expected) in [(39, None), (40, Some("maxBudgetTokens"))] {
        state.running.usage = usage(running);
        assert_eq!(name(&limits, &state), expected, "{running}");
    }
    let reached = limits.reached(&state).expect("it is reached");
    assert_eq!(reached.failure, TurnFailure::Budget);
    assert_eq!(reached.message, "the session has used 100 of 100 tokens");
}

#[test]
fn money_is_what_the_agent_reports_or_else_an_estimate() {
    let price = Price::STANDARD.of(&usage(1_000_000));
    let limits = limits(&json!({ "maxBudgetUsd": 1.5 * price }));
    let mut state = session(1_000_000);
    assert_eq!(name(&limits, &state), None);
    state.running.usage = usage(500_000);
    assert_eq!(name(&limits, &state), Some("maxBudgetUsd"), "estimated");
    state.running.total_cost = Some(price);
    assert_eq!(name(&limits, &state), None, "the agent knows better");
    state.running.total_cost = None;
    state.record.summary.cost_usd = Some(price / 2.0);
    assert_eq!(name(&limits, &state), None, "reported, and an estimate of the running turn");
    state.record.summary.cost_usd = Some(price);
    assert_eq!(name(&limits, &state), Some("maxBudgetUsd"));
    state.running.total_cost = Some(2.0 * price);
    let reached = limits.reached(&state).expect("it is reached");
    let (spent, limit) = (2.0 * price, 1.5 * price);
    assert_eq!(reached.message, format!("the session has spent ${spent:.4} of ${limit}"));
}

#[test]
fn of_several_limits_steps_come_first_and_money_last() {
    let all = json!({ "maxTurns": 1, "maxBudgetTokens": 10, "maxBudgetUsd": 0.5 });
    let mut limits = limits(&all);
    let mut state = session(10);
    state.running.steps = 2;
    state.running.total_cost = Some(0.5);
    for expected in ["maxTurns", "maxBudgetTokens", "maxBudgetUsd"] {
        assert_eq!(ask(&mut limits, &state).name, expected);
        assert_eq!(limits.answered(true, true), Some(Answered::Continue));
    }
    assert_eq!(limits.reached(&state), None);
    assert_eq!(Limits::new(&SessionConfig::default(), None).reached(&state), None);
}

#[test]
fn a_client_that_allows_more_adds_the_same_amount_again() {
    let mut limits = limits(&json!({ "maxBudgetTokens": 100 }));
    for times in 1..4 {
        assert_eq!(name(&limits, &session(100 * times - 1)), None);
        ask(&mut limits, &session(100 * times));
        assert_eq!(limits.answered(true, true), Some(Answered::Continue));
    }
}

#[test]
fn a_denial_ends_the_turn_or_the_prompts_that_wait() {
    let mut limits = limits(&json!({ "maxBudgetTokens": 100 }));
    let reached = ask(&mut limits, &session(100));
    assert_eq!(limits.answered(false, true), Some(Answered::Cut(reached.clone())));
    assert_eq!(limits.answered(false, true), None, "nobody is asked any more");
    ask(&mut limits, &session(100));
    assert_eq!(limits.answered(false, false), Some(Answered::Fail(reached)));
    assert_eq!(name(&limits, &session(100)), Some("maxBudgetTokens"), "it is still reached");
}

#[test]
fn a_client_is_asked_once_and_only_if_it_wants_to_be() {
    let mut asking = limits(&json!({ "maxBudgetTokens": 100, "onLimit": "ask" }));
    let reached = ask(&mut asking, &session(100));
    assert!(asking.asks() && asking.is_waiting());
    assert_eq!(asking.meet(reached.clone()), AtLimit::Wait);
    let mut failing = limits(&json!({ "maxBudgetTokens": 100, "onLimit": "fail" }));
    assert_eq!(failing.meet(reached.clone()), AtLimit::Fail(reached));
    assert!(!failing.asks() && !failing.is_waiting());
}

#[test]
fn calls_wait_in_order_until_the_answer_whatever_it_is() {
    for allow in [true, false] {
        let mut limits = limits(&json!({ "maxBudgetTokens": 100 }));
        ask(&mut limits, &session(100));
        for id in ["a", "b", "c"] {
            limits.hold_call(request(id));
        }
        assert!(limits.released().is_empty());
        limits.answered(allow, true).expect("the answer counts");
        let released: Vec<_> = limits.released().into_iter().map(|call| call.id).collect();
        assert_eq!(released, ["a", "b", "c"]);
        assert!(limits.released().is_empty(), "each is released once");
    }
}

#[test]
fn prompts_wait_in_order_and_are_bounded() {
    let mut limits = limits(&json!({ "maxBudgetTokens": 100 }));
    assert!(!limits.hold_prompts());
    for number in 0..HELD_LIMIT {
        limits.hold(prompt(&number.to_string())).expect("there is room");
    }
    let error = limits.hold(prompt("more")).expect_err("there is no room");
    assert_eq!(error.code, agentwire_protocol::ErrorCode::Overloaded);
    assert!(limits.hold_prompts());
    let texts = limits.prompts.iter().map(|held| held.prompt.text.clone());
    assert!(texts.eq((0..HELD_LIMIT).map(|number| number.to_string())));
}
