//! Input that no client should send; the connection and its sessions continue.

use serde_json::{Value, json};

use crate::rpc::client::{Client, error};
use crate::shared::Home;

#[test]
fn every_bad_line_is_answered_and_nothing_breaks() {
    let mut client = Client::new();
    let session = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let cases: &[(&[u8], Value, i64)] = &[
        (b"not json", json!(null), -32700),
        (b"\xff\xfe", json!(null), -32700),
        (b"[", json!(null), -32700),
        (b"[]", json!(null), -32600),
        (b"null", json!(null), -32600),
        (br#"{"jsonrpc":"2.0","id":"x","method":7}"#, json!("x"), -32600),
        (br#"{"jsonrpc":"2.0","id":"x","method":"nothing"}"#, json!("x"), -32601),
        (br#"{"jsonrpc":"2.0","id":"x","method":"run","params":["a"]}"#, json!("x"), -32602),
        (br#"{"jsonrpc":"2.0","id":"x","method":"run","params":{"prompt":{}}}"#, json!("x"), -32602),
        (br#"{"jsonrpc":"2.0","id":"x","method":"run","params":{"prompt":""}}"#, json!("x"), -32602),
        (br#"{"jsonrpc":"2.0","id":"x","method":"run","params":{"prompt":"x","cwd":"/no/such"}}"#, json!("x"), -32602),
        (br#"{"jsonrpc":"2.0","id":"x","method":"run","params":{"prompt":"x","agent":"codex"}}"#, json!("x"), -32003),
    ];
    for (line, id, code) in cases {
        client.say(line);
        let said = client.read();
        assert_eq!((&said["id"], error(&said).0), (id, *code), "{said}");
    }
    let nobody = json!({ "sessionId": "nobody" });
    for method in ["session/interrupt", "session/kill", "session/attach", "session/events"] {
        assert_eq!(
            client.error(method, &nobody),
            (-32002, "sessionNotFound".to_owned()),
            "{method}"
        );
    }
    let ran = client.result("run", &json!({ "sessionId": session, "prompt": "/say alive" }));
    assert_eq!(ran["result"], "alive");
    client.close();
}

#[test]
fn an_overlong_line_is_passed_over() {
    let mut client = Client::new();
    client.say(&vec![b'x'; 65 << 20]);
    let said = client.read();
    assert_eq!(error(&said), (-32600, "invalidMessage".to_owned()));
    assert_eq!(client.result("session/list", &json!({})), json!({ "sessions": [] }));
    client.close();
}

#[test]
fn batches_are_answered_in_one_array() {
    let mut client = Client::new();
    client
        .say(br#"[{"jsonrpc":"2.0","method":"session/list"},{"jsonrpc":"2.0","id":9,"result":1}]"#);
    let run = json!({ "jsonrpc": "2.0", "id": 1.5, "method": "run", "params": { "agent": "demo", "prompt": "/say hi" } });
    let batch = json!([run, 1, { "jsonrpc": "2.0", "id": "l", "method": "session/list" }]);
    client.say(batch.to_string().as_bytes());
    let answer = client.until(Value::is_array);
    assert!(
        answer.before.iter().all(|said| said["method"] == "message"),
        "notifications stand alone"
    );
    let replies = answer.reply.as_array().expect("an array");
    let of = |id: Value| replies.iter().find(|reply| reply["id"] == id).expect("a reply");
    assert_eq!(replies.len(), 3);
    assert_eq!(of(json!(1.5))["result"]["result"], "hi");
    assert_eq!(of(json!(null))["error"]["code"], -32600);
    assert!(of(json!("l"))["result"]["sessions"].is_array());
    client.close();
}

#[test]
fn too_many_calls_are_refused() {
    let mut client = Client::new();
    let session = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let hang = client.send("run", &json!({ "sessionId": session, "prompt": "/say hung\n/hang" }));
    client.until(|said| said["params"]["message"]["type"] == "assistant");
    // A batch is read completely before any of its calls can be answered.
    let list = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "session/list" });
    let calls: Vec<Value> = (1000..1300).map(list).collect();
    client.say(json!(calls).to_string().as_bytes());
    let replies = client.until(Value::is_array).reply;
    let replies = replies.as_array().expect("an array");
    let refused = replies.iter().filter(|reply| reply["error"]["code"] == -32001).count();
    assert_eq!((replies.len(), refused), (300, 45));
    let interrupt = client.send("session/interrupt", &json!({ "sessionId": session }));
    let mut left = vec![hang, interrupt];
    while !left.is_empty() {
        let said = client.until(|said| said["id"].is_u64()).reply;
        left.retain(|id| said["id"] != *id);
    }
    client.close();
}

#[test]
fn a_deep_line_is_refused_and_ends_nothing() {
    let mut client = Client::new();
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    for option in ["hooks", "sandbox"] {
        let params = format!(r#"{{"prompt":"x","options":{{"{option}":{deep}}}}}"#);
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"run","params":{params}}}"#);
        client.say(line.as_bytes());
        assert_eq!(error(&client.read()).0, -32602);
    }
    client.close();
}

#[test]
fn an_interrupt_among_many_prompts_is_taken() {
    let mut client = Client::new();
    let session = client.result("session/create", &json!({ "agent": "demo" }))["sessionId"].clone();
    let hang = client.send("run", &json!({ "sessionId": session, "prompt": "/say hung\n/hang" }));
    client.until(|said| said["params"]["message"]["type"] == "assistant");
    let call = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let mut batch: Vec<Value> = (1000..1200)
        .map(|id| call(id, "session/send", json!({ "sessionId": session, "prompt": "/say more" })))
        .collect();
    batch.insert(100, call(2000, "session/interrupt", json!({ "sessionId": session })));
    client.say(json!(batch).to_string().as_bytes());
    let ([replies, ran], _) = client.all([&Value::is_array, &|said| said["id"] == hang]);
    let replies = replies.as_array().expect("an array");
    assert_eq!(replies.len(), 201);
    let failed = replies.iter().find(|reply| reply.get("error").is_some());
    assert_eq!(failed, None);
    assert_eq!(ran["result"]["is_error"], true, "{ran}");
    let kill = client.send("session/kill", &json!({ "sessionId": session }));
    client.reply(kill);
    client.close();
}

#[test]
fn who_gets_the_demo_agent_for_want_of_another_is_told() {
    for (verb, is_told) in [("rpc", true), ("backend", true), ("unified", false)] {
        let output = Home::new().run(&[verb]);
        let told = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(told.matches("demo agent").count(), usize::from(is_told), "{verb}: {told}");
        assert!(output.status.success() && output.stdout.is_empty());
    }
}
