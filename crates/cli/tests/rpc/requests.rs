//! What the agent asks.

use serde_json::{Value, json};

use crate::client::{Client, types};

fn is_request(said: &Value) -> bool {
    said["method"] == "request"
}

#[test]
fn a_permission_is_asked_for_and_given_once() {
    let mut client = Client::new();
    let run =
        client.send("run", &json!({ "agent": "demo", "prompt": "/write a.txt hi\n/say done" }));
    let asked = client.until(is_request).reply;
    let params = &asked["params"];
    assert_eq!(
        (&params["request"]["kind"], &params["request"]["toolName"]),
        (&json!("permission"), &json!("Write"))
    );
    let settle = json!({
        "sessionId": params["sessionId"], "requestId": params["request"]["requestId"],
        "behavior": "allow", "inputDigest": params["request"]["inputDigest"],
    });
    let settled = client.call("request/settle", &settle);
    assert_eq!(settled.reply["result"], json!({}));
    let over =
        settled.before.iter().find(|said| said["method"] == "request/settled").expect("told");
    assert_eq!(
        (&over["params"]["outcome"], &over["params"]["by"]),
        (&json!("allowed"), &json!("client"))
    );
    let late = client.send("request/settle", &settle);
    let mut answered = Vec::new();
    while answered.len() < 2 {
        answered.push(client.until(|said| said["id"].is_u64()).reply);
    }
    let of = |id: u64| answered.iter().find(|said| said["id"] == id).expect("a reply");
    assert_eq!(of(late)["error"]["code"], -32005);
    assert_eq!(of(run)["result"]["result"], "done");
    assert_eq!(std::fs::read_to_string(client.work().join("a.txt")).expect("written"), "hi");
    let unknown =
        json!({ "sessionId": params["sessionId"], "requestId": "none", "behavior": "deny" });
    assert_eq!(client.error("request/settle", &unknown), (-32004, "requestNotFound".to_owned()));
    client.close();
}

#[test]
fn questions_and_hooks_are_answered() {
    let mut client = Client::new();
    let hooks = json!({ "PreToolUse": [{ "matcher": "Bash" }] });
    let run = client.send(
        "run",
        &json!({
            "agent": "demo", "prompt": "/ask Which? | red | blue\n/say {result}\n/bash touch b",
            "options": { "hooks": hooks },
        }),
    );
    let asked = client.until(is_request).reply["params"].clone();
    assert_eq!(asked["request"]["kind"], "question");
    client.result(
        "request/settle",
        &json!({
            "sessionId": asked["sessionId"], "requestId": asked["request"]["requestId"],
            "answers": { "Which?": "blue" },
        }),
    );
    let hook = client.until(is_request).reply["params"].clone();
    assert_eq!(
        (&hook["request"]["kind"], &hook["request"]["name"]),
        (&json!("hook"), &json!("PreToolUse"))
    );
    let output = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not now",
    } });
    client.result("request/settle", &json!({
        "sessionId": hook["sessionId"], "requestId": hook["request"]["requestId"], "hookOutput": output,
    }));
    let answer = client.reply(run);
    assert_eq!(answer.reply["result"]["type"], "result");
    assert!(types(&answer.before).contains(&"user"), "the tool's result is shown");
    assert!(!client.work().join("b").exists());
    client.close();
}

#[test]
fn a_rule_settles_and_the_client_is_told() {
    let mut client = Client::new();
    let options = json!({ "approvalMode": "askDangerous" });
    let params = json!({ "agent": "demo", "prompt": "/bash ls", "options": options });
    let answer = client.call("run", &params);
    let settled = answer.before.iter().find(|said| said["method"] == "request/settled");
    assert_eq!(settled.expect("told")["params"]["by"], "policy");
    client.close();
}
