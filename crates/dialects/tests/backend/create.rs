//! `session.create`, and what cannot be read.

use agentwire_protocol::session::{OnLimit, SystemPrompt};
use agentwire_protocol::{AgentType, ApprovalMode, Command, ErrorCode};
use serde_json::json;

use crate::client::{Client, SESSION};

fn create(options: &str) -> String {
    format!(
        r#"{{"type":"session.create","id":"c1","payload":{{"prompt":"hi","cwd":"/","options":{options}}}}}"#
    )
}

#[test]
fn every_option_reaches_the_session() {
    let mut client = Client::new();
    client.line(&create(
        &json!({
            "model": "m", "permission_mode": "acceptEdits",
            "allowed_tools": ["Read"], "disallowed_tools": ["Bash"],
            "system_prompt": { "type": "preset", "preset": "claude_code", "append": "more" },
            "max_turns": 3, "max_budget_usd": 0.5, "max_thinking_tokens": 1024.0,
            "include_partial_messages": true, "enable_file_checkpointing": true,
            "additional_directories": ["/tmp"],
            "mcp_servers": {
                "one": { "command": "a", "args": [], "env": { "K_EY": "v" } },
                "two": { "type": "http", "url": "http://x", "headers": {} },
            },
            "agents": { "a": { "description": "d", "prompt": "p", "tools": ["Read"], "model": "haiku" } },
            "hooks": { "PreToolUse": [{ "matcher": "Write|Edit" }, {}], "Stop": [{ "timeout": 5 }],
                "PreCompact": [] },
            "sandbox": {
                "enabled": true, "auto_allow_bash_if_sandboxed": false, "excluded_commands": ["git"],
                "network": { "allow_local_binding": true, "allow_unix_sockets": ["/s"] },
                "ignore_violations": { "file": ["/f"] },
            },
            "setting_sources": ["user", "project", "local"], "betas": ["b"],
            "output_format": { "type": "json_schema", "schema": { "type": "object" } },
            "fallback_model": "f",
        })
        .to_string(),
    ));
    let new = client.start_of();
    assert_eq!((new.agent, new.prompt.expect("a prompt").text.as_str()), (AgentType::Demo, "hi"));
    let config = serde_json::to_value(&new.config).expect("JSON");
    assert_eq!(
        config,
        json!({
            "workingDirectory": "/", "model": "m", "approvalMode": "ask",
            "permissionMode": "acceptEdits", "allowedTools": ["Read"], "blockedTools": ["Bash"],
            "systemPrompt": { "type": "preset", "preset": "claude_code", "append": "more" },
            "maxTurns": 3, "maxBudgetUsd": 0.5, "onLimit": "fail", "maxThinkingTokens": 1024,
            "includePartialMessages": true, "enableFileCheckpointing": true,
            "additionalDirectories": ["/tmp"],
            "mcpServers": {
                "one": { "command": "a", "env": { "K_EY": "v" } },
                "two": { "type": "http", "url": "http://x" },
            },
            "agents": { "a": { "description": "d", "prompt": "p", "tools": ["Read"], "model": "haiku" } },
            "hooks": { "PreToolUse": [{ "matcher": "Write|Edit" }, {}], "Stop": [{ "timeout": 5 }] },
            "sandbox": {
                "enabled": true, "autoAllowBashIfSandboxed": false, "excludedCommands": ["git"],
                "network": { "allowLocalBinding": true, "allowUnixSockets": ["/s"] },
                "ignoreViolations": { "file": ["/f"] },
            },
            "settingSources": ["user", "project", "local"], "betas": ["b"],
            "outputFormat": { "type": "json_schema", "schema": { "type": "object" } },
            "fallbackModel": "f",
        })
    );
    client.started(0);
    assert_eq!(
        client.frame(),
        json!({
            "type": "session.created", "id": "c1", "session_id": SESSION,
            "payload": { "sdk_session_id": SESSION },
        })
    );
    assert_eq!(client.frame()["payload"]["isReplay"], true);
}

#[test]
fn what_is_left_out_has_its_default() {
    let mut client = Client::new();
    client.line(
        r#"{"type":"session.create","payload":{"prompt":"","agent":"codex","options":{"model":null,"system_prompt":"be brief"}}}"#,
    );
    let new = client.start_of();
    assert_eq!((new.agent, &new.prompt), (AgentType::Codex, &None));
    let config = new.config;
    assert_eq!(config.approval_mode, Some(ApprovalMode::Ask));
    assert_eq!(config.on_limit, Some(OnLimit::Fail));
    assert_eq!(config.include_partial_messages, Some(false));
    assert_eq!((config.model, config.working_directory), (None, None));
    assert_eq!(config.system_prompt, Some(SystemPrompt::Text("be brief".to_owned())));
    client.started(0);
    // A request without an id has a reply without one.
    assert_eq!(client.frame().get("id"), None);
}

#[test]
fn what_no_session_can_take_is_refused_by_name() {
    let cases = [
        (r#"{"colour":"red"}"#, "options.colour"),
        (r#"{"model":1}"#, "options.model"),
        (r#"{"max_turns":0}"#, "options.max_turns"),
        (r#"{"max_turns":1.5}"#, "options.max_turns"),
        (r#"{"max_budget_usd":-1}"#, "options.max_budget_usd"),
        (r#"{"allowed_tools":"Bash"}"#, "options.allowed_tools"),
        (r#"{"system_prompt":{"type":"other","preset":"x"}}"#, "preset"),
        (r#"{"system_prompt":["preset","claude_code"]}"#, "a text, or an object"),
        (r#"{"max_thinking_tokens":-1}"#, "options.max_thinking_tokens"),
        (r#"{"colours":[]}"#, "options.colours"),
        (r#"{"mcp_servers":{"s":{"type":"sdk","name":"s"}}}"#, "options.mcp_servers"),
        (r#"{"mcp_servers":{"s":{"type":"sdk"}}}"#, "no client can host one"),
        (r#"{"mcp_servers":{"s":{"type":"http"}}}"#, "needs a url"),
        (r#"{"mcp_servers":{"s":{}}}"#, "needs a command"),
        (r#"{"mcp_servers":{"s":{"command":"a","shell":true}}}"#, "shell"),
        (r#"{"mcp_servers":{"s":["stdio","a"]}}"#, "options.mcp_servers"),
        (r#"{"agents":{"a":{"description":"d"}}}"#, "prompt"),
        (r#"{"agents":{"a":{"description":"d","prompt":"p","color":"red"}}}"#, "color"),
        (r#"{"hooks":{"OnLunch":[]}}"#, "OnLunch"),
        (r#"{"hooks":{"Stop":[{"mather":"x"}]}}"#, "mather"),
        (r#"{"hooks":{"PreToolUse":[{"matcher":"("}]}}"#, "no pattern"),
        (r#"{"sandbox":{"enabeld":true}}"#, "enabeld"),
        (r#"{"setting_sources":["global"]}"#, "global"),
        (r#"{"output_format":{"type":"xml","schema":{}}}"#, "json_schema"),
        (r#"{"agent":"nobody"}"#, "nobody"),
        ("[]", "a map"),
    ];
    let mut client = Client::new();
    for (options, names) in cases {
        client.line(&create(options));
        let error = client.error("INVALID_MESSAGE");
        assert_eq!(error["id"], "c1");
        let message = error["payload"]["message"].as_str().expect("a message");
        assert!(message.contains(names), "{options}: {message}");
    }
    client.line(r#"{"type":"session.create","id":"c2","payload":{"prompt":"hi","colour":"red"}}"#);
    assert!(
        client.error("INVALID_MESSAGE")["payload"]["message"]
            .as_str()
            .expect("text")
            .contains("colour")
    );
}

#[test]
fn what_is_empty_is_the_same_as_nothing() {
    let mut client = Client::new();
    client.line(
        &create(
            r#"{"allowed_tools":[],"mcp_servers":{ },"hooks":{},"output_format":{},"sandbox":{},
            "agents":{},"betas":[],"max_thinking_tokens":0,"setting_sources":[]}"#,
        )
        .replace('\n', ""),
    );
    let config = client.start_of().config;
    assert_eq!((config.max_thinking_tokens, &config.setting_sources), (Some(0), &Some(vec![])));
    assert!(config.allowed_tools.is_none() && config.mcp_servers.is_none());
    assert!(config.hooks.is_none() && config.output_format.is_none());
    client.started(0);
    client.frame();
}

#[test]
fn what_the_agent_cannot_take_has_this_wires_name() {
    let mut client = Client::new();
    let cases = [
        (
            "codex cannot take the option maxThinkingTokens",
            "options.max_thinking_tokens: codex cannot take the option max_thinking_tokens",
        ),
        (
            "codex cannot take permissionMode sideways",
            "options.permission_mode: codex cannot take permission_mode sideways",
        ),
        (
            "codex cannot take the option blockedTools",
            "options.disallowed_tools: codex cannot take the option disallowed_tools",
        ),
        (
            "codex cannot take the option agents",
            "options.agents: codex cannot take the option agents",
        ),
        ("the model is not there", "the model is not there"),
    ];
    for (told, shown) in cases {
        client.line(&create("{}"));
        client.failed(ErrorCode::Unsupported, told);
        assert_eq!(client.error("SESSION_CREATE_FAILED")["payload"]["message"], shown);
    }
}

#[test]
fn a_session_that_does_not_start_is_told() {
    let mut client = Client::new();
    client.line(&create("{}"));
    client.failed(ErrorCode::AgentUnavailable, "claude is not installed");
    assert_eq!(
        client.frame(),
        json!({ "type": "error", "id": "c1", "payload": {
            "code": "SESSION_CREATE_FAILED", "message": "claude is not installed",
            "details": { "code": "agentUnavailable" },
        } })
    );
    client.line(&create("{}"));
    client.failed(ErrorCode::InvalidMessage, "no such directory");
    client.error("SESSION_CREATE_FAILED");
}

#[test]
fn what_cannot_be_read_is_told_with_the_id_where_there_is_one() {
    let mut client = Client::with_session();
    for line in ["{", "nonsense", "[]", "3", "null", r#""text""#, r#"["session.create"]"#, "{}"] {
        client.line(line);
        assert_eq!(client.error("INVALID_MESSAGE").get("id"), None, "{line}");
    }
    client.bytes(b"{\"type\":\"\xff\"}");
    client.error("INVALID_MESSAGE");
    client.overlong(70_000_000);
    assert!(
        client.error("INVALID_MESSAGE")["payload"]["message"]
            .as_str()
            .expect("text")
            .contains("70000000")
    );
    let with_id = [
        r#"{"type":"session.nap","id":"x"}"#,
        r#"{"type":7,"id":"x"}"#,
        r#"{"id":"x"}"#,
        r#"{"type":"session.create","id":"x"}"#,
        r#"{"type":"session.create","id":"x","payload":["hi"]}"#,
        r#"{"type":"session.create","id":"x","payload":{"prompt":1}}"#,
        r#"{"type":"session.send","id":"x","payload":{"message":"hi"}}"#,
        r#"{"type":"session.send","id":"x","session_id":5,"payload":{"message":"hi"}}"#,
        r#"{"type":"session.interrupt","id":"x","payload":[]}"#,
        r#"{"type":"query.call","id":"x","session_id":"s","payload":{"args":[]}}"#,
        r#"{"type":"callback.response","id":"x","payload":3}"#,
    ];
    for line in with_id {
        client.line(line);
        let error = client.frame();
        assert_eq!(
            (&error["type"], &error["id"]),
            (&"error".into(), &"x".into()),
            "{line}: {error}"
        );
    }
    client.say("session.send", "x", r#"{"message":""}"#);
    client.error("INVALID_MESSAGE");
    // An id that is not a text cannot be given back as one.
    client.line(r#"{"type":"session.create","id":7,"payload":{"prompt":"hi"}}"#);
    assert_eq!(client.error("INVALID_MESSAGE").get("id"), None);
    client.line("  ");
    client.line("");
}

#[test]
fn only_sessions_of_this_client_are_there() {
    let mut client = Client::new();
    let other = "22222222-2222-4222-8222-222222222222";
    for (kind, payload) in [
        ("session.send", r#"{"message":"hi"}"#),
        ("session.interrupt", "{}"),
        ("session.kill", "{}"),
        ("query.call", r#"{"method":"accountInfo","args":[]}"#),
        ("callback.response", r#"{"behavior":"allow"}"#),
    ] {
        client.line(&format!(
            r#"{{"type":"{kind}","id":"x","session_id":"{other}","payload":{payload}}}"#
        ));
        let error = client.error("SESSION_NOT_FOUND");
        assert_eq!((&error["id"], &error["session_id"]), (&"x".into(), &other.into()));
    }
}

/// `options.resume` names a session of the log by the id that `session.created` gave, else one that only the
/// agent knows.
#[test]
fn a_session_is_resumed_by_its_id() {
    let mut client = Client::new();
    let create = json!({ "type": "session.create", "id": "c",
        "payload": { "prompt": "hi", "cwd": "/", "options": { "resume": SESSION } } });
    client.line(&create.to_string());
    let new = client.start_of();
    assert_eq!(new.resume.as_ref().map(|id| id.as_str()), Some(SESSION));
    assert_eq!(new.native_resume, None);
    client.failed(ErrorCode::SessionNotFound, "there is no such session");
    let new = client.start_of();
    assert_eq!((new.resume, new.native_resume.as_deref()), (None, Some(SESSION)));
    client.failed(ErrorCode::SessionNotFound, "no conversation found");
    client.error("SESSION_CREATE_FAILED");
    assert_eq!(client.asks(), 0);
}

/// The client started this program: it may let everything run. The gateway decides, so that rules hold.
#[test]
fn everything_may_run_where_the_client_says_so() {
    let mut client = Client::with_options(r#"{"permission_mode":"bypassPermissions"}"#);
    for (mode, approval, own) in [
        ("bypassPermissions", Some(ApprovalMode::AutoAll), None),
        ("default", Some(ApprovalMode::Ask), None),
        ("plan", None, Some("plan")),
    ] {
        let call = json!({ "method": "setPermissionMode", "args": [mode] });
        client.say("query.call", "q", &call.to_string());
        let Command::Configure(change) = client.command() else { panic!("no change") };
        assert_eq!((change.approval_mode, change.permission_mode.as_deref()), (approval, own));
        client.done("{}");
        assert_eq!(client.frame()["payload"]["success"], true);
    }
}
