//! `query.call`.

use agentwire_protocol::event::{AgentInfo, Status, StatusChanged};
use agentwire_protocol::{Command, Configure, ErrorCode, Json};
use serde_json::{Value, json};

use crate::client::{Client, SESSION};

fn call(client: &mut Client, method: &str, args: &str) {
    client.say("query.call", "q", &format!(r#"{{"method":"{method}","args":{args}}}"#));
}

fn query(method: &str, args: &[&'static str]) -> Command {
    let args = args.iter().map(|text| Json::trusted(*text)).collect();
    Command::Query { method: method.to_owned(), args }
}

fn result(client: &mut Client) -> Value {
    let frame = client.frame();
    assert_eq!(
        (&frame["type"], &frame["id"], &frame["session_id"]),
        (&"query.result".into(), &"q".into(), &SESSION.into())
    );
    frame["payload"].clone()
}

#[test]
fn eight_methods_are_commands() {
    let change = Configure::default();
    let no_model = Command::Configure(Configure { model: Some(None), ..change.clone() });
    let rewind = |dry_run| Command::Rewind { message_id: "u".to_owned(), dry_run };
    let cases = [
        ("supportedModels", "[]", query("supportedModels", &[])),
        ("supportedCommands", "[]", query("supportedCommands", &[])),
        ("mcpServerStatus", "[]", query("mcpServerStatus", &[])),
        ("accountInfo", "[]", query("accountInfo", &[])),
        (
            "setModel",
            r#"["m"]"#,
            Command::Configure(Configure { model: Some(Some("m".into())), ..change.clone() }),
        ),
        ("setModel", "[null]", no_model.clone()),
        ("setModel", "[]", no_model),
        (
            "setPermissionMode",
            r#"["plan"]"#,
            Command::Configure(Configure {
                permission_mode: Some("plan".into()),
                ..change.clone()
            }),
        ),
        (
            "setMaxThinkingTokens",
            "[7]",
            Command::Configure(Configure { max_thinking_tokens: Some(Some(7)), ..change.clone() }),
        ),
        (
            "setMaxThinkingTokens",
            "[null]",
            Command::Configure(Configure { max_thinking_tokens: Some(None), ..change }),
        ),
        ("rewindFiles", r#"["u"]"#, rewind(false)),
        ("rewindFiles", r#"["u",{"dryRun":true}]"#, rewind(true)),
        ("rewindFiles", r#"["u",{"dry_run":true}]"#, rewind(true)),
    ];
    let mut client = Client::with_session();
    for (method, args, command) in cases {
        call(&mut client, method, args);
        assert_eq!(client.command(), command, "{method} {args}");
        client.done(r#"{"of":"the agent"}"#);
        let expected =
            if method.starts_with("set") { json!(null) } else { json!({ "of": "the agent" }) };
        assert_eq!(result(&mut client), json!({ "success": true, "result": expected }), "{method}");
    }
}

#[test]
fn a_method_that_fails_says_so_in_its_result() {
    let mut client = Client::with_session();
    for (method, args) in [
        ("setModel", "[1]"),
        ("setPermissionMode", "[]"),
        ("setMaxThinkingTokens", r#"["many"]"#),
        ("setMaxThinkingTokens", "[-1]"),
        ("rewindFiles", "[]"),
    ] {
        call(&mut client, method, args);
        let payload = result(&mut client);
        assert_eq!((&payload["success"], &payload["result"]), (&json!(false), &json!(null)));
        assert!(payload["error"].as_str().expect("words").contains(method), "{payload}");
    }
    call(&mut client, "accountInfo", "[]");
    client.failed(ErrorCode::AgentFailed, "not signed in");
    assert_eq!(
        result(&mut client),
        json!({ "success": false, "result": null, "error": "not signed in" })
    );
}

#[test]
fn a_method_that_is_none_is_an_error() {
    let mut client = Client::with_session();
    call(&mut client, "selfDestruct", "[]");
    let error = client.error("QUERY_METHOD_FAILED");
    assert_eq!((&error["id"], &error["session_id"]), (&"q".into(), &SESSION.into()));
    assert!(error["payload"]["message"].as_str().expect("words").contains("supportedModels"));
}

#[test]
fn what_the_agent_told_answers_where_it_cannot_be_asked() {
    let mut client = Client::with_session();
    let info = AgentInfo {
        models: Some(Json::trusted(
            r#"[{"modelId":"m1","name":"One"},{"value":"m2","displayName":"Two","description":"d"}]"#,
        )),
        commands: Some(Json::trusted(
            r#"[{"name":"compact","description":"d","input":{"hint":"h"}}]"#,
        )),
        mcp_servers: Some(Json::trusted(r#"[{"name":"s","status":"connected"}]"#)),
        account: Some(Json::trusted(r#"{"email":"a@b"}"#)),
        ..AgentInfo::default()
    };
    client.event(StatusChanged::new(Status::Ready).info(info));
    client.said();
    let cases = [
        (
            "supportedModels",
            json!([
                { "modelId": "m1", "name": "One", "value": "m1", "displayName": "One", "description": "" },
                { "value": "m2", "displayName": "Two", "description": "d" },
            ]),
        ),
        (
            "supportedCommands",
            json!([{ "name": "compact", "description": "d", "input": { "hint": "h" }, "argumentHint": "h" }]),
        ),
        ("mcpServerStatus", json!([{ "name": "s", "status": "connected" }])),
        ("accountInfo", json!({ "email": "a@b" })),
    ];
    for (method, expected) in cases {
        call(&mut client, method, "[]");
        client.failed(ErrorCode::Unsupported, "it cannot take the query");
        assert_eq!(result(&mut client), json!({ "success": true, "result": expected }), "{method}");
        // What it would say now is not known if it failed to say it.
        call(&mut client, method, "[]");
        client.failed(ErrorCode::Timeout, "no answer in time");
        assert_eq!(result(&mut client)["success"], false);
    }
}
