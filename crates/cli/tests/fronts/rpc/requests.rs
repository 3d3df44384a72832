//! Requests of the agent.

use serde_json::{Value, json};

use crate::rpc::client::{Client, types};

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
    let first = client.send("request/settle", &settle);
    let late = client.send("request/settle", &settle);
    let ([first, late, ran], rest) =
        client.all([&|said| said["id"] == first, &|said| said["id"] == late, &|said| {
            said["id"] == run
        }]);
    assert_eq!(first["result"], json!({}));
    assert_eq!(late["error"]["code"], -32005);
    assert_eq!(ran["result"]["result"], "done");
    let over = rest.iter().find(|said| said["method"] == "request/settled").expect("reported");
    assert_eq!(
        (&over["params"]["outcome"], &over["params"]["by"]),
        (&json!("allowed"), &json!("client"))
    );
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
    let prompt = "/ask Which? | red | blue\n/say {result}\n/bash touch b";
    let options = json!({ "hooks": hooks });
    let params = json!({ "agent": "demo", "prompt": prompt, "options": options });
    let run = client.send("run", &params);
    let asked = client.until(is_request).reply["params"].clone();
    assert_eq!(asked["request"]["kind"], "question");
    let mut settle = json!({
        "sessionId": asked["sessionId"], "requestId": asked["request"]["requestId"],
        "answers": { "Which?": "blue" },
    });
    let settled = client.send("request/settle", &settle);
    let ([_, hook], _) = client.all([&|said| said["id"] == settled, &is_request]);
    let request = &hook["params"]["request"];
    assert_eq!((&request["kind"], &request["name"]), (&json!("hook"), &json!("PreToolUse")));
    let output = json!({
        "hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "not now",
    });
    settle = json!({
        "sessionId": asked["sessionId"], "requestId": request["requestId"],
        "hookOutput": { "hookSpecificOutput": output },
    });
    let settled = client.send("request/settle", &settle);
    let ([_, ran], rest) = client.all([&|said| said["id"] == settled, &|said| said["id"] == run]);
    assert_eq!(ran["result"]["type"], "result");
    assert!(types(&rest).contains(&"user"), "the tool's result is shown");
    assert!(!client.work().join("b").exists());
    client.close();
}

#[test]
fn what_a_rule_settles_at_once_is_not_told() {
    let mut client = Client::new();
    let options = json!({ "approvalMode": "askDangerous" });
    let params = json!({ "agent": "demo", "prompt": "/bash ls", "options": options });
    let answer = client.call("run", &params);
    assert!(types(&answer.before).contains(&"user"), "the tool has run");
    assert!(answer.before.iter().all(|said| said["method"] == "message"));
    client.close();
}
