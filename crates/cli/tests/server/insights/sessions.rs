//! Sessions that are interrupted, killed, left or die, and several pages at once.

use serde_json::{Value, json};

use super::page::{Page, kinds, text};
use crate::shared::Server;

fn id(session: &Value) -> &str {
    session.as_str().expect("an id")
}

#[test]
fn an_interrupted_turn_is_over_and_the_session_goes_on() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/say one\n/hang");
    page.first("agent.output");
    page.say("session.interrupt", json!({ "session_id": session }));
    let said = page.until("session.completed");
    assert!(!kinds(&said).contains(&"error"), "{said:?}");
    page.input(&session, Value::Null, "/say two");
    assert_eq!(text(&page.until("session.completed")), "two");
    // Without a turn to interrupt, nothing happens.
    page.say("session.interrupt", json!({ "session_id": session }));
    page.input(&session, Value::Null, "/say three");
    assert_eq!(text(&page.until("session.completed")), "three");
}

#[test]
fn a_killed_session_is_over_for_good() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/say one\n/hang");
    page.first("agent.output");
    page.say("session.kill", json!({ "session_id": session }));
    server.until(id(&session), "sessionEnded");
    let shown = server.get(&format!("/v1/sessions/{}", id(&session)));
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("ended"), &json!("cancelled")));
    page.input(&session, Value::Null, "x");
    // No further message about it was sent.
    let refused = page.next();
    assert_eq!(refused["payload"]["code"], "SESSION_NOT_FOUND", "{refused}");
}

#[test]
fn a_session_whose_agent_died_goes_on_with_the_next_input() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/say one\n/exit 3");
    let said = page.until("session.completed");
    assert!(kinds(&said).contains(&"error"), "{said:?}");
    // Whether or not its end has been shown.
    page.input(&session, Value::Null, "/say {turns}");
    assert_eq!(text(&page.until("session.completed")), "2");
}

#[test]
fn a_page_sees_its_own_sessions_and_they_outlive_it() {
    let server = Server::start();
    let mut one = Page::open(&server, true);
    let mut two = Page::open_as(
        &server,
        &server.verb(&["token", "create", "--scope", "admin", "--name", "two"]),
    );
    let first = one.create("/say of one");
    let second = two.create("/say of two");
    for (page, own, others, said) in
        [(&mut one, &first, &second, "of one"), (&mut two, &second, &first, "of two")]
    {
        let told = page.until("session.completed");
        assert!(told.iter().all(|it| it["payload"]["session_id"] == *own), "{told:?}");
        assert_eq!(text(&told), said);
        page.input(others, Value::Null, "x");
        assert_eq!(page.error(), "SESSION_NOT_FOUND");
    }
    one.input(&first, Value::Null, "/sleep 200\n/say gone");
    drop(one);
    loop {
        let shown = server.get(&format!("/v1/sessions/{}", id(&first)));
        if shown["turns"] == 2 && shown["state"] == "idle" {
            break;
        }
    }
}

/// Each change is answered, even if the mode stays the same, and takes effect.
#[test]
fn modes_change_while_the_session_runs() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/say one");
    page.until("session.completed");
    let modes =
        ["default", "acceptEdits", "bypassPermissions", "bypassPermissions", "plan", "default"];
    for (number, mode) in modes.into_iter().enumerate() {
        page.say(
            "permission_mode.change",
            json!({ "session_id": session,
            "permission_mode": mode }),
        );
        let changed = page.next();
        assert_eq!(changed["type"], "permission_mode.changed", "{changed}");
        assert_eq!(changed["payload"]["permission_mode"], mode);
        page.input(&session, Value::Null, &format!("/bash touch {number}"));
        let said = page.until("session.completed");
        let is_asked = kinds(&said).contains(&"permission.request");
        assert_eq!(is_asked, matches!(mode, "default" | "acceptEdits"), "{mode}: {said:?}");
        assert_eq!(server.work().join(number.to_string()).exists(), mode != "plan", "{mode}");
        assert!(!kinds(&said).contains(&"permission_mode.changed"), "{mode}: {said:?}");
    }
    page.say("permission_mode.change", json!({ "session_id": session, "permission_mode": "yolo" }));
    assert_eq!(page.error(), "INVALID_MESSAGE");
}

#[test]
fn a_page_goes_on_with_what_another_client_resumed() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/say one");
    page.until("session.completed");
    server.post(&format!("/v1/sessions/{}/stop", id(&session)), &json!({}));
    server.until(id(&session), "sessionEnded");
    let again = json!({ "agentType": "demo", "sessionId": session, "prompt": "/say two" });
    server.post("/v1/sessions", &again);
    assert_eq!(text(&page.until("session.completed")), "two");
    page.input(&session, Value::Null, "/say {turns}");
    assert_eq!(text(&page.until("session.completed")), "3");
}

#[test]
fn a_mode_that_another_client_sets_is_told() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/say one");
    page.until("session.completed");
    for (ours, told) in [
        ("autoAll", "bypassPermissions"),
        ("autoEdit", "acceptEdits"),
        ("autoAll", "bypassPermissions"),
        ("ask", "default"),
    ] {
        let place = format!("/v1/sessions/{}", id(&session));
        let answer = server.ask("PATCH", &place, Some(&json!({ "approvalMode": ours })));
        assert_eq!(answer.status, 200, "{answer:?}");
        let changed = page.next();
        assert_eq!(changed["type"], "permission_mode.changed", "{changed}");
        assert_eq!(changed["payload"]["permission_mode"], told, "{ours}");
    }
}

/// After a broken connection, a client answers, prompts and kills by `session_id`.
#[test]
fn a_client_that_connects_again_goes_on_with_its_sessions() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    page.allows = false;
    let session = page.create("/write a.txt one\n/say done");
    page.until("permission.request");
    drop(page);
    let mut page = Page::open(&server, false);
    page.allows = false;
    // Any message that names the session attaches it to this page again.
    page.say(
        "permission_mode.change",
        json!({ "session_id": session, "permission_mode": "default" }),
    );
    let said = page.until("permission.request");
    page.permit(said.last().expect("a request"), true);
    let said = page.until("session.completed");
    assert_eq!(text(&said), "done");
    assert!(server.work().join("a.txt").exists());
    drop(page);
    let mut page = Page::open(&server, true);
    page.input(&session, Value::Null, "/say {turns}");
    assert_eq!(text(&page.until("session.completed")), "2");
    drop(page);
    let mut page = Page::open(&server, true);
    page.say("session.kill", json!({ "session_id": session, "extra": 1 }));
    server.until(id(&session), "sessionEnded");
    page.input(&session, Value::Null, "x");
    assert_eq!(page.error(), "SESSION_NOT_FOUND");
}
