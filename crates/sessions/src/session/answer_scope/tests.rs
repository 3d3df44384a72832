//! What answers may grant, by kind of request.

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::tape::Agent;
use serde_json::json;

use super::super::pending_request::Asker;
use super::*;

fn raised(kind: RequestKind, input: &Value, suggestions: Option<&Value>) -> PendingRequest {
    PendingRequest {
        id: "r".to_owned(),
        tools: agentwire_dialects::claude::CLAUDE.tools(),
        kind,
        agent: Agent::main(),
        digest: String::new(),
        tool_name: Some("Bash".to_owned()),
        input: Some(Json::of(input)),
        title: None,
        blocked_path: None,
        warns: false,
        moved: false,
        is_fixed: false,
        tool: None,
        tool_use_id: None,
        questions: Vec::new(),
        suggestions: suggestions.map(Json::of),
        asker: Asker::Agent,
    }
}

fn is_refused(raised: &PendingRequest, fields: &Value) -> bool {
    let mut all = json!({ "requestId": "r" });
    let (Some(all_fields), Some(fields)) = (all.as_object_mut(), fields.as_object()) else {
        panic!("objects")
    };
    all_fields.extend(fields.clone());
    let settlement: Settlement = serde_json::from_value(all).expect("an answer");
    match check(raised, &settlement) {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.code, ErrorCode::Forbidden);
            assert!(error.message.contains("admin"), "{error:?}");
            true
        }
    }
}

#[test]
fn a_permission_is_given_as_it_was_asked_for() {
    let rule = json!({ "toolName": "Bash", "ruleContent": "ls" });
    let suggestions = json!([
        { "type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings" },
        { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
    ]);
    let raised = raised(RequestKind::Permission, &json!({ "command": "ls" }), Some(&suggestions));
    let rules = |rules: Value| json!({ "behavior": "allow", "updatedPermissions": rules });
    let update = |more: Value| {
        let mut update = json!({
            "type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session",
        });
        update.as_object_mut().expect("it").extend(more.as_object().expect("it").clone());
        rules(json!([update]))
    };
    for fine in [
        json!({ "behavior": "allow" }),
        json!({ "behavior": "allow", "remember": "session" }),
        json!({ "behavior": "allow", "updatedInput": { "command": "ls -l" } }),
        json!({ "behavior": "deny", "remember": "session" }),
        json!({ "behavior": "deny", "hookOutput": { "optionId": "x" }, "updatedPermissions": 1 }),
        json!({ "error": "nobody", "hookOutput": {} }),
        update(json!({})),
        update(json!({ "behavior": "deny" })),
        update(json!({ "rules": [{ "tool_name": "Bash", "rule_content": "ls" }] })),
    ] {
        assert!(!is_refused(&raised, &fine), "{fine}");
    }
    for wide in [
        json!({ "hookOutput": {} }),
        json!({ "behavior": "allow", "hookOutput": { "optionId": "allow_always" } }),
        json!({ "hookOutput": { "behavior": "allow", "updated_permissions": [] } }),
        json!({ "hookOutput": { "decision": "acceptForSession" } }),
        rules(suggestions),
        rules(json!("all")),
        rules(json!({})),
        rules(json!([{ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["rm"] } }])),
        rules(json!(["rm"])),
        update(json!({ "destination": "userSettings" })),
        update(json!({ "destination": "Session" })),
        update(json!({ "behavior": "ask" })),
        update(json!({ "rules": [] })),
        update(json!({ "rules": [{ "toolName": "Bash" }] })),
        update(json!({ "rules": [rule, { "toolName": "Edit" }] })),
        update(json!({ "rules": [{ "toolName": "Bash", "ruleContent": "ls:*" }] })),
        update(json!({ "type": "setMode", "mode": "bypassPermissions" })),
        update(json!({ "type": "replaceRules" })),
        update(json!({ "mode": "bypassPermissions" })),
        update(json!({ "directories": ["/"] })),
    ] {
        assert!(is_refused(&raised, &wide), "{wide}");
    }
}

#[test]
fn a_hook_decides_and_speaks_and_no_more() {
    let hook = |event: &str| raised(RequestKind::Hook, &json!({ "hook_event_name": event }), None);
    let output = |output: Value| json!({ "hookOutput": output });
    let specific = |event: &str, more: Value| {
        let mut fields = json!({ "hookEventName": event });
        fields.as_object_mut().expect("it").extend(more.as_object().expect("it").clone());
        output(json!({ "hookSpecificOutput": fields }))
    };
    let decision = |more: Value| specific("PermissionRequest", json!({ "decision": more }));
    for (event, fine) in [
        ("PreToolUse", output(json!({}))),
        ("PreToolUse", json!({ "behavior": "allow" })),
        ("Stop", output(json!({ "decision": "block", "reason": "go on", "continue": true }))),
        ("Stop", output(json!({ "stop_reason": "s", "system_message": "m", "decision": null }))),
        ("PreToolUse", specific("PreToolUse", json!({ "permissionDecision": "allow" }))),
        ("PreToolUse", specific("PreToolUse", json!({ "permission_decision": "ask" }))),
        ("PreToolUse", specific("PreToolUse", json!({ "updated_input": {} }))),
        ("PostToolUse", specific("PostToolUse", json!({ "additionalContext": "c" }))),
        ("PermissionRequest", decision(json!({ "behavior": "allow", "updatedInput": {} }))),
        ("PermissionRequest", decision(json!({ "behavior": "deny", "interrupt": true }))),
    ] {
        assert!(!is_refused(&hook(event), &fine), "{event} {fine}");
    }
    for (event, wide) in [
        ("PreToolUse", output(json!([]))),
        ("PreToolUse", output(json!({ "updatedPermissions": [] }))),
        ("PreToolUse", output(json!({ "async": true }))),
        ("PreToolUse", output(json!({ "decision": "always" }))),
        ("PreToolUse", output(json!({ "decision": { "behavior": "allow" } }))),
        ("PreToolUse", output(json!({ "hookSpecificOutput": [] }))),
        ("PreToolUse", specific("PostToolUse", json!({}))),
        ("PreToolUse", specific("PreToolUse", json!({ "permissionDecision": "bypass" }))),
        ("PreToolUse", specific("PreToolUse", json!({ "decision": { "behavior": "allow" } }))),
        ("PreToolUse", specific("PreToolUse", json!({ "permissionMode": "bypassPermissions" }))),
        ("PostToolUse", specific("PostToolUse", json!({ "updatedInput": {} }))),
        ("PostToolUse", specific("PostToolUse", json!({ "updatedMCPToolOutput": "x" }))),
        ("PermissionRequest", decision(json!({ "behavior": "allow", "updatedPermissions": [] }))),
        ("PermissionRequest", decision(json!({ "behavior": "allow", "updated_permissions": [] }))),
        ("PermissionRequest", decision(json!({ "behavior": "allow", "UpdatedPermissions": [] }))),
        ("PermissionRequest", decision(json!({ "behavior": "always" }))),
        (
            "PermissionRequest",
            json!({ "behavior": "allow", "updatedPermissions": [] , "hookOutput": { "x": 1 } }),
        ),
    ] {
        assert!(is_refused(&hook(event), &wide), "{event} {wide}");
    }
}

#[test]
fn what_nobody_knows_is_the_operators_to_answer() {
    let of = |kind| raised(kind, &json!({}), None);
    let form = json!({ "hookOutput": { "action": "accept", "content": { "a": 1 } } });
    assert!(!is_refused(&of(RequestKind::Question), &form));
    assert!(!is_refused(&of(RequestKind::Question), &json!({ "answers": { "q": "a" } })));
    assert!(!is_refused(&of(RequestKind::Mcp), &json!({ "hookOutput": { "result": {} } })));
    assert!(!is_refused(&of(RequestKind::Other), &json!({ "behavior": "deny" })));
    assert!(!is_refused(&of(RequestKind::Other), &json!({ "behavior": "allow" })));
    for (kind, wide) in [
        (RequestKind::Question, json!({ "hookOutput": { "behavior": "allow" } })),
        (
            RequestKind::Question,
            json!({ "hookOutput": { "action": "a", "updatedPermissions": [] } }),
        ),
        (RequestKind::Question, json!({ "behavior": "allow", "updatedPermissions": [{}] })),
        (RequestKind::Other, json!({ "hookOutput": {} })),
        (RequestKind::Other, json!({ "behavior": "allow", "updatedInput": {} })),
    ] {
        assert!(is_refused(&of(kind), &wide), "{wide}");
    }
}
