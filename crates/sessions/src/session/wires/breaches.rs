//! Calls that run without permission: the turn fails, over every wire.

use agentwire_protocol::event::{TurnOrigin, TurnStarted};
use agentwire_protocol::{ApprovalMode, EventKind};
use serde_json::json;

use super::super::breach::CallPermission;
use super::super::state::OPEN_LIMIT;
use super::lines::{WIRES, claude_result};
use super::{Outcome, Session, ToolAction, policy};

/// When an agent reports that a call has run which nobody allowed.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// While its request is open.
    Waiting,
    /// After it withdrew the request.
    Withdrawn,
    /// Before it asks.
    Late,
}

/// What an agent prints gives it no permission: a call that has run without permission is a breach, in
/// whichever order that is reported, unless the policy allows the call anyway.
#[test]
fn a_call_that_runs_before_it_is_answered_is_a_breach_over_every_wire() {
    for wire in WIRES {
        for (mode, is_breach) in [(ApprovalMode::Ask, true), (ApprovalMode::AutoAll, false)] {
            let policy = policy(wire, mode, &[], &[]);
            for asks in (wire.asks)(ToolAction::Run("make")) {
                let ran = (wire.ran)(&asks);
                let (request, before) = asks.split_last().expect("a request");
                for order in [Order::Waiting, Order::Withdrawn, Order::Late] {
                    let mut session = Session::new(wire.dialect, &policy);
                    session.hear(before);
                    let last = match order {
                        Order::Waiting => {
                            session.hear(std::slice::from_ref(request));
                            &ran
                        }
                        Order::Withdrawn => {
                            session.hear(&[request.clone(), (wire.withdraws)()]);
                            &ran
                        }
                        Order::Late => {
                            session.hear(std::slice::from_ref(&ran));
                            request
                        }
                    };
                    let shown = format!("{}: {order:?} {mode:?} {asks:?}", wire.name);
                    assert!(session.core.breach.is_none(), "{shown}");
                    session.hear(std::slice::from_ref(last));
                    let breach = session.core.breach.as_ref();
                    assert_eq!(breach.is_some(), is_breach, "{shown}");
                    assert!(breach.is_none_or(|breach| !breach.ends_session));
                }
            }
        }
    }
}

/// A denied call must not run. One that was first denied and then allowed may.
#[test]
fn a_call_that_runs_though_it_was_denied_is_a_breach_over_every_wire() {
    for wire in WIRES {
        for is_allowed_then in [false, true] {
            for asks in (wire.asks)(ToolAction::Run("make")) {
                let denying = policy(wire, ApprovalMode::AutoAll, &[], &["Bash"]);
                let mut session = Session::new(wire.dialect, &denying);
                assert_eq!(session.ask(wire, &asks), Outcome::Denied, "{}: {asks:?}", wire.name);
                assert!(session.core.breach.is_none(), "{}: {asks:?}", wire.name);
                // Whatever the policy says now, it was denied.
                session.policy = policy(wire, ApprovalMode::AutoAll, &[], &[]);
                session.core.policy = session.policy.clone();
                if is_allowed_then {
                    assert_eq!(session.ask(wire, &asks), Outcome::Allowed, "{}", wire.name);
                }
                session.hear(&[(wire.ran)(&asks)]);
                let is_breach = session.core.breach.is_some();
                assert_eq!(is_breach, !is_allowed_then, "{}: {asks:?}", wire.name);
            }
        }
    }
}

fn start_turn(session: &mut Session) {
    let (turn_number, origin) = (2, TurnOrigin::Prompt);
    let started = TurnStarted { turn_number, prompt: None, message_ids: Vec::new(), origin };
    session.core.watch_calls(&EventKind::from(started));
}

/// A later turn does not make a denied call one that may run.
#[test]
fn a_call_that_was_denied_in_an_earlier_turn_is_a_breach_over_every_wire() {
    for wire in WIRES {
        for asks in (wire.asks)(ToolAction::Run("make")) {
            for is_asked_again in [false, true] {
                let denying = policy(wire, ApprovalMode::AutoAll, &[], &["Bash"]);
                let mut session = Session::new(wire.dialect, &denying);
                assert_eq!(session.ask(wire, &asks), Outcome::Denied, "{}", wire.name);
                session.policy = policy(wire, ApprovalMode::AutoAll, &[], &[]);
                session.core.policy = session.policy.clone();
                start_turn(&mut session);
                if is_asked_again {
                    assert_eq!(session.ask(wire, &asks), Outcome::Allowed, "{}", wire.name);
                    start_turn(&mut session);
                }
                session.hear(&[(wire.ran)(&asks)]);
                let is_breach = session.core.breach.is_some();
                assert_eq!(is_breach, !is_asked_again, "{}: {asks:?}", wire.name);
            }
        }
    }
}

/// What is too much to watch is not ignored.
#[test]
fn more_calls_than_are_watched_are_a_breach() {
    let wire = &WIRES[0];
    let asking = policy(wire, ApprovalMode::Ask, &[], &[]);
    for standing in [CallPermission::Denied, CallPermission::Unanswered] {
        let mut session = Session::new(wire.dialect, &asking);
        (0..OPEN_LIMIT).for_each(|n| session.core.stands(&n.to_string(), standing));
        session.core.stands("0", standing);
        assert!(session.core.breach.is_none(), "{standing:?}");
        session.core.stands("more", standing);
        assert!(session.core.breach.is_some(), "{standing:?}");
    }
    // The newest denials of earlier turns are kept.
    let mut session = Session::new(wire.dialect, &asking);
    for n in 0..OPEN_LIMIT + 1 {
        session.core.stands(&n.to_string(), CallPermission::Denied);
        start_turn(&mut session);
    }
    session.core.has_run("0", true);
    assert!(session.core.breach.is_none());
    session.core.has_run("1", true);
    assert!(session.core.breach.is_some());
    // A call may have run before it asks, if too many ran to know.
    for asks in (wire.asks)(ToolAction::Run("make")) {
        for (count, is_breach) in [(OPEN_LIMIT, false), (OPEN_LIMIT + 1, true)] {
            let mut session = Session::new(wire.dialect, &asking);
            (0..count).for_each(|n| session.core.has_run(&format!("other {n}"), true));
            let (request, before) = asks.split_last().expect("a request");
            session.hear(before);
            let id = session.core.state.record.open.tools.keys().next().cloned();
            session.hear(std::slice::from_ref(request));
            let expected = is_breach && id.is_none();
            assert_eq!(session.core.breach.is_some(), expected, "{count}: {asks:?}");
        }
    }
}

/// Claude's results that are errors. A denial is one too, but not a breach.
#[test]
fn claudes_errors_count_as_run_unless_they_are_denials() {
    let reject = json!({ "decision": "reject", "source": "hook" });
    let accept = json!({ "decision": "accept", "source": "hook" });
    let rule = json!({ "non_execution_kind": "permission-rule", "permission_decision": reject });
    let rejected = json!({ "non_execution_kind": "user-rejected" });
    let rejected_only = json!({ "permission_decision": reject });
    let accepted = json!({ "permission_decision": accept });
    let error = |text: &str| json!({ "content": text, "is_error": true });
    let stop = "The user doesn't want to proceed with this tool use.";
    let beside = "<tool_use_error>Cancelled: parallel tool call Bash(x) errored</tool_use_error>";
    // The result, its metadata, whether it is a breach if nobody answered, and if it was denied.
    let rows = [
        (error("Exit code 1\nno"), None, true, true),
        (error("Exit code 1\nno"), Some(&accepted), true, true),
        (error("no such host"), Some(&accepted), true, true),
        (error("no such host"), None, true, false),
        (json!({ "content": "done" }), Some(&rejected_only), true, true),
        (json!({ "content": "done" }), Some(&rule), true, true),
        (error("denied"), Some(&rule), false, false),
        (error("denied"), Some(&rejected_only), false, false),
        (error(stop), Some(&rejected), false, false),
        (error(stop), None, false, false),
        (error(beside), None, false, false),
    ];
    for wire in WIRES.iter().filter(|wire| wire.name == "claude") {
        for asks in (wire.asks)(ToolAction::Run("make")) {
            for (result, meta, if_unanswered, if_denied) in &rows {
                let line = claude_result(result.clone(), meta.cloned());
                for withdraws in [false, true] {
                    let asking = policy(wire, ApprovalMode::Ask, &[], &[]);
                    let mut session = Session::new(wire.dialect, &asking);
                    session.hear(&asks);
                    if withdraws {
                        session.hear(&[(wire.withdraws)()]);
                    }
                    session.hear(std::slice::from_ref(&line));
                    assert_eq!(session.core.breach.is_some(), *if_unanswered, "{line} {asks:?}");
                }
                let denying = policy(wire, ApprovalMode::Ask, &[], &["Bash"]);
                let mut session = Session::new(wire.dialect, &denying);
                assert_eq!(session.ask(wire, &asks), Outcome::Denied);
                session.hear(std::slice::from_ref(&line));
                assert_eq!(session.core.breach.is_some(), *if_denied, "denied: {line} {asks:?}");
            }
        }
    }
}

/// A call that was answered has run, which is fine.
#[test]
fn a_call_that_was_answered_is_no_breach_over_any_wire() {
    for wire in WIRES {
        let policy = policy(wire, ApprovalMode::Ask, &["Bash"], &[]);
        for asks in (wire.asks)(ToolAction::Run("make")) {
            let mut session = Session::new(wire.dialect, &policy);
            assert_eq!(session.ask(wire, &asks), Outcome::Allowed, "{}: {asks:?}", wire.name);
            // The answer to its request counts, not what the policy says about it now.
            session.core.policy = self::policy(wire, ApprovalMode::Ask, &[], &[]);
            session.hear(&[(wire.ran)(&asks)]);
            assert!(session.core.breach.is_none(), "{}: {asks:?}", wire.name);
        }
    }
}
