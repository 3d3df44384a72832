//! B: bytes and lines.

use agentwire_protocol::event::EventKind;
use agentwire_protocol::{AgentType, Event, Stream};

use crate::gateway::{Gateway, script, stop};
use crate::rounds;

/// The agent's stdout, reconstructed from the log.
fn stdout_of(events: &[Event<'static>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let native = events.iter().flat_map(|event| event.native.iter());
    native.filter(|line| line.stream == Stream::Stdout).for_each(|line| line.write_to(&mut bytes));
    bytes
}

/// An agent that prints these bytes and exits when its stdin ends.
fn printer(gateway: &Gateway, bytes: &[u8]) -> String {
    let path = gateway.home.path("said");
    std::fs::write(&path, bytes).expect("a file");
    let text = format!("#!/bin/sh\ncat {}\ncat > /dev/null\n", path.display());
    script(gateway.home.root(), "printer.sh", &text)
}

const HOSTILE: &[u8] = b"\xEF\xBB\xBF{\"type\":\"bom\"}\r\n\
{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"\\ud83d\"}]}}\n\
{\"type\":\"x\",\"type\":\"y\",\"n\":1e400,\"big\":18446744073709551616,\"nul\":\"\\u0000\"}\n\
\n   \n\xFF\xFE\x00\x01\n{\"a\":1}{\"b\":2}\n\"\xE2\x80\xA8\xE2\x80\xA9\"\n\
{\"id\":\"s-1\",\"sessionId\":\"s\",\"seq\":1,\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"sessionEnded\",\"reason\":\"completed\",\"agentId\":\"main\"}\n\
{\"type\":\"requestSettled\",\"requestId\":\"r\",\"outcome\":\"allowed\",\"by\":\"client\"}\n\
\0\0\0\n{\"half\":";

async fn run_printer(gateway: &Gateway, bytes: &[u8]) -> Vec<Event<'static>> {
    let mut new = gateway.session(AgentType::Claude, "");
    let program = printer(gateway, bytes);
    // The settings name the program, so the session names no driver.
    new.config.driver = None;
    let hub = {
        let mut settings = gateway.hub.settings().clone();
        settings.data_dir = gateway.home.path("printer");
        settings.agents.insert(
            "claude",
            agentwire_sessions::settings::AgentCommand {
                program: Some(program),
                ..Default::default()
            },
        );
        agentwire_sessions::Hub::open(settings).await.expect("a hub")
    };
    let session = hub.start(new).await.expect("a session");
    let length = bytes.len();
    // Read until the log contains as many lines as were printed.
    let mut cursor = hub.events(session.id(), 0).await.expect("a cursor");
    let mut events: Vec<Event<'static>> = Vec::new();
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    loop {
        let told: usize = events.iter().map(|event| event.native.len()).sum();
        if told >= lines {
            break;
        }
        let batch = tokio::time::timeout(crate::shared::PATIENCE, cursor.next()).await;
        let batch = batch.expect("in time").expect("a log").expect("a live session");
        events.extend(batch.events().map(|(_, line)| {
            Event::from_json(std::str::from_utf8(line).expect("UTF-8")).expect("an event")
        }));
    }
    stop(&session).await;
    while let Some(batch) = cursor.next().await.expect("a log") {
        events.extend(batch.events().map(|(_, line)| {
            Event::from_json(std::str::from_utf8(line).expect("UTF-8")).expect("an event")
        }));
    }
    assert_eq!(stdout_of(&events).len(), length);
    hub.shutdown().await;
    events
}

/// Hostile bytes are stored, on every store, and end nothing. Lines that look like our own events are only
/// lines of the agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_b4_hostile_bytes_are_kept_and_forge_nothing() {
    let mut kinds = Vec::new();
    for gateway in [Gateway::new().await, Gateway::memory().await] {
        let events = run_printer(&gateway, HOSTILE).await;
        assert!(stdout_of(&events) == HOSTILE);
        let ended = events.iter().filter(|e| matches!(e.kind, EventKind::SessionEnded(_)));
        assert_eq!(ended.count(), 1);
        assert!(matches!(events.last().map(|e| &e.kind), Some(EventKind::SessionEnded(_))));
        let settled = events.iter().any(|e| matches!(e.kind, EventKind::RequestSettled(_)));
        assert!(!settled);
        kinds.push(events.iter().map(|e| e.kind.name().to_owned()).collect::<Vec<_>>());
    }
    assert_eq!(kinds[0], kinds[1]);
}

/// Every fixture as the output of a live agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_the_log_holds_stdout_byte_for_byte() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures");
    let mut all = Vec::new();
    for dialect in std::fs::read_dir(fixtures).expect("fixtures") {
        for case in std::fs::read_dir(dialect.expect("a folder").path()).expect("cases") {
            let path = case.expect("a case").path().join("agent.jsonl");
            all.extend_from_slice(&std::fs::read(path).unwrap_or_default());
            if !all.ends_with(b"\n") {
                all.push(b'\n');
            }
        }
    }
    let gateway = Gateway::new().await;
    let events = run_printer(&gateway, &all).await;
    assert!(stdout_of(&events) == all);
}

/// A line of the greatest length is stored whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b3_a_long_line_is_whole() {
    let length = rounds(8, 63) << 20;
    let mut line = Vec::with_capacity(length + 2);
    line.extend_from_slice(b"{\"type\":\"system\",\"subtype\":\"x\",\"image\":\"");
    line.resize(length - 2, b'A');
    line.extend_from_slice(b"\"}\n");
    let gateway = Gateway::new().await;
    let events = run_printer(&gateway, &line).await;
    assert!(stdout_of(&events) == line);
}

/// Long lines among short ones keep their order, and a last line without a line end is stored whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b3_long_lines_keep_their_place() {
    let mut said = Vec::new();
    for length in [10, 3 << 20, 20, 1 << 20, (1 << 20) + 1, 5 << 20, 0] {
        said.extend(std::iter::repeat_n(b'x', length));
        said.push(b'\n');
    }
    let gateway = Gateway::new().await;
    let events = run_printer(&gateway, &said).await;
    assert!(stdout_of(&events) == said);
    let gateway = Gateway::script("#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\n").await;
    let session = gateway.hub.start(gateway.session(AgentType::Claude, "")).await;
    let session = session.expect("a session");
    session.ended().await;
    assert!(stdout_of(&gateway.events(&session).await) == vec![b'x'; 3_000_000]);
}

/// A long line that cannot be read back is reported as lost, and the output after it is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b3_what_comes_after_a_lost_line_is_kept() {
    const LINE: u64 = 2 << 20;
    let text = format!(
        "#!/bin/sh\nhead -c {LINE} /dev/zero | tr '\\0' x\n\
         while [ ! -e go ]; do sleep 0.05; done\n\
         printf '\\n{{\"type\":\"done\"}}\\n'\ncat > /dev/null\n"
    );
    let gateway = Gateway::script(&text).await;
    let session = gateway.hub.start(gateway.session(AgentType::Claude, "")).await;
    let session = session.expect("a session");
    // The file that buffers the line has no name. It is emptied once it holds all of the line except its
    // end.
    let begun = std::time::Instant::now();
    let file = loop {
        let open = std::fs::read_dir("/proc/self/fd").expect("/proc").flatten();
        let mut files = open.map(|entry| entry.path()).filter(|path| {
            let is_ours = |to: std::path::PathBuf| to.starts_with(gateway.home.root());
            std::fs::read_link(path).is_ok_and(is_ours)
                && std::fs::metadata(path).is_ok_and(|of| of.is_file() && of.len() == LINE)
        });
        if let Some(file) = files.next() {
            break file;
        }
        assert!(begun.elapsed() < crate::shared::PATIENCE, "there is no such file");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("the file");
    file.set_len(0).expect("it can be emptied");
    std::fs::write(gateway.home.path("work/go"), "").expect("a file");
    let mut reader = gateway.reader(&session).await;
    reader
        .until(|kind| {
            matches!(kind, EventKind::Error(error)
                if error.code.as_ref().is_some_and(|code| *code == *"lineLost"))
        })
        .await;
    reader
        .until(|kind| {
            matches!(kind, EventKind::Other(other)
                if other.name.as_ref().is_some_and(|name| *name == *"done"))
        })
        .await;
    stop(&session).await;
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0) << 10
}

/// Lines without an end, in several sessions at once: reported, dropped, and memory stays bounded.
///
/// Runs in its own process, so that other tests' memory does not count.
#[test]
fn b3_endless_lines_take_bounded_memory() {
    let own = std::env::current_exe().expect("this program");
    let output = std::process::Command::new(own)
        .args(["--exact", "bytes::b3_inside_of_a_process_of_its_own", "--ignored", "--nocapture"])
        .output()
        .expect("this program again");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by b3_endless_lines_take_bounded_memory in its own process"]
async fn b3_inside_of_a_process_of_its_own() {
    let megabytes = rounds(200, 2048);
    let text = format!(
        "#!/bin/sh\nhead -c {megabytes}M /dev/zero\necho\necho '{{\"type\":\"done\"}}'\ncat > /dev/null\n"
    );
    let gateway = Gateway::script(&text).await;
    let before = resident();
    let mut sessions = Vec::new();
    for _ in 0..4 {
        let new = gateway.session(AgentType::Claude, "");
        sessions.push(gateway.hub.start(new).await.expect("a session"));
    }
    let mut most = 0;
    for session in &sessions {
        let mut reader = gateway.reader(session).await;
        loop {
            tokio::select! {
                event = reader.next() => {
                    let event = event.expect("an event");
                    if matches!(&event.kind, EventKind::Other(other)
                        if other.name.as_ref().is_some_and(|name| *name == *"done"))
                    {
                        break;
                    }
                }
                () = tokio::time::sleep(std::time::Duration::from_millis(10)) => {
                    most = most.max(resident());
                }
            }
        }
        stop(session).await;
        let events = gateway.events(session).await;
        let told = events.iter().any(|event| {
            matches!(&event.kind, EventKind::Error(error)
                if error.code.as_ref().is_some_and(|code| *code == *"lineTooLong"))
        });
        assert!(told);
    }
    let grown = most.saturating_sub(before);
    assert!(grown <= 512 << 20, "{} MiB more than before", grown >> 20);
}
