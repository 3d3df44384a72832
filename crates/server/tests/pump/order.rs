//! The order of events and replies, and who gets them.

use std::collections::{BTreeMap, BTreeSet};

use agentwire_dialects::front::{Front, GatewayCall, GatewayReply, Outbox};
use agentwire_protocol::{Call, Command, GatewayError, SessionId, Settlement};
use serde_json::{Value, json};

use crate::harness::Gateway;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_comes_after_the_events_of_what_it_did() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    let id = client.start("ASK").await;
    let raised = client.event("requestRaised").await;
    client
        .say(json!({ "id": "yes", "command": "settle", "sessionId": id,
            "requestId": raised["requestId"], "behavior": "allow" }))
        .await;
    let mut seen = Vec::new();
    while !(seen.contains(&"yes".to_owned()) && seen.contains(&"turnCompleted".to_owned())) {
        let frame = client.frame().await;
        let name = frame["type"].as_str().or(frame["id"].as_str());
        seen.push(name.expect("a frame has a name").to_owned());
    }
    let at = |name: &str| seen.iter().position(|seen| seen == name);
    assert!(at("requestSettled") < at("yes"), "{seen:?}");
    client.say(json!({ "id": "stop", "command": "stop", "sessionId": id })).await;
    let (mut ended, mut replied) = (false, false);
    while !(ended && replied) {
        let frame = client.frame().await;
        ended |= frame["type"] == "sessionEnded";
        replied |= frame["id"] == "stop";
    }
    client.hang_up().await;
    assert_eq!(client.rest().await, (vec![], 0));
    gateway.end().await;
}

/// The agent answers and ends the turn in one write. The reply comes after the earlier events and before
/// the end of the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_comes_before_the_events_after_it() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    let id = client.start("HANG").await;
    for turn in 0..100 {
        client.event("turnStarted").await;
        // The gateway answers the one, the agent the other.
        let asked = match turn % 2 {
            0 => json!({ "id": turn, "command": "interrupt", "sessionId": id }),
            _ => {
                json!({ "id": turn, "command": "query", "sessionId": id, "method": "mcpServerStatus" })
            }
        };
        client.say(asked).await;
        let next = client.until(|frame| frame["id"] == turn || frame["type"] == "turnFailed").await;
        assert_eq!((&next["id"], &next["error"]), (&json!(turn), &Value::Null), "{next}");
        client.event("turnFailed").await;
        client.say(json!({ "command": "prompt", "sessionId": id, "prompt": "HANG" })).await;
    }
    client.event("turnStarted").await;
    client.stop_session(&id).await;
    gateway.end().await;
}

/// With a process per turn, a client that has the reply to a prompt can interrupt it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_replied_to_is_done() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    client
        .say(json!({ "id": "start", "command": "start", "agentType": "codex",
            "prompt": "hang", "config": { "workingDirectory": gateway.work(), "driver": "exec" } }))
        .await;
    let reply = client.until(|frame| frame["id"] == "start").await;
    let id = reply["reply"]["id"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
    client.event("turnStarted").await;
    for turn in 0..50 {
        client.say(json!({ "command": "interrupt", "sessionId": id })).await;
        client.event("turnFailed").await;
        client
            .say(json!({ "id": turn, "command": "prompt", "sessionId": id, "prompt": "hang" }))
            .await;
        client.until(|frame| frame["id"] == turn).await;
    }
    client.stop_session(&id).await;
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_share_a_wire() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    let mut last = BTreeMap::new();
    for number in 0..6 {
        client
            .say(json!({ "id": number, "command": "start", "agentType": "claude",
                "prompt": "hello", "config": { "workingDirectory": gateway.work() } }))
            .await;
    }
    let (mut replies, mut turns) = (0, 0);
    while turns < 6 {
        let frame = client.frame().await;
        if frame.get("type").is_none() {
            let id = frame["reply"]["id"].as_str().expect("a session").to_owned();
            assert!(last.insert(id, 0).is_none(), "twice: {frame}");
            replies += 1;
            continue;
        }
        let seq = last.get_mut(frame["sessionId"].as_str().expect("an id")).expect("known");
        *seq += 1;
        assert_eq!(frame["seq"], *seq, "{frame}");
        turns += usize::from(frame["type"] == "turnCompleted");
    }
    assert_eq!(replies, 6);
    client.hang_up().await;
    let (rest, code) = client.rest().await;
    let ended = rest.iter().filter(|frame| frame["type"] == "sessionEnded").count();
    assert_eq!((ended, code), (6, 0));
    gateway.end().await;
}

/// Watches a session up to its first event, then leaves and asks to end it.
#[derive(Default)]
struct Leaver {
    session: Option<SessionId>,
    events: usize,
}

impl Front for Leaver {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        match (&self.session, line) {
            (Some(session), b"stop") => drop(out.command(session, Command::Stop)),
            _ => {
                let frame = agentwire_protocol::CommandFrame::from_json(
                    std::str::from_utf8(line).expect("text"),
                );
                let Command::Start(request) = frame.expect("a frame").command else {
                    panic!("not a start")
                };
                out.call(GatewayCall::Start(Box::new((*request).into())));
            }
        }
    }

    fn on_overlong(&mut self, _bytes: u64, _out: &mut Outbox) {}

    fn on_reply(
        &mut self,
        _call: Call,
        reply: Result<GatewayReply, GatewayError>,
        out: &mut Outbox,
    ) {
        match reply.expect("it is done") {
            GatewayReply::Started { session, after } => {
                out.follow(&session.id, after);
                self.session = Some(session.id);
            }
            GatewayReply::Done(_) => out.send(format!("{}", json!({ "stopped": self.events }))),
            other => panic!("{other:?}"),
        }
    }

    fn on_event(&mut self, session: &SessionId, _event: &str, out: &mut Outbox) {
        self.events += 1;
        out.unfollow(session);
        out.send(format!("{}", json!({ "left": self.events })));
    }

    fn on_end(&mut self, _session: &SessionId, _out: &mut Outbox) {
        panic!("a session that is left has no end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_left_a_session_hears_no_more_of_it_but_replies() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client_of(Leaver::default(), None);
    client
        .say(json!({ "command": "start", "agentType": "claude", "prompt": "hello",
            "config": { "workingDirectory": gateway.work() } }))
        .await;
    assert_eq!(client.frame().await, json!({ "left": 1 }));
    client.bytes(b"stop\n").await;
    assert_eq!(client.frame().await, json!({ "stopped": 1 }));
    client.hang_up().await;
    assert_eq!(client.rest().await, (Vec::<Value>::new(), 0));
    gateway.end().await;
}

/// Makes a call with each event, and records what came when.
#[derive(Default)]
struct Asking {
    raised: bool,
    is_told: bool,
}

impl Front for Asking {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        Leaver::default().on_line(line, out);
    }

    fn on_overlong(&mut self, _bytes: u64, _out: &mut Outbox) {}

    fn on_reply(
        &mut self,
        _call: Call,
        reply: Result<GatewayReply, GatewayError>,
        out: &mut Outbox,
    ) {
        match reply {
            Ok(GatewayReply::Started { session, after }) => {
                // These replies are held until the whole turn is shown, which comes in one batch.
                for _ in 0..100 {
                    out.command(&session.id, Command::Settle(Settlement::allow("none")));
                }
                out.follow(&session.id, after);
            }
            _ => assert!(!self.raised || self.is_told, "a reply before what was asked"),
        }
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        if event.contains("\"requestRaised\"") {
            self.raised = true;
            for _ in 0..10 {
                out.command(session, Command::Settle(Settlement::allow("none")));
            }
        }
        if event.contains("\"requestSettled\"") {
            out.close(0);
        }
    }

    fn on_pause(&mut self, session: &SessionId, out: &mut Outbox) {
        if self.raised && !std::mem::replace(&mut self.is_told, true) {
            out.command(session, Command::Stop);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_is_told_before_the_replies_that_follow_it() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client_of(Asking::default(), None);
    client
        .say(json!({ "command": "start", "agentType": "claude", "prompt": "ASK",
            "config": { "workingDirectory": gateway.work() } }))
        .await;
    assert_eq!(client.rest().await, (Vec::<Value>::new(), 0));
    gateway.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_prompts_is_worked_off_and_then_the_session_ends() {
    let gateway = Gateway::new().await;
    let mut client = gateway.client();
    let id = client.start("").await;
    let prompts: Vec<String> = (0..2000)
        .map(|number| {
            json!({ "id": number, "command": "prompt", "sessionId": id, "prompt": "hello" })
                .to_string()
                + "\n"
        })
        .collect();
    client.pour(prompts.concat());
    let (frames, code) = client.rest().await;
    let replies: BTreeSet<u64> = frames.iter().filter_map(|frame| frame["id"].as_u64()).collect();
    assert!(replies.into_iter().eq(0..2000) && code == 0);
    assert!(frames.iter().all(|frame| frame.get("error").is_none()));
    let turns = frames.iter().filter(|frame| frame["type"] == "turnCompleted").count();
    assert_eq!(turns, 2000);
    gateway.end().await;
}

/// Has many replies that wait for events, then no longer wants those events.
#[derive(Default)]
struct Skipping {
    replies: usize,
    skipped: bool,
}

const HELD: usize = 100;

impl Front for Skipping {
    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        Leaver::default().on_line(line, out);
    }

    fn on_overlong(&mut self, _bytes: u64, _out: &mut Outbox) {}

    fn on_reply(
        &mut self,
        _call: Call,
        reply: Result<GatewayReply, GatewayError>,
        out: &mut Outbox,
    ) {
        if let Ok(GatewayReply::Started { session, after }) = reply {
            for _ in 0..HELD {
                out.command(&session.id, Command::Settle(Settlement::allow("none")));
            }
            out.follow(&session.id, after);
            return;
        }
        self.replies += 1;
        if self.replies == HELD {
            out.close(0);
        }
    }

    fn on_event(&mut self, session: &SessionId, _event: &str, out: &mut Outbox) {
        if !std::mem::replace(&mut self.skipped, true) {
            out.follow(session, 1 << 40);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_waits_for_no_event_that_is_passed_over() {
    let gateway = Gateway::new().await;
    for _ in 0..5 {
        let mut client = gateway.client_of(Skipping::default(), None);
        client
            .say(json!({ "command": "start", "agentType": "claude", "prompt": "hello",
                "config": { "workingDirectory": gateway.work() } }))
            .await;
        assert_eq!(client.rest().await, (Vec::<Value>::new(), 0));
    }
    gateway.end().await;
}
