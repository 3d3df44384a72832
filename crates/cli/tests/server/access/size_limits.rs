//! Size and time limits: anything too long, too large or too slow costs only its own connection.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::shared::{PATIENCE, Server, read_answer};

/// Reads to the end, which must arrive: a connection that is kept waiting was not closed.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    if let Err(error) = stream.read_to_end(&mut rest) {
        let waits = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!waits, "the server hangs");
    }
    rest
}

/// Request heads that never end, silent or byte by byte.
#[test]
fn heads_that_never_end_are_cut_off() {
    let server = Server::start();
    let begin = |text: &str| {
        let mut stream = server.stream();
        stream.write_all(text.as_bytes()).expect("it listens");
        stream
    };
    let mut silent: Vec<TcpStream> = (0..30).map(|_| begin("")).collect();
    silent.extend((0..30).map(|_| begin("GET /v1/sessions HTTP/1.1\r\nhost: ")));
    let dribbling = std::thread::spawn({
        let mut streams: Vec<TcpStream> = (0..10).map(|_| begin("GET / HTTP/1.1\r\n")).collect();
        move || {
            let begun = Instant::now();
            let pause = streams[0].try_clone().expect("a stream");
            pause.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit");
            while !streams.is_empty() {
                assert!(begun.elapsed() < PATIENCE, "they were never closed");
                streams.retain_mut(|stream| stream.write_all(b"x: y\r\n").is_ok());
                // A pause between bytes: nothing arrives here before the end.
                let _ = (&pause).read(&mut [0; 64]);
            }
        }
    });
    // Others do not wait for them.
    assert_eq!(server.get("/v1/sessions")["sessions"], json!([]));
    for stream in &mut silent {
        let rest = rest(stream);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 4"));
    }
    dribbling.join().expect("they were cut off");
}

#[test]
fn long_heads_are_refused() {
    let server = Server::start();
    let many: String = (0..5000).map(|number| format!("x{number}: y\r\n")).collect();
    for head in [
        format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(64 << 10)),
        format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(64 << 10)),
        format!("GET / HTTP/1.1\r\n{many}\r\n"),
        format!("{} / HTTP/1.1\r\n\r\n", "G".repeat(64 << 10)),
        format!("GET / HTTP/1.1\r\nauthorization: Bearer {}\r\n\r\n", "t".repeat(17 << 10)),
    ] {
        let mut stream = server.stream();
        let _ = stream.write_all(head.as_bytes());
        let answer = rest(&mut stream);
        let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]).into_owned();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{shown}");
    }
    // A head that fits is read.
    let bearer = format!("Bearer {}", server.token);
    let long = "y".repeat(8 << 10);
    let headers = [("authorization", &*bearer), ("x", &*long)];
    assert_eq!(server.raw("GET", "/v1/sessions", &headers, b"").status, 200);
}

/// Writes until the server stops reading, up to this many bytes.
fn pour(stream: &mut TcpStream, bytes: usize) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a time limit");
    let chunk = vec![b' '; 64 << 10];
    let mut poured = 0;
    while poured < bytes {
        match stream.write(&chunk) {
            Ok(count) => poured += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    poured
}

fn memory(server: &Server) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a figure");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Before a client is authenticated, no large body is read, however it is announced.
#[test]
fn bodies_of_strangers_are_not_read() {
    let server = Server::start();
    let before = memory(&server);
    let host = &server.http;
    for announced in ["content-length: 10737418240", "transfer-encoding: chunked"] {
        for credential in ["", "authorization: Bearer wrong\r\n"] {
            for _ in 0..4 {
                let mut stream = server.stream();
                let head = format!(
                    "POST /v1/sessions HTTP/1.1\r\nhost: {host}\r\n{credential}\
                     content-type: application/json\r\n{announced}\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).expect("it listens");
                if announced.contains("chunked") {
                    let _ = stream.write_all(b"40000000\r\n");
                }
                pour(&mut stream, 32 << 20);
                let answer = rest(&mut stream);
                let shown = String::from_utf8_lossy(&answer).into_owned();
                assert!(answer.is_empty() || shown.starts_with("HTTP/1.1 401"), "{shown}");
            }
            // A client that waits for the answer before it sends the body gets one.
            let mut stream = server.stream();
            let head = format!(
                "POST /v1/sessions HTTP/1.1\r\nhost: {host}\r\n{credential}\
                 content-type: application/json\r\n{announced}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).expect("it listens");
            assert_eq!(read_answer(stream).status, 401);
        }
    }
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB");
}

/// An authenticated client may send large bodies, up to the limit.
#[test]
fn large_bodies_are_refused_in_words() {
    let server = Server::start();
    let session = server.session("/hang");
    let (host, token) = (&server.http, &server.token);
    let head = |path: &str, announced: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\n{announced}\r\n\r\n"
        )
    };
    let query = format!("/v1/sessions/{session}/query");
    for path in ["/v1/sessions", &query] {
        // A body that is announced as too large is not waited for.
        let mut stream = server.stream();
        let head = head(path, "content-length: 10737418240");
        stream.write_all(head.as_bytes()).expect("it listens");
        let answer = read_answer(stream);
        assert_eq!((answer.status, answer.code().as_str()), (413, "invalidMessage"));
    }
    // A body without a length is counted.
    let mut stream = server.stream();
    stream.write_all(head(&query, "transfer-encoding: chunked").as_bytes()).expect("it listens");
    stream.write_all(b"200000\r\n").expect("it listens");
    let _ = stream.write_all(&vec![b' '; 2 << 20]);
    let answer = read_answer(stream);
    assert_eq!((answer.status, answer.code().as_str()), (413, "invalidMessage"));
    // A body that does not arrive times out, and nobody else waits meanwhile.
    let mut slow = server.stream();
    slow.write_all(head(&query, "content-length: 100").as_bytes()).expect("it listens");
    slow.write_all(b"{").expect("it listens");
    server.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    let answer = read_answer(slow);
    assert_eq!((answer.status, answer.code().as_str()), (408, "timeout"));
}

/// A WebSocket frame with this first byte and an eight-byte length.
fn frame(first: u8, length: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | 127];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

#[test]
fn messages_that_are_none_or_too_large_close_the_socket_with_a_reason() {
    let server = Server::start();
    let session = server.session("/hang");
    server.until(&session, "turnStarted");
    let bearer = format!("Bearer {}", server.token);
    let paths = [
        (&server.http, format!("/v1/sessions/{session}/ws")),
        (&server.http, format!("/ws/sessions/{session}")),
        (&server.http, "/rpc".to_owned()),
        (&server.http, "/insights".to_owned()),
        (&server.insights, "/".to_owned()),
    ];
    for (address, path) in &paths {
        let wrong: [(u16, Vec<u8>); 6] = [
            (1009, frame(0x81, 65 << 20, b"")),
            (1009, frame(0x82, u64::MAX >> 1, b"")),
            // A reserved bit, a reserved opcode, a continuation without a start.
            (1002, frame(0xc1, 2, b"{}")),
            (1002, frame(0x83, 2, b"{}")),
            (1002, frame(0x80, 2, b"{}")),
            (1007, frame(0x81, 2, b"\xff\xfe")),
        ];
        for (code, bytes) in wrong {
            let headers = [("authorization", &*bearer)];
            let mut socket = server.socket_at(address, path, &headers).expect("it opens");
            socket.bytes(&bytes);
            let (closed, reason) = socket.closed();
            assert_eq!(closed, code, "{path} {bytes:?}");
            assert!(!reason.is_empty(), "{path} {bytes:?}");
        }
    }
    assert_eq!(server.get(&format!("/v1/sessions/{session}"))["state"], "working");
}
