//! The prompts that wait for their turn: listed, cancelled and changed one by one.

use serde_json::{Value, json};

use crate::shared::Server;

fn prompt(server: &Server, session: &str, text: &str) -> String {
    let path = format!("/v1/sessions/{session}/prompt");
    let taken = server.post(&path, &json!({ "prompt": text }));
    taken["messageId"].as_str().expect("an id").to_owned()
}

fn queue(server: &Server, session: &str) -> Vec<Value> {
    let queued = server.get(&format!("/v1/sessions/{session}/queue"));
    queued["queued"].as_array().expect("a list").clone()
}

#[test]
fn queued_prompts_are_listed_and_cancelled_one_by_one() {
    let server = Server::start();
    let session = server.session("/hang");
    server.until(&session, "turnStarted");
    assert_eq!(queue(&server, &session), [] as [Value; 0]);
    let ids = ["/say one", "/say two", "/say three"].map(|text| prompt(&server, &session, text));
    let listed: Vec<_> = ["/say one", "/say two", "/say three"]
        .iter()
        .zip(&ids)
        .map(|(text, id)| json!({ "messageId": id, "prompt": text }))
        .collect();
    assert_eq!(queue(&server, &session), listed);
    // Over a line, and in any form.
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws?after=100000"));
    socket.say(&json!({ "id": 1, "command": "queue" }));
    let reply = socket.until(|frame| frame["id"] == 1 && frame.get("type").is_none());
    assert_eq!(reply["reply"]["queued"], json!(listed));
    let place = |id: &str| format!("/v1/sessions/{session}/queue/{id}");
    assert_eq!(server.ask("DELETE", &place(&ids[1]), None).status, 200);
    assert_eq!(queue(&server, &session), [listed[0].clone(), listed[2].clone()]);
    let again = server.ask("DELETE", &place(&ids[1]), None);
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"));
    socket.say(&json!({ "id": 2, "command": "cancel", "messageId": ids[0], "why": "enough" }));
    let reply = socket.until(|frame| frame["id"] == 2 && frame.get("type").is_none());
    assert_eq!(reply["reply"], json!({}));
    assert_eq!(queue(&server, &session), [listed[2].clone()]);
    // This agent cannot change what it has, and says so.
    let edited = server.ask("PATCH", &place(&ids[2]), Some(&json!({ "prompt": "/say four" })));
    assert_eq!((edited.status, edited.code().as_str()), (422, "unsupported"), "{edited:?}");
    server.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    let events = server.until(&session, "turnCompleted");
    let started: Vec<_> = events.iter().filter(|event| event["type"] == "turnStarted").collect();
    assert_eq!(started.len(), 2, "the others never ran");
    assert_eq!(started[1]["messageIds"], json!([ids[2]]));
    assert_eq!(queue(&server, &session), [] as [Value; 0]);
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    assert_eq!(queue(&server, &session), [] as [Value; 0]);
    assert_eq!(server.ask("DELETE", &place(&ids[2]), None).code(), "conflict");
}

#[test]
fn a_prompt_that_waits_in_the_gateway_gets_another_text() {
    let server = Server::start();
    // At a limit, prompts wait until somebody answers.
    let body = json!({
        "agentType": "demo",
        "prompt": "/usage 1000 50 0 0\n/say hi",
        "config": { "maxBudgetTokens": 10, "onLimit": "ask" },
    });
    let session = server.post("/v1/sessions", &body)["id"].as_str().expect("an id").to_owned();
    server.until(&session, "turnCompleted");
    let [first, second] = ["/say one", "/say two"].map(|text| prompt(&server, &session, text));
    let place = |id: &str| format!("/v1/sessions/{session}/queue/{id}");
    server.until_open(&session);
    let edit = |text: &str| server.ask("PATCH", &place(&second), Some(&json!({ "prompt": text })));
    assert_eq!(edit("/say {turns} changed").status, 200);
    assert_eq!(edit("").status, 400);
    assert_eq!(server.ask("DELETE", &place(&first), None).status, 200);
    assert_eq!(
        queue(&server, &session),
        [json!({ "messageId": second, "prompt": "/say {turns} changed" })]
    );
    let request = server.get("/v1/requests")["requests"][0]["requestId"].clone();
    let request = request.as_str().expect("an id");
    let seen = server.get(&format!("/v1/sessions/{session}"))["lastSeq"].as_u64().expect("it");
    server.post(
        &format!("/v1/sessions/{session}/requests/{request}"),
        &json!({ "behavior": "allow" }),
    );
    server.until_turn(&session, seen);
    let events = server.get(&format!("/v1/sessions/{session}/events?after={seen}&limit=1000"));
    let events = events["events"].as_array().expect("events");
    let started = events.iter().find(|event| event["type"] == "turnStarted").expect("a turn");
    assert_eq!(started["prompt"], "/say {turns} changed");
    assert_eq!(started["messageIds"], json!([second]));
}
