//! The committed OpenAPI document matches the routes.

use std::collections::BTreeSet;
use std::path::Path;

use agentwire_server::http::openapi;
use serde_json::Value;

/// Run with `AGENTWIRE_UPDATE=1` to rewrite it.
#[test]
fn the_committed_description_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/openapi.json"));
    let current = openapi();
    if std::env::var_os("AGENTWIRE_UPDATE").is_some() {
        std::fs::write(path, format!("{current:#}\n")).expect("it can be written");
    }
    let text = std::fs::read_to_string(path).expect("it is committed");
    let committed: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(committed, current, "openapi.json is stale: AGENTWIRE_UPDATE=1");
}

/// Request and response headers, and responses without a body.
#[test]
fn heads_are_described() {
    let document = openapi();
    let at = |path: &str, method: &str| document["paths"][path][method].clone();
    let headers = |act: &Value| -> Vec<String> {
        let parameters = act["parameters"].as_array().expect("parameters").iter();
        let headers = parameters.filter(|it| it["in"] == "header");
        headers.map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
    };
    for path in ["/v1/sessions", "/v1/sessions/{id}/prompt", "/api/sessions"] {
        assert_eq!(headers(&at(path, "post")), ["Idempotency-Key"], "{path}");
    }
    let created = &at("/v1/sessions", "post")["responses"]["201"];
    assert!(created["headers"]["Location"].is_object(), "{created}");
    let events = at("/v1/sessions/{id}/events", "get");
    assert_eq!(headers(&events), ["Last-Event-ID"]);
    for status in ["200", "204"] {
        let answer = &events["responses"][status];
        assert!(answer["headers"]["Agentwire-Resume"].is_object(), "{answer}");
    }
    assert_eq!(events["responses"]["204"]["content"], Value::Null);
}

/// Every reference resolves, and operation names are unique.
#[test]
fn the_description_holds_together() {
    let document = openapi();
    let mut names = BTreeSet::new();
    for (path, acts) in document["paths"].as_object().expect("paths") {
        for (method, act) in acts.as_object().expect("methods") {
            let name = act["operationId"].as_str().expect("a name");
            assert!(names.insert(name.to_owned()), "{method} {path}: {name} is there twice");
        }
    }
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(place)) = fields.get("$ref") {
                    let pointer = place.strip_prefix('#').expect("a place in this document");
                    assert!(document.pointer(pointer).is_some(), "{place} is nowhere");
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
