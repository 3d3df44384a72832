//! Permission modes and models, whatever the agent calls them.

use agentwire_dialects::front::Ask;
use agentwire_protocol::{AgentType, ApprovalMode, Call, Command, Configure, ErrorCode};
use serde_json::json;

use crate::page::{Page, SESSION};

fn change(page: &mut Page, mode: &str) -> (Call, Configure) {
    page.say("permission_mode.change", json!({ "session_id": SESSION, "permission_mode": mode }));
    match page.command() {
        (call, Command::Configure(change)) => (call, change),
        (_, command) => panic!("{command:?}"),
    }
}

fn changed(page: &mut Page) -> String {
    let said = page.said();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["type"], "permission_mode.changed");
    said[0]["payload"]["permission_mode"].as_str().expect("a mode").to_owned()
}

fn heard(page: &mut Page, mode: &str) {
    page.event(json!({ "type": "statusChanged", "status": "mode", "message": mode }));
}

#[test]
fn each_change_is_answered_once() {
    let mut page = Page::running();
    let (call, asked) = change(&mut page, "plan");
    assert_eq!(asked.permission_mode.as_deref(), Some("plan"));
    heard(&mut page, "plan");
    page.is_quiet();
    page.done(call);
    assert_eq!(changed(&mut page), "plan");
    // The agent may say so later as well, or again.
    heard(&mut page, "plan");
    page.is_quiet();
    // What it is already is an answer, too.
    let (call, _) = change(&mut page, "plan");
    page.done(call);
    assert_eq!(changed(&mut page), "plan");
    let (call, asked) = change(&mut page, "default");
    assert_eq!((asked.permission_mode, asked.approval_mode), (None, Some(ApprovalMode::Ask)));
    page.refuse(call, ErrorCode::Unsupported);
    assert_eq!(page.error(), "PERMISSION_MODE_CHANGE_FAILED");
    page.say("permission_mode.change", json!({ "session_id": SESSION, "permission_mode": "yolo" }));
    assert_eq!(page.error(), "INVALID_MESSAGE");
}

#[test]
fn others_words_are_told_in_the_specifications() {
    let mut page = Page::running();
    for (word, told) in [
        ("autoEdit", Some("acceptEdits")),
        ("auto_edit", None),
        ("high", None),
        ("untrusted", Some("default")),
        ("on-request", None),
        ("dontAsk", None),
        ("yolo", Some("bypassPermissions")),
        ("plan", Some("plan")),
    ] {
        heard(&mut page, word);
        match told {
            Some(told) => assert_eq!(changed(&mut page), told, "{word}"),
            None => page.is_quiet(),
        }
    }
}

/// What an agent starts with is no change, and one that is driven in another mode is not asked.
#[test]
fn what_the_agent_says_of_itself_is_no_change() {
    let mut page = Page::new();
    let create = json!({ "prompt": "go", "permission_mode": "acceptEdits" });
    page.say("session.create", create);
    page.start();
    page.said();
    for mode in ["untrusted", "default"] {
        let ready = json!({ "type": "statusChanged", "status": "ready", "info": { "mode": mode } });
        page.event(ready);
        page.is_quiet();
    }
}

/// No agent can be told to bypass everything in mid-session; the gateway allows in its place.
#[test]
fn everything_is_allowed_by_the_gateway() {
    let mut page = Page::new();
    page.say("session.create", json!({ "prompt": "go", "permission_mode": "bypassPermissions" }));
    let Ask::Start(new) = page.start() else { panic!("no start") };
    assert_eq!(new.config.approval_mode, Some(ApprovalMode::AutoAll));
    assert_eq!(new.config.permission_mode, None);
    page.said();
    heard(&mut page, "acceptEdits");
    page.is_quiet();
    let (call, _) = change(&mut page, "default");
    heard(&mut page, "default");
    page.done(call);
    assert_eq!(changed(&mut page), "default");
    let (call, asked) = change(&mut page, "bypassPermissions");
    assert_eq!((asked.permission_mode, asked.approval_mode), (None, Some(ApprovalMode::AutoAll)));
    heard(&mut page, "acceptEdits");
    page.done(call);
    assert_eq!(changed(&mut page), "bypassPermissions");
    let (call, asked) = change(&mut page, "acceptEdits");
    assert_eq!(asked.permission_mode.as_deref(), Some("acceptEdits"));
    heard(&mut page, "acceptEdits");
    page.done(call);
    assert_eq!(changed(&mut page), "acceptEdits");
}

/// The specification's payload runs any agent: `default` is to ask, and Claude's models are Claude's.
#[test]
fn the_specifications_payload_runs_every_agent() {
    for agent in
        [AgentType::Claude, AgentType::Demo, AgentType::Codex, AgentType::Gemini, AgentType::Acp]
    {
        for model in ["sonnet", "opus", "haiku"] {
            let mut page = Page::of(agent);
            let create = json!({ "prompt": "go", "cwd": "/w", "allowed_tools": [],
                "permission_mode": "default", "model": model });
            page.say("session.create", create);
            let Ask::Start(new) = page.start() else { panic!("no start") };
            assert_eq!(new.config.permission_mode, None);
            assert_eq!(new.config.approval_mode, Some(ApprovalMode::Ask));
            let is_claude = matches!(agent, AgentType::Claude | AgentType::Demo);
            assert_eq!(new.config.model.as_deref(), is_claude.then_some(model), "{agent:?}");
        }
        let mut page = Page::of(agent);
        page.say("session.create", json!({ "prompt": "go", "model": "gpt-5.5" }));
        let Ask::Start(new) = page.start() else { panic!("no start") };
        assert_eq!(new.config.model.as_deref(), Some("gpt-5.5"));
        assert_eq!(new.config.approval_mode, None);
    }
}

/// Another client changes the gateway's own mode, of which the agent's may not tell.
#[test]
fn what_the_gateway_decides_by_is_told() {
    let mut page = Page::running();
    let both = |page: &mut Page, word: &str, ours: &str| {
        page.event(json!({ "type": "statusChanged", "status": "mode", "message": word,
            "details": { "approvalMode": ours } }));
    };
    both(&mut page, "acceptEdits", "autoAll");
    assert_eq!(changed(&mut page), "bypassPermissions");
    heard(&mut page, "acceptEdits");
    page.is_quiet();
    both(&mut page, "acceptEdits", "autoEdit");
    assert_eq!(changed(&mut page), "acceptEdits");
    both(&mut page, "askDangerous", "askDangerous");
    assert_eq!(changed(&mut page), "default");
    let (call, _) = change(&mut page, "bypassPermissions");
    both(&mut page, "acceptEdits", "autoAll");
    page.is_quiet();
    page.done(call);
    assert_eq!(changed(&mut page), "bypassPermissions");
}
