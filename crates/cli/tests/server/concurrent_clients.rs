//! Many clients at once, over the network: nothing is lost, doubled or done twice, and no client pays for
//! another. `AGENTWIRE_SOAK=1` runs the tests longer.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::shared::{PATIENCE, Server, Socket};

fn rounds(quick: usize, long: usize) -> usize {
    if std::env::var_os("AGENTWIRE_SOAK").is_some() { long } else { quick }
}

/// Pseudo-random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// L3: readers that join, leave and rejoin at random points each see exactly 1..N in order, whether they
/// read from the log, live, or across the transition.
#[test]
fn readers_that_churn_see_every_event_once() {
    const READERS: usize = 200;
    let steps = rounds(1000, 10_000);
    let server = Server::start();
    // There is always something happening, and no two events can be merged. The turn ends when its last
    // command is allowed.
    let prompt: String = (0..steps).map(|step| format!("/say {step}\n/sleep 1\n")).collect();
    let session = server.session(&format!("{prompt}/bash true"));
    server.until(&session, "turnStarted");
    let (joined, seen) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for reader in 0..READERS {
            let (server, session, joined, seen) = (&server, &session, &joined, &seen);
            scope.spawn(move || {
                let churned = churn(server, session, Dice(reader as u64), joined);
                seen.lock().expect("no reader failed").push(churned);
            });
        }
        let asked = server.until(&session, "requestRaised").pop().expect("a request");
        let begun = Instant::now();
        while joined.load(Ordering::Relaxed) < READERS {
            assert!(begun.elapsed() < 3 * PATIENCE, "they never come back");
            thread::yield_now();
        }
        let asked = asked["requestId"].as_str().expect("an id");
        let path = format!("/v1/sessions/{session}/requests/{asked}");
        server.post(&path, &json!({ "behavior": "allow" }));
    });
    let seen = seen.into_inner().expect("no reader failed");
    let last = seen[0];
    assert!(last as usize >= 2 * steps, "only {last} events");
    assert!(seen.len() == READERS && seen.iter().all(|seen| *seen == last), "{seen:?}");
}

/// Reads to the end of the turn in pieces and returns the number of its last event. Counts itself in
/// `joined` at its fourth visit.
fn churn(server: &Server, session: &str, mut dice: Dice, joined: &AtomicUsize) -> u64 {
    let (mut after, mut visits) = (0, 0);
    let path = format!("/v1/sessions/{session}");
    loop {
        visits += 1;
        joined.fetch_add(usize::from(visits == 4), Ordering::Relaxed);
        // Mostly a few events; sometimes many, to catch up with the end.
        let most = if dice.below(4) == 0 { 400 } else { 10 };
        let (wanted, from) = (1 + dice.below(most), after);
        let mut see = |event: &Value| {
            after += 1;
            assert_eq!(event["seq"], after, "{event}");
            event["type"] == "turnCompleted"
        };
        let is_over = match dice.below(3) {
            0 => {
                let page = format!("{path}/events?after={from}&limit={wanted}&wait=5");
                let page = server.get(&page);
                page["events"].as_array().expect("events").iter().any(&mut see)
            }
            1 => {
                let mut socket = server.socket(&format!("{path}/ws?after={from}"));
                (0..wanted).any(|_| see(&socket.frame()))
            }
            _ => {
                let mut stream = server.events(&format!("{path}/events"), from);
                (0..wanted).any(|_| see(&stream.next().expect("one more event")))
            }
        };
        if is_over {
            return after;
        }
    }
}

/// L4: readers that never read slow nobody down and cost little. The output is three times the memory they
/// may cost together, so it cannot be buffered for them.
#[test]
fn readers_that_never_read_cost_little() {
    const STALLED: usize = 3;
    const COST: usize = 16 << 20;
    // A tool result appears twice in its event.
    let blobs = rounds((3 * STALLED * COST).div_ceil(2_000_000), 240);
    let server = Server::start();
    let prompt = vec!["/blob 1000000"; blobs].join("\n");
    // Twice without stalled readers: the first run includes one-time costs, and the difference shows the
    // variation.
    let mut memory = Vec::new();
    for stalled in [0, 0, STALLED] {
        let session = server.session("/say ready");
        server.until(&session, "turnCompleted");
        let path = format!("/v1/sessions/{session}/ws");
        let mut stalled: Vec<_> = (0..stalled).map(|_| server.socket(&path)).collect();
        let mut healthy: Vec<_> = (0..9).map(|_| server.socket(&path)).collect();
        for socket in &mut healthy {
            socket.until(|frame| frame["type"] == "turnCompleted");
        }
        server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "prompt": prompt }));
        // All healthy readers reach the end, although the others have read next to nothing.
        let sent: Vec<usize> = thread::scope(|scope| {
            let readers: Vec<_> =
                healthy.iter_mut().map(|socket| scope.spawn(|| read_turn(socket))).collect();
            readers.into_iter().map(|reader| reader.join().expect("it reads")).collect()
        });
        assert!(sent.iter().all(|sent| *sent > 3 * STALLED * COST), "{sent:?}");
        memory.push(resident(server.pid()));
        // Now the stalled readers read, and miss nothing.
        for socket in &mut stalled {
            let mut next = 0;
            let mut turns = 0;
            while turns < 2 {
                let event = socket.frame();
                next += 1;
                assert_eq!(event["seq"], next);
                turns += usize::from(event["type"] == "turnCompleted");
            }
        }
        // The session's buffers are freed with it.
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    }
    let [first, second, after] = memory[..] else { panic!("three figures") };
    let usual = first.max(second) + first.abs_diff(second);
    let more = after.saturating_sub(usual);
    assert!(more <= STALLED * COST, "{STALLED} readers cost {more} bytes: {memory:?}");
}

/// Reads to the end of the turn and returns the number of bytes.
fn read_turn(socket: &mut Socket) -> usize {
    let mut bytes = 0;
    loop {
        let text = socket.next().expect("one more frame");
        bytes += text.len();
        // A large frame is not the end; parsing all of it as JSON would take too long.
        if text.len() < 10_000 && text.contains("\"type\":\"turnCompleted\"") {
            return bytes;
        }
    }
}

fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a figure") << 10
}

/// L7: a request that is sent several times over broken connections takes effect once.
#[test]
fn what_is_sent_again_happens_once() {
    let server = Server::start();
    let mut dice = Dice(7);
    for round in 0..rounds(6, 60) {
        let prompt = format!("/bash echo x >> ran-{round}");
        let create = json!({ "agentType": "demo", "prompt": prompt });
        let key = format!("create-{round}");
        let session = server.insist(&mut dice, "/v1/sessions", &key, &create);
        let session = session["id"].as_str().expect("an id").to_owned();
        let request = server.until(&session, "requestRaised").pop().expect("a request");
        let request = request["requestId"].as_str().expect("an id").to_owned();
        let answer = format!("/v1/sessions/{session}/requests/{request}");
        server.insist(&mut dice, &answer, "", &json!({ "behavior": "allow" }));
        server.until(&session, "turnCompleted");
        let place = format!("/v1/sessions/{session}/prompt");
        server.insist(&mut dice, &place, "again", &json!({ "prompt": "/say again" }));
        server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "prompt": "/say last" }));
        let ran = std::fs::read_to_string(server.work().join(format!("ran-{round}")));
        assert_eq!(ran.expect("it ran"), "x\n");
        // The turns are the first one, the repeated one, and the last one.
        let mut turns = 0;
        let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
        socket.until(|frame| {
            turns += usize::from(frame["type"] == "turnCompleted");
            turns == 3
        });
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
        let ended = socket.until(|frame| {
            assert_ne!(frame["type"], "turnStarted");
            frame["type"] == "sessionEnded"
        });
        assert_eq!(ended["reason"], "completed");
        // The key still leads to the session after it has ended.
        let again = server.insist(&mut dice, "/v1/sessions", &key, &create);
        assert_eq!(again["id"], session.as_str());
    }
    let all = server.get("/v1/sessions?limit=500");
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(rounds(6, 60)));
}

impl Server {
    /// Sends the same request one to five times and closes all connections except the last. Returns the
    /// last answer.
    fn insist(&self, dice: &mut Dice, path: &str, key: &str, body: &Value) -> Value {
        let body = body.to_string();
        let key =
            if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{key}\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.http,
            self.token,
            body.len()
        );
        let text = format!("{head}{body}");
        let mut cut = Vec::new();
        for _ in 0..dice.below(5) {
            let mut stream = self.stream();
            stream.write_all(text.as_bytes()).expect("it listens");
            // Some connections are closed at once, some after the answer may have started.
            match dice.below(2) {
                0 => drop(stream),
                _ => cut.push(stream),
            }
        }
        let mut stream = self.stream();
        stream.write_all(text.as_bytes()).expect("it listens");
        let answer = crate::shared::read_answer(stream);
        // The reply to a repeated answer says that the request is already settled.
        let is_done = (200..300).contains(&answer.status) || answer.code() == "requestSettled";
        assert!(is_done, "{answer:?}");
        answer.json()
    }
}

/// R1: of many answers to a request one wins, and the others get an error.
#[test]
fn one_of_many_answers_counts() {
    let rounds = rounds(20, 1000);
    let server = Server::start();
    let prompt = vec!["/bash echo x >> ran"; rounds].join("\n");
    let session = server.session(&prompt);
    let won = Mutex::new(BTreeMap::<String, usize>::new());
    thread::scope(|scope| {
        for client in 0..100 {
            let (server, session, won) = (&server, &session, &won);
            scope.spawn(move || {
                let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
                let (mut is_over, mut open) = (false, 0);
                while !is_over || open > 0 {
                    let frame = socket.frame();
                    if frame["type"] == "requestRaised" {
                        let behavior = if client % 2 == 0 { "allow" } else { "deny" };
                        open += 1;
                        socket.say(&json!({ "id": frame["requestId"], "command": "settle",
                            "requestId": frame["requestId"], "behavior": behavior }));
                    } else if frame["type"] == "turnCompleted" {
                        is_over = true;
                    } else if frame.get("type").is_none() {
                        open -= 1;
                        let id = frame["id"].as_str().expect("an id").to_owned();
                        match frame.get("error") {
                            None => *won.lock().expect("nobody failed").entry(id).or_default() += 1,
                            Some(error) => assert_eq!(error["code"], "requestSettled", "{error}"),
                        }
                    }
                }
            });
        }
    });
    let won = won.into_inner().expect("nobody failed");
    assert!(won.len() == rounds && won.values().all(|winners| *winners == 1), "{won:?}");
    let events = server.get(&format!("/v1/sessions/{session}/events?limit=10000"));
    let events = events["events"].as_array().expect("events");
    let settled: Vec<_> = events.iter().filter(|event| event["type"] == "requestSettled").collect();
    assert_eq!(settled.len(), rounds);
    let allowed = settled.iter().filter(|event| event["outcome"] == "allowed").count();
    let ran = std::fs::read_to_string(server.work().join("ran")).unwrap_or_default();
    assert_eq!(ran.lines().count(), allowed);
}
