//! B3, P7: large data is bounded in total, never keeps anyone from being answered, and its memory is freed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::shared::{PATIENCE, Server};

/// The limit for all large data together.
const BOUND: usize = 512 << 20;

/// Starts a session of Claude, which is a script here.
pub(crate) fn claude(server: &Server) -> String {
    let created = server.post("/v1/sessions", &json!({ "agentType": "claude", "prompt": "x" }));
    created["id"].as_str().expect("an id").to_owned()
}

/// A value of the server's memory in `/proc`.
fn memory(server: &Server, name: &str) -> usize {
    let status = format!("/proc/{}/status", server.pid());
    let status = std::fs::read_to_string(status).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>().expect("a figure")
        << 10
}

fn grown(server: &Server, before: usize) {
    let more = memory(server, "VmHWM").saturating_sub(before);
    assert!(more <= BOUND, "{} MiB more than before", more >> 20);
}

/// Waits until the log of a session has this many events.
fn until_last(server: &Server, session: &str, last: u64) {
    let begun = Instant::now();
    while server.get(&format!("/v1/sessions/{session}"))["lastSeq"].as_u64() < Some(last) {
        assert!(begun.elapsed() < 2 * PATIENCE, "it never comes");
    }
}

/// Lines of control characters, which grow most when they are written as JSON, from several agents at once:
/// they are stored whole, and meanwhile everyone else is answered.
#[test]
fn large_lines_leave_the_server_answering() {
    const AGENTS: usize = 4;
    const LINE: usize = 63 << 20;
    /// A line's length in the log: base64, because a JSON string would be six times as long.
    const STORED: usize = LINE.div_ceil(3) * 4;
    let server = Server::with_script(&format!(
        "#!/bin/sh\nhead -c {LINE} /dev/zero | tr '\\0' '\\001'\necho\ncat > /dev/null\n"
    ));
    let quick = server.session("/say ready");
    server.until(&quick, "turnCompleted");
    let before = memory(&server, "VmRSS");
    let sessions: Vec<String> = (0..AGENTS).map(|_| claude(&server)).collect();
    // Each call is answered before the lines are processed: other threads do that work.
    let (mut is_answered, begun) = (false, Instant::now());
    while figure(&server, "agentwire_event_bytes_total{agent=\"claude\"}") < AGENTS * STORED {
        assert_eq!(server.raw("GET", "/healthz", &[], b"").status, 200);
        server.post(&format!("/v1/sessions/{quick}/interrupt"), &json!({}));
        is_answered |= figure(&server, "agentwire_in_flight_bytes{pool=\"work\"}") > 0;
        assert!(begun.elapsed() < 4 * PATIENCE, "they never come through");
    }
    assert!(is_answered, "no call was answered while the lines were worked on");
    grown(&server, before);
    // Each line is in the log, whole.
    for session in &sessions {
        let stored = stored(&server, session);
        let text = stored.find("\"base64\":\"").expect("in base64");
        let length = stored[text + 10..].find('"').expect("an end");
        assert_eq!(length, STORED);
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    }
    grown(&server, before);
    for pool in ["work", "clients", "read"] {
        assert_eq!(figure(&server, &format!("agentwire_in_flight_bytes{{pool=\"{pool}\"}}")), 0);
    }
}

/// A value from the server's metrics.
fn figure(server: &Server, name: &str) -> usize {
    let page = server.ask("GET", "/metrics", None).text;
    let value = page.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
    value.trim().parse::<f64>().expect("a number") as usize
}

/// The page with the event that contains a long line.
fn stored(server: &Server, session: &str) -> String {
    let mut after = 0;
    loop {
        let path = format!("/v1/sessions/{session}/events?after={after}&limit=1");
        let answer = server.ask("GET", &path, None);
        assert_eq!(answer.status, 200);
        if answer.text.len() > 1 << 20 {
            return answer.text;
        }
        let page = answer.json();
        assert!(page["next"].as_u64() > Some(after), "there is none");
        after = page["next"].as_u64().expect("a number");
    }
}

/// Many long pages at once: each has at least one event and continues where the last one ended.
#[test]
fn long_pages_at_once_take_bounded_memory() {
    const READERS: usize = 60;
    let server = Server::start();
    let session = server.session(&vec!["/blob 1000000"; 16].join("\n"));
    let events = server.until(&session, "turnCompleted");
    let last = events.last().expect("an event")["seq"].as_u64().expect("a number");
    drop(events);
    let before = memory(&server, "VmRSS");
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut after = 0;
                while after < last {
                    let path = format!("/v1/sessions/{session}/events?after={after}&limit=10000");
                    let answer = server.ask("GET", &path, None);
                    if answer.status == 503 {
                        assert_eq!(answer.headers["retry-after"], "1");
                        continue;
                    }
                    let page: Value = answer.json();
                    for event in page["events"].as_array().expect("events") {
                        after += 1;
                        assert_eq!(event["seq"], after);
                    }
                    assert_eq!(page["next"], after, "a page without an event");
                }
            });
        }
    });
    grown(&server, before);
}

/// A server with the smallest budget, whose agent `claude` is this script.
pub(crate) fn narrow(script: &str) -> Server {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::with_settings(
        "[limits]\nin_flight = 48\n\n[agents.claude]\ncommand = \"WORK/../home/claude\"\n",
    );
    let program = server.work().join("../home/claude");
    std::fs::write(&program, script).expect("a file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("a program");
    server
}

/// Waits until the log contains this many bytes of Claude's events.
fn until_bytes(server: &Server, bytes: usize) {
    let begun = Instant::now();
    while figure(server, "agentwire_event_bytes_total{agent=\"claude\"}") < bytes {
        assert!(begun.elapsed() < 2 * PATIENCE, "they never come");
    }
}

/// Large events that a page does not show hold nothing that the page itself needs.
#[test]
fn a_page_passes_large_events_that_it_does_not_show() {
    const LINE: usize = 6 << 20;
    let server = narrow(&format!(
        "#!/bin/sh\nfor i in 1 2 3; do\nprintf '{{\"type\":\"large\",\"pad\":\"'\n\
         head -c {LINE} /dev/zero | tr '\\0' x\necho '\"}}'\ndone\ncat > /dev/null\n"
    ));
    let session = claude(&server);
    until_bytes(&server, 3 * LINE);
    let last = server.get(&format!("/v1/sessions/{session}"))["lastSeq"].as_u64();
    let last = last.expect("a number");
    let mut after = 0;
    while after < last {
        let path = format!("/v1/sessions/{session}/events?after={after}&profile=core");
        let page = server.get(&path);
        let events = page["events"].as_array().expect("events");
        assert!(events.iter().all(|event| event["type"] != "other"), "it is not shown");
        let next = page["next"].as_u64().expect("a number");
        assert!(next > after, "it does not continue");
        after = next;
    }
}

/// A client that does not read is not read from either, and releases the budget of its unread message.
#[test]
fn a_client_that_does_not_read_gives_its_share_back() {
    const LINE: usize = 24 << 20;
    const MESSAGE: usize = 8 << 20;
    let server = narrow(&format!(
        "#!/bin/sh\nhead -c {LINE} /dev/zero | tr '\\0' x\necho\ncat > /dev/null\n"
    ));
    let quick = server.session("/say ready");
    server.until(&quick, "turnCompleted");
    let session = claude(&server);
    until_bytes(&server, LINE);
    // It has started to read the large event, and stops.
    let mut stream = server.upgraded(&format!("/v1/sessions/{session}/ws"));
    stream.read_exact(&mut vec![0; 256 << 10]).expect("the large event starts");
    // Its message takes the whole budget for clients.
    let mut message = vec![0x81, 0x80 | 127];
    message.extend((MESSAGE as u64).to_be_bytes());
    message.extend([0; 4]);
    message.resize(message.len() + MESSAGE, b' ');
    stream.write_all(&message).expect("it is read");
    let prompt = format!("/say {}", "a".repeat(2 << 20));
    let path = format!("/v1/sessions/{quick}/prompt");
    let begun = Instant::now();
    loop {
        let answer = server.ask("POST", &path, Some(&json!({ "prompt": prompt })));
        if answer.status == 202 {
            break;
        }
        assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
        assert!(begun.elapsed() < 2 * PATIENCE, "it never gets its turn");
    }
    drop(stream);
}

/// Many large messages that never end: they take little memory, and give way to a complete one.
#[test]
fn half_messages_take_bounded_memory_and_give_way() {
    const HALVES: usize = 8;
    const ANNOUNCED: usize = 60 << 20;
    const SENT: usize = 56 << 20;
    let server = Server::start();
    let session = server.session("/say ready");
    server.until(&session, "turnCompleted");
    let before = memory(&server, "VmRSS");
    let chunk = vec![b' '; 1 << 20];
    let pour = |stream: &mut TcpStream| {
        stream.set_write_timeout(Some(Duration::from_millis(50))).expect("a time limit");
        for _ in 0..SENT / chunk.len() {
            if stream.write_all(&chunk).is_err() {
                break;
            }
        }
    };
    let mut halves = Vec::new();
    for _ in 0..HALVES {
        let mut stream = server.stream();
        let head = format!(
            "POST /v1/sessions/{session}/prompt HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {ANNOUNCED}\r\n\r\n",
            server.http, server.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        pour(&mut stream);
        halves.push(stream);
        let mut stream = server.upgraded(&format!("/v1/sessions/{session}/ws"));
        let mut head = vec![0x81, 0x80 | 127];
        head.extend((ANNOUNCED as u64).to_be_bytes());
        head.extend([0; 4]);
        stream.write_all(&head).expect("it listens");
        pour(&mut stream);
        halves.push(stream);
    }
    // Small messages wait for none of them.
    server.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.say(&json!({ "id": 1, "command": "interrupt" }));
    socket.until(|frame| frame["id"] == 1);
    // A large, complete message gets its turn.
    let prompt = format!("/say {}", "a".repeat(2 << 20));
    let path = format!("/v1/sessions/{session}/prompt");
    let begun = Instant::now();
    loop {
        let answer = server.ask("POST", &path, Some(&json!({ "prompt": prompt })));
        if answer.status == 202 {
            break;
        }
        assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
        assert!(begun.elapsed() < 3 * PATIENCE, "it never gets its turn");
    }
    grown(&server, before);
    drop(halves);
    until_last(&server, &session, 4);
}

/// A message of unknown length holds only what has arrived of it, so others need not wait.
#[test]
fn a_body_of_unknown_length_holds_little() {
    let server = narrow("#!/bin/sh\ncat > /dev/null\n");
    let session = server.session("/say ready");
    server.until(&session, "turnCompleted");
    let path = format!("/v1/sessions/{session}/prompt");
    let mut stream = server.stream();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n10010\r\n",
        server.http, server.token
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    stream.write_all(&vec![b' '; 0x10010]).expect("it listens");
    let held = || figure(&server, "agentwire_in_flight_bytes{pool=\"clients\"}");
    let begun = Instant::now();
    while held() == 0 {
        assert!(begun.elapsed() < PATIENCE, "it gets no share");
    }
    assert_eq!(held(), 1 << 20);
    server.post(&path, &json!({ "prompt": format!("/say {}", "a".repeat(200_000)) }));
    assert_eq!(figure(&server, "agentwire_in_flight_waits_total{pool=\"clients\"}"), 0);
    // The rest arrives, and the share grows.
    stream.write_all(b"\r\n100000\r\n").expect("it listens");
    stream.write_all(&vec![b' '; 1 << 20]).expect("it listens");
    while held() < 8 << 20 {
        assert!(begun.elapsed() < PATIENCE, "it does not grow");
    }
    drop(stream);
    while held() > 0 {
        assert!(begun.elapsed() < PATIENCE, "it is not given back");
    }
}

/// When sessions have ended and readers are gone, their memory is freed.
#[test]
fn memory_comes_back_after_load() {
    let sessions = if std::env::var_os("AGENTWIRE_SOAK").is_some() { 1000 } else { 150 };
    let server = Server::set_up(&[], "", |_, _| {});
    let first = server.session("/say ready");
    server.until(&first, "turnCompleted");
    let idle = memory(&server, "VmRSS");
    for _ in 0..sessions / 10 {
        let some: Vec<String> = (0..10).map(|_| server.session("/say hello")).collect();
        for session in some {
            server.until(&session, "turnCompleted");
            server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
        }
    }
    let large = server.session(&vec!["/blob 1000000"; 16].join("\n"));
    server.until(&large, "turnCompleted");
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut socket = server.socket(&format!("/v1/sessions/{large}/ws"));
                while !socket.next().expect("a frame").contains("\"type\":\"turnCompleted\"") {}
            });
        }
    });
    server.post(&format!("/v1/sessions/{large}/stop"), &json!({}));
    let bound = 2 * idle + (10 << 20);
    let begun = Instant::now();
    while memory(&server, "VmRSS") > bound {
        assert!(
            begun.elapsed() < PATIENCE,
            "{} MiB when idle, {} MiB after load",
            idle >> 20,
            memory(&server, "VmRSS") >> 20
        );
        assert_eq!(server.raw("GET", "/healthz", &[], b"").status, 200);
    }
}

/// Answers that are as expensive to check as possible, from several sessions at once: everyone else is
/// answered meanwhile, and the memory stays bounded. (A test next to the check itself shows, without
/// timing, that a session can be interrupted and stopped while its answer is checked.)
#[test]
fn hostile_answers_leave_the_server_answering() {
    use std::os::unix::fs::PermissionsExt as _;
    const AGENTS: usize = 4;
    /// Sends the content of the file `answer` as its answer.
    const SCRIPT: &str = r#"#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) result='{"sessionId":"s1"}' ;;
    *'"session/prompt"'*)
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'
        printf '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
        cat answer
        printf '"}}}}\n'
        result='{"stopReason":"end_turn"}' ;;
    *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;
    let server = Server::with_settings("[agents.acp]\ncommand = \"WORK/../home/acp\"\nargs = []\n");
    let program = server.work().join("../home/acp");
    std::fs::write(&program, SCRIPT).expect("a file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("a program");
    let quick = server.session("/say ready");
    server.until(&quick, "turnCompleted");
    let before = memory(&server, "VmRSS");
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    let fields = json!({ "items": { "type": "object", "required": ["a", "b", "c", "d"] } });
    let alternatives = json!({ "anyOf": vec![fields.clone(); 20] });
    let matched = json!({ "items": { "not": { "pattern": "[ab]*a[ab]{2000}$" } } });
    for (schema, part, count) in [
        (strings.clone(), "1", 2_000_000),
        (strings, "1", 90_000),
        (fields, "{}", 49_000),
        (alternatives, "{}", 40_000),
        (matched, "\\\"abaabababbabababaaab\\\"", 40_000),
    ] {
        let answer = format!("[{}{part}]", format!("{part},").repeat(count - 1));
        std::fs::write(server.work().join("answer"), answer).expect("a file");
        let config = json!({
            "workingDirectory": server.work(),
            "outputFormat": { "type": "json_schema", "schema": schema },
        });
        let session = json!({ "agentType": "acp", "prompt": "x", "config": config });
        let sessions: Vec<String> = (0..AGENTS)
            .map(|_| {
                server.post("/v1/sessions", &session)["id"].as_str().expect("an id").to_owned()
            })
            .collect();
        for session in &sessions {
            assert_eq!(server.raw("GET", "/healthz", &[], b"").status, 200);
            server.post(&format!("/v1/sessions/{quick}/interrupt"), &json!({}));
            let failed = server.until(session, "turnFailed");
            let failed = failed.last().expect("an event")["error"].as_str().expect("a text");
            assert!(failed.contains("no answer matched the output format"), "{failed}");
            assert!(failed.len() < 2000, "{failed}");
        }
        for session in &sessions {
            server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
        }
    }
    grown(&server, before);
}
