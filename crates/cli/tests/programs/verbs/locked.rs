//! Reading while another process holds the store never needs a lock that others may hold.

use std::process::{Child, Stdio};

use agentwire_protocol::SessionState;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::shared::error;
use crate::verbs::harness::EngineHome;

fn session<'a>(list: &'a Value, id: &str) -> &'a Value {
    let all = list["sessions"].as_array().expect("a list");
    all.iter().find(|session| session["id"] == id).expect("the session")
}

/// A session in its own process, once it is visible.
fn hanging(home: &EngineHome) -> (Child, String) {
    let list = home.json(&["ls", "--json", "--all"]);
    let known = list["sessions"].as_array().expect("a list").len();
    let mut run = home.command(&["run", "-a", "demo", "/hang"]);
    let run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    (run, working(home, known))
}

/// The working session, once there are more than `known` sessions.
fn working(home: &EngineHome, known: usize) -> String {
    loop {
        let list = home.json(&["ls", "--json", "--all"]);
        let all = list["sessions"].as_array().expect("a list");
        let new = all.iter().find(|session| session["state"] == "working");
        if let Some(new) = new.filter(|_| all.len() > known) {
            return new["id"].as_str().expect("an id").to_owned();
        }
        std::thread::yield_now();
    }
}

/// Runs every reading command on a session that has events.
fn read_all(home: &EngineHome, id: &str) {
    assert!(home.told(&["ls", "--all"]).contains(&id[..8]));
    assert_eq!(home.json(&["show", id, "--json"])["id"], id);
    let told = home.told(&["logs", id, "--format", "jsonl"]);
    let first: Value = serde_json::from_str(told.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["type"], "sessionStarted", "{told}");
    assert_eq!(home.told(&["export", id]), told);
}

#[test]
fn a_writer_that_does_not_let_go_keeps_nobody_from_reading() {
    let home = EngineHome::new();
    let over = home.ended("/say all is said");
    let (mut dead, left) = hanging(&home);
    dead.kill().expect("it is killed");
    dead.wait().expect("it ends");
    let hub = home.hub();
    let live = home.start(&hub, "/bash true");
    home.runtime.block_on(live.until(|now| now.state == SessionState::WaitingPermission));
    // The hub has closed the first orphaned session. The next one is orphaned while nobody can write.
    assert_eq!(session(&home.json(&["ls", "--json"]), &left)["reason"], "failed");
    let (mut dead, left) = hanging(&home);

    let holder = Connection::open(home.data().join("agentwire.db")).expect("a database");
    holder.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    dead.kill().expect("it is killed");
    dead.wait().expect("it ends");
    for id in [over.as_str(), live.id().as_str(), &left] {
        read_all(&home, id);
    }
    // It is shown as ended, although its end cannot be written now.
    let list = home.json(&["ls", "--json"]);
    assert_eq!(session(&list, &left)["state"], "ended", "{list:#}");
    assert_eq!(session(&list, &left)["reason"], "failed");
    assert_eq!(session(&list, live.id().as_str())["state"], "waitingPermission");
    assert!(!home.told(&["export", &left]).contains("sessionEnded"));
    // It cannot be resumed before its end is written.
    let output = home.run(&["run", "-a", "demo", "--resume", &left, "/say on"]);
    assert!(!output.status.success());
    assert!(error(&output).contains("not written yet"), "{}", error(&output));

    holder.execute_batch("ROLLBACK").expect("it releases the lock");
    assert_eq!(session(&home.json(&["ls", "--json"]), &left)["state"], "ended");
    assert!(home.told(&["export", &left]).contains("sessionEnded"));
    home.runtime.block_on(hub.shutdown());
}

#[test]
fn a_stopped_owner_keeps_nobody_from_reading() {
    let home = EngineHome::new();
    let (mut run, id) = hanging(&home);
    let pid = Pid::from_child(&run);
    kill_process(pid, Signal::STOP).expect("it is stopped");
    read_all(&home, &id);
    assert_eq!(session(&home.json(&["ls", "--json"]), &id)["state"], "working");
    kill_process(pid, Signal::CONT).expect("it continues");
    run.kill().expect("it is killed");
    run.wait().expect("it ends");
}
