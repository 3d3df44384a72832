//! Permissions, questions, and the agents that send them.

use serde_json::{Value, json};

use super::page::{Page, kinds, text};
use crate::shared::Server;

fn result_of(page: &mut Page, asked: &Value) -> Value {
    loop {
        let result = page.first("agent.tool_result");
        if result["payload"]["tool_use_id"] == asked["payload"]["tool_use_id"] {
            return result["payload"].clone();
        }
    }
}

#[test]
fn the_permission_flow() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    page.allows = false;
    let session = page.create("/write a.txt x\n/write b.txt x\n/write c.txt x");
    let said = page.until("permission.request");
    let asked = said.last().expect("a request");
    let used = said.iter().find(|it| it["type"] == "agent.tool_use").expect("a call");
    for name in ["tool_name", "tool_input", "tool_use_id", "agent_id"] {
        assert_eq!(used["payload"][name], asked["payload"][name]);
    }
    let waits = &said[said.len() - 2];
    assert_eq!(waits["payload"]["status"], "waiting_user");
    page.permit(asked, true);
    assert_eq!(result_of(&mut page, asked)["is_error"], false);
    assert!(server.work().join("a.txt").exists());
    // A second answer has no effect.
    page.permit(asked, false);
    assert_eq!(page.error(), "PERMISSION_RESPONSE_FAILED");
    // The request that is open now may have been sent before that error.
    let open = server_asks(&server, &session);
    let denied = json!({ "type": "", "payload": { "session_id": session, "permission_id": open } });
    page.permit(&denied, false);
    // Settled by another client: a late answer gets an error.
    let third = loop {
        let next = server_asks(&server, &session);
        if next != open {
            break next;
        }
    };
    assert!(!server.work().join("b.txt").exists());
    let place = format!(
        "/v1/sessions/{}/requests/{}",
        session.as_str().expect("an id"),
        third.as_str().expect("an id")
    );
    server.post(&place, &json!({ "behavior": "allow" }));
    let said = page.until("session.completed");
    let errors = said.iter().filter(|it| it["payload"]["is_error"] == true).count();
    assert_eq!(errors, 1, "{said:?}");
    assert!(server.work().join("c.txt").exists());
    page.permit(&json!({ "payload": { "session_id": session, "permission_id": third } }), true);
    assert_eq!(page.error(), "PERMISSION_RESPONSE_FAILED");
}

/// The id of the open request.
fn server_asks(server: &Server, session: &Value) -> Value {
    loop {
        let inbox = server.get("/v1/requests?state=open");
        let request = inbox["requests"].as_array().and_then(|requests| requests.first());
        if let Some(request) = request {
            assert_eq!(request["sessionId"], *session);
            return request["requestId"].clone();
        }
    }
}

#[test]
fn the_question_flow() {
    let server = Server::start();
    let mut page = Page::open(&server, false);
    let session = page.create("/ask Which? | A | B\n/say on");
    let asked = page.first("agent.question");
    assert_eq!(asked["payload"]["question"], "Which?");
    let none = |label: &str| json!({ "label": label, "description": null });
    assert_eq!(asked["payload"]["options"], json!([none("A"), none("B")]));
    page.input(&session, Value::Null, "B");
    let said = page.until("session.completed");
    assert!(text(&said).contains('B') && text(&said).ends_with("on"), "{said:?}");
    // Several questions of one request are asked one after another.
    let questions = json!({ "questions": [
        { "question": "First?", "header": "1", "multiSelect": false,
            "options": [{ "label": "x", "description": "an x" }, { "label": "y" }] },
        { "question": "Second?", "header": "2", "multiSelect": false,
            "options": [{ "label": "u" }, { "label": "v" }] },
    ] });
    let prompt = format!("/tool AskUserQuestion {questions}\n/say {{result}}");
    page.input(&session, Value::Null, &prompt);
    let first = page.first("agent.question");
    assert_eq!(first["payload"]["options"][0], json!({ "label": "x", "description": "an x" }));
    page.input(&session, json!("main"), "y");
    let second = page.first("agent.question");
    assert_eq!(second["payload"]["question"], "Second?");
    assert_ne!(first["payload"]["question_id"], second["payload"]["question_id"]);
    page.input(&session, Value::Null, "of my own");
    let said = page.until("session.completed");
    assert!(text(&said).contains('y') && text(&said).contains("of my own"), "{said:?}");
}

#[test]
fn a_question_of_a_subagent_is_its_own() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/task look\n/ask Where? | here | there\n/end\n/say done");
    let asked = page.first("agent.question");
    let sub = asked["payload"]["agent_id"].clone();
    assert_ne!(sub, "main");
    // Input for the main agent waits for its turn.
    page.input(&session, json!("main"), "/say second");
    page.input(&session, sub.clone(), "there");
    let said = page.until("session.completed");
    let of_sub: Vec<&Value> = said
        .iter()
        .filter(|it| it["type"] == "agent.output" && it["payload"]["agent_id"] == sub)
        .collect();
    assert!(of_sub.iter().any(|it| it.to_string().contains("there")), "{said:?}");
    let mut all = text(&said);
    while !all.contains("second") {
        all += &text(&page.until("session.completed"));
    }
}

#[test]
fn the_subagent_flow() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    page.create(
        "/task outer\n/say in outer\n/task inner\n/say in inner\n/end\n/read nothing\n/end\n\
                 /task other\n/say x\n/end\n/say all done",
    );
    let said = page.until("session.completed");
    let spawned: Vec<(&Value, &Value, &Value)> = said
        .iter()
        .filter(|it| it["type"] == "agent.spawned")
        .map(|it| &it["payload"])
        .map(|it| (&it["label"], &it["agent_id"], &it["parent_id"]))
        .collect();
    let labels: Vec<&Value> = spawned.iter().map(|(label, ..)| *label).collect();
    assert_eq!(labels, ["Main", "Sub1", "Sub1.1", "Sub2"]);
    let (outer, inner) = (spawned[1].1, spawned[2].1);
    assert_eq!(spawned[0].2, &Value::Null);
    assert_eq!((spawned[1].2, spawned[2].2), (&json!("main"), outer));
    // tool_use(X) → spawned(X) → X's own output → tool_result(X) → completed(X)
    for agent in [outer, inner] {
        let at = |kind: &str, field: &str| {
            let fits =
                |it: &&(usize, &Value)| it.1["type"] == kind && it.1["payload"][field] == *agent;
            let mut found: Vec<usize> = said
                .iter()
                .enumerate()
                .collect::<Vec<_>>()
                .iter()
                .filter(fits)
                .map(|it| it.0)
                .collect();
            assert!(!found.is_empty(), "{kind}: {:?}", kinds(&said));
            (found.remove(0), found.pop())
        };
        let called = at("agent.tool_use", "tool_use_id").0;
        let spawned = at("agent.spawned", "agent_id").0;
        let first_output = at("agent.output", "agent_id").0;
        let result = at("agent.tool_result", "tool_use_id").0;
        let completed = at("agent.completed", "agent_id").0;
        let between = &said[called + 1..spawned];
        assert!(between.iter().all(|it| it["type"] == "agent.status"), "{between:?}");
        assert!(spawned < first_output && first_output < result && result < completed);
        assert_eq!(said[called]["payload"]["tool_name"], "Task");
        let own = |it: &Value| it["payload"]["agent_id"] == *agent && it["type"] != "agent.status";
        assert!(!said[completed + 1..].iter().any(own));
    }
}
