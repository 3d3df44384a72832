//! L: the log and its readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentwire_protocol::event::EventKind;
use agentwire_protocol::{Command, ErrorCode, Prompt};
use agentwire_sessions::NewSession;

use crate::gateway::{Gateway, prompt, stop};
use crate::rounds;
use crate::shared::{Home, PATIENCE};

/// A random number generator with the same numbers in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }
}

/// Readers that attach and detach at full speed each see every event once, in order, with the same bytes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l3_churning_readers_see_every_event_once() {
    let gateway = Arc::new(Gateway::new().await);
    let directives = "/repeat 400 word \n/blob 300\n".repeat(rounds(25, 400));
    let session = gateway.start_free(&directives).await;
    let id = session.id().clone();
    let readers = (0..200).map(|number| {
        let (gateway, id) = (Arc::clone(&gateway), id.clone());
        tokio::spawn(async move {
            let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ ((number + 1) * 7919));
            let mut seen: Vec<u8> = Vec::new();
            let mut at = 0;
            'joined: loop {
                let mut cursor = gateway.hub.events(&id, at).await.expect("a cursor");
                for _ in 0..=dice.roll(6) {
                    let batch = tokio::time::timeout(PATIENCE, cursor.next()).await;
                    match batch.expect("in time").expect("the log can be read") {
                        None => break 'joined,
                        Some(batch) => {
                            // It may also leave in the middle of a batch.
                            let keep = batch.count - dice.roll(batch.count);
                            for (seq, line) in batch.events().take(keep as usize) {
                                assert_eq!(seq, at + 1);
                                at = seq;
                                seen.extend_from_slice(line);
                                seen.push(b'\n');
                            }
                            if keep < batch.count {
                                continue 'joined;
                            }
                        }
                    }
                }
            }
            (at, seen)
        })
    });
    let readers: Vec<_> = readers.collect();
    session.until(|summary| summary.turns == 1 && !is_busy(summary)).await;
    let summary = stop(&session).await;
    let mut first: Option<Vec<u8>> = None;
    for reader in readers {
        let (at, seen) = reader.await.expect("a reader");
        assert_eq!(at, summary.last_seq);
        match &first {
            Some(first) => assert!(*first == seen, "readers saw different bytes"),
            None => first = Some(seen),
        }
    }
}

fn is_busy(summary: &agentwire_protocol::SessionSummary) -> bool {
    !matches!(summary.state, agentwire_protocol::SessionState::Idle)
}

/// A stalled reader delays nobody, and finds every event when it continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l4_a_stalled_reader_slows_nobody() {
    let gateway = Gateway::new().await;
    let directives = "/blob 20000\n".repeat(rounds(400, 4000));
    let session = gateway.start("").await;
    let mut stalled = gateway.hub.events(session.id(), 0).await.expect("a cursor");
    let first = stalled.next().await.expect("the log can be read").expect("the beginning");
    prompt(&session, &directives).await;
    let mut healthy = Vec::new();
    for _ in 0..9 {
        healthy.push(gateway.reader(&session).await);
    }
    for reader in &mut healthy {
        reader.turn_end().await;
    }
    let summary = stop(&session).await;
    let mut at = first.first + first.count - 1;
    while let Some(batch) = stalled.next().await.expect("the log can be read") {
        assert_eq!(batch.first, at + 1);
        at += batch.count;
    }
    assert_eq!(at, summary.last_seq);
}

/// Each effect happens once, however often it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l7_create_and_prompt_count_once() {
    let gateway = Arc::new(Gateway::new().await);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let mut new = gateway.session(agentwire_protocol::AgentType::Demo, "");
        new.key = Some("the same".to_owned());
        ids.insert(gateway.hub.start(new).await.expect("a session").id().clone());
    }
    assert_eq!(ids.len(), 1);
    let id = ids.pop_first().expect("an id");
    let session = gateway.hub.session(&id).expect("the session");
    let mut reader = gateway.reader(&session).await;
    let taken = Arc::new(AtomicUsize::new(0));
    for turn in 0..3 {
        let message = uuid::Uuid::new_v4().to_string();
        let sends = (0..5).map(|_| {
            let (session, message) = (session.clone(), message.clone());
            let taken = Arc::clone(&taken);
            tokio::spawn(async move {
                let text = format!("/say turn {turn}");
                let prompt = Prompt { message_id: Some(message.clone()), ..Prompt::text(text) };
                let reply = session.send(Command::Prompt(prompt)).await.expect("accepted");
                assert!(reply.get().contains(&message));
                taken.fetch_add(1, Ordering::Relaxed);
            })
        });
        for send in sends.collect::<Vec<_>>() {
            send.await.expect("a client");
        }
        reader.turn_end().await;
    }
    assert_eq!(taken.load(Ordering::Relaxed), 15);
    stop(&session).await;
    let events = gateway.events(&session).await;
    let turns = events.iter().filter(|event| matches!(event.kind, EventKind::TurnStarted(_)));
    assert_eq!(turns.count(), 3);
}

/// Of several concurrent resumes of a session, one succeeds; with the same key all get the same session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l7_a_session_is_resumed_once() {
    for gateway in [Gateway::new().await, Gateway::memory().await] {
        let session = gateway.start("/say one").await;
        gateway.reader(&session).await.turn_end().await;
        for key in [None, Some("once".to_owned())] {
            stop(&session).await;
            if let Ok(now) = gateway.hub.session(session.id()) {
                stop(&now).await;
            }
            let mut starts = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let new = gateway.session(agentwire_protocol::AgentType::Demo, "");
                let resume = Some(session.id().clone());
                let new = NewSession { resume, key: key.clone(), ..new };
                let hub = gateway.hub.clone();
                starts.spawn(async move { hub.start(new).await });
            }
            let (taken, refused): (Vec<_>, Vec<_>) =
                starts.join_all().await.into_iter().partition(Result::is_ok);
            assert_eq!(taken.len(), if key.is_some() { 8 } else { 1 }, "{refused:?}");
            for refused in refused {
                assert_eq!(refused.expect_err("refused").code, ErrorCode::Conflict);
            }
            let resumed = gateway.hub.session(session.id()).expect("it runs");
            let before = resumed.summary().turns;
            prompt(&resumed, "/say two").await;
            let idle = agentwire_protocol::SessionState::Idle;
            let done = resumed.until(|now| now.turns > before && now.state == idle);
            let done = tokio::time::timeout(PATIENCE, done).await.expect("a turn in time");
            assert_eq!((done.turns, done.state), (before + 1, idle));
        }
        gateway.hub.shutdown().await;
    }
}

/// When the disk is full, work stops with an error, reading continues, and everything recovers by itself.
///
/// Runs itself again in its own mount namespace, with a small file system.
#[test]
fn l5_a_full_disk_loses_nothing() {
    let own = std::env::current_exe().expect("this program");
    let root = rustix::process::geteuid().is_root();
    let mut command = std::process::Command::new("unshare");
    command.args(if root { &["--mount"][..] } else { &["--mount", "--map-root-user"][..] });
    command.arg(own).args([
        "--exact",
        "log::l5_inside_of_the_namespace",
        "--ignored",
        "--nocapture",
    ]);
    command.env("AGENTWIRE_TEST_NAMESPACE", "1");
    let output = command.output().expect("unshare");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Fills the disk with this file.
fn fill_disk(path: &std::path::Path) -> std::fs::File {
    let mut file = std::fs::File::create(path).expect("a file");
    while std::io::Write::write(&mut file, &[b'x'; 4096]).is_ok() {}
    file
}

/// The key of a failed start can be used again, and everything that needs no room continues meanwhile.
async fn l5_a_start_without_room_counts_for_nothing(gateway: &Gateway, data: &std::path::Path) {
    let fill = data.join("fill");
    fill_disk(&fill);
    let start = || {
        let new = gateway.session(agentwire_protocol::AgentType::Demo, "/say x");
        gateway.hub.start(NewSession { key: Some("once".to_owned()), ..new })
    };
    assert_eq!(start().await.expect_err("no room").code, ErrorCode::StorageFull);
    assert_eq!(gateway.hub.running().len(), 1);
    assert!(gateway.hub.open_requests(None).await.expect("an inbox").is_empty());
    assert_eq!(gateway.hub.started_with("once").await.expect("an answer"), None);
    // Other processes can read.
    let other = agentwire_sessions::Hub::open(crate::gateway::settings(gateway.home.root())).await;
    let other = other.expect("a hub");
    assert!(other.sessions(Default::default()).await.expect("a list").is_empty());
    other.shutdown().await;
    std::fs::remove_file(&fill).expect("it is there");
    let session = loop {
        match start().await {
            Ok(session) => break session,
            Err(error) => assert_eq!(error.code, ErrorCode::StorageFull),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    gateway.reader(&session).await.turn_end().await;
    assert_eq!(start().await.expect("the same").id(), session.id());
    stop(&session).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by l5_a_full_disk_loses_nothing in its own mount namespace"]
async fn l5_inside_of_the_namespace() {
    if std::env::var_os("AGENTWIRE_TEST_NAMESPACE").is_none() {
        return;
    }
    let home = Home::new();
    let data = home.data();
    std::fs::create_dir(&data).expect("a directory");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
        .arg(&data)
        .status();
    assert!(mounted.expect("mount").success());
    let settings = crate::gateway::settings(home.root());
    let hub = agentwire_sessions::Hub::open(settings).await.expect("a hub");
    let gateway = Gateway { hub, home };
    l5_a_start_without_room_counts_for_nothing(&gateway, &data).await;
    let session = gateway.start_free("").await;
    let mut reader = gateway.reader(&session).await;
    let mut seen = Vec::new();
    // Ten megabytes do not fit into what is left, even compressed: at some point the store is full.
    let fill = fill_disk(&data.join("fill"));
    let filled = fill.metadata().expect("its length").len();
    fill.set_len(filled - (128 << 10)).expect("a shorter file");
    prompt(&session, &"/blob 100000\n".repeat(100)).await;
    while gateway.hub.log().stuck().is_none() {
        tokio::select! {
            event = reader.next() => seen.push(event.expect("an event")),
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
        }
    }
    let refused = session.send(Command::Prompt(Prompt::text("/say more"))).await;
    assert_eq!(refused.expect_err("refused").code, ErrorCode::StorageFull);
    let refused =
        gateway.hub.start(gateway.session(agentwire_protocol::AgentType::Demo, "/say x")).await;
    assert_eq!(refused.expect_err("refused").code, ErrorCode::StorageFull);
    // Reading continues.
    let mut again = gateway.hub.events(session.id(), 0).await.expect("a cursor");
    assert!(again.next().await.expect("the log can be read").is_some());
    let grown =
        std::process::Command::new("mount").args(["-o", "remount,size=200m"]).arg(&data).status();
    assert!(grown.expect("mount").success());
    reader.turn_end().await;
    assert!(gateway.hub.log().stuck().is_none());
    stop(&session).await;
    let events = gateway.events(&session).await;
    assert!(events.starts_with(&seen));
    let blobs = events.iter().filter(|event| matches!(event.kind, EventKind::ToolCompleted(_)));
    assert_eq!(blobs.count(), 100);
    gateway.hub.shutdown().await;
    drop(gateway.hub);
    let _ = std::process::Command::new("umount").arg("-l").arg(&data).status();
}
