//! Prompts, interrupts and ends of sessions.

use agentwire_dialects::backend::Backend;
use agentwire_dialects::front::{Effect, Front as _, Outbox, Reply};
use agentwire_protocol::event::{SessionEndReason, SessionEnded};
use agentwire_protocol::{AgentType, Command, ErrorCode, Prompt, SessionId, SessionSummary, Text};
use serde_json::{Value, json};

use crate::client::{Client, SESSION, summary};

fn send(client: &mut Client, id: &str, message: &str) {
    client.say("session.send", id, &json!({ "message": message }).to_string());
}

fn is(frame: &Value, kind: &str, id: &str) {
    assert_eq!(*frame, json!({ "type": kind, "id": id, "session_id": SESSION, "payload": {} }));
}

fn over(client: &mut Client) {
    client.event(SessionEnded { reason: SessionEndReason::Completed, error: None });
    client.end();
}

#[test]
fn a_prompt_is_answered_by_messages_alone() {
    let mut client = Client::with_session();
    send(&mut client, "s", "more");
    assert_eq!(client.command(), Command::Prompt(Prompt::text("more")));
    client.done("{}");
    send(&mut client, "s", "more");
    client.failed(ErrorCode::Overloaded, "the agent does not read");
    let error = client.error("SDK_ERROR");
    assert_eq!((&error["id"], &error["session_id"]), (&"s".into(), &SESSION.into()));
}

#[test]
fn with_checkpoints_prompts_are_said_back_with_their_ids() {
    let mut client = Client::with_options(r#"{"enable_file_checkpointing":true}"#);
    let replay = |client: &mut Client, text: &str, uuid: Option<String>| {
        let payload = client.frame()["payload"].clone();
        assert_eq!(payload["message"], json!({ "role": "user", "content": text }));
        let named = payload["uuid"].as_str().map(str::to_owned);
        assert!(payload["isReplay"] == true && named.is_some(), "{payload}");
        assert!(uuid.is_none() || uuid == named);
    };
    replay(&mut client, "hi", None);
    send(&mut client, "s", "more");
    let Command::Prompt(prompt) = client.command() else { panic!("no prompt") };
    client.silent();
    client.done("{}");
    replay(&mut client, "more", prompt.message_id);
    over(&mut client);
    send(&mut client, "s", "again");
    let uuid = client.start_of().prompt.expect("a prompt").message_id;
    client.started(4);
    replay(&mut client, "again", uuid);
}

#[test]
fn what_a_message_does_not_have_is_refused_by_name() {
    let mut client = Client::with_session();
    client.say("session.send", "s", r#"{"message":"x","images":[]}"#);
    let error = client.error("INVALID_MESSAGE");
    assert!(error["payload"]["message"].as_str().expect("words").contains("images"), "{error}");
    client.say("query.call", "q", r#"{"method":"accountInfo","arg":[]}"#);
    client.error("INVALID_MESSAGE");
}

#[test]
fn what_waits_is_bounded_in_bytes() {
    let mut client = Client::with_session();
    over(&mut client);
    send(&mut client, "s1", "again");
    let long = "x".repeat(9 << 20);
    send(&mut client, "s2", &long);
    send(&mut client, "s3", &long);
    assert_eq!(client.error("SDK_ERROR")["id"], "s3");
    client.started(4);
    client.done("{}");
}

#[test]
fn an_interrupt_is_told() {
    let mut client = Client::with_session();
    client.say("session.interrupt", "i", "{}");
    assert_eq!(client.command(), Command::Interrupt { cancel_queued: false });
    client.done("{}");
    is(&client.frame(), "session.interrupted", "i");
    // Nothing is left to interrupt.
    client.line(&format!(r#"{{"type":"session.interrupt","id":"i","session_id":"{SESSION}"}}"#));
    client.failed(ErrorCode::SessionNotFound, "it does not run");
    is(&client.frame(), "session.interrupted", "i");
    over(&mut client);
    client.say("session.interrupt", "i", "{}");
    is(&client.frame(), "session.interrupted", "i");
}

#[test]
fn a_session_is_killed_once_it_is_over() {
    let mut client = Client::with_session();
    client.say("session.kill", "k1", "{}");
    assert_eq!(client.command(), Command::Stop);
    client.done("{}");
    client.say("session.kill", "k2", "{}");
    send(&mut client, "s", "too late");
    client.error("SESSION_NOT_FOUND");
    client.silent();
    over(&mut client);
    is(&client.frame(), "session.killed", "k1");
    is(&client.frame(), "session.killed", "k2");
    client.say("session.kill", "k3", "{}");
    client.error("SESSION_NOT_FOUND");
}

#[test]
fn a_session_that_is_over_can_be_killed() {
    let mut client = Client::with_session();
    over(&mut client);
    client.say("session.kill", "k", "{}");
    is(&client.frame(), "session.killed", "k");
    send(&mut client, "s", "hi");
    client.error("SESSION_NOT_FOUND");
}

#[test]
fn a_session_that_cannot_be_killed_goes_on() {
    let mut client = Client::with_session();
    client.say("session.kill", "k", "{}");
    client.failed(ErrorCode::Overloaded, "busy");
    assert_eq!(client.error("SDK_ERROR")["id"], "k");
    client.say("session.interrupt", "i", "{}");
    client.done("{}");
    client.frame();
}

#[test]
fn an_agent_that_dies_is_an_error_of_its_session() {
    let mut client = Client::with_session();
    let error = Some(Text::from("the agent exited with code 3"));
    client.event(SessionEnded { reason: SessionEndReason::Failed, error });
    client.end();
    assert_eq!(
        client.frame(),
        json!({ "type": "error", "session_id": SESSION, "payload": {
            "code": "SDK_ERROR", "message": "the agent exited with code 3",
        } })
    );
}

#[test]
fn a_session_that_is_over_goes_on_with_the_next_prompt() {
    let carried =
        r#""mcp_servers":{"s":{"command":"a","env":{"KEY":"secret"}}},"hooks":{"Stop":[{}]}"#;
    let mut client = Client::with_options(&format!(r#"{{"model":"m",{carried}}}"#));
    over(&mut client);
    send(&mut client, "s1", "again");
    let new = client.start_of();
    assert_eq!(new.prompt, Some(Prompt::text("again")));
    assert_eq!(new.resume.as_ref().map(|id| id.as_str()), Some(SESSION));
    // Only what the log does not keep is said again: what was set since stays.
    let config = serde_json::to_value(&new.config).expect("JSON");
    assert_eq!(
        config,
        json!({
            "mcpServers": { "s": { "command": "a", "env": { "KEY": "secret" } } },
            "hooks": { "Stop": [{}] },
        })
    );
    // What comes meanwhile waits.
    send(&mut client, "s2", "and again");
    client.say("session.interrupt", "i", "{}");
    assert_eq!(client.asks(), 1);
    client.started(9);
    assert_eq!(client.command(), Command::Prompt(Prompt::text("and again")));
    client.done("{}");
    assert_eq!(client.command(), Command::Interrupt { cancel_queued: false });
    client.done("{}");
    is(&client.frame(), "session.interrupted", "i");
}

#[test]
fn a_prompt_that_meets_the_end_waits_for_it() {
    let mut client = Client::with_session();
    send(&mut client, "s1", "one");
    send(&mut client, "s2", "two");
    client.failed(ErrorCode::Conflict, "the session is over");
    client.failed(ErrorCode::SessionNotFound, "it does not run here");
    client.silent();
    assert_eq!(client.asks(), 0);
    over(&mut client);
    assert_eq!(client.start_of().prompt, Some(Prompt::text("one")));
    client.started(4);
    assert_eq!(client.command(), Command::Prompt(Prompt::text("two")));
    client.done("{}");
}

#[test]
fn a_session_that_cannot_go_on_says_so_to_each() {
    let mut client = Client::with_session();
    over(&mut client);
    send(&mut client, "s1", "one");
    send(&mut client, "s2", "two");
    client.failed(ErrorCode::Conflict, "its agent never told its own id of it");
    assert_eq!(client.error("SDK_ERROR")["id"], "s1");
    client.failed(ErrorCode::Conflict, "its agent never told its own id of it");
    assert_eq!(client.error("SDK_ERROR")["id"], "s2");
}

#[test]
fn a_method_of_a_session_that_is_over_fails() {
    let mut client = Client::with_session();
    over(&mut client);
    client.say("query.call", "q", r#"{"method":"setModel","args":["m"]}"#);
    let payload = client.frame()["payload"].clone();
    assert_eq!(payload["success"], false);
    assert!(payload["error"].as_str().expect("words").contains("session.send"), "{payload}");
}

#[test]
fn of_sessions_that_are_over_the_last_are_kept() {
    let (mut front, mut out) = (Backend::new(AgentType::Demo), Outbox::default());
    for number in 0..1030 {
        front.on_line(br#"{"type":"session.create","payload":{"prompt":""}}"#, &mut out);
        let Some(Effect::Ask(call, _)) = out.take().pop() else { panic!("no session is started") };
        let id = SessionId::from(format!("s{number}"));
        let session = Box::new(SessionSummary { id: id.clone(), ..summary() });
        front.on_reply(call, Ok(Reply::Started { session, after: 0 }), &mut out);
        front.on_end(&id, &mut out);
        out.take();
    }
    let mut goes_on = |id: &str| {
        let send =
            json!({ "type": "session.send", "session_id": id, "payload": { "message": "x" } });
        front.on_line(send.to_string().as_bytes(), &mut out);
        matches!(out.take().as_slice(), [Effect::Ask(..)])
    };
    assert!(!goes_on("s5") && goes_on("s6") && goes_on("s1029"));
}

/// Content blocks, as clients of this family send pictures.
#[test]
fn a_prompt_may_be_content_blocks() {
    let mut client = Client::with_session();
    let picture = json!({ "type": "base64", "media_type": "image/png", "data": "aGk=" });
    let blocks =
        json!([{ "type": "text", "text": "look" }, { "type": "image", "source": picture }]);
    client.say("session.send", "s", &json!({ "content": blocks }).to_string());
    let Command::Prompt(prompt) = client.command() else { panic!("no prompt") };
    assert_eq!(prompt.text, "look");
    assert_eq!(prompt.images.len(), 1);
    assert_eq!(prompt.images[0].data, "aGk=");
    client.done("{}");
    for wrong in [
        json!({}),
        json!({ "message": "" }),
        json!({ "content": [] }),
        json!({ "content": 7 }),
        json!({ "content": blocks, "message": "x" }),
    ] {
        client.say("session.send", "s", &wrong.to_string());
        client.error("INVALID_MESSAGE");
    }
    assert_eq!(client.asks(), 0);
}

/// What stops a session is never refused for its form.
#[test]
fn a_session_is_stopped_whatever_the_form() {
    for (kind, wanted) in [
        ("session.interrupt", Command::Interrupt { cancel_queued: false }),
        ("session.kill", Command::Stop),
    ] {
        for fields in [
            json!({ "payload": { "reason": "x" } }),
            json!({ "payload": [] }),
            json!({ "payload": 7, "extra": true }),
            json!({ "id": 7, "payload": {} }),
            json!({}),
        ] {
            let mut client = Client::with_session();
            let mut message = json!({ "type": kind, "session_id": SESSION });
            let all = message.as_object_mut().expect("an object");
            all.extend(fields.as_object().expect("an object").clone());
            client.line(&message.to_string());
            assert_eq!(client.command(), wanted, "{message}");
            client.done("{}");
            client.said();
        }
    }
}
