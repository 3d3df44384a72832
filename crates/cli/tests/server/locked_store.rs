//! A store that another process has locked: only writes wait.

use rusqlite::Connection;
use serde_json::json;

use crate::shared::Server;

#[test]
fn a_store_that_takes_nothing_stops_no_call_that_reads() {
    let server = Server::start();
    let over = server.session("/say fine");
    server.until(&over, "turnCompleted");
    let live = server.session("/bash true");
    server.until_open(&live);
    let file = Connection::open(server.data().join("agentwire.db")).expect("a database");
    file.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    std::thread::scope(|scope| {
        // They wait for the store. There are more of them than serving threads.
        let waiting = (0..16).map(|_| {
            let prompt = json!({ "agentType": "demo", "prompt": "/say late" });
            let server = &server;
            scope.spawn(move || server.ask("POST", "/v1/sessions", Some(&prompt)).status)
        });
        let waiting: Vec<_> = waiting.collect();
        for _ in 0..20 {
            assert_eq!(server.raw("GET", "/healthz", &[], b"").status, 200);
            assert_eq!(server.get(&format!("/v1/sessions/{live}"))["state"], "waitingPermission");
            let page = server.get(&format!("/v1/sessions/{over}/events"));
            assert_eq!(page["events"][0]["type"], "sessionStarted");
            assert!(server.get("/v1/sessions")["sessions"].as_array().expect("a list").len() >= 2);
            assert_eq!(server.ask("GET", "/metrics", None).status, 200);
        }
        file.execute_batch("ROLLBACK").expect("the lock is released");
        for call in waiting {
            let status = call.join().expect("an answer");
            // It was stored in the end, or refused with the advice to retry.
            assert!([201, 429, 503, 507].contains(&status), "{status}");
        }
    });
    let next = server.session("/say fine");
    server.until(&next, "turnCompleted");
    assert_eq!(server.stop(), Some(0));
}
