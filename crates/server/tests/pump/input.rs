//! Invalid and excessive input from clients.

use std::time::Instant;

use agentwire_dialects::front::{Front, GatewayCall, GatewayReply, Outbox};
use agentwire_protocol::{Call, ErrorCode, GatewayError, SessionId};
use agentwire_server::connection::LINE_LIMIT;
use serde_json::{Value, json};

use crate::harness::{Gateway, PATIENCE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_taken() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    let long = vec![b'x'; LINE_LIMIT + 1];
    client.bytes(&long).await;
    client.bytes(b"\n{\"id\":1,\"command\":\"fly\"}\n").await;
    let refused = client.frame().await;
    assert_eq!(refused["error"]["code"], "invalidMessage");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains(&(LINE_LIMIT + 1).to_string()), "{message}");
    assert_eq!(client.frame().await["error"]["code"], "unknownMethod");
    client.hang_up().await;
    assert_eq!(client.rest().await, (vec![], 0));
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_line_waits_for_its_share_of_the_budget_and_gives_it_back() {
    let gateway = Gateway::new().await;
    let pool = gateway.hub.log().budget().work.clone();
    let all = pool.take(pool.total()).await;
    let mut client = gateway.client();
    // Small messages do not wait.
    client.say(json!({ "id": 1, "command": "fly" })).await;
    assert_eq!(client.frame().await["id"], 1);
    client.say(json!({ "id": 2, "command": "fly", "pad": "x".repeat(2 << 20) })).await;
    until(|| pool.waiting() == 1).await;
    drop(all);
    assert_eq!(client.frame().await["id"], 2);
    until(|| pool.used() == 0).await;
    client.hang_up().await;
    assert_eq!(client.rest().await, (vec![], 0));
    gateway.end().await;
}

async fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never is");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_line_needs_no_end() {
    for (said, code) in [
        (&b"{\"id\":1,\"command\":\"fly\"}"[..], "unknownMethod"),
        (b"{\"id\":1,\"comm", "invalidJson"),
        (b"\xff", "invalidJson"),
    ] {
        let gateway = Gateway::new().await;
        let mut client = gateway.client();
        client.bytes(said).await;
        client.hang_up().await;
        let (frames, exit) = client.rest().await;
        let codes: Vec<&Value> = frames.iter().map(|frame| &frame["error"]["code"]).collect();
        assert_eq!((codes, exit), (vec![&json!(code)], 0));
        gateway.end().await;
    }
}

/// Makes more calls at once than may be open.
#[derive(Default)]
struct Greedy {
    replies: usize,
    refused: usize,
}

const CALLS: usize = 3000;

impl Front for Greedy {
    fn on_line(&mut self, _line: &[u8], out: &mut Outbox) {
        for _ in 0..CALLS {
            out.call(GatewayCall::Sessions { limit: 1 });
        }
    }

    fn on_overlong(&mut self, _bytes: u64, _out: &mut Outbox) {}

    fn on_reply(
        &mut self,
        _call: Call,
        reply: Result<GatewayReply, GatewayError>,
        out: &mut Outbox,
    ) {
        self.replies += 1;
        if let Err(error) = reply {
            assert_eq!(error.code, ErrorCode::Overloaded);
            self.refused += 1;
        }
        if self.replies == CALLS {
            out.send(json!({ "refused": self.refused }).to_string());
        }
    }

    fn on_event(&mut self, _session: &SessionId, _event: &str, _out: &mut Outbox) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_beyond_the_limit_are_refused_and_every_call_has_its_reply() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client_of(Greedy::default(), None);
    client.bytes(b"go\n").await;
    let refused = client.frame().await["refused"].as_u64().expect("a number");
    assert!((1..CALLS as u64).contains(&refused), "{refused}");
    client.hang_up().await;
    assert_eq!(client.rest().await, (vec![], 0));
    gateway.end().await;
}
