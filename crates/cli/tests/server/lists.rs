//! Lists of sessions: filters, order, pages, and what people call a session.

use serde_json::{Value, json};

use crate::shared::Server;

fn ids(list: &Value) -> Vec<String> {
    let sessions = list["sessions"].as_array().expect("a list");
    sessions.iter().map(|session| session["id"].as_str().expect("an id").to_owned()).collect()
}

/// A session that has done its turn.
fn done(server: &Server, prompt: &str) -> String {
    let session = server.session(prompt);
    server.until(&session, "turnCompleted");
    session
}

fn change(server: &Server, session: &str, body: &Value) -> Value {
    let answer = server.ask("PATCH", &format!("/v1/sessions/{session}"), Some(body));
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

#[test]
fn sessions_are_found_by_what_they_are_called() {
    let server = Server::start();
    let first = done(&server, "/say Über  the\nparser");
    let second = done(&server, "/say hello");
    let shown = server.get(&format!("/v1/sessions/{first}"));
    assert_eq!(shown["title"], "/say Über the parser");
    assert_eq!((&shown["pinned"], &shown["tags"]), (&json!(false), &json!([])));
    let body = json!({ "title": " Flaky\n test ", "pinned": true, "tags": ["urgent", "urgent"] });
    let named = change(&server, &first, &body);
    assert_eq!(named["title"], "Flaky test");
    assert_eq!((&named["pinned"], &named["tags"]), (&json!(true), &json!(["urgent"])));
    // Whether it runs or has ended.
    server.post(&format!("/v1/sessions/{second}/stop"), &json!({}));
    change(&server, &second, &json!({ "tags": ["later"] }));

    let found = |query: &str| ids(&server.get(&format!("/v1/sessions?{query}")));
    assert_eq!(found("q=FLAKY%20%C3%BCber"), [first.as_str()]);
    assert_eq!(found("q=urgent"), [first.as_str()]);
    assert_eq!(found("q=later&state=ended"), [second.as_str()]);
    assert_eq!(found("q=flaky%20hello"), Vec::<String>::new());
    assert_eq!(found("state=idle"), [first.as_str()]);
    assert_eq!(found("agent=demo&sort=pinned"), [first.as_str(), second.as_str()]);
    assert_eq!(found("agent=codex"), Vec::<String>::new());
    let work = server.work().canonicalize().expect("a directory");
    let (work, above) = (work.display(), work.parent().expect("a directory").display());
    assert_eq!(found(&format!("directory={work}")).len(), 2);
    assert_eq!(found(&format!("directory={above}")).len(), 2);
    assert_eq!(found(&format!("directory={work}x")).len(), 0);
    assert_eq!(server.ask("GET", "/v1/sessions?state=asleep", None).status, 400);
    assert_eq!(server.ask("GET", "/v1/sessions?after=nowhere", None).status, 404);

    assert_eq!(change(&server, &first, &json!({ "title": null }))["title"], "/say Über the parser");
    let place = format!("/v1/sessions/{first}");
    for wrong in
        [json!({ "title": "" }), json!({ "colour": "red" }), json!({ "tags": ["x".repeat(49)] })]
    {
        assert_eq!(server.ask("PATCH", &place, Some(&wrong)).code(), "invalidMessage", "{wrong}");
    }
    let nobody = "/v1/sessions/11111111-1111-4111-8111-111111111111";
    let answer = server.ask("PATCH", nobody, Some(&json!({ "pinned": true })));
    assert_eq!(answer.code(), "sessionNotFound");
    assert_eq!(server.stop(), Some(0));
}

/// Usage and texts of all sessions, also of those that another process ran.
#[test]
fn usage_and_texts_of_all_sessions_are_found() {
    let server = Server::start();
    let first = done(&server, "/usage 100 20 3 4\n/say a serendipitous day\n/read nothing");
    let second = server.session("/think a Serendipitous night\n/fail no");
    server.until(&second, "turnFailed");
    let found = server.get("/v1/search?q=serendip*%20AND");
    assert_eq!(found, json!({ "hits": [], "complete": true }));
    let found = server.get("/v1/search?q=SERENDIPITOUS&type=thinkingChunk");
    let hit = &found["hits"][0];
    assert_eq!(hit["sessionId"], second.as_str(), "{found}");
    assert!(hit["snippet"].as_str().expect("text").contains("Serendipitous night"), "{found}");
    let path = format!(
        "/v1/sessions/{second}/events?after={}&limit=1",
        hit["seq"].as_u64().expect("a number") - 1
    );
    assert_eq!(server.get(&path)["events"][0]["type"], "thinkingChunk");
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = server.get(&format!("/v1/search?q=serendip*&limit=1{after}"));
        all.extend(page["hits"].as_array().expect("hits").clone());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    // Both prompts, the answer, the thinking.
    assert_eq!(all.len(), 4, "{all:?}");
    let only = server.get(&format!("/v1/search?q=serendip*&sessionId={first}"));
    assert_eq!(only["hits"].as_array().map(Vec::len), Some(2), "{only}");
    assert_eq!(server.get("/v1/search?q=%22")["hits"], json!([]));
    assert_eq!(server.ask("GET", "/v1/search?q=x&type=colour", None).status, 400);

    let usage = server.get("/v1/usage");
    let row = &usage["rows"][0];
    assert_eq!((&row["turns"], &usage["complete"]), (&json!(2), &json!(true)), "{usage}");
    let by = server.get("/v1/usage?by=session&bin=day");
    let rows = by["rows"].as_array().expect("rows");
    let mine = rows.iter().find(|row| row["sessionId"] == first.as_str()).expect("a row");
    assert_eq!((&mine["turns"], &mine["toolCalls"]), (&json!(1), &json!(1)), "{by}");
    assert!(mine["bin"].as_str().expect("a time").ends_with("T00:00:00Z"), "{by}");
    assert_eq!(server.ask("GET", "/v1/usage?by=colour", None).status, 400);
    assert_eq!(server.ask("GET", "/v1/usage?from=yesterday", None).status, 400);

    server.ask("DELETE", &format!("/v1/sessions/{first}"), None);
    assert_eq!(server.get("/v1/search?q=serendip*")["hits"].as_array().map(Vec::len), Some(2));
    assert_eq!(server.get("/v1/usage")["rows"][0]["turns"], 1);
    assert_eq!(server.stop(), Some(0));
}

/// A session that becomes active while a client pages moves to the front, and comes at most once.
#[test]
fn pages_stay_stable_while_sessions_become_active() {
    let server = Server::start();
    let mut sessions: Vec<String> =
        (0..5).map(|number| done(&server, &format!("/say {number}"))).collect();
    sessions.reverse();
    assert_eq!(ids(&server.get("/v1/sessions")), sessions);
    let page = server.get("/v1/sessions?limit=2");
    assert_eq!(ids(&page), sessions[..2]);
    // One that was shown, and the last, which was not.
    for session in [&sessions[0], &sessions[4]] {
        let last = server.get(&format!("/v1/sessions/{session}"))["lastSeq"].as_u64();
        server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "prompt": "/say again" }));
        server.until_turn(session, last.expect("a number"));
    }
    let next = page["next"].as_str().expect("a further page");
    let page = server.get(&format!("/v1/sessions?limit=2&after={next}"));
    assert_eq!(ids(&page), sessions[2..4]);
    assert_eq!(page["next"], Value::Null);
    let now = ids(&server.get("/v1/sessions"));
    assert_eq!(now[..2], [sessions[4].as_str(), sessions[0].as_str()]);
    assert_eq!(ids(&server.get("/v1/sessions?sort=created")), sessions);
    let page = server.get("/v1/sessions?sort=created&limit=3");
    let next = page["next"].as_str().expect("a further page");
    let rest = server.get(&format!("/v1/sessions?sort=created&limit=3&after={next}"));
    assert_eq!(ids(&rest), sessions[3..]);
    assert_eq!(server.stop(), Some(0));
}
