//! The life cycle, options and methods of sessions.

use serde_json::{Value, json};

use crate::backend::client::{Client, types};

/// The specification's session lifecycle.
#[test]
fn a_session_lives_goes_on_and_is_killed() {
    let mut client = Client::new();
    let session = client.create("/say hello\n/bash echo hi", &json!({}));
    let mut messages = Vec::new();
    let callback = loop {
        let frame = client.frame();
        assert_eq!(frame["session_id"], session.as_str());
        if frame["type"] == "callback.request" {
            break frame;
        }
        messages.push(frame["payload"].clone());
    };
    assert_eq!(types(&messages), ["system", "assistant", "assistant"]);
    let init = messages.iter().find(|message| message["subtype"] == "init").expect("an init");
    assert_eq!(init["session_id"], session.as_str(), "the id in the messages is the session's");
    assert_eq!(callback["payload"]["callback_type"], "can_use_tool");
    assert_eq!(callback["payload"]["tool_name"], "Bash");
    client.answer(
        &callback,
        &json!({ "behavior": "allow", "updated_input": { "command": "echo ho" } }),
    );
    let rest = client.turn();
    assert_eq!(types(&rest), ["user", "result"]);
    assert_eq!(rest[0]["tool_use_result"]["stdout"], "ho");
    client.say("session.send", "s", &session, &json!({ "message": "/say turn {turns}" }));
    assert_eq!(client.result(), "turn 2");
    client.kill(&session);
    client.say("session.send", "s", &session, &json!({ "message": "hi" }));
    assert_eq!(client.next("error")["payload"]["code"], "SESSION_NOT_FOUND");
    client.finish();
}

#[test]
fn every_option_is_taken() {
    let mut client = Client::new();
    let more = client.work().join("more");
    std::fs::create_dir(&more).expect("a directory");
    let session = client.create(
        "/say {model} {mode} {system}",
        &json!({
            "agent": "demo", "model": "m-1", "permission_mode": "acceptEdits",
            "allowed_tools": ["Bash(echo:*)"], "disallowed_tools": ["WebFetch"],
            "system_prompt": { "type": "preset", "preset": "claude_code", "append": "be brief" },
            "max_turns": 10, "max_budget_usd": 5, "max_thinking_tokens": 1000,
            "include_partial_messages": true, "enable_file_checkpointing": true,
            "additional_directories": [more],
            "mcp_servers": {},
            "agents": { "helper": { "description": "helps", "prompt": "help", "tools": ["Read"], "model": "haiku" } },
            "hooks": { "Stop": [{}] },
            "sandbox": { "enabled": false, "network": { "allow_local_binding": true } },
            "setting_sources": ["project"], "betas": ["some-beta"],
            "fallback_model": "m-2",
        }),
    );
    let hook = client.next("callback.request");
    assert_eq!(hook["payload"]["hook_event"], "Stop");
    client.answer(&hook, &json!({}));
    let text = client.result();
    assert!(text.starts_with("m-1 acceptEdits "), "{text}");
    assert!(text.ends_with("be brief"), "{text}");
    client.kill(&session);
    client.finish();
}

#[test]
fn options_act() {
    let mut client = Client::new();
    let session = client.create("/say a b c", &json!({ "include_partial_messages": true }));
    assert!(types(&client.turn()).contains(&"stream_event"));
    client.kill(&session);
    let session = client.create("/say a b c", &json!({}));
    assert!(!types(&client.turn()).contains(&"stream_event"));
    client.kill(&session);
    let session = client.create("/read a\n/read b\n/read c", &json!({ "max_turns": 1 }));
    let last = client.turn().pop().expect("a result");
    assert_eq!(last["subtype"], "error_max_turns", "{last}");
    client.kill(&session);
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let session = client.create(
        r#"/tool StructuredOutput {"n":3}"#,
        &json!({ "output_format": { "type": "json_schema", "schema": schema } }),
    );
    let last = client.turn().pop().expect("a result");
    assert_eq!(last["structured_output"], json!({ "n": 3 }), "{last}");
    client.kill(&session);
    let session = client
        .create("/bash echo yes\n/say {result}", &json!({ "allowed_tools": ["Bash(echo:*)"] }));
    assert_eq!(client.result(), "yes", "what is allowed is not asked");
    client.kill(&session);
    client.finish();
}

fn call(client: &mut Client, session: &str, method: &str, args: &Value) -> Value {
    client.say("query.call", method, session, &json!({ "method": method, "args": args }));
    let result = client.next("query.result");
    assert_eq!((&result["id"], &result["session_id"]), (&json!(method), &json!(session)));
    result["payload"].clone()
}

#[test]
fn the_eight_methods() {
    let mut client = Client::new();
    let options = json!({ "enable_file_checkpointing": true, "permission_mode": "acceptEdits", "model": "m-0" });
    let session = client.create("/say hello", &options);
    let messages = client.turn();
    let prompt = messages.iter().find(|message| message["isReplay"] == true);
    let prompt = prompt.expect("the prompt is repeated")["uuid"].clone();
    for method in ["supportedModels", "supportedCommands", "mcpServerStatus"] {
        let payload = call(&mut client, &session, method, &json!([]));
        assert!(payload["success"] == true && payload["result"].is_array(), "{method}: {payload}");
    }
    let models = call(&mut client, &session, "supportedModels", &json!([]));
    assert!(
        models["result"][0]["value"].is_string() && models["result"][0]["displayName"].is_string()
    );
    assert!(call(&mut client, &session, "accountInfo", &json!([]))["result"].is_object());
    let done = json!({ "success": true, "result": null });
    for (method, args) in [
        ("setModel", json!(["m-1"])),
        ("setPermissionMode", json!(["plan"])),
        ("setMaxThinkingTokens", json!([2000])),
        ("setMaxThinkingTokens", json!([null])),
    ] {
        assert_eq!(call(&mut client, &session, method, &args), done, "{method}");
    }
    client.say("session.send", "s", &session, &json!({ "message": "/say {model} {mode}" }));
    assert_eq!(client.result(), "m-1 plan");
    assert_eq!(call(&mut client, &session, "setModel", &json!([null])), done);
    client.say("session.send", "s", &session, &json!({ "message": "/say {model}" }));
    assert_eq!(client.result(), "m-0");
    let nobody = json!(["00000000-0000-4000-8000-000000000000"]);
    let failed = call(&mut client, &session, "rewindFiles", &nobody);
    assert!(failed["success"] == false && failed["error"].is_string(), "{failed}");
    let rewound = call(&mut client, &session, "rewindFiles", &json!([prompt]));
    assert!(rewound["success"] == true && rewound["result"]["canRewind"] == true, "{rewound}");
    let failed = call(&mut client, &session, "setPermissionMode", &json!(["sideways"]));
    assert!(failed["success"] == false && failed["error"].is_string(), "{failed}");
    client.kill(&session);
    client.finish();
}

#[test]
fn a_turn_is_interrupted_and_the_session_goes_on() {
    let mut client = Client::new();
    let session = client.create("/say before\n/hang", &json!({}));
    while client.next("sdk.message")["payload"]["type"] != "assistant" {}
    client.say("session.interrupt", "i", &session, &json!({}));
    // The answer and the end of the turn may arrive in either order.
    let (mut told, mut ended) = (false, false);
    while !(told && ended) {
        let frame = client.frame();
        told |= frame["type"] == "session.interrupted" && frame["id"] == "i";
        ended |= frame["payload"]["subtype"] == "error_during_execution";
    }
    client.say("session.send", "s", &session, &json!({ "message": "/say on" }));
    assert_eq!(client.result(), "on");
    client.kill(&session);
    client.finish();
}

#[test]
fn many_sessions_share_a_connection() {
    let mut client = Client::new();
    let sessions: Vec<String> = (0..4).map(|_| client.create("", &json!({}))).collect();
    for (number, session) in sessions.iter().enumerate() {
        let message = json!({ "message": format!("/bash echo {number}\n/say {{result}}") });
        client.say("session.send", "s", session, &message);
    }
    let mut open = sessions.len();
    let mut callbacks = std::collections::BTreeSet::new();
    while open > 0 {
        let frame = client.frame();
        let of = frame["session_id"].as_str().expect("a session");
        let number = sessions.iter().position(|session| session == of).expect("one of ours");
        match frame["type"].as_str() {
            Some("callback.request") => {
                assert!(callbacks.insert(frame["id"].to_string()), "ids are unique over sessions");
                let command = format!("echo {number}");
                assert_eq!(frame["payload"]["tool_input"]["command"], command.as_str());
                client.answer(&frame, &json!({ "behavior": "allow" }));
            }
            _ if frame["payload"]["type"] == "result" => {
                assert_eq!(frame["payload"]["result"], number.to_string().as_str());
                open -= 1;
            }
            _ => assert_eq!(frame["type"], "sdk.message", "{frame}"),
        }
    }
    for session in &sessions {
        client.kill(session);
    }
    client.finish();
}

#[test]
fn an_agent_that_died_is_told_and_goes_on() {
    let mut client = Client::new();
    let session = client.create("/stderr last words\n/exit 3", &json!({ "model": "m-1" }));
    let last = client.turn().pop().expect("a result");
    assert_eq!(last["subtype"], "error_during_execution");
    let error = client.next("error");
    assert_eq!(
        (&error["session_id"], &error["payload"]["code"]),
        (&json!(session), &json!("SDK_ERROR"))
    );
    let words = error["payload"]["message"].as_str().expect("a text");
    assert!(words.contains("code 3") && words.contains("last words"), "{words}");
    client.say("session.send", "s", &session, &json!({ "message": "/say {turns} {model}" }));
    assert_eq!(client.result(), "2 m-1", "it is the same session, as it was created");
    client.kill(&session);
    client.finish();
}

#[test]
fn the_end_of_the_client_is_the_end_of_its_sessions() {
    let mut client = Client::new();
    let session = client.create("/bash touch made\n/say after", &json!({}));
    client.next("callback.request");
    let made = client.work().join("made");
    let rest = client.rest();
    assert!(rest.iter().all(|frame| frame["session_id"] == session.as_str()));
    let last = rest.iter().find(|frame| frame["payload"]["type"] == "result").expect("a result");
    assert_eq!(last["payload"]["permission_denials"].as_array().map(Vec::len), Some(1), "{last}");
    assert!(!made.exists(), "silence never allows");
}

#[test]
fn a_message_is_the_agents_own_line() {
    let mut client = Client::new();
    let raw = r#"{"type":"system","subtype":"notice", "n":1e2,"text":"\u2028é"}"#;
    let session = client.create(&format!("/raw {raw}\n/say line\u{2028}separator"), &json!({}));
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains(r#""type":"result""#)) {
        lines.push(client.line());
    }
    let expected = format!(r#"{{"type":"sdk.message","session_id":"{session}","payload":{raw}}}"#);
    assert!(lines.contains(&expected), "{lines:#?}");
    assert!(!lines.concat().contains('\u{2028}'), "some readers split lines there");
    client.kill(&session);
    client.finish();
}

/// A rewind undoes changes to files since a prompt, and removes new files.
#[test]
fn files_are_rewound_to_before_a_prompt() {
    let mut client = Client::new();
    let options =
        json!({ "enable_file_checkpointing": true, "permission_mode": "bypassPermissions" });
    let session = client.create("/write kept.txt one\\n", &options);
    client.turn();
    let here = client.work();
    let prompts = ["/write kept.txt two\\n\n/write new.txt x", "/edit kept.txt | two | three"];
    let mut uuids = Vec::new();
    for prompt in prompts {
        client.say("session.send", "s", &session, &json!({ "message": prompt }));
        let messages = client.turn();
        let replay = messages.iter().find(|message| message["isReplay"] == true);
        uuids.push(replay.expect("the prompt is repeated")["uuid"].clone());
    }
    let read = |name: &str| std::fs::read_to_string(here.join(name)).ok();
    assert_eq!(read("kept.txt").as_deref(), Some("three\n"));
    let dry = call(&mut client, &session, "rewindFiles", &json!([uuids[0], { "dryRun": true }]));
    assert_eq!(dry["result"]["filesChanged"].as_array().map(Vec::len), Some(2), "{dry}");
    assert_eq!(read("kept.txt").as_deref(), Some("three\n"));
    call(&mut client, &session, "rewindFiles", &json!([uuids[1]]));
    assert_eq!(read("kept.txt").as_deref(), Some("two\n"));
    call(&mut client, &session, "rewindFiles", &json!([uuids[0]]));
    assert_eq!((read("kept.txt").as_deref(), read("new.txt")), (Some("one\n"), None));
    client.kill(&session);
    client.finish();
}

#[test]
fn a_session_is_resumed_by_its_id() {
    let mut client = Client::new();
    let session = client.create("/say one", &json!({}));
    client.turn();
    client.kill(&session);
    let resumed = client.create("/say {turns}", &json!({ "resume": session }));
    assert_eq!(resumed, session);
    assert_eq!(client.result(), "2");
    // An unknown id does not start a new conversation: the error names it.
    client.send(&json!({ "type": "session.create", "id": "x", "payload": {
        "prompt": "hi", "options": { "resume": "00000000-0000-4000-8000-000000000000" } } }));
    loop {
        let frame = client.frame();
        if frame["type"] == "error" {
            let message = frame["payload"]["message"].as_str().expect("a text");
            assert!(message.contains("00000000-0000-4000-8000-000000000000"), "{frame}");
            break;
        }
    }
    client.finish();
}
