//! What is handed to the log, and what follows once it is durable.

use agentwire_protocol::{Json, SessionId};
use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::store::memory::Memory;

fn record(last_seq: u64) -> Record {
    let record = json!({
        "summary": {
            "id": "s", "agentType": "demo", "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": last_seq, "turns": 0, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        },
        "owner": null, "config": {}, "open": {},
    });
    serde_json::from_value(record).expect("a record")
}

/// Also returns the session as its readers see it.
fn outbox(keys: &[&str]) -> (Outbox, watch::Receiver<SessionSummary>) {
    let log = EventLog::new(Arc::new(Memory::new()));
    let writer = log.open(SessionId::from("s"), 0);
    let (told, seen) = watch::channel(record(0).summary);
    let keys = keys.iter().map(|key| ((*key).to_owned(), "{}".to_owned())).collect();
    (Outbox::new(log, writer, told, keys), seen)
}

fn batch(first: u64, lines: &'static [u8]) -> Option<Batch> {
    let count = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
    Some(Batch { first, count, lines: Bytes::from_static(lines) })
}

#[tokio::test]
async fn nobody_sees_or_hears_of_what_is_not_durable() {
    let (mut outbox, seen) = outbox(&[]);
    let (caller, reply) = oneshot::channel();
    let answered = CommandReply { reply: Ok(Json::EMPTY), last_seq: 2 };
    let effects = vec![Effect::Write("a".to_owned()), Effect::CloseStdin];
    outbox.submit(batch(1, b"{}\n{}\n"), record(2), vec![(caller, answered)], effects);
    assert!(outbox.is_busy());
    outbox.committed().await.expect("the store accepts it");
    // The effects wait until they are taken.
    assert!(outbox.is_busy());
    assert!(reply.await.expect("an answer").reply.is_ok());
    assert_eq!(
        (outbox.last_seq(), seen.borrow().last_seq),
        (2, 2),
        "a caller with a reply sees it"
    );
    let batch = outbox.take_committed();
    assert!(!outbox.is_busy());
    assert_eq!((batch.events, batch.bytes, batch.effects.len()), (2, 6, 2));
    assert_eq!(outbox.take_committed().effects.len(), 0, "they happen once");
}

#[tokio::test]
async fn a_store_that_refuses_changes_nothing_and_the_caller_hears_why() {
    let (mut outbox, seen) = outbox(&[]);
    let (caller, reply) = oneshot::channel();
    let answered = CommandReply { reply: Ok(Json::EMPTY), last_seq: 9 };
    // The log has no events before this one.
    outbox.submit(batch(9, b"{}\n"), record(9), vec![(caller, answered)], Vec::new());
    assert!(outbox.committed().await.is_err());
    assert!(reply.await.expect("an answer").reply.is_err());
    assert_eq!((outbox.last_seq(), seen.borrow().last_seq), (0, 0));
}

#[tokio::test]
async fn keys_become_durable_with_what_they_are_for() {
    let (mut outbox, _seen) = outbox(&["first"]);
    outbox.store_key(("second".to_owned(), "{}".to_owned()));
    assert!(outbox.has_keys());
    assert_eq!(outbox.undurable(), 2);
    outbox.submit(batch(1, b"{}\n"), record(1), Vec::new(), Vec::new());
    assert!(!outbox.has_keys());
    assert_eq!(outbox.undurable(), 2, "they are in flight");
    outbox.store_key(("third".to_owned(), "{}".to_owned()));
    outbox.committed().await.expect("the store accepts it");
    outbox.take_committed();
    assert_eq!(outbox.undurable(), 1);
    outbox.close();
    assert_eq!(outbox.undurable(), 0);
}

#[tokio::test]
async fn what_follows_can_be_taken_back_until_it_happens() {
    let (mut outbox, mut seen) = outbox(&[]);
    let effects = vec![Effect::Write("a".to_owned()), Effect::CloseStdin];
    outbox.submit(batch(1, b"{}\n"), record(1), Vec::new(), effects);
    outbox.retain(|effect| matches!(effect, Effect::CloseStdin));
    outbox.committed().await.expect("the store accepts it");
    assert!(matches!(outbox.take_committed().effects[..], [Effect::CloseStdin]));
    seen.wait_for(|session| session.last_seq == 1).await.expect("it is durable");
    outbox.close();
    assert_eq!(seen.borrow().state, SessionState::Ended);
}
