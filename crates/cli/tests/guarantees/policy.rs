//! The gateway decides: rules apply in every mode, "always" covers only the call that was shown, changed
//! calls are judged, and limits apply before the next tool runs.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use agentwire_protocol::event::{
    EventKind, RequestOutcome, RequestRaised, SettledBy, ToolFailure, TurnFailure,
};
use agentwire_protocol::session::{OnLimit, SandboxMode};
use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Configure, ErrorCode, Event, SessionConfig, Settlement,
};
use agentwire_sessions::settings::AgentCommand;
use agentwire_sessions::{NewSession, SessionHandle};
use serde_json::{Value, json};

use crate::gateway::{Gateway, Reader, prompt, script, stop};
use crate::shared::AGENTWIRE;

const MODES: [ApprovalMode; 4] =
    [ApprovalMode::Ask, ApprovalMode::AskDangerous, ApprovalMode::AutoEdit, ApprovalMode::AutoAll];

/// Claude's own modes, by name.
const OWN: [&str; 5] = ["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk"];

pub(crate) fn rules(rules: &[&str]) -> Option<Vec<String>> {
    Some(rules.iter().map(|rule| (*rule).to_owned()).collect())
}

fn demo(gateway: &Gateway, text: &str, config: SessionConfig) -> NewSession {
    let working_directory = gateway.config().working_directory;
    let new = gateway.session(AgentType::Demo, text);
    NewSession { config: SessionConfig { working_directory, ..config }, ..new }
}

async fn next_request(reader: &mut Reader) -> RequestRaised<'static> {
    let event = reader.until(|kind| matches!(kind, EventKind::RequestRaised(_))).await;
    let EventKind::RequestRaised(request) = event.kind else { panic!("another kind") };
    *request
}

pub(crate) async fn settle(session: &SessionHandle, answer: Value) -> Result<(), ErrorCode> {
    let settlement: Settlement = serde_json::from_value(answer).expect("a settlement");
    let done = session.send(Command::Settle(settlement)).await;
    done.map(drop).map_err(|error| error.code)
}

/// A gateway whose demo agent copies its stdin to `stdin.log`.
async fn overheard() -> Gateway {
    Gateway::with(|settings| {
        let parent = settings.data_dir.parent().expect("a directory").to_path_buf();
        let text = format!(
            "#!/bin/sh\ntee -a {}/stdin.log | {AGENTWIRE} demo-agent \"$@\"\n",
            parent.display()
        );
        let program = script(&parent, "agent.sh", &text);
        let state = format!("--state-dir={}/demo", parent.display());
        let command =
            AgentCommand { program: Some(program), args: vec![state], ..AgentCommand::default() };
        settings.agents.insert("demo", command);
    })
    .await
}

/// A blocked tool does not run in any mode, even if the agent would not ask about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_rules_hold_in_every_mode() {
    let gateway = Gateway::new().await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    std::fs::write(work.join(".env"), "secret").expect("a file");
    let approval = MODES.map(|mode| (Some(mode), None));
    let own = OWN.map(|mode| (None, Some(mode.to_owned())));
    for (number, (approval_mode, permission_mode)) in approval.into_iter().chain(own).enumerate() {
        for (blocked, calls) in [
            ("Edit", format!("/write made{number} x")),
            ("Read(.env)", "/read .env".to_owned()),
            ("Bash(touch:*)", format!("/bash touch made{number}")),
            ("Read", "/read .env".to_owned()),
        ] {
            let config = SessionConfig {
                approval_mode,
                permission_mode: permission_mode.clone(),
                blocked_tools: rules(&[blocked]),
                // Deny wins.
                allowed_tools: rules(&["Bash", "Edit", "Read"]),
                ..SessionConfig::default()
            };
            let new = demo(&gateway, &format!("{calls}\n/say {{result}}"), config);
            let session = gateway.hub.start(new).await.expect("a session");
            let mut reader = gateway.reader(&session).await;
            let end = reader
                .until(|kind| {
                    matches!(kind, EventKind::ToolFailed(_) | EventKind::ToolCompleted(_))
                })
                .await;
            let what = format!("{approval_mode:?} {permission_mode:?} {blocked}");
            let EventKind::ToolFailed(failed) = &end.kind else {
                panic!("{what}: it ran: {end:?}")
            };
            // A tool that is blocked completely does not exist for the agent.
            let is_refused = match failed.reason {
                ToolFailure::Denied => failed.error.decode().contains(blocked),
                ToolFailure::Invalid => blocked == "Read",
                ToolFailure::Interrupted => false,
            };
            assert!(is_refused, "{what}: {failed:?}");
            assert!(!work.join(format!("made{number}")).exists(), "{what}");
            stop(&session).await;
            for event in gateway.events(&session).await {
                assert!(!matches!(event.kind, EventKind::RequestRaised(_)), "{what}: {event:?}");
            }
        }
    }
}

/// A rule that an answer adds applies from then on, even if the session started without rules and the agent
/// does not ask about such calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_rule_of_an_answer_holds_for_calls_that_are_not_asked_about() {
    let gateway = Gateway::new().await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    std::fs::create_dir(work.join("hidden")).expect("a directory");
    std::fs::write(work.join("hidden/k"), "secret").expect("a file");
    let new = demo(&gateway, "/read hidden/k\n/bash touch made", SessionConfig::default());
    let session = gateway.hub.start(new).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    // Without a rule the call runs without a request.
    let ran = |kind: &EventKind<'_>| {
        matches!(kind, EventKind::ToolCompleted(_) | EventKind::ToolFailed(_))
    };
    let first = reader.until(ran).await;
    assert!(matches!(first.kind, EventKind::ToolCompleted(_)), "{first:?}");
    let id = reader.request().await;
    let rule = json!([{ "type": "addRules", "behavior": "deny", "destination": "session",
        "rules": [{ "toolName": "Read", "ruleContent": "hidden/**" }] }]);
    let answer = json!({ "requestId": id, "behavior": "allow", "updatedPermissions": rule });
    assert_eq!(settle(&session, answer).await, Ok(()));
    reader.turn_end().await;
    prompt(&session, "/read hidden/k").await;
    let second = reader.until(ran).await;
    let EventKind::ToolFailed(failed) = &second.kind else { panic!("it ran: {second:?}") };
    assert_eq!(failed.reason, ToolFailure::Denied);
    stop(&session).await;
}

/// If it is uncertain whether a rule denies a call, somebody is asked, even where everything else runs
/// unasked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_rule_in_doubt_asks() {
    let gateway = Gateway::new().await;
    let config = SessionConfig {
        approval_mode: Some(ApprovalMode::AutoAll),
        blocked_tools: rules(&["Bash(rm:*)"]),
        ..SessionConfig::default()
    };
    let new = demo(&gateway, "/bash $(echo r)m x", config);
    let session = gateway.hub.start(new).await.expect("a session");
    let request = next_request(&mut gateway.reader(&session).await).await;
    assert_eq!(request.tool_name.as_ref().map(|name| name.to_string()).as_deref(), Some("Bash"));
    stop(&session).await;
}

/// In Claude's mode `dontAsk`, calls that rules allow run, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_allowed_tools_run_where_nobody_is_asked() {
    let gateway = Gateway::new().await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    let config = SessionConfig {
        permission_mode: Some("dontAsk".to_owned()),
        allowed_tools: rules(&["Bash(touch allowed)"]),
        ..SessionConfig::default()
    };
    let new = demo(&gateway, "/bash touch allowed\n/bash touch other\n/say over", config);
    let session = gateway.hub.start(new).await.expect("a session");
    gateway.reader(&session).await.turn_end().await;
    stop(&session).await;
    assert!(work.join("allowed").exists() && !work.join("other").exists());
}

/// "Always" covers the call that was shown. The agent only receives a plain allow, and the next file is
/// asked about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_always_keeps_what_is_shown() {
    for how in ["suggested", "doubled", "repeated", "remember"] {
        let gateway = overheard().await;
        let session = gateway.start("/write a x").await;
        let mut reader = gateway.reader(&session).await;
        let request = next_request(&mut reader).await;
        let shown: Value = request.suggestions.as_ref().expect("one").read().expect("a list");
        let work = gateway.config().working_directory.expect("a directory");
        assert_eq!(
            shown,
            json!([{ "type": "addRules", "behavior": "allow", "destination": "session",
                "rules": [{ "toolName": "Write", "ruleContent": format!("/{work}/a") }] }])
        );
        let id = request.request_id.to_string();
        // The suggested rule in another form is still the call that was shown.
        let rule = &shown[0]["rules"][0];
        let update = |rules: Value| {
            json!({ "type": "addRules", "behavior": "allow", "destination": "session",
                "rules": rules })
        };
        let updates = match how {
            "suggested" => shown.clone(),
            "doubled" => json!([update(json!([rule, rule]))]),
            _ => json!([update(json!([rule])), update(json!([rule, rule]))]),
        };
        let answer = match how {
            "remember" => json!({ "requestId": id, "behavior": "allow", "remember": "session" }),
            _ => json!({ "requestId": id, "behavior": "allow", "updatedPermissions": updates }),
        };
        assert_eq!(settle(&session, answer).await, Ok(()));
        reader.turn_end().await;
        // The same file is not asked about again. Another file is, and so is anything that is not an edit.
        prompt(&session, "/write a y\n/say again").await;
        let end = reader
            .until(|kind| {
                matches!(kind, EventKind::ToolCompleted(_) | EventKind::RequestSettled(_))
            })
            .await;
        let EventKind::RequestSettled(settled) = &end.kind else { panic!("{end:?}") };
        assert_eq!((settled.outcome, settled.by), (RequestOutcome::Allowed, SettledBy::Policy));
        reader.turn_end().await;
        for asked in ["/write b x", "/write a/b x", "/bash rm a", "/edit b | x | y"] {
            prompt(&session, asked).await;
            let id = reader.request().await;
            let deny = json!({ "requestId": id, "behavior": "deny" });
            assert_eq!(settle(&session, deny).await, Ok(()), "{asked}");
            reader.turn_end().await;
        }
        stop(&session).await;
        let told = std::fs::read_to_string(gateway.home.path("stdin.log")).expect("a log");
        assert!(!told.contains("updatedPermissions") && !told.contains("acceptEdits"), "{told}");
    }
}

/// A mode in an answer is set in the gateway; the agent stays in the mode that asks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_mode_in_an_answer_is_the_gateways() {
    let gateway = overheard().await;
    let session = gateway.start("/write a x\n/write b x\n/bash touch c").await;
    let mut reader = gateway.reader(&session).await;
    let id = reader.request().await;
    let mode = json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }]);
    let answer = json!({ "requestId": id, "behavior": "allow", "updatedPermissions": mode });
    assert_eq!(settle(&session, answer).await, Ok(()));
    // The policy allows the next edit, but not a command.
    let request = loop {
        let request = next_request(&mut reader).await;
        if request.tool_name.as_ref().is_some_and(|name| *name == *"Bash") {
            break request;
        }
    };
    let summary = gateway.hub.summary(session.id()).await.expect("a summary");
    assert_eq!(summary.approval_mode, Some(ApprovalMode::AutoEdit));
    let deny = json!({ "requestId": request.request_id.to_string(), "behavior": "deny" });
    assert_eq!(settle(&session, deny).await, Ok(()));
    stop(&session).await;
    let told = std::fs::read_to_string(gateway.home.path("stdin.log")).expect("a log");
    assert!(!told.contains(r#""mode":"acceptEdits""#), "{told}");
}

/// The approval mode changes what the policy does, never what the agent does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_mode_that_is_configured_is_the_gateways() {
    let gateway = overheard().await;
    let session = gateway.start("/say hi").await;
    let mut reader = gateway.reader(&session).await;
    reader.turn_end().await;
    for change in [
        Configure { approval_mode: Some(ApprovalMode::AutoEdit), ..Configure::default() },
        Configure { permission_mode: Some("acceptEdits".to_owned()), ..Configure::default() },
        Configure { permission_mode: Some("bypassPermissions".to_owned()), ..Configure::default() },
    ] {
        session.send(Command::Configure(change)).await.expect("accepted");
        prompt(&session, "/write a x").await;
        let event = reader.until(|kind| matches!(kind, EventKind::RequestSettled(_))).await;
        let EventKind::RequestSettled(settled) = event.kind else { panic!("another kind") };
        assert_eq!((settled.outcome, settled.by), (RequestOutcome::Allowed, SettledBy::Policy));
        reader.turn_end().await;
        // A protected file is asked about unless the mode allows everything.
        let is_bypass = session.summary().approval_mode == Some(ApprovalMode::AutoAll);
        if !is_bypass {
            prompt(&session, "/write .git/config x").await;
            let id = reader.request().await;
            let deny = json!({ "requestId": id, "behavior": "deny" });
            assert_eq!(settle(&session, deny).await, Ok(()));
            reader.turn_end().await;
        }
    }
    stop(&session).await;
    let told = std::fs::read_to_string(gateway.home.path("stdin.log")).expect("a log");
    for mode in [r#""mode":"acceptEdits""#, r#""mode":"bypassPermissions""#] {
        assert!(!told.contains(mode), "{told}");
    }
}

/// A changed input is judged like the original: if a rule denies it, the answer is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_changed_input_is_judged() {
    let gateway = Gateway::new().await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    let config =
        SessionConfig { blocked_tools: rules(&["Bash(rm:*)"]), ..SessionConfig::default() };
    let new = demo(&gateway, "/bash touch first", config);
    let session = gateway.hub.start(new).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    let id = reader.request().await;
    let changed = |command: &str| json!({ "requestId": id, "behavior": "allow", "updatedInput": { "command": command } });
    assert_eq!(settle(&session, changed("rm -rf .")).await, Err(ErrorCode::Forbidden));
    let raw = json!({ "behavior": "allow", "updatedInput": { "command": "rm -rf ." } });
    let raw = json!({ "requestId": id, "hookOutput": raw });
    assert_eq!(settle(&session, raw).await, Err(ErrorCode::Forbidden));
    let odd = json!({ "requestId": id,
        "hookOutput": { "behavior": "allow", "updated_input": { "command": "ls" } } });
    assert_eq!(settle(&session, odd).await, Err(ErrorCode::InvalidMessage));
    assert_eq!(settle(&session, changed("touch second")).await, Ok(()));
    reader.turn_end().await;
    stop(&session).await;
    assert!(work.join("second").exists() && !work.join("first").exists());
}

/// The same for inputs that a hook changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_what_a_hook_changes_is_judged() {
    let gateway = Gateway::new().await;
    let hooks: SessionConfig =
        serde_json::from_value(json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash" }] } }))
            .expect("a config");
    let config = SessionConfig { blocked_tools: rules(&["Bash(rm:*)"]), ..hooks };
    let session =
        gateway.hub.start(demo(&gateway, "/bash touch first", config)).await.expect("a session");
    let mut reader = gateway.reader(&session).await;
    let request = next_request(&mut reader).await;
    assert_eq!(request.callback_id.as_ref().map(|id| id.to_string()).as_deref(), Some("hook_0"));
    let id = request.request_id.to_string();
    let output = |command: &str| {
        let output = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
            "permissionDecision": "allow", "updatedInput": { "command": command } } });
        json!({ "requestId": id, "hookOutput": output })
    };
    assert_eq!(settle(&session, output("rm -rf .")).await, Err(ErrorCode::Forbidden));
    assert_eq!(settle(&session, output("touch second")).await, Ok(()));
    reader.turn_end().await;
    stop(&session).await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    assert!(work.join("second").exists() && !work.join("first").exists());
}

/// However fast the agent is, no tool runs beyond the limit, whether the agent asks about it or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_limit_holds_before_the_next_tool() {
    let gateway = Gateway::new().await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    std::fs::write(work.join("read"), "x").expect("a file");
    for (round, on_limit) in [OnLimit::Ask, OnLimit::Fail].into_iter().enumerate() {
        for (number, text) in
            ["/read read\n/read read\n/read read", "/bash touch N1\n/bash touch N2"]
                .into_iter()
                .enumerate()
        {
            let name = format!("made-{round}-{number}-");
            let config = SessionConfig {
                approval_mode: Some(ApprovalMode::AutoAll),
                max_turns: Some(1),
                on_limit: Some(on_limit),
                ..SessionConfig::default()
            };
            let new = demo(&gateway, &text.replace('N', &name), config);
            let session = gateway.hub.start(new).await.expect("a session");
            let mut reader = gateway.reader(&session).await;
            if on_limit == OnLimit::Ask {
                let limit = |kind: &EventKind<'_>| matches!(kind, EventKind::RequestRaised(request) if request.request_id.decode().starts_with("limit-"));
                let raised = reader.until(limit).await;
                let EventKind::RequestRaised(raised) = raised.kind else { panic!("another kind") };
                let deny =
                    json!({ "requestId": raised.request_id.to_string(), "behavior": "deny" });
                assert_eq!(settle(&session, deny).await, Ok(()));
            }
            let end = reader.turn_end().await;
            let EventKind::TurnFailed(failed) = &end.kind else { panic!("{end:?}") };
            assert_eq!(failed.reason, TurnFailure::MaxTurns, "{text}");
            stop(&session).await;
            let events = gateway.events(&session).await;
            let ran = |event: &&Event<'_>| matches!(event.kind, EventKind::ToolCompleted(_));
            assert_eq!(events.iter().filter(ran).count(), 1, "{on_limit:?} {text}");
            assert!(!work.join(format!("{name}2")).exists(), "{on_limit:?} {text}");
        }
    }
}

/// The same for budgets: what the agent has reported by then counts, in its first turn and later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_budget_holds_before_the_next_tool() {
    let gateway = Gateway::new().await;
    let work = std::path::PathBuf::from(gateway.config().working_directory.expect("a directory"));
    let first = "/say hello";
    let session = gateway.start(first).await;
    gateway.reader(&session).await.turn_end().await;
    let summary = session.summary();
    stop(&session).await;
    let (cost, tokens) = (summary.cost_usd.expect("a cost"), summary.usage.total_tokens);
    for (number, (max_budget_usd, max_budget_tokens, is_later)) in [
        (Some(1e-9), None, false),
        (None, Some(1), false),
        (Some(cost + 1e-9), None, true),
        (None, Some(tokens + 1), true),
    ]
    .into_iter()
    .enumerate()
    {
        for on_limit in [OnLimit::Ask, OnLimit::Fail] {
            let name = format!("budget-{number}-{on_limit:?}");
            let config = SessionConfig {
                approval_mode: Some(ApprovalMode::AutoAll),
                max_budget_usd,
                max_budget_tokens,
                on_limit: Some(on_limit),
                ..SessionConfig::default()
            };
            let call = format!("/bash touch {name}");
            let text = if is_later { first } else { call.as_str() };
            let session = gateway.hub.start(demo(&gateway, text, config)).await.expect("a session");
            let mut reader = gateway.reader(&session).await;
            if is_later {
                let end = reader.turn_end().await;
                assert!(matches!(end.kind, EventKind::TurnCompleted(_)), "{name}: {end:?}");
                prompt(&session, &call).await;
            }
            if on_limit == OnLimit::Ask {
                let limit = |kind: &EventKind<'_>| matches!(kind, EventKind::RequestRaised(request) if request.request_id.decode().starts_with("limit-"));
                let raised = reader.until(limit).await;
                let EventKind::RequestRaised(raised) = raised.kind else { panic!("another kind") };
                let deny =
                    json!({ "requestId": raised.request_id.to_string(), "behavior": "deny" });
                assert_eq!(settle(&session, deny).await, Ok(()), "{name}");
            }
            let end = reader.turn_end().await;
            let EventKind::TurnFailed(failed) = &end.kind else { panic!("{name}: {end:?}") };
            assert_eq!(failed.reason, TurnFailure::Budget, "{name}");
            stop(&session).await;
            assert!(!work.join(&name).exists(), "{name}");
        }
    }
}

/// The demo agent has no sandbox, and the refusal says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a_sandbox_that_is_not_there_is_refused() {
    let gateway = Gateway::new().await;
    for (mode, name) in [
        (SandboxMode::WorkspaceWrite, "sandboxMode workspaceWrite"),
        (SandboxMode::ReadOnly, "sandboxMode readOnly"),
    ] {
        let config = SessionConfig { sandbox_mode: Some(mode), ..SessionConfig::default() };
        let error = gateway.hub.start(demo(&gateway, "/say hi", config)).await.err();
        let error = error.expect("a refusal");
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains("demo") && error.message.contains(name), "{error}");
    }
}
