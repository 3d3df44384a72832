//! A client that stops reading: only that client waits, what waits for it is bounded, and nothing is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentwire_dialects::front::{Front, GatewayCall, GatewayReply, Outbox};
use agentwire_dialects::unified::Unified;
use agentwire_protocol::{Call, GatewayError, SessionId, SessionState};
use serde_json::json;
use tokio::sync::watch;

use crate::harness::{Client, Gateway, PATIENCE};

/// How many bytes may wait for a client: the pump's own limit, plus the current batch.
const BOUND: usize = 8 << 20;

/// How many calls may be open, plus the one that was just read.
const OPEN_CALLS: usize = 1025;

/// Counts the bytes it was given, and the calls without a reply.
struct Counting {
    front: Unified,
    given: Arc<AtomicUsize>,
    open: watch::Sender<usize>,
}

impl Counting {
    fn new() -> (Self, Arc<AtomicUsize>, watch::Receiver<usize>) {
        let (given, (open, most)) = (Arc::default(), watch::channel(0));
        (Self { front: Unified::default(), given: Arc::clone(&given), open }, given, most)
    }
}

impl Front for Counting {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        self.open.send_modify(|open| *open += 1);
        assert!(*self.open.borrow() <= OPEN_CALLS, "calls pile up");
        if let Some(session) = line.strip_prefix(b"page ") {
            let session = SessionId::from(str::from_utf8(session).expect("an id"));
            out.call(GatewayCall::Events { session, after: 0, limit: 10_000 });
            return;
        }
        self.front.on_line(line, out);
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        self.front.on_overlong(bytes, out);
    }

    fn on_reply(
        &mut self,
        call: Call,
        reply: Result<GatewayReply, GatewayError>,
        out: &mut Outbox,
    ) {
        self.open.send_modify(|open| *open -= 1);
        if let Ok(GatewayReply::Events { events, .. }) = &reply {
            self.given.fetch_add(events.get().len(), Ordering::Relaxed);
            return out.send(format!("{{\"page\":{}}}", events.get()));
        }
        self.front.on_reply(call, reply, out);
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        self.given.fetch_add(event.len(), Ordering::Relaxed);
        self.front.on_event(session, event, out);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_slows_nobody_and_loses_nothing() {
    let gateway = Gateway::new().await;
    let (front, given, _) = Counting::new();
    let mut slow = gateway.client_of(front, None);
    let flood = slow.start("FLOOD").await;

    // Its agent continues to the end of its turn, and so do all others.
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

    // Its input is still read, and it reads everything it missed, in order.
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

/// A session whose agent has sent more than its client reads.
async fn flooded(gateway: &Gateway, client: &mut Client) -> String {
    let id = client.start("FLOOD").await;
    let session = gateway.hub.session(&SessionId::from(id.as_str())).expect("it runs");
    let done =
        session.until(|summary| summary.last_seq > 400 && summary.state == SessionState::Idle);
    tokio::time::timeout(PATIENCE, done).await.expect("the agent goes on");
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_wait_for_events_are_bounded_and_none_is_lost() {
    let gateway = Gateway::new().await;
    let (front, _, mut open) = Counting::new();
    let mut client = gateway.client_of(front, None);
    let id = flooded(&gateway, &mut client).await;
    let commands: Vec<String> = (0..3000)
        .map(|number| {
            json!({ "id": number, "command": "interrupt", "sessionId": id }).to_string() + "\n"
        })
        .collect();
    client.pour(commands.concat());
    let piled = open.wait_for(|open| *open >= OPEN_CALLS - 1);
    tokio::time::timeout(PATIENCE, piled).await.expect("they wait").expect("it runs");
    let (frames, code) = client.rest().await;
    let ids: BTreeSet<u64> = frames.iter().filter_map(|frame| frame["id"].as_u64()).collect();
    assert!(ids.into_iter().eq(0..3000) && code == 0);
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_read_as_the_client_takes_them() {
    let gateway = Gateway::new().await;
    let mut other = gateway.client();
    let id = flooded(&gateway, &mut other).await;
    let (front, given, mut open) = Counting::new();
    let mut client = gateway.client_of(front, None);
    for _ in 0..40 {
        client.bytes(format!("page {id}\n").as_bytes()).await;
    }
    let asked = open.wait_for(|open| *open < 40);
    tokio::time::timeout(PATIENCE, asked).await.expect("a page is read").expect("it runs");
    let first = client.line().await.expect("a page").len();
    // The page that the client is reading, and the next one.
    let waiting = given.load(Ordering::Relaxed);
    assert!(waiting <= 2 * first, "{waiting} bytes wait for the client");
    for _ in 1..40 {
        assert_eq!(client.line().await.expect("a page").len(), first);
    }
    client.hang_up().await;
    assert_eq!(client.rest().await.1, 0);
    other.stop();
    other.rest().await;
    gateway.end().await;
}
