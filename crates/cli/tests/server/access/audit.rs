//! An answer is stored with the client that gave it, and the reply to a later answer names the first
//! client.

use serde_json::{Value, json};

use crate::shared::Server;

/// The id of the open request.
fn asked(server: &Server, session: &str) -> Value {
    server.until(session, "requestRaised").pop().expect("a request")["requestId"].clone()
}

fn kept(server: &Server, session: &str) -> Value {
    server.until(session, "requestSettled").pop().expect("an answer")
}

#[test]
fn an_answer_is_kept_with_the_name_of_whoever_gave_it() {
    let server = Server::start();
    let token =
        |name: &str| server.verb(&["token", "create", "--scope", "approve", "--name", name]);
    let (phone, desk) = (token("phone"), token("desk"));
    let as_of = |token: &str| format!("Bearer {token}");
    let allow = |request: &Value| json!({ "requestId": request, "behavior": "allow" });

    // REST.
    let session = server.session("/write a.txt x");
    let request = asked(&server, &session);
    let place = format!("/v1/sessions/{session}/requests/{}", request.as_str().expect("an id"));
    // An answer cannot say who gave it.
    for forged in [
        json!({ "behavior": "allow", "client": "desk" }),
        json!({ "behavior": "allow", "by": "policy" }),
    ] {
        assert_eq!(server.ask_as(&phone, "POST", &place, Some(&forged)).status, 400);
    }
    let deny = json!({ "behavior": "deny", "message": "no", "client": "desk", "by": "policy" });
    assert_eq!(server.ask_as(&phone, "POST", &place, Some(&deny)).status, 200);
    let settled = kept(&server, &session);
    assert_eq!(
        (&settled["by"], &settled["client"], &settled["reason"]),
        (&json!("client"), &json!("phone"), &json!("no"))
    );
    // The reply to a late answer, by REST, WebSocket or JSON-RPC, names the first client.
    let late = server.ask_as(&desk, "POST", &place, Some(&allow(&request)));
    assert_eq!((late.status, late.code()), (409, "requestSettled".to_owned()));
    assert_eq!(late.json()["details"]["client"], "phone");
    assert!(late.json()["detail"].as_str().is_some_and(|text| text.contains("phone")));
    let mut socket = server
        .socket_at(
            &server.http,
            &format!("/v1/sessions/{session}/ws"),
            &[("authorization", &as_of(&desk))],
        )
        .expect("it opens");
    socket.say(&json!({ "id": 1, "command": "settle", "requestId": request, "behavior": "allow" }));
    let refused = socket.until(|frame| frame["id"] == 1 && frame.get("type").is_none());
    assert_eq!(refused["error"]["details"]["client"], "phone");

    // WebSocket.
    let session = server.session("/write b.txt x");
    let request = asked(&server, &session);
    let mut socket = server
        .socket_at(
            &server.http,
            &format!("/v1/sessions/{session}/ws"),
            &[("authorization", &as_of(&desk))],
        )
        .expect("it opens");
    socket.say(&json!({ "id": 1, "command": "settle", "requestId": request, "behavior": "allow" }));
    socket.until(|frame| frame["type"] == "requestSettled");
    assert_eq!(kept(&server, &session)["client"], "desk");

    // JSON-RPC.
    let session = server.session("/write c.txt x");
    let request = asked(&server, &session);
    let mut rpc = server
        .socket_at(&server.http, "/rpc", &[("authorization", &as_of(&phone))])
        .expect("it opens");
    rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "request/settle",
        "params": { "sessionId": session, "requestId": request, "behavior": "allow" } }));
    rpc.until(|frame| frame["id"] == 1);
    assert_eq!(kept(&server, &session)["client"], "phone");

    // A ticket belongs to the token that requested it.
    let session = server.session("/write d.txt x");
    let request = asked(&server, &session);
    let ticket = server.ask_as(&desk, "POST", "/v1/tickets", Some(&json!({}))).json();
    let offered = format!("agentwire, ticket.{}", ticket["ticket"].as_str().expect("a ticket"));
    let mut rpc = server
        .socket_at(&server.http, "/rpc", &[("sec-websocket-protocol", &offered)])
        .expect("it opens");
    rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "request/settle",
        "params": { "sessionId": session, "requestId": request, "behavior": "deny" } }));
    rpc.until(|frame| frame["id"] == 1);
    assert_eq!(kept(&server, &session)["client"], "desk");

    // The insights wire.
    let bearer = as_of(&server.token);
    let mut page =
        server.socket_at(&server.insights, "/", &[("authorization", &bearer)]).expect("it opens");
    page.say(&json!({ "type": "session.create", "payload": { "prompt": "/write e.txt x",
        "cwd": server.work(), "permission_mode": "default" } }));
    let asked = page.until(|frame| frame["type"] == "permission.request");
    let session = asked["payload"]["session_id"].as_str().expect("an id").to_owned();
    page.say(&json!({ "type": "permission.response", "payload": { "session_id": session,
        "permission_id": asked["payload"]["permission_id"], "approved": true } }));
    page.until(|frame| frame["type"] == "session.completed");
    assert_eq!(kept(&server, &session)["client"], "operator");
}

#[test]
fn what_no_client_answered_names_none() {
    let server = Server::start();
    let session = server.session("/write b.txt x");
    server.until(&session, "requestRaised");
    server.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    let settled = kept(&server, &session);
    assert_eq!((&settled["by"], settled.get("client")), (&json!("gateway"), None));
}
