//! Bounds that would be too long for a script.

use agentwire_dialects::backend::Backend;
use agentwire_dialects::front::{Effect, Front as _, GatewayReply, Outbox, WATCHED};
use agentwire_protocol::{AgentType, SessionId};
use serde_json::{Value, json};

use crate::front::{SESSION, summary};
use crate::script::Stage;

/// A stage after these lines.
fn stage(lines: &[&str]) -> Stage {
    let mut stage = Stage::default();
    for line in lines {
        stage.step(line).expect("a line");
    }
    stage
}

fn say(stage: &mut Stage, who: &str, what: &Value) -> Vec<String> {
    stage.step(&format!("{who}> {what}")).expect("a line")
}

fn last_event(came: &[String], name: &str) -> Value {
    let last = came.iter().rfind(|came| came.starts_with("log<")).expect("an event");
    let fields = last.strip_prefix(&format!("log< {name} ")).expect("an event of that type");
    crate::script::json(fields)
}

/// Beyond the limit of open requests, a request is denied at once: nobody would answer it.
fn too_many_are_denied(
    stage: &mut Stage,
    ask: impl Fn(u32) -> Value,
    denial: impl Fn(u32) -> String,
) {
    for id in 0..1024 {
        let came = say(stage, "agent", &ask(id));
        assert!(came.iter().any(|came| came.starts_with("log< requestRaised")), "{came:?}");
        assert!(!came.iter().any(|came| came.starts_with("agent<")), "{came:?}");
    }
    for id in 1024..1100 {
        let came = say(stage, "agent", &ask(id));
        assert!(!came.iter().any(|came| came.starts_with("log< requestRaised")), "{came:?}");
        assert_eq!(last_event(&came, "error")["code"], "overloaded");
        let sent: Vec<_> = came.iter().filter(|came| came.starts_with("agent<")).collect();
        assert_eq!(sent, [&denial(id)]);
    }
}

#[test]
fn claude_asks_too_much() {
    let ask = |id| {
        json!({ "type": "control_request", "request_id": format!("r{id}"), "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" },
            "tool_use_id": format!("t{id}") } })
    };
    let denial = |id| {
        format!(
            r#"agent< {{"type":"control_response","response":{{"subtype":"success","request_id":"r{id}","response":{{"behavior":"deny","message":"too many requests are open, this one was denied","toolUseID":"t{id}"}}}}}}"#
        )
    };
    too_many_are_denied(&mut stage(&["session> claude"]), ask, denial);
}

#[test]
fn codex_asks_too_much() {
    let mut stage = stage(&[
        "session> codex",
        r#"agent> {"id":1,"result":{}}"#,
        r#"agent> {"id":2,"result":{"thread":{"id":"t"},"approvalPolicy":"untrusted"}}"#,
        r#"client> {"command":"prompt","prompt":"go"}"#,
        r#"agent> {"id":3,"result":{"turn":{"id":"u1"}}}"#,
        r#"agent> {"method":"turn/started","params":{"threadId":"t","turn":{"id":"u1"}}}"#,
    ]);
    let ask = |id| {
        json!({ "id": id, "method": "item/commandExecution/requestApproval", "params": {
            "threadId": "t", "turnId": "u1", "itemId": format!("c{id}"), "command": "ls" } })
    };
    too_many_are_denied(&mut stage, ask, overloaded);
}

#[test]
fn an_acp_agent_asks_too_much() {
    let ask = |id| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": { "toolCallId": format!("t{id}"), "title": "touch x" },
            "options": [{ "optionId": "once", "name": "Once", "kind": "allow_once" }] } })
    };
    too_many_are_denied(&mut stage(&ACP_IN_A_TURN), ask, overloaded);
}

const ACP_IN_A_TURN: [&str; 4] = [
    r#"session> acp {"config":{"workingDirectory":"/w"}}"#,
    r#"agent> {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#,
    r#"agent> {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#,
    r#"client> {"command":"prompt","prompt":"hi"}"#,
];

/// The JSON-RPC error for a request beyond the limit.
fn overloaded(id: u32) -> String {
    format!(
        r#"agent< {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"too many requests are open, this one was denied"}}}}"#
    )
}

#[test]
fn claude_hangs_and_can_be_interrupted_and_stopped() {
    let mut stage = stage(&["session> claude"]);
    let query = json!({ "command": "query", "method": "getUsage", "args": [] });
    for _ in 0..1024 {
        assert_eq!(say(&mut stage, "client", &query).len(), 1);
    }
    let came = say(&mut stage, "client", &query);
    assert!(came[0].starts_with("client< 1025 refused: overloaded:"), "{came:?}");
    for command in ["interrupt", "stop"] {
        let came = say(&mut stage, "client", &json!({ "command": command }));
        let sent = came.iter().filter(|came| came.starts_with("agent< {")).count();
        assert_eq!(sent, 1, "{came:?}");
    }
}

/// Of a long input only the path is remembered, and the result supplies the rest.
#[test]
fn claude_calls_with_a_long_input() {
    let mut stage = stage(&["session> claude"]);
    let mut call = |name: &str, input: &Value, told: &Value| {
        let id = format!("{name}-{}", input.to_string().len());
        let call = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        say(&mut stage, "agent", &json!({ "type": "assistant", "message": { "content": [call] } }));
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "ok" });
        let line =
            json!({ "type": "user", "message": { "content": [result] }, "tool_use_result": told });
        say(&mut stage, "agent", &line)
    };
    for size in [10, 100_000] {
        let text = "a".repeat(size);
        let write = json!({ "file_path": "/f", "content": text });
        let edit = json!({ "file_path": "/f", "old_string": text, "new_string": "b" });
        let edits =
            json!({ "file_path": "/f", "edits": [{ "old_string": text, "new_string": "b" }] });
        for (name, input, field) in
            [("Write", write, "after"), ("Edit", edit, "diff"), ("MultiEdit", edits, "diff")]
        {
            let changed = last_event(&call(name, &input, &json!("ok")), "fileChanged");
            assert_eq!(changed["filePath"], "/f");
            assert_eq!(changed.get(field).is_some(), size == 10, "{name}");
        }
        let todos = json!([{ "content": text, "status": "pending" }]);
        let told = json!({ "newTodos": todos });
        let plan = last_event(&call("TodoWrite", &json!({ "todos": todos }), &told), "planUpdated");
        assert_eq!(plan["entries"][0]["content"], json!(text));
    }
}

/// Of a long input only the path is remembered.
#[test]
fn gemini_calls_with_a_long_input() {
    let long = "y".repeat((64 << 10) + 1);
    for (name, input, field) in [
        ("write_file", json!({ "file_path": "/a", "content": "y" }), Some("after")),
        ("write_file", json!({ "file_path": "/a", "content": long }), None),
        (
            "replace",
            json!({ "file_path": "/a", "old_string": "x", "new_string": "y" }),
            Some("diff"),
        ),
        ("replace", json!({ "file_path": "/a", "old_string": long, "new_string": "y" }), None),
    ] {
        let mut stage = stage(&["session> gemini"]);
        let call =
            json!({ "type": "tool_use", "tool_name": name, "tool_id": "t", "parameters": input });
        say(&mut stage, "agent", &call);
        let result = json!({ "type": "tool_result", "tool_id": "t", "status": "success" });
        let changed = last_event(&say(&mut stage, "agent", &result), "fileChanged");
        assert_eq!(changed["filePath"], "/a");
        for kept in ["after", "diff"] {
            assert_eq!(changed[kept].is_string(), field == Some(kept), "{name}: {kept}");
        }
    }
}

/// The memory for an open call is bounded; its last update is reported whole.
#[test]
fn an_acp_agent_shows_a_long_change() {
    let shows = |status: &str, text: Option<&str>| {
        let mut call =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status });
        if let Some(text) = text {
            call["content"] =
                json!([{ "type": "diff", "path": "/a", "oldText": "x", "newText": text }]);
        }
        let params = json!({ "sessionId": "s", "update": call });
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
    };
    let long = "y".repeat((64 << 10) + 1);
    for (shown, finished, after) in
        [(&*long, None, None), ("y", None, Some("y")), (&*long, Some(&*long), Some(&*long))]
    {
        let mut stage = stage(&ACP_IN_A_TURN);
        say(&mut stage, "agent", &shows("in_progress", Some(shown)));
        let came = say(&mut stage, "agent", &shows("completed", finished));
        let changed = last_event(&came, "fileChanged");
        assert_eq!(changed["filePath"], "/a");
        assert_eq!(changed["after"].as_str(), after);
        assert_eq!(changed["diff"].is_string(), after.is_some());
        assert_eq!(changed["before"].is_string(), after.is_some());
    }
}

/// A front refuses calls beyond its limit, except those that let others finish.
#[test]
fn a_client_of_json_rpc_calls_too_much() {
    let mut stage = stage(&["front> jsonrpc"]);
    let list = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "session/list" });
    let interrupt = |id: u32| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "session/interrupt",
            "params": { "sessionId": "11111111-1111-4111-8111-111111111111" } })
    };
    let is_asked = |came: &[String]| matches!(came, [one] if one.starts_with("gateway< "));
    let overloaded =
        |id: u32| format!(r#"client< {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"#);
    for id in 0..256 {
        assert!(is_asked(&say(&mut stage, "client", &list(id))), "{id}");
    }
    let came = say(&mut stage, "client", &list(256));
    assert!(came.len() == 1 && came[0].starts_with(&overloaded(256)), "{came:?}");
    assert!(is_asked(&say(&mut stage, "client", &interrupt(257))));
    let came = stage.step("gateway> 1 sessions []").expect("a line");
    assert_eq!(came, [r#"client< {"jsonrpc":"2.0","id":0,"result":{"sessions":[]}}"#]);
    // The call that lets others finish has taken the free place.
    let came = say(&mut stage, "client", &list(258));
    assert!(came.len() == 1 && came[0].starts_with(&overloaded(258)), "{came:?}");
    assert!(is_asked(&say(&mut stage, "client", &interrupt(259))));
}

#[test]
fn pages_make_a_batch_of_json_rpc_too_long() {
    let mut stage = stage(&["front> jsonrpc"]);
    let page = |id: u64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "session/events",
            "params": { "sessionId": "11111111-1111-4111-8111-111111111111" } })
    };
    say(&mut stage, "client", &json!([page(1), page(2), page(3)]));
    let events = json!({ "events": [format!("\"{}\"", "x".repeat(8 << 20))], "next": 1 });
    for call in 1..3 {
        assert!(
            stage.step(&format!("gateway> {call} events {events}")).expect("a line").is_empty()
        );
    }
    let came = stage.step(&format!("gateway> 3 events {events}")).expect("a line");
    let [said] = came.as_slice() else { panic!("{} lines", came.len()) };
    let said = crate::script::json(said.strip_prefix("client< ").expect("replies"));
    let codes: Vec<&Value> =
        said.as_array().expect("replies").iter().map(|reply| &reply["error"]["code"]).collect();
    assert_eq!(codes, [&json!(null), &json!(-32001), &json!(-32001)]);
    // The next batch has room again.
    say(&mut stage, "client", &json!([page(4)]));
    let came = stage.step(r#"gateway> 4 events {"events":[],"next":0}"#).expect("a line");
    let whole =
        r#"client< [{"jsonrpc":"2.0","id":4,"result":{"events":[],"next":0,"resume":"exact"}}]"#;
    assert_eq!(came, [whole]);
}

/// What waits for a session to start is bounded: 64 MiB.
#[test]
fn a_client_of_claude_says_too_much_before_its_session_starts() {
    let mut stage = stage(&["front> claude"]);
    let request = json!({ "subtype": "get_settings", "x": "x".repeat(1 << 20) });
    let line = json!({ "type": "control_request", "request_id": "r", "request": request });
    for _ in 0..63 {
        assert_eq!(say(&mut stage, "client", &line), [""; 0]);
    }
    for _ in 63..70 {
        let error = r#"client< {"type":"control_response","response":{"error":"too much input before the session runs; wait for answers","request_id":"r","subtype":"error"}}"#;
        assert_eq!(say(&mut stage, "client", &line), [error]);
    }
}

const BACKEND_SESSION: [&str; 3] = [
    "front> backend",
    r#"client> {"type":"session.create","id":"c","payload":{"prompt":"hi"}}"#,
    "gateway> 1 started {}",
];

/// What waits for a session to be resumed is bounded: 16 MiB.
#[test]
fn a_client_of_the_backend_says_too_much_to_a_session_that_is_over() {
    let mut stage = stage(&BACKEND_SESSION);
    for line in [r#"log> sessionEnded {"reason":"completed"}"#, "log> (the session is over)"] {
        assert_eq!(stage.step(line).expect("a line"), [""; 0]);
    }
    let mut send = |id: &str, message: &str| {
        let payload = json!({ "message": message });
        let send =
            json!({ "type": "session.send", "id": id, "session_id": SESSION, "payload": payload });
        say(&mut stage, "client", &send)
    };
    let long = "x".repeat(9 << 20);
    let came = send("s1", "again");
    assert!(matches!(&*came, [one] if one.starts_with("gateway< 2 start ")), "{came:?}");
    assert_eq!(send("s2", &long), [""; 0]);
    let came = send("s3", &long);
    let [refused] = &*came else { panic!("{} lines", came.len()) };
    let error = crate::script::json(refused.strip_prefix("client< ").expect("a message"));
    assert_eq!((&error["type"], &error["id"]), (&json!("error"), &json!("s3")));
    assert_eq!(error["payload"]["code"], "SDK_ERROR");
    let came = stage.step(r#"gateway> 2 started {"after":4}"#).expect("a line");
    let [follow, prompt] = &*came else { panic!("{} lines", came.len()) };
    assert_eq!(*follow, format!("gateway< follow {SESSION} after 4"));
    assert!(prompt.starts_with(&format!("gateway< 3 {SESSION} ")) && prompt.contains(&long));
}

#[test]
fn of_sessions_of_the_backend_that_are_over_the_last_are_kept() {
    let (mut front, mut out) = (Backend::new(AgentType::Demo), Outbox::default());
    for number in 0..1030 {
        front.on_line(br#"{"type":"session.create","payload":{"prompt":""}}"#, &mut out);
        let Some(Effect::Call(call, _)) = out.take().pop() else { panic!("no session is started") };
        let id = format!("s{number}");
        let session = Box::new(summary(&json!({ "id": id })));
        front.on_reply(call, Ok(GatewayReply::Started { session, after: 0 }), &mut out);
        front.on_end(&SessionId::from(id), &mut out);
        out.take();
    }
    let mut goes_on = |id: &str| {
        let send =
            json!({ "type": "session.send", "session_id": id, "payload": { "message": "x" } });
        front.on_line(send.to_string().as_bytes(), &mut out);
        matches!(out.take().as_slice(), [Effect::Call(..)])
    };
    assert!(!goes_on("s5") && goes_on("s6") && goes_on("s1029"));
}

#[test]
fn a_page_of_insights_has_too_many_sessions() {
    let create = json!({ "type": "session.create", "payload": { "prompt": "x" } });
    let input = json!({ "type": "user.input", "payload": { "session_id": SESSION, "text": "x" } });
    let mut stage = stage(&["front> insights"]);
    let is_asked = |came: &[String]| matches!(came, [one] if one.starts_with("gateway< "));
    let is_refused = |came: &[String], code: &str| {
        let code = format!(r#""code":"{code}""#);
        matches!(came, [one] if one.starts_with("client< ") && one.contains(&code))
    };
    for _ in 0..WATCHED {
        assert!(is_asked(&say(&mut stage, "client", &create)));
    }
    stage.step("gateway> 1 started {}").expect("a line");
    assert!(is_refused(&say(&mut stage, "client", &create), "SESSION_CREATE_FAILED"));
    // An ended session makes room for another, and then has no room to resume.
    stage.step("log> (the session is over)").expect("a line");
    assert!(is_asked(&say(&mut stage, "client", &create)));
    assert!(is_refused(&say(&mut stage, "client", &input), "INPUT_FAILED"));
}

/// Of an endless block only a limited part is held, and no line is longer.
#[test]
fn a_long_block_is_told_in_parts() {
    let mut stage = stage(&[
        "front> messages",
        r#"log> sessionStarted {"agentType":"acp"}"#,
        r#"log> turnStarted {"turnNumber":1}"#,
    ]);
    let chunk = json!({ "content": "x".repeat(1 << 20), "isComplete": false });
    let chunk = format!("log> textChunk {chunk}");
    let mut came: Vec<String> = Vec::new();
    for _ in 0..20 {
        came.extend(stage.step(&chunk).expect("a line"));
    }
    let end = r#"log> turnCompleted {"turnNumber":1,"usage":{}}"#;
    came.extend(stage.step(end).expect("a line"));
    assert!(came.iter().all(|line| line.len() < 9 << 20));
    let lines = came.iter().map(|line| line.strip_prefix("client< ").expect("a message"));
    let lines: Vec<Value> = lines.map(crate::script::json).collect();
    let said = lines.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str());
    let said: Vec<usize> = said.map(str::len).collect();
    assert_eq!(said, [8 << 20, 8 << 20, 4 << 20]);
}
