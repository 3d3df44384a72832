//! `PreToolUse` before a permission, and what hooks decide about it.

use std::time::Duration;

use agentwire_protocol::event::{EventKind, RequestKind, RequestOutcome, SettledBy, TurnFailure};
use agentwire_protocol::{ApprovalMode, ErrorCode, Settlement};
use agentwire_sessions::settings::Timing;
use serde_json::json;

use crate::harness::{ACP, CODEX, Session, carriers, config, decision, hooks, input, outcome};

#[tokio::test]
async fn a_denial_reaches_the_agent_before_anybody_is_asked() {
    for agent in [CODEX, ACP] {
        let mut session = Session::start(agent, config(&hooks(&["PreToolUse"])), "ASK").await;
        let hook = session.hook("PreToolUse").await;
        assert_eq!(hook.callback_id.as_ref().unwrap().decode(), "PreToolUse");
        assert_eq!(hook.tool_name.as_ref().unwrap().decode(), "Bash");
        let told = input(&hook);
        assert_eq!(told["session_id"], session.handle.id().as_str());
        assert_eq!(told["transcript_path"], "");
        assert_eq!(told["permission_mode"], "default");
        assert_eq!(told["hook_event_name"], "PreToolUse");
        assert_eq!(told["tool_name"], "Bash");
        assert_eq!(told["tool_input"]["command"], "touch made");
        let tool = hook.tool_use_id.as_ref().unwrap().to_string();
        assert_eq!(told["tool_use_id"], tool.as_str());
        session.answer(&hook, &decision("deny", "policy X")).await;
        let permission = session.request().await;
        assert_eq!(permission.kind, RequestKind::Permission);
        let settled = session.settled(&permission.request_id.decode()).await;
        let denied = (RequestOutcome::Denied, SettledBy::Client, "policy X".to_owned());
        assert_eq!(outcome(&settled), denied);
        session.completed().await;
        let heard = session.heard();
        assert!(heard.contains("\"decline\"") || heard.contains("\"optionId\":\"no\""), "{heard}");
        session.end().await;
    }
}

#[tokio::test]
async fn a_line_that_asks_is_in_the_log_once_though_its_permission_waits() {
    let mut session = Session::start(CODEX, config(&hooks(&["PreToolUse"])), "ASK").await;
    let hook = session.hook("PreToolUse").await;
    session.answer(&hook, &json!({})).await;
    let permission = session.request().await;
    assert_eq!(permission.kind, RequestKind::Permission);
    let id = permission.request_id.to_string();
    session.settle(Settlement::allow(id.as_str())).await.unwrap();
    session.completed().await;
    let events = session.end().await;
    let carriers = carriers(&events, "requestApproval");
    assert_eq!(carriers.len(), 1);
    assert!(
        matches!(&carriers[0].kind, EventKind::RequestRaised(r) if r.kind == RequestKind::Hook)
    );
}

#[tokio::test]
async fn an_allowance_runs_the_tool_and_what_rules_deny_stays_denied() {
    for blocked in [false, true] {
        let mut config = config(&hooks(&["PreToolUse"]));
        config.blocked_tools = blocked.then(|| vec!["Bash".to_owned()]);
        let mut session = Session::start(CODEX, config, "ASK").await;
        let hook = session.hook("PreToolUse").await;
        session.answer(&hook, &decision("allow", "fine")).await;
        let permission = session.request().await;
        let settled = session.settled(&permission.request_id.decode()).await;
        let expected = match blocked {
            false => (RequestOutcome::Allowed, SettledBy::Client),
            true => (RequestOutcome::Denied, SettledBy::Policy),
        };
        assert_eq!((settled.outcome, settled.by), expected);
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn without_an_opinion_the_rules_decide_and_ask_asks_all_the_same() {
    for (output, asks) in [(json!({}), false), (decision("ask", ""), true)] {
        let mut config = config(&hooks(&["PreToolUse"]));
        config.approval_mode = Some(ApprovalMode::AutoAll);
        let mut session = Session::start(CODEX, config, "ASK").await;
        let hook = session.hook("PreToolUse").await;
        session.answer(&hook, &output).await;
        let permission = session.request().await.request_id.to_string();
        if asks {
            session.settle(Settlement::allow(permission.as_str())).await.unwrap();
        }
        let settled = session.settled(&permission).await;
        let by = if asks { SettledBy::Client } else { SettledBy::Policy };
        assert_eq!((settled.outcome, settled.by), (RequestOutcome::Allowed, by));
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn a_changed_input_that_the_agent_cannot_take_is_a_denial_that_says_so() {
    for agent in [CODEX, ACP] {
        let mut session = Session::start(agent, config(&hooks(&["PreToolUse"])), "ASK").await;
        let hook = session.hook("PreToolUse").await;
        let output = json!({ "hook_specific_output": {
            "permission_decision": "allow",
            "updated_input": { "command": "ls" },
        } });
        session.answer(&hook, &output).await;
        let permission = session.request().await;
        let settled = session.settled(&permission.request_id.decode()).await;
        let (outcome, _, reason) = outcome(&settled);
        assert_eq!(outcome, RequestOutcome::Denied);
        assert!(reason.contains("updatedInput"), "{reason}");
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn the_input_given_back_is_no_change() {
    for word in ["allow", "none"] {
        let mut config = config(&hooks(&["PreToolUse"]));
        config.approval_mode = Some(ApprovalMode::AutoAll);
        let mut session = Session::start(CODEX, config, "ASK").await;
        let hook = session.hook("PreToolUse").await;
        let mut output = json!({ "updatedInput": input(&hook)["tool_input"] });
        if word != "none" {
            output["permissionDecision"] = json!(word);
        }
        session.answer(&hook, &json!({ "hookSpecificOutput": output })).await;
        let permission = session.request().await;
        let settled = session.settled(&permission.request_id.decode()).await;
        assert_eq!((settled.outcome, settled.updated_input), (RequestOutcome::Allowed, None));
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn all_hooks_that_fit_are_asked_and_the_strictest_counts() {
    let wanted = json!({ "PreToolUse": [
        { "matcher": "Bash", "hookCallbackIds": ["a", "b"] },
        { "matcher": "command_execution", "hookCallbackIds": ["own"] },
        { "matcher": "^Ba.h$", "hookCallbackIds": ["pattern"] },
        { "matcher": "Edit|Write", "hookCallbackIds": ["never"] },
        { "matcher": "Ba", "hookCallbackIds": ["neither"] },
        { "hookCallbackIds": [] },
    ] });
    let mut session = Session::start(CODEX, config(&wanted), "ASK").await;
    let mut asked = Vec::new();
    for _ in 0..5 {
        asked.push(session.hook("PreToolUse").await);
    }
    let names: Vec<_> =
        asked.iter().map(|hook| hook.callback_id.as_ref().unwrap().to_string()).collect();
    assert_eq!(names, ["a", "b", "own", "pattern", "hook_0"]);
    let outputs = [
        decision("allow", "yes"),
        decision("deny", "no"),
        decision("ask", "perhaps"),
        json!({ "decision": "approve" }),
    ];
    for (hook, output) in asked.iter().zip(&outputs) {
        session.answer(hook, output).await;
    }
    // As long as one is open, nothing is decided.
    assert!(!session.heard().contains("decision"));
    session.answer(&asked[4], &json!({})).await;
    let permission = session.request().await;
    let settled = session.settled(&permission.request_id.decode()).await;
    assert_eq!(outcome(&settled).2, "no");
    session.completed().await;
    session.end().await;
}

/// How a guard fails to answer.
#[derive(Clone, Copy, PartialEq)]
enum Silence {
    OwnLimit,
    Limit,
    Failure,
}

#[tokio::test]
async fn a_hook_without_an_answer_makes_somebody_be_asked_unless_failing_blocks() {
    use Silence::{Failure, Limit, OwnLimit};
    for silence in [OwnLimit, Limit, Failure] {
        for blocks in [false, true] {
            let mut entry = json!({ "hookCallbackIds": ["h"] });
            if silence == OwnLimit {
                entry["timeout"] = json!(1);
            }
            if blocks {
                entry["onFailure"] = json!("block");
            }
            let mut config = config(&json!({ "PreToolUse": [entry] }));
            config.approval_mode = Some(ApprovalMode::AutoAll);
            let request = (silence == Limit).then_some(Duration::from_secs(1));
            let timing = Timing { request, ..Timing::default() };
            let session = Session::start_within(timing, CODEX, config, "ASK").await;
            let mut session = session.unwrap();
            let hook = session.hook("PreToolUse").await.request_id.to_string();
            if silence == Failure {
                session.settle(Settlement::error(hook.as_str(), "boom")).await.unwrap();
                assert!(session.warning().await.contains("boom"));
            }
            let why = if silence == Failure { "boom" } else { "nobody answered within 1 s" };
            let by = if silence == Failure { SettledBy::Client } else { SettledBy::Gateway };
            let expected = if blocks { RequestOutcome::Denied } else { RequestOutcome::Withdrawn };
            let settled = outcome(&session.settled(&hook).await);
            assert_eq!(settled, (expected, by, why.to_owned()));
            let permission = session.request().await.request_id.to_string();
            if !blocks && silence != Limit {
                session.settle(Settlement::deny(permission.as_str(), "mine")).await.unwrap();
            }
            let (outcome, _, reason) = outcome(&session.settled(&permission).await);
            assert_eq!(outcome, RequestOutcome::Denied);
            assert_eq!(reason == why, blocks || silence == Limit, "{reason}");
            session.completed().await;
            session.end().await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_denies_the_hook_denies_the_tool() {
    let mut session = Session::start(CODEX, config(&hooks(&["PreToolUse"])), "ASK").await;
    let hook = session.hook("PreToolUse").await.request_id.to_string();
    session.settle(Settlement::deny(hook.as_str(), "boom")).await.unwrap();
    let permission = session.request().await;
    let settled = session.settled(&permission.request_id.decode()).await;
    assert_eq!(outcome(&settled), (RequestOutcome::Denied, SettledBy::Client, "boom".to_owned()));
    // A late answer gets an error.
    let late = session.try_answer(&hook, &json!({})).await.unwrap_err();
    assert_eq!(late.code.as_str(), "requestSettled");
    session.completed().await;
    session.end().await;
}

#[tokio::test]
async fn an_output_that_cannot_be_read_is_refused_and_the_hook_stays_open() {
    let mut session = Session::start(CODEX, config(&hooks(&["PreToolUse"])), "ASK").await;
    let hook = session.hook("PreToolUse").await;
    let id = hook.request_id.to_string();
    let wrong = [
        json!([]),
        json!({ "continue": "no" }),
        json!({ "decision": "deny" }),
        json!({ "hookSpecificOutput": [] }),
        decision("denied", ""),
    ];
    for output in wrong {
        let error = session.try_answer(&id, &output).await.unwrap_err();
        assert_eq!(error.code.as_str(), "invalidMessage", "{error:?}");
    }
    session.answer(&hook, &decision("deny", "at last")).await;
    session.completed().await;
    session.end().await;
}

#[tokio::test]
async fn a_hook_that_wants_no_more_ends_the_turn() {
    for agent in [CODEX, ACP] {
        let mut session = Session::start(agent, config(&hooks(&["PreToolUse"])), "ASK").await;
        let hook = session.hook("PreToolUse").await;
        let output = json!({ "continue": false, "stop_reason": "enough" });
        session.answer(&hook, &output).await;
        let failed = session.failed().await;
        assert_eq!(failed.reason, TurnFailure::Interrupted);
        assert_eq!(failed.error.decode(), "enough");
        session.end().await;
    }
}

#[tokio::test]
async fn edits_that_the_mode_accepts_are_put_to_hooks_first() {
    let script = CODEX.1.replace(
        "*HANG*) ;;",
        r#"*EDIT*)
            say "{\"method\":\"item/started\",\"params\":{\"item\":{\"type\":\"fileChange\",\"id\":\"f1\",\"changes\":[{\"path\":\"$PWD/a.txt\",\"kind\":{\"type\":\"add\"},\"diff\":\"one\"}],\"status\":\"inProgress\"},\"threadId\":\"t1\",\"turnId\":\"u1\"}}"
            say "{\"method\":\"item/fileChange/requestApproval\",\"id\":7,\"params\":{\"threadId\":\"t1\",\"turnId\":\"u1\",\"itemId\":\"f1\",\"reason\":null,\"grantRoot\":null}}" ;;"#,
    );
    for own in [None, Some("acceptEdits")] {
        for output in [json!({}), decision("deny", "not this one")] {
            let mut config = config(&hooks(&["PreToolUse"]));
            config.approval_mode = own.is_none().then_some(ApprovalMode::AutoEdit);
            config.permission_mode = own.map(str::to_owned);
            let mut session = Session::start((CODEX.0, &script), config, "EDIT").await;
            let hook = session.hook("PreToolUse").await;
            assert_eq!(input(&hook)["tool_name"], "Write");
            let path = session.work().join("a.txt");
            assert_eq!(input(&hook)["tool_input"]["file_path"], path.to_str().unwrap());
            assert_eq!(input(&hook)["permission_mode"], "acceptEdits");
            session.answer(&hook, &output).await;
            let permission = session.request().await;
            let settled = session.settled(&permission.request_id.decode()).await;
            let denied = output != json!({});
            let by = if denied { SettledBy::Client } else { SettledBy::Policy };
            assert_eq!((settled.outcome == RequestOutcome::Denied, settled.by), (denied, by));
            session.end().await;
        }
    }
}

#[tokio::test]
async fn a_permission_request_hook_and_the_client_race_and_the_first_wins() {
    let wanted = hooks(&["PermissionRequest", "Notification"]);
    for hook_wins in [true, false] {
        let mut session = Session::start(CODEX, config(&wanted), "ASK").await;
        let permission = session.request().await;
        assert_eq!(permission.kind, RequestKind::Permission);
        let id = permission.request_id.to_string();
        let hook = session.hook("PermissionRequest").await;
        let notice = session.hook("Notification").await;
        assert_eq!(input(&notice)["notification_type"], "permission_prompt");
        session.answer(&notice, &json!({})).await;
        if hook_wins {
            let decision = json!({ "behavior": "deny", "message": "hook says no" });
            let output = json!({ "hookSpecificOutput": { "decision": decision } });
            session.answer(&hook, &output).await;
            assert_eq!(outcome(&session.settled(&id).await).2, "hook says no");
        } else {
            session.settle(Settlement::allow(id.as_str())).await.unwrap();
            let settled = session.settled(&hook.request_id.decode()).await;
            assert_eq!(settled.outcome, RequestOutcome::Withdrawn);
        }
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn a_permission_request_hook_lets_nothing_run_past_a_limit() {
    // It uses up the budget while it waits for the answer.
    let usage = r#"{\"totalTokens\":120,\"inputTokens\":100,\"outputTokens\":20}"#;
    let spends = format!(
        r#"until [ -e spend ]; do sleep 0.05; done; say "{{\"method\":\"thread/tokenUsage/updated\",\"params\":{{\"threadId\":\"t1\",\"turnId\":\"u$turn\",\"tokenUsage\":{{\"total\":{usage},\"last\":{usage}}}}}}}" ;;"#
    );
    let script = CODEX.1.replacen(
        r#"[\"accept\",\"cancel\"]}}" ;;"#,
        &format!("[\\\"accept\\\",\\\"cancel\\\"]}}}}\"\n{spends}"),
        1,
    );
    assert_ne!(script, CODEX.1);
    let mut wanted = config(&hooks(&["PermissionRequest"]));
    wanted.max_budget_tokens = Some(100);
    let mut session = Session::start((CODEX.0, &script), wanted, "ASK").await;
    let permission = session.request().await.request_id.to_string();
    let hook = session.hook("PermissionRequest").await;
    std::fs::write(session.work().join("spend"), "").unwrap();
    let limit = session.request().await.request_id.to_string();
    assert!(limit.starts_with("limit-"), "{limit}");
    let allow = json!({ "hookSpecificOutput": { "decision": { "behavior": "allow" } } });
    let refused = session.try_answer(&hook.request_id.decode(), &allow).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Conflict);
    assert!(!session.heard().contains(r#""decision":"accept""#));
    // The hook is still open, and counts once someone has allowed the session to continue.
    session.settle(Settlement::allow(limit.as_str())).await.unwrap();
    session.answer(&hook, &allow).await;
    assert_eq!(session.settled(&permission).await.outcome, RequestOutcome::Allowed);
    session.completed().await;
    session.end().await;
}

#[tokio::test]
async fn a_permission_request_hook_may_allow_from_now_on_and_what_it_cannot_is_said() {
    // What is allowed from now on is allowed in the session's own directory. Codex's reason may ask for
    // more than the command: then nothing is remembered.
    let script = CODEX.1.replace(r#"\"cwd\":\"/w\""#, r#"\"cwd\":\"$PWD\""#);
    let script = script.replace(r#"\"reason\":\"why\","#, "");
    let wanted = config(&hooks(&["PermissionRequest"]));
    let mut session = Session::start((CODEX.0, &script), wanted, "ASK").await;
    let permission = session.request().await.request_id.to_string();
    let hook = session.hook("PermissionRequest").await;
    let rules = json!([
        { "type": "addRules", "behavior": "allow", "rules": [{ "toolName": "Bash" }] },
        { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
    ]);
    let decision = json!({ "behavior": "allow", "updatedPermissions": rules });
    session.answer(&hook, &json!({ "hookSpecificOutput": { "decision": decision } })).await;
    assert!(session.warning().await.contains("updatedPermissions"));
    let settled = outcome(&session.settled(&permission).await);
    assert_eq!((settled.0, settled.1), (RequestOutcome::Allowed, SettledBy::Client));
    assert!(settled.2.contains("for this session"), "{}", settled.2);
    session.completed().await;
    session.prompt("ASK again").await;
    let permission = session.request().await.request_id.to_string();
    let settled = session.settled(&permission).await;
    assert_eq!((settled.outcome, settled.by), (RequestOutcome::Allowed, SettledBy::Policy));
    session.completed().await;
    session.end().await;
}
