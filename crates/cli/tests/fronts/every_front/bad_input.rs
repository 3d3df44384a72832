//! Input that no client should send: each front answers it in its own format, and everything else
//! continues.

use serde_json::{Value, json};

use crate::every_front::examples::{Names, expect, named};
use crate::every_front::program::start;
use crate::recording::DEMO;
use crate::shared::{Ended, Program};
use crate::speaker::front;

/// What a front sends and receives.
struct Answers {
    front: &'static str,
    /// Lines, and the answer to each.
    lines: Vec<(&'static [u8], Value)>,
    /// The answer to a line of more than 64 MiB.
    overlong: Value,
    /// The answer to half a line at the end of the input.
    half: Value,
    /// A session from its start to its first request.
    ask: Vec<Step>,
    settle: Value,
    settled: Value,
    /// What follows a second, identical answer, unless it is ignored, and the end of the turn.
    again: Vec<Value>,
    /// A prompt of the same session that prints `alive`, and the end of its turn.
    alive: Vec<Step>,
}

enum Step {
    Say(Value),
    Hear(Value),
}

use Step::{Hear, Say};

fn try_all(answers: Answers) {
    let title = answers.front;
    let mut program = start(front(title).args, DEMO);
    let work = program.home().work().to_string_lossy().into_owned();
    let mut names = Names::from([("$work".to_owned(), json!(work))]);
    let play = |program: &mut Program, steps: Vec<Step>, names: &mut Names| {
        for step in steps {
            match step {
                Say(frame) => program.say(named(&frame, names)),
                Hear(shown) => expect(program, &[shown], names, title),
            }
        }
    };
    play(&mut program, answers.ask, &mut names);
    // All of this is sent while a request is open, and changes nothing.
    for (line, shown) in &answers.lines {
        assert!(program.bytes(line) && program.bytes(b"\n"));
        expect(
            &mut program,
            std::slice::from_ref(shown),
            &mut names,
            &String::from_utf8_lossy(line),
        );
    }
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        assert!(program.bytes(&chunk));
    }
    assert!(program.bytes(b"\n\r\n\n"));
    expect(&mut program, std::slice::from_ref(&answers.overlong), &mut names, "65 MiB");
    let settle = named(&answers.settle, &names);
    program.say(&settle);
    expect(&mut program, std::slice::from_ref(&answers.settled), &mut names, "the answer");
    program.say(&settle);
    expect(&mut program, &answers.again, &mut names, "a second answer");
    play(&mut program, answers.alive, &mut names);
    assert!(program.bytes(b"{\"half"));
    program.hang_up();
    expect(&mut program, std::slice::from_ref(&answers.half), &mut names, "half a line");
    while program.line().is_some() {}
    assert_eq!(program.end_alone(), Ended { code: Some(0), stderr: String::new() });
}

#[test]
fn unified() {
    let error = |code: &str| json!({ "error": { "code": format!("={code}"), "message": "" } });
    let of = |id: &str, code: &str| json!({ "id": format!("={id}"), "error": { "code": format!("={code}"), "message": "" } });
    try_all(Answers {
        front: "unified",
        lines: vec![
            (b"not json", error("invalidJson")),
            (b"\xff\xfe{}", error("invalidJson")),
            (b"{\"id\":\"n\0\"}", error("invalidJson")),
            (b"[]", error("invalidMessage")),
            (b"{\"id\":\"t\",\"command\":7}", of("t", "invalidMessage")),
            (b"{\"id\":\"p\",\"command\":\"prompt\",\"prompt\":{}}", of("p", "invalidMessage")),
            (b"{\"id\":\"f\",\"command\":\"fly\"}\r", of("f", "unknownMethod")),
            (
                b"{\"id\":\"s\",\"command\":\"stop\",\"sessionId\":\"nobody\"}",
                of("s", "sessionNotFound"),
            ),
            (
                b"{\"id\":\"a\",\"command\":\"attach\",\"sessionId\":\"nobody\"}",
                of("a", "sessionNotFound"),
            ),
        ],
        overlong: error("invalidMessage"),
        half: error("invalidJson"),
        ask: vec![
            Say(json!({ "id": "s", "command": "start", "agentType": "demo",
                "prompt": "/write a.txt x", "config": { "workingDirectory": "$work" } })),
            Hear(json!({ "id": "=s", "reply": { "id": "$session" } })),
            Hear(json!({ "type": "requestRaised", "requestId": "$request" })),
        ],
        settle: json!({ "id": "y", "command": "settle", "sessionId": "$session",
            "requestId": "$request", "behavior": "allow" }),
        settled: json!({ "id": "=y", "reply": {} }),
        again: vec![of("y", "requestSettled"), json!({ "type": "turnCompleted" })],
        alive: vec![
            Say(json!({ "id": "l", "command": "prompt", "sessionId": "$session",
                "prompt": "/say alive" })),
            Hear(json!({ "type": "textChunk", "content": "=alive" })),
            Hear(json!({ "type": "turnCompleted" })),
        ],
    });
}

#[test]
fn claude() {
    let error = |id: &str| {
        json!({ "type": "control_response", "response": {
            "subtype": "error", "request_id": format!("={id}"), "error": "",
        } })
    };
    let prompt = |text: &str| json!({ "type": "user", "message": { "content": text } });
    try_all(Answers {
        front: "claude",
        lines: vec![
            (b"not json", error("")),
            (b"\xff\xfe{}", error("")),
            (b"{\"type\":\"user\0\"}", error("")),
            (b"[]", error("")),
            // An unreadable prompt gets its result after the running turn has its own.
            (
                b"{\"type\":\"user\",\"message\":{\"content\":7}}\r\n{\"type\":\"control_request\",\"request_id\":\"c\"}",
                error("c"),
            ),
            (
                b"{\"type\":\"control_request\",\"request_id\":\"d\",\"request\":{\"subtype\":[]}}",
                error("d"),
            ),
            (
                b"{\"type\":\"control_request\",\"request_id\":\"e\",\"request\":{\"subtype\":\"fly\"}}",
                error("e"),
            ),
            // Unknown messages and answers to unknown requests are ignored.
            (
                b"{\"type\":\"fly\"}\n{\"type\":\"control_response\",\"response\":{\"request_id\":\"x\"}}\n{",
                error(""),
            ),
        ],
        overlong: error(""),
        half: error(""),
        ask: vec![
            Say(prompt("/write a.txt x")),
            Hear(json!({ "type": "control_request", "request_id": "$request",
                "request": { "subtype": "can_use_tool" } })),
        ],
        settle: json!({ "type": "control_response", "response": { "subtype": "success",
            "request_id": "$request", "response": { "behavior": "allow", "updatedInput": {
                "file_path": "a.txt", "content": "x" } } } }),
        settled: json!({ "type": "user", "message": {
            "content": [{ "type": "tool_result", "content": "" }] } }),
        again: vec![
            json!({ "type": "result", "subtype": "success" }),
            json!({ "type": "result", "subtype": "error_during_execution", "errors": [""] }),
        ],
        alive: vec![
            Say(prompt("/say alive")),
            Hear(json!({ "type": "result", "subtype": "success", "result": "=alive" })),
        ],
    });
}

#[test]
fn backend() {
    let error = |code: &str| json!({ "type": "error", "payload": { "code": code, "message": "" } });
    let of = |id: &str, code: &str| {
        json!({ "type": "error", "id": format!("={id}"),
            "payload": { "code": code, "message": "" } })
    };
    let message = |kind: &str| {
        json!({ "type": "sdk.message", "session_id": "$session",
        "payload": { "type": kind } })
    };
    try_all(Answers {
        front: "backend",
        lines: vec![
            (b"not json", error("INVALID_MESSAGE")),
            (b"\xff\xfe{}", error("INVALID_MESSAGE")),
            (b"{\"type\":\"session.kill\0\"}", error("INVALID_MESSAGE")),
            (b"[]", error("INVALID_MESSAGE")),
            (b"{\"type\":7,\"id\":\"t\"}", of("t", "INVALID_MESSAGE")),
            (b"{\"type\":\"fly\",\"id\":\"f\"}\r", of("f", "INVALID_MESSAGE")),
            (
                b"{\"type\":\"session.send\",\"id\":\"s\",\"session_id\":\"nobody\",\"payload\":{\"message\":\"x\"}}",
                of("s", "SESSION_NOT_FOUND"),
            ),
            (
                b"{\"type\":\"session.create\",\"id\":\"c\",\"payload\":{\"prompt\":[]}}",
                of("c", "INVALID_MESSAGE"),
            ),
        ],
        overlong: error("INVALID_MESSAGE"),
        half: error("INVALID_MESSAGE"),
        ask: vec![
            Say(json!({ "type": "session.create", "id": "c",
                "payload": { "prompt": "/write a.txt x", "cwd": "$work" } })),
            Hear(json!({ "type": "session.created", "id": "=c", "session_id": "$session" })),
            Hear(json!({ "type": "callback.request", "id": "$request",
                "payload": { "tool_name": "Write" } })),
        ],
        settle: json!({ "type": "callback.response", "id": "$request", "session_id": "$session",
            "payload": { "behavior": "allow" } }),
        settled: message("user"),
        again: vec![
            json!({ "type": "error", "id": "$request",
                "payload": { "code": "CALLBACK_NOT_FOUND", "message": "" } }),
            message("result"),
        ],
        alive: vec![
            Say(json!({ "type": "session.send", "id": "l", "session_id": "$session",
                "payload": { "message": "/say alive" } })),
            Hear(json!({ "type": "sdk.message", "payload": { "type": "assistant",
                "message": { "content": [{ "type": "text", "text": "=alive" }] } } })),
            Hear(message("result")),
        ],
    });
}

#[test]
fn rpc() {
    let error = |id: Value, code: i64| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": format!("={code}"), "message": "" } });
    let null = |code| error(json!(null), code);
    let of = |id: &str, code| error(json!(format!("={id}")), code);
    let call = |id: &str, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    try_all(Answers {
        front: "rpc",
        lines: vec![
            (b"not json", null(-32700)),
            (b"\xff\xfe{}", null(-32700)),
            (b"{\"id\":\"n\0\"}", null(-32700)),
            (b"7", null(-32600)),
            (b"[]", null(-32600)),
            (b"{\"jsonrpc\":\"2.0\",\"id\":\"m\",\"method\":7}", of("m", -32600)),
            (b"{\"jsonrpc\":\"2.0\",\"id\":\"f\",\"method\":\"fly\"}\r", of("f", -32601)),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"run\",\"params\":{\"prompt\":7}}",
                of("p", -32602),
            ),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":\"k\",\"method\":\"session/kill\",\"params\":{\"sessionId\":\"nobody\"}}",
                of("k", -32002),
            ),
        ],
        overlong: null(-32600),
        half: null(-32700),
        ask: vec![
            Say(call("r", "run", json!({ "agent": "demo", "cwd": "$work", "prompt": "/write a.txt x" }))),
            Hear(json!({ "method": "request",
                "params": { "sessionId": "$session", "request": { "requestId": "$request" } } })),
        ],
        settle: call("y", "request/settle", json!({ "sessionId": "$session",
            "requestId": "$request", "behavior": "allow" })),
        settled: json!({ "id": "=y", "result": {} }),
        again: vec![of("y", -32005), json!({ "id": "=r", "result": { "type": "result" } })],
        alive: vec![
            Say(call("l", "run", json!({ "sessionId": "$session", "prompt": "/say alive" }))),
            Hear(json!({ "id": "=l", "result": { "result": "=alive" } })),
        ],
    });
}
