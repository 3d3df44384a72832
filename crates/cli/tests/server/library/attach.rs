//! Long sessions and slow readers: buffers are bounded, and nobody else is slowed down.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentwire_client::transport::{Call, Calling, Connection, Followed, Opening, Transport};
use agentwire_client::{
    AgentClient, AgentType, Profile, SessionId, SessionState, SessionSummary, TokenUsage,
};
use agentwire_protocol::SessionConfig;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Batch, Open, Record, Store as _};
use futures_util::StreamExt as _;

use crate::library::harness::{Gateway, WAYS, Way, assert_whole, client_at, next, rest, until};

const EVENTS: u64 = 100_000;
const BUFFER: usize = 64 << 10;

/// The most that a transport passes on at once: a batch of the store, or a page.
const BATCH: usize = 600 << 10;

/// A transport that counts the bytes it passes on.
#[derive(Debug)]
struct Counted {
    way: Arc<dyn Transport>,
    bytes: Arc<AtomicUsize>,
}

impl Transport for Counted {
    fn name(&self) -> String {
        self.way.name()
    }

    fn call(&self, call: Call) -> Calling<'_> {
        self.way.call(call)
    }

    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
        let session = session.clone();
        Box::pin(async move {
            let connection = self.way.follow(&session, after, profile).await?;
            let bytes = Arc::clone(&self.bytes);
            let counted = connection.inspect(move |next| {
                if let Ok(Followed::Events(events)) = next {
                    bytes.fetch_add(events.text().len(), Ordering::SeqCst);
                }
            });
            Ok(Box::pin(counted) as Connection)
        })
    }
}

/// Writes a session of this many events to the store.
fn write(gateway: &Gateway, id: &str, events: u64) {
    write_long(gateway, id, events, 0);
}

/// The same with this much extra text in each event.
fn write_long(gateway: &Gateway, id: &str, events: u64, padding: usize) {
    let padding = "x".repeat(padding);
    let store = Sqlite::open(&gateway.path("data")).expect("a store");
    let record = |last_seq: u64| Record {
        summary: SessionSummary {
            id: SessionId::from(id),
            agent_type: AgentType::Demo,
            state: SessionState::Ended,
            reason: None,
            error: None,
            title: None,
            working_directory: None,
            model: None,
            approval_mode: None,
            driver: None,
            native_session_id: None,
            agent_version: None,
            gateway_version: None,
            created_at: "2026-01-02T03:04:05Z".to_owned(),
            updated_at: "2026-01-02T03:04:05Z".to_owned(),
            last_seq,
            turns: 0,
            last_turn: None,
            usage: TokenUsage::default(),
            cost_usd: None,
            open_requests: 0,
            pinned: false,
            tags: Vec::new(),
        },
        owner: None,
        config: SessionConfig::default(),
        open: Open::default(),
        client: None,
        unfit: None,
        unkept: Vec::new(),
        native_since: None,
        first_prompt: None,
    };
    for first in (1..=events).step_by(1000) {
        let mut lines = String::new();
        for seq in first..first + 1000 {
            writeln!(
                lines,
                r#"{{"id":"{id}-{seq}","sessionId":"{id}","seq":{seq},"timestamp":"2026-01-02T03:04:05Z","type":"textChunk","content":"word {seq}{padding}","isComplete":false,"agentId":"main"}}"#
            )
            .expect("a line");
        }
        let batch = Some(Batch { first, count: 1000, lines: lines.into() });
        let append = Append { batch, record: record(first + 999), keys: Vec::new() };
        store.append(&[&append]).expect("it is written");
    }
}

const LONG: &str = "22222222-2222-4222-8222-222222222222";
const OTHER: &str = "33333333-3333-4333-8333-333333333333";

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_events_are_read_in_bounded_memory() {
    let mut gateway = Gateway::new();
    write(&gateway, LONG, EVENTS);
    gateway.serve(&[]);
    for way in WAYS {
        let direct = gateway.client(way).await;
        let bytes = Arc::new(AtomicUsize::new(0));
        let counted = Counted { way: Arc::clone(direct.transport()), bytes: Arc::clone(&bytes) };
        let client = AgentClient::builder().buffer_bytes(BUFFER).over(counted);
        let session = client.attach(LONG).await.expect("a session");
        let mut events = session.events();
        let (mut last, mut read, mut most) = (0, 0, 0);
        while let Some(event) = next(&mut events).await.expect("an event") {
            last += 1;
            assert_eq!(event.seq, last, "{way:?}");
            // Bytes passed on but not read yet, so buffered.
            let held = bytes.load(Ordering::SeqCst) - read;
            read += event.raw().len() + 1;
            most = most.max(held);
        }
        assert_eq!(last, EVENTS, "{way:?}");
        assert!(read > 100 * BUFFER, "{read}");
        // The full buffer, the batch that waits for room, and the batch being read.
        assert!(most > BUFFER / 2 && most <= BUFFER + 2 * BATCH, "{way:?}: {most}");
        direct.close().await;
    }
}

/// The same measured on the whole process, including what a transport buffers internally.
#[test]
fn a_hundred_thousand_events_cost_their_reader_little_memory() {
    const PADDING: usize = 1000;
    const BOUND: u64 = 20 << 20;
    let mut gateway = Gateway::new();
    write_long(&gateway, LONG, EVENTS, PADDING);
    gateway.serve(&[]);
    for (number, way) in WAYS.into_iter().enumerate() {
        let output = Command::new(std::env::current_exe().expect("a program"))
            .args([
                "--exact",
                "library::attach::a_reader_that_is_measured",
                "--ignored",
                "--nocapture",
            ])
            .env("AGENTWIRE_TEST_WAY", number.to_string())
            .env("AGENTWIRE_TEST_HOME", gateway.path(""))
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{way:?}: {said}");
        let grown = said.lines().find_map(|line| line.split("grown by ").nth(1));
        let grown: u64 = grown.expect("a figure").trim().parse().expect("a number");
        assert!(grown < BOUND && EVENTS * PADDING as u64 > 2 * BOUND, "{way:?}: {grown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by a_hundred_thousand_events_cost_their_reader_little_memory"]
#[expect(clippy::print_stdout, reason = "the parent test reads the figure")]
async fn a_reader_that_is_measured() {
    let home = std::env::var_os("AGENTWIRE_TEST_HOME").expect("a home");
    let way = std::env::var("AGENTWIRE_TEST_WAY").expect("a way").parse::<usize>();
    let client = client_at(home.as_ref(), WAYS[way.expect("a number")], AgentClient::builder());
    let session = client.await.attach(LONG).await.expect("a session");
    let mut events = session.events();
    let mut last = 0;
    let mut before = 0;
    while let Some(event) = next(&mut events).await.expect("an event") {
        last += 1;
        assert_eq!(event.seq, last);
        if last == 1 {
            before = most_memory();
        }
    }
    assert_eq!(last, EVENTS);
    println!("grown by {}", most_memory() - before);
    session.client().close().await;
}

/// Peak resident memory of this process.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = most.and_then(|most| most.trim().strip_suffix(" kB")).expect("a figure");
    kilobytes.parse::<u64>().expect("a number") << 10
}

/// A reader that pauses while the agent prints receives everything in the end, and nobody else waits for
/// it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_may_stop_while_the_agent_speaks() {
    for way in WAYS {
        let mut gateway = Gateway::new();
        if let Way::Http(_) = way {
            gateway.serve(&[]);
        }
        let builder = AgentClient::builder().buffer_bytes(BUFFER);
        let client = gateway.client_with(way, builder).await;
        let session =
            client.create(gateway.request("/repeat 20000 word ")).await.expect("a session");
        let mut slow = session.events();
        until(&mut slow, "textChunk").await;
        let mut quick = session.events();
        let done = until(&mut quick, "turnCompleted").await;
        session.stop().await.expect("accepted");
        let late = rest(&mut slow).await;
        let quick = rest(&mut quick).await;
        assert_whole(&quick, done.seq + 1);
        let first = late.first().expect("an event").0;
        assert_whole(&late, first);
        assert_eq!(late.last(), quick.last(), "{way:?}");
        client.close().await;
    }
}

/// A paused reader delays nobody, buffers no more than its limit, and reads everything in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_slows_nobody_and_loses_nothing() {
    let mut gateway = Gateway::new();
    write(&gateway, LONG, 20_000);
    write(&gateway, OTHER, 20_000);
    gateway.serve(&[]);
    for way in WAYS {
        let builder = AgentClient::builder().buffer_bytes(BUFFER);
        let client = gateway.client_with(way, builder).await;
        let session = client.attach(LONG).await.expect("a session");
        let mut slow = session.events();
        for seq in 1..=10 {
            assert_eq!(next(&mut slow).await.expect("one").expect("one").seq, seq, "{way:?}");
        }
        // Another session and the same one, over the same connection.
        for id in [OTHER, LONG] {
            let session = client.attach(id).await.expect("a session");
            let (mut quick, mut last) = (session.events(), 0);
            while let Some(event) = next(&mut quick).await.expect("an event") {
                last += 1;
                assert_eq!(event.seq, last, "{way:?}");
            }
            assert_eq!(last, 20_000, "{way:?}");
        }
        assert!(slow.buffered_bytes() > 0 && slow.buffered_bytes() <= BUFFER, "{way:?}");
        let mut last = 10;
        while let Some(event) = next(&mut slow).await.expect("an event") {
            last += 1;
            assert_eq!(event.seq, last, "{way:?}");
        }
        assert_eq!(last, 20_000, "{way:?}");
        client.close().await;
    }
}

/// Events arrive in batches, none of them late.
#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_batches() {
    let gateway = Gateway::new();
    write(&gateway, LONG, 3000);
    let client = gateway.client(Way::Stdio).await;
    let session = client.attach(LONG).await.expect("a session");
    let mut batches = session.events().batches(Duration::from_millis(10));
    let (mut last, mut count) = (0, 0);
    while let Some(batch) = batches.try_next().await.expect("a batch") {
        assert!(!batch.is_empty());
        count += 1;
        for event in batch {
            last += 1;
            assert_eq!(event.seq, last);
        }
    }
    assert_eq!(last, 3000);
    assert!(count < 1000, "{count}");
    client.close().await;
}
