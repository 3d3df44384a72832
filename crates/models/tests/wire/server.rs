//! What all APIs have in common.

use std::sync::{Arc, Mutex};

use agentwire_models::{ModelServer, Options};
use serde_json::json;

use crate::client::{Exchange, eventually, post};

fn server() -> ModelServer {
    ModelServer::start(Options::default()).expect("a server")
}

fn hello() -> serde_json::Value {
    json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "[[say hi]]"}]})
}

#[test]
fn requests_are_recorded_without_keys() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let server = ModelServer::start(Options {
        watch: Some(Arc::new(move |seen| noted.lock().expect("no panic").push(seen.status))),
        ..Options::default()
    })
    .expect("a server");
    let headers =
        [("X-Api-Key", "very-secret"), ("Authorization", "Bearer very-secret"), ("X-App", "cli")];
    let body = hello().to_string();
    Exchange::start(&server, "POST", "/v1/messages?beta=true", &headers, body.as_bytes()).finish();
    let requests = server.requests();
    let [request] = requests.as_slice() else { panic!("one request") };
    assert_eq!(request.api, Some("anthropic"));
    assert_eq!(request.path, "/v1/messages?beta=true");
    assert_eq!((request.method.as_str(), request.status), ("POST", 200));
    assert_eq!(request.model.as_deref(), Some("m"));
    assert_eq!(request.json(), Some(hello()));
    assert_eq!(request.headers["x-app"], "cli");
    assert!(!format!("{request:?}").contains("very-secret"));
    assert_eq!(*seen.lock().expect("no panic"), [200]);
    assert!(server.unknown().is_empty());
}

#[test]
fn unknown_paths_are_refused_and_recorded() {
    let server = server();
    let plain = Exchange::start(&server, "GET", "/favicon.ico", &[], b"").finish();
    assert_eq!(plain.status, 404);
    assert!(plain.json()["error"]["message"].as_str().expect("a text").contains("/favicon.ico"));
    let owned = post(&server, "/v1/messages/batches", &json!({}));
    assert_eq!((owned.status, &owned.json()["error"]["type"]), (404, &json!("not_found_error")));
    assert_eq!(Exchange::start(&server, "DELETE", "/v1/messages", &[], b"").finish().status, 404);
    let unknown: Vec<String> = server.unknown().into_iter().map(|seen| seen.path).collect();
    assert_eq!(unknown, ["/favicon.ico", "/v1/messages/batches", "/v1/messages"]);
}

#[test]
fn an_unknown_model_is_refused_in_each_apis_format() {
    let server = server();
    let mut body = hello();
    body["model"] = json!("no-such-model");
    let answer = post(&server, "/v1/messages", &body);
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (404, &json!("not_found_error")));
    let answer = post(&server, "/v1/responses", &json!({"model": "no-such-model", "input": "hi"}));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("model_not_found")));
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let path = "/v1beta/models/no-such-model:generateContent";
    let answer = post(&server, path, &body);
    assert_eq!((answer.status, &answer.json()["error"]["status"]), (404, &json!("NOT_FOUND")));
    assert!(answer.json()["error"]["message"].as_str().expect("a text").contains("no-such-model"));
}

#[test]
fn the_root_path_answers() {
    let server = server();
    assert_eq!(Exchange::start(&server, "HEAD", "/", &[], b"").status(), 200);
    let hello = Exchange::start(&server, "GET", "/", &[], b"").finish().json();
    assert_eq!(hello["apis"][0], "anthropic");
    assert!(server.unknown().is_empty());
}

#[test]
fn too_large_a_body_is_refused_and_does_not_end_the_server() {
    let server = server();
    let body = vec![b' '; 64 * 1024 * 1024 + 1];
    let answer = Exchange::start(&server, "POST", "/v1/messages", &[], &body).finish();
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["type"], "request_too_large");
    assert_eq!(post(&server, "/v1/messages", &hello()).status, 200);
}

#[test]
fn dropping_the_server_ends_hanging_connections_and_frees_the_port() {
    let server = server();
    let port = server.address().port();
    let mut body = hello();
    body["stream"] = json!(true);
    body["messages"][0]["content"] = json!("[[say hi]] [[hang]]");
    let path = "/v1/messages";
    let exchange = Exchange::start(&server, "POST", path, &[], body.to_string().as_bytes());
    eventually("the request is noted", || !server.requests().is_empty());
    drop(server);
    assert!(!exchange.finish().whole);
    let again = ModelServer::start(Options { port, ..Options::default() }).expect("a server");
    assert_eq!(again.url(), format!("http://127.0.0.1:{port}"));
}

#[test]
fn a_taken_port_is_an_error() {
    let first = server();
    let port = first.address().port();
    let error = ModelServer::start(Options { port, ..Options::default() }).expect_err("taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn many_at_once() {
    let server = server();
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| assert_eq!(post(&server, "/v1/messages", &hello()).status, 200));
        }
    });
    assert_eq!(server.requests().len(), 32);
}

#[tokio::test]
async fn it_starts_and_ends_inside_a_runtime() {
    let server = server();
    let address = server.address();
    drop(server);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
