//! A damaged store, as the commands show it.

use std::ops::RangeInclusive;

use agentwire_protocol::SessionId;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};

fn database(home: &EngineHome) -> Connection {
    Connection::open(home.data().join("agentwire.db")).expect("a database")
}

/// Flips a bit in the second batch of a session, and returns the numbers of its events.
fn damage(file: &Connection, session: &SessionId) -> RangeInclusive<u64> {
    let (row, first, count, mut lines): (i64, u64, u64, Vec<u8>) = file
        .query_row(
            "SELECT rowid, first, count, lines FROM batches WHERE first > 1 AND session = \
             (SELECT session FROM sessions WHERE id = ?1) ORDER BY first LIMIT 1",
            [session.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .expect("a batch");
    let middle = lines.len() / 2;
    *lines.get_mut(middle).expect("a byte") ^= 2;
    let set = "UPDATE batches SET lines = ?2 WHERE rowid = ?1";
    file.execute(set, params![row, lines]).expect("it is written");
    first..=first + count - 1
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn damage_is_told_where_it_is_and_all_else_is_as_it_was() {
    let home = EngineHome::new();
    let [whole, damaged, lost, cut] =
        ["whole", "damaged", "lost", "cut"].map(|word| home.ended(&format!("/say {word}")));
    let ids = [&cut, &lost, &damaged, &whole];
    let before = ids.map(|id| events(&home.told(&["export", id.as_str()])));
    let file = database(&home);
    let range = damage(&file, &damaged);
    let set = "UPDATE sessions SET record = 'x' || record WHERE id = ?1";
    file.execute(set, [lost.as_str()]).expect("it is written");
    let last: u64 = file
        .query_row(
            "DELETE FROM batches WHERE rowid = (SELECT max(rowid) FROM batches WHERE session = \
             (SELECT session FROM sessions WHERE id = ?1)) RETURNING first",
            [cut.as_str()],
            |row| row.get(0),
        )
        .expect("a batch");

    let list = home.json(&["ls", "--json"]);
    let listed = list["sessions"].as_array().expect("a list");
    assert_eq!(listed.len(), 4);
    for (session, id) in listed.iter().zip(ids) {
        assert_eq!((&session["id"], &session["state"]), (&json!(id.as_str()), &json!("ended")));
        let told = session["error"].as_str().unwrap_or_default();
        assert_eq!(told.starts_with("damaged record"), id == &lost, "{session:#}");
    }
    for (id, before) in ids.into_iter().zip(before) {
        for verb in [&["export", id.as_str()][..], &["logs", id.as_str(), "--format", "jsonl"]] {
            let now = events(&home.told(verb));
            assert_eq!(now.len(), before.len(), "{verb:?}");
            for (seq, (now, before)) in (1..).zip(now.iter().zip(&before)) {
                let why = match seq {
                    _ if id == &damaged && range.contains(&seq) => "damaged",
                    _ if id == &cut && seq >= last => "missing",
                    _ => {
                        assert_eq!(now, before);
                        continue;
                    }
                };
                assert_eq!(now["seq"], seq, "{now}");
                assert_eq!((&now["type"], &now["code"]), (&json!("error"), &json!(why)));
                assert!(now["message"].as_str().expect("text").contains(id.as_str()), "{now}");
            }
        }
        home.told(&["logs", id.as_str()]);
        home.told(&["export", id.as_str(), "--format", "markdown"]);
    }

    let output = home.run(&["doctor", "--json"]);
    assert_eq!(code(&output), Some(1), "{}", error(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = told["checks"].as_array().expect("checks");
    let found = checks.iter().filter(|check| check["name"] == "damage");
    let found: Vec<&str> = found.map(|check| check["message"].as_str().expect("text")).collect();
    assert_eq!(found.len(), 3, "{told:#}");
    for (id, words) in [(&damaged, "damaged"), (&lost, "record"), (&cut, "missing")] {
        let is_told = |text: &&str| text.contains(id.as_str()) && text.contains(words);
        assert!(found.iter().any(is_told), "{found:?}");
    }

    // The damaged record is not enough to resume from.
    let output = home.run(&["run", "-a", "demo", "--resume", lost.as_str(), "/say on"]);
    assert!(error(&output).contains("damaged record"), "{}", error(&output));
    assert!(
        home.told(&["run", "-a", "demo", "--resume", whole.as_str(), "/say on"]).contains("on")
    );
    assert_eq!(home.json(&["prune", "--older-than", "0s", "--yes", "--json"])["pruned"], 4);
}
