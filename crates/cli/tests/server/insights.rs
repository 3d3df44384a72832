//! The insights wire, tested against its specification, at both of its addresses.

mod page;
mod requests;
mod sessions;

use serde_json::{Value, json};

use self::page::{Page, kinds};
use crate::shared::Server;

/// `session.create` exactly as specified, in each mode, at each address.
#[test]
fn a_session_is_created_in_every_mode() {
    let server = Server::start();
    let modes = ["default", "acceptEdits", "bypassPermissions", "plan"];
    for (mode, model) in modes.into_iter().zip(["sonnet", "opus", "haiku", "sonnet"]) {
        for at_insights in [true, false] {
            let mut page = Page::open(&server, at_insights);
            let file = format!("{mode}-{at_insights}.txt");
            let prompt = format!("/write {file} x\n/bash touch {file}.touched\n/say {{model}}");
            page.say(
                "session.create",
                json!({ "prompt": prompt, "cwd": server.work(),
                "allowed_tools": [], "permission_mode": mode, "model": model }),
            );
            let said = page.until("session.completed");
            assert_eq!(kinds(&said)[..2], ["session.created", "agent.spawned"]);
            let session = said[0]["payload"]["session_id"].clone();
            assert_eq!(
                said[1]["payload"],
                json!({ "session_id": session, "agent_id": "main",
                "parent_id": null, "label": "Main", "task_description": prompt })
            );
            let asked = said.iter().filter(|it| it["type"] == "permission.request").count();
            let failed = said.iter().filter(|it| it["payload"]["is_error"] == true).count();
            let (asks, fails) = match mode {
                "default" => (2, 0),
                "acceptEdits" => (1, 0),
                "plan" => (0, 2),
                _ => (0, 0),
            };
            assert_eq!((asked, failed), (asks, fails), "{mode}: {said:?}");
            assert_eq!(server.work().join(&file).exists(), mode != "plan", "{mode}");
            assert_eq!(page::text(&said), page::model_of(&said));
        }
    }
}

/// The life cycle: each step in order, then a follow-up, then the end.
#[test]
fn the_session_lifecycle() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/think hm\n/say hello\n/read nothing\n/say bye");
    let said = page.until("session.completed");
    let steps: Vec<&str> =
        kinds(&said).into_iter().filter(|kind| *kind != "agent.status").collect();
    let mut steps_once = steps.clone();
    steps_once.dedup();
    assert_eq!(
        steps_once,
        [
            "agent.spawned",
            "agent.output",
            "agent.tool_use",
            "agent.tool_result",
            "agent.output",
            "session.completed",
        ]
    );
    let statuses: Vec<&Value> = said
        .iter()
        .filter(|it| it["type"] == "agent.status")
        .map(|it| &it["payload"]["status"])
        .collect();
    assert_eq!(statuses, ["working", "waiting_tool", "working", "completed"]);
    let thinking = said.iter().find(|it| it["type"] == "agent.output").expect("output");
    assert_eq!(thinking["payload"]["content_type"], "thinking");
    assert_eq!(page::text(&said), "hellobye");
    page.input(&session, Value::Null, "/say {turns}");
    assert_eq!(page::text(&page.until("session.completed")), "2");
    page.say("session.kill", json!({ "session_id": session }));
    page.say("user.input", json!({ "session_id": session, "agent_id": null, "text": "x" }));
    assert_eq!(page.error(), "SESSION_NOT_FOUND");
    server.until(session.as_str().expect("an id"), "sessionEnded");
}

/// Note 6: the exact usage, at the specification's rates, over all turns.
#[test]
fn usage_is_the_sessions_so_far() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    let session = page.create("/usage 1000 100 10 20\n/say one");
    for turn in 1..4_u64 {
        let said = page.until("session.completed");
        let total = &said.last().expect("a message")["payload"]["total_usage"];
        let counts =
            ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"]
                .map(|name| total[name].as_u64().expect("a number"));
        assert_eq!(counts, [1000, 100, 10, 20].map(|count| count * turn));
        let cost = total["cost_usd"].as_f64().expect("a number");
        assert!((cost - 0.004_578 * turn as f64).abs() < 1e-9, "{cost}");
        page.input(&session, Value::Null, "/usage 1000 100 10 20");
    }
}

/// The specification's codes, except `INTERRUPT_FAILED`: no interrupt of the demo agent fails.
#[test]
fn errors_have_the_specifications_codes() {
    let server = Server::start();
    let mut page = Page::open(&server, true);
    page.text("{");
    assert_eq!(page.error(), "INVALID_JSON");
    page.say("session.fly", json!({}));
    assert_eq!(page.error(), "INVALID_MESSAGE");
    page.say("session.create", json!({ "prompt": "x", "cwd": "/no/such/directory" }));
    assert_eq!(page.error(), "SESSION_CREATE_FAILED");
    let nobody = "00000000-0000-4000-8000-000000000000";
    for (kind, more) in [
        ("user.input", json!({ "text": "x" })),
        ("session.kill", json!({})),
        ("session.interrupt", json!({})),
        ("permission_mode.change", json!({ "permission_mode": "plan" })),
        ("permission.response", json!({ "permission_id": "p", "approved": true })),
    ] {
        let mut payload = json!({ "session_id": nobody });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("more").clone());
        page.say(kind, payload);
        assert_eq!(page.error(), "SESSION_NOT_FOUND");
    }
    let session = page.create("/fail no model");
    let said = page.until("session.completed");
    let failed = said.iter().find(|it| it["type"] == "error").expect("an error");
    assert_eq!(
        failed["payload"],
        json!({ "session_id": session, "agent_id": "main",
        "message": "no model", "code": "HANDLER_ERROR" })
    );
    assert_eq!(kinds(&said)[said.len() - 3..], ["error", "agent.status", "session.completed"]);
    page.input(&session, json!("toolu_none"), "x");
    assert_eq!(page.error(), "INPUT_FAILED");
    page.say(
        "permission.response",
        json!({ "session_id": session, "permission_id": "p",
        "approved": true }),
    );
    assert_eq!(page.error(), "PERMISSION_RESPONSE_FAILED");
    // Giving an agent more power needs more than the scope `drive`.
    let token = server.verb(&["token", "create", "--scope", "drive"]);
    let token = token.lines().last().expect("a token").to_owned();
    let mut weak = Page::open_as(&server, &token);
    weak.say("session.create", json!({ "prompt": "x", "permission_mode": "bypassPermissions" }));
    assert_eq!(weak.error(), "SESSION_CREATE_FAILED");
    let session = weak.create("/say one");
    weak.until("session.completed");
    weak.say(
        "permission_mode.change",
        json!({ "session_id": session,
        "permission_mode": "acceptEdits" }),
    );
    assert_eq!(weak.error(), "PERMISSION_MODE_CHANGE_FAILED");
}

/// A recording is shown as a page would have seen it, with its requests.
#[test]
fn recordings_show_what_was_asked() {
    let server = Server::start();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../dialects/fixtures/claude");
    for (case, kind) in [
        ("real-d1-ask-user-question", "agent.question"),
        ("real-c1-bash-permission-allow", "permission.request"),
    ] {
        let file = format!("{fixtures}/{case}/agent.jsonl");
        let told = server.verb(&["translate", "--from", "claude", "--to", "insights", &file]);
        let told: Vec<Value> =
            told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        told.iter().for_each(page::check);
        assert!(kinds(&told).contains(&kind), "{case}: {:?}", kinds(&told));
    }
}
