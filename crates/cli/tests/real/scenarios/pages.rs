//! The wires of web pages over the real program: a tool, text, the end, and the usage.

use std::net::TcpStream;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use super::turns;
use crate::harness::Place;
use crate::specified;
use crate::trouble::Trouble;

const TEXT: &str = "seen by the page, word by word";

pub(crate) fn insights(place: &mut Place) {
    let place = chosen(place);
    let work = place.workspace();
    let mut socket = place.socket("/insights");
    let payload =
        json!({ "prompt": script(&place), "cwd": work, "permission_mode": "bypassPermissions" });
    let id = "6b1f2f0e-9d0c-4a6e-8a53-0d1c2b3a4f5e";
    let message = json!({ "type": "session.create", "id": id, "payload": payload });
    socket.send(Message::text(message.to_string())).expect("it listens");
    let mut said: Vec<Value> = Vec::new();
    while said.last().is_none_or(|last| last["type"] != "session.completed") {
        let frame = heard(&mut socket).expect("an end");
        specified::insights(&frame);
        assert_ne!(frame["type"], "error", "{frame}");
        said.push(frame);
    }
    let of = |kind: &str| said.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    let spoken: Vec<&str> = of("agent.output")
        .into_iter()
        .filter(|it| it["payload"]["content_type"] == "text")
        .filter_map(|it| it["payload"]["content"].as_str())
        .collect();
    assert_eq!(spoken.concat().trim(), TEXT, "{said:?}");
    assert!(spoken.len() > 1 || !place.agent.has_deltas, "it does not stream: {spoken:?}");
    let (used, results) = (of("agent.tool_use"), of("agent.tool_result"));
    assert_eq!((used.len(), results.len()), (1, 1), "{said:?}");
    assert_eq!(used[0]["payload"]["tool_use_id"], results[0]["payload"]["tool_use_id"]);
    assert!(work.join("by-page.txt").exists(), "{said:?}");
    let usage = &said.last().expect("an end")["payload"]["total_usage"];
    if place.agent.cannot("usage").is_none() {
        assert_eq!(usage["output_tokens"], turns::reported(&place).output, "{usage}");
    }
    drop(socket);
    place.stop_all();
}

pub(crate) fn board(place: &mut Place) {
    let place = chosen(place);
    let body = json!({ "agentId": place.agent.kind, "prompt": script(&place) });
    let created = place.ask("POST", "/api/sessions", &body).expect("a session");
    let id = created["id"].as_str().expect("an id").to_owned();
    let mut socket = place.socket(&format!("/ws/sessions/{id}"));
    let mut said = Vec::new();
    while let Some(event) = heard(&mut socket) {
        specified::board(&event, &id);
        said.push(event);
    }
    let of = |kind: &str| said.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    assert!(of("error").is_empty(), "{said:?}");
    let lines = of("log").into_iter().filter_map(|it| it["payload"]["line"].as_str());
    assert!(lines.collect::<Vec<_>>().concat().contains(TEXT), "{said:?}");
    let (used, results) = (of("action"), of("toolResult"));
    assert_eq!((used.len(), results.len()), (1, 1), "{said:?}");
    assert!(place.home().join("by-page.txt").exists(), "{said:?}");
    let state = place.ask("GET", &format!("/api/sessions/{id}"), &Value::Null).expect("it");
    assert_eq!(state["state"], "done", "{said:?}");
    let path = format!("/api/sessions/{id}/events?offset=0&limit=1000");
    let page = place.ask("GET", &path, &Value::Null).expect("a page");
    assert_eq!(page["events"], json!(said));
    place.stop_all();
}

/// A place whose server uses this program by default and allows everything.
fn chosen(place: &Place) -> Place {
    let agent = &place.agent;
    let settings = format!(
        "agent = '{0}'\n[agents.{0}]\ndriver = '{1}'\nmodel = '{2}'\n[policy]\napproval = 'autoAll'\n",
        agent.kind, agent.driver, agent.model
    );
    place.with(Trouble { settings: Some(settings), ..Trouble::default() })
}

fn script(place: &Place) -> String {
    let call = (place.agent.words.shell)("touch by-page.txt").step();
    format!("{call} [[slow 20]] [[say {TEXT}]]")
}

/// The next message; `None` once the server has closed.
fn heard(socket: &mut WebSocket<TcpStream>) -> Option<Value> {
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).expect("JSON")),
            Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => return None,
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
