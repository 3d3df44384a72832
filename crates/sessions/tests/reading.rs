//! What the hub shows of sessions that it does not run: reading them writes nothing, and a session whose
//! process died ends for everyone who follows it.
#![expect(clippy::unwrap_used, reason = "a test that finds something else has failed")]

mod stores;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::SessionState;
use agentwire_sessions::hub::Events;
use agentwire_sessions::log::EventLog;
use agentwire_sessions::owner::Owner;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Batch, Filter};
use agentwire_sessions::{Hub, Settings};
use rusqlite::Connection;
use stores::{append, id, record};
use tokio::time::timeout;

/// Long enough for any machine; a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);

async fn next(events: &mut Events) -> Option<Batch> {
    timeout(LONG, events.next()).await.unwrap().unwrap()
}

/// A hub, and another process that runs session `a`, which has three events; `b` has ended.
async fn two(directory: &Path) -> (Hub, Owner) {
    let theirs = EventLog::new(Arc::new(Sqlite::open(directory).unwrap()));
    let owner = Owner::claim(directory).unwrap();
    for (session, state, owner) in
        [("a", SessionState::Working, Some(owner.name())), ("b", SessionState::Ended, None)]
    {
        let record = record(session, state, owner, 3);
        let first = Append { record, ..append(session, 1, 3) };
        theirs.open(id(session), 0).submit(first).await.unwrap();
    }
    theirs.shutdown().await;
    let settings = Settings { data_dir: directory.to_owned(), ..Settings::default() };
    (Hub::open(settings).await.unwrap(), owner)
}

/// Changes whenever another connection has written.
fn version(file: &Connection) -> u64 {
    file.query_row("PRAGMA data_version", [], |row| row.get(0)).unwrap()
}

async fn states(hub: &Hub) -> Vec<(String, SessionState)> {
    let all = hub.sessions(Filter::default()).await.unwrap().into_iter();
    all.map(|session| (session.id.to_string(), session.state)).collect()
}

#[tokio::test]
async fn who_reads_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (hub, _owner) = two(directory.path()).await;
    let file = Connection::open(directory.path().join("agentwire.db")).unwrap();
    let before = version(&file);
    for is_locked in [false, true] {
        if is_locked {
            file.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
        let listed = [("b", SessionState::Ended), ("a", SessionState::Working)];
        assert_eq!(states(&hub).await, listed.map(|(id, state)| (id.to_owned(), state)));
        assert_eq!(hub.summary(&id("a")).await.unwrap().last_seq, 3);
        assert!(hub.open_requests(None).await.unwrap().is_empty());
        let mut over = hub.events(&id("b"), 1).await.unwrap();
        assert_eq!(next(&mut over).await.map(|batch| batch.last()), Some(3));
        assert_eq!(next(&mut over).await, None);
        let mut live = hub.follow(&id("a"), 0);
        assert_eq!(next(&mut live).await.map(|batch| batch.last()), Some(3));
        // More may come.
        assert!(timeout(Duration::ZERO, live.next()).await.is_err());
        if is_locked {
            file.execute_batch("ROLLBACK").unwrap();
        }
        assert_eq!(version(&file), before, "locked: {is_locked}");
    }
}

#[tokio::test]
async fn who_follows_a_session_whose_process_died_reads_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let (hub, owner) = two(directory.path()).await;
    let mut follower = hub.follow(&id("a"), 0);
    assert_eq!(next(&mut follower).await.map(|batch| batch.last()), Some(3));
    let file = Connection::open(directory.path().join("agentwire.db")).unwrap();
    let before = version(&file);
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    drop(owner);
    // If its end cannot be written, it is shown as if it were, and nobody waits for it.
    let listed = [("b", SessionState::Ended), ("a", SessionState::Ended)];
    assert_eq!(states(&hub).await, listed.map(|(id, state)| (id.to_owned(), state)));
    assert_eq!(next(&mut follower).await, None);
    file.execute_batch("ROLLBACK").unwrap();
    assert_eq!(version(&file), before);

    let end = next(&mut follower).await.unwrap();
    assert_eq!((end.first, end.count), (4, 1));
    assert!(String::from_utf8_lossy(&end.lines).contains(r#""type":"sessionEnded""#), "{end:?}");
    assert_eq!(next(&mut follower).await, None);
    assert_eq!(hub.summary(&id("a")).await.unwrap().last_seq, 4);
}
