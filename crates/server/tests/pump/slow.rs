//! A client that stops reading: it alone waits, what waits for it is bounded, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentwire_dialects::front::{Front, Outbox, Reply};
use agentwire_dialects::unified::Unified;
use agentwire_protocol::{Call, GatewayError, SessionId, SessionState};
use serde_json::json;

use crate::harness::{Gateway, PATIENCE};

/// What may wait for a client: the pump's own limit, and the batch that was at hand.
const BOUND: usize = 8 << 20;

/// Counts the bytes of events that it was given.
struct Counting(Unified, Arc<AtomicUsize>);

impl Front for Counting {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        self.0.on_line(line, out);
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        self.0.on_overlong(bytes, out);
    }

    fn on_reply(&mut self, call: Call, reply: Result<Reply, GatewayError>, out: &mut Outbox) {
        self.0.on_reply(call, reply, out);
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        self.1.fetch_add(event.len(), Ordering::Relaxed);
        self.0.on_event(session, event, out);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_slows_nobody_and_loses_nothing() {
    let gateway = Gateway::new().await;
    let given = Arc::new(AtomicUsize::new(0));
    let mut slow = gateway.client_of(Counting(Unified::default(), given.clone()), None);
    let flood = slow.start("FLOOD").await;

    // Its agent goes on to the end of its turn, and so do all others.
    let session = gateway.hub.session(&SessionId::from(flood.as_str())).expect("it runs");
    let done =
        session.until(|summary| summary.last_seq > 400 && summary.state == SessionState::Idle);
    let last = tokio::time::timeout(PATIENCE, done).await.expect("the agent goes on").last_seq;
    let mut quick = gateway.client();
    quick.start("hello").await;
    quick.event("turnCompleted").await;
    quick.hang_up().await;
    assert_eq!(quick.rest().await.1, 0);
    assert!(last > 400, "{last}");
    let waiting = given.load(Ordering::Relaxed);
    assert!(waiting < BOUND, "{waiting} bytes wait for the client");

    // It is still listened to, and reads all that it missed, in order.
    slow.say(json!({ "id": "late", "command": "fly" })).await;
    let (mut seq, mut chars) = (0, 0);
    let mut is_answered = false;
    loop {
        let frame = slow.frame().await;
        if frame["id"] == "late" {
            is_answered = true;
            continue;
        }
        seq += 1;
        assert_eq!(frame["seq"], seq);
        chars += frame["content"].as_str().map_or(0, str::len);
        if frame["type"] == "turnCompleted" {
            break;
        }
    }
    assert!(is_answered);
    assert_eq!(chars, 400 * 65536);
    slow.hang_up().await;
    assert_eq!(slow.rest().await.1, 0);
    gateway.end().await;
}
