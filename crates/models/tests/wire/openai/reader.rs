//! Reads a stream and checks every event.

use serde_json::{Value, json};

use crate::client::HttpResponse;

/// The events as values; each is named after its type and has the next number.
pub(super) fn events(answer: &HttpResponse) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let values = answer.events().into_iter().enumerate().map(|(number, (name, data))| {
        let value: Value = serde_json::from_str(&data).expect("JSON");
        assert_eq!(value["type"], name.as_str());
        assert_eq!(value["sequence_number"], number);
        value
    });
    values.collect()
}

/// The response at the end of a stream; its items must match the events before it.
pub(super) fn response(answer: &HttpResponse) -> Value {
    let events = events(answer);
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[1]["type"], "response.in_progress");
    let mut output: Vec<Value> = Vec::new();
    let mut open: Option<Value> = None;
    let mut text = String::new();
    for event in &events[2..events.len() - 1] {
        let kind = event["type"].as_str().expect("a type");
        assert_eq!(event["output_index"], output.len(), "{event}");
        if kind == "response.output_item.added" {
            assert!(open.replace(event["item"].clone()).is_none());
            text.clear();
            continue;
        }
        let item = open.as_mut().expect("an open item");
        if kind == "response.output_item.done" {
            let done = &event["item"];
            if done["status"].is_string() {
                assert_eq!(item["status"], "in_progress");
                item["status"] = json!("completed");
            }
            assert_eq!(item, done);
            output.extend(open.take());
            continue;
        }
        assert_eq!(event["item_id"], item["id"]);
        let list = match kind {
            kind if kind.contains("content_part") => Some("content"),
            kind if kind.contains("summary_part") => Some("summary"),
            _ => None,
        };
        match (kind.rsplit_once('.').expect("a dot").1, list) {
            ("added", Some(_)) => assert_eq!(event["part"]["text"], ""),
            ("done", Some(list)) => {
                assert_eq!(event["part"]["text"], text.as_str());
                item[list].as_array_mut().expect("a list").push(event["part"].clone());
            }
            ("delta", None) => text.push_str(event["delta"].as_str().expect("a text")),
            ("done", None) => {
                let field = ["text", "arguments", "input"]
                    .into_iter()
                    .find(|field| event.get(field).is_some())
                    .expect("a field with the text");
                assert_eq!(event[field], text.as_str());
                if field != "text" {
                    item[field] = event[field].clone();
                }
            }
            ("in_progress" | "completed", None) => {}
            (other, _) => panic!("{other}"),
        }
    }
    assert!(open.is_none());
    let last = events.last().expect("an event");
    let response = last["response"].clone();
    let status = response["status"].as_str().expect("a status");
    assert_eq!(last["type"], format!("response.{status}"));
    assert_eq!(response["output"], Value::Array(output));
    assert_eq!(response["id"], events[0]["response"]["id"]);
    response
}
