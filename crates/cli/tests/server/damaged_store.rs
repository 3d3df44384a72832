//! A server with a damaged store starts, and serves everything that is intact.

use rusqlite::Connection;
use serde_json::Value;

use crate::shared::Server;

#[test]
fn a_damaged_session_harms_neither_the_server_nor_the_others() {
    let server = Server::start();
    let ids: Vec<String> = (0..4).map(|_| server.session("/say fine")).collect();
    for id in &ids {
        server.until(id, "turnCompleted");
        server.post(&format!("/v1/sessions/{id}/stop"), &serde_json::json!({}));
        server.until(id, "sessionEnded");
    }
    let file = Connection::open(server.data().join("agentwire.db")).expect("a database");
    let change = |statement: &str, id: &str| {
        assert!(file.execute(statement, [id]).expect("it is written") > 0, "{statement}");
    };
    let of = "session = (SELECT session FROM sessions WHERE id = ?1)";
    // Neither UTF-8 nor line ends: pages would not be valid JSON.
    change(
        &format!(
            "UPDATE batches SET lines = CAST(replace(CAST(lines AS TEXT), char(10), char(255)) AS BLOB) \
             WHERE first > 1 AND {of}"
        ),
        &ids[0],
    );
    change(
        "UPDATE sessions SET record = CAST(x'ff00ff' AS TEXT), state = 'working' WHERE id = ?1",
        &ids[1],
    );
    change(
        "UPDATE sessions SET state = 'parked', record = replace('{' || substr(record, 24), \
         '\"state\":\"ended\"', '\"state\":\"parked\"') WHERE id = ?1",
        &ids[2],
    );
    change(&format!("UPDATE batches SET size = 35184372088832 WHERE {of}"), &ids[0]);

    let server = server.again();
    let list = server.ask("GET", "/v1/sessions", None);
    assert_eq!(list.status, 200, "{list:?}");
    let list = list.json();
    let listed = list["sessions"].as_array().expect("a list");
    assert_eq!(listed.len(), 4, "{list:#}");
    for id in &ids {
        let shown = server.ask("GET", &format!("/v1/sessions/{id}"), None);
        assert_eq!((shown.status, &shown.json()["id"]), (200, &Value::from(id.as_str())));
        let page = server.ask("GET", &format!("/v1/sessions/{id}/events?limit=1000"), None);
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        let events = page["events"].as_array().expect("events");
        assert_eq!(page["next"], events.len() as u64);
        for (seq, event) in (1..).zip(events) {
            assert_eq!(event["seq"], seq, "{event}");
            let is_damaged = event["code"] == "damaged";
            assert_eq!(is_damaged, *id == ids[0], "{event}");
            if is_damaged {
                assert_eq!(event["details"]["from"], 1);
                assert_eq!(event["details"]["to"], events.len() as u64);
            }
        }
    }
    // The server still works.
    let next = server.session("/say fine");
    server.until(&next, "turnCompleted");
    assert_eq!(server.stop(), Some(0));
}
