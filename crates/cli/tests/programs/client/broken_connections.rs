//! Over slow and broken connections to a server, each command arrives exactly once.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use agentwire_client::Session;

use crate::client::harness::{From, Machines, short};
use crate::client::restart::Watcher;
use crate::shared::{PATIENCE, error};

/// Gets each chunk that clients send, or an empty one when the server cannot be reached. Returns whether to
/// drop the answer.
type Listen = dyn Fn(&[u8]) -> bool + Send + Sync;

/// A proxy in front of a server.
struct Line {
    address: String,
    listener: TcpListener,
}

impl Line {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        Self { address, listener }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Forwards to that server, and delays what it sends back.
    fn lead(self, to: &str, late: Duration, listen: Arc<Listen>) {
        let to = to.to_owned();
        thread::spawn(move || {
            for client in self.listener.incoming().map_while(Result::ok) {
                match TcpStream::connect(&to) {
                    Ok(server) => pass(client, server, late, Arc::clone(&listen)),
                    Err(_) => drop(listen(b"")),
                }
            }
        });
    }
}

fn pass(client: TcpStream, server: TcpStream, late: Duration, listen: Arc<Listen>) {
    let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
    let is_lost = Arc::new(AtomicBool::new(false));
    let (mut from, mut to) = (copy(&client), copy(&server));
    let lose = Arc::clone(&is_lost);
    thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if listen(&buffer[..read]) {
                lose.store(true, Ordering::SeqCst);
            }
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let (mut from, mut to) = (server, client);
    thread::spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            thread::park_timeout(late);
            if is_lost.load(Ordering::SeqCst) || to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}

/// A server behind the proxy, with a session that has completed a turn.
fn machines_behind(line: &Line) -> (Machines, String, Session) {
    let mut machines = Machines::without_server();
    machines.serve_with("127.0.0.1:0", &["--host", &line.address]);
    let to = machines.url().split_once("://").expect("an address").1.to_owned();
    let session = machines.session("/say one");
    machines.until(&session, "turnCompleted", 0);
    (machines, to, session)
}

#[test]
fn an_ended_session_is_shown_however_slow_the_line() {
    let line = Line::new();
    let (machines, to, session) = machines_behind(&line);
    machines.told(From::Here, &["stop", short(&session)]);
    let kept = machines.told(From::Here, &["export", short(&session)]);
    let url = line.url();
    // Fails a client that polls forever.
    let asked = AtomicUsize::new(0);
    let listen = move |_: &[u8]| asked.fetch_add(1, Ordering::SeqCst) > 200;
    line.lead(&to, Duration::from_millis(300), Arc::new(listen));
    let args = ["attach", "--format", "jsonl", short(&session), "--url", &url];
    assert_eq!(machines.told(From::There, &args), kept);
}

#[test]
fn a_prompt_whose_answer_is_lost_is_sent_again_and_counts_once() {
    let line = Line::new();
    let (machines, to, session) = machines_behind(&line);
    let url = line.url();
    let posts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&posts);
    let listen =
        move |said: &[u8]| said.starts_with(b"POST ") && count.fetch_add(1, Ordering::SeqCst) == 0;
    line.lead(&to, Duration::ZERO, Arc::new(listen));
    let id = short(&session);
    let sent = machines.run(From::There, &["send", id, "/say two", "--url", &url]);
    assert!(sent.status.success(), "{}", error(&sent));
    assert_eq!(posts.load(Ordering::SeqCst), 2);
    machines.told(From::Here, &["wait", id]);
    let kept = machines.told(From::Here, &["export", id]);
    assert_eq!(kept.matches("\"type\":\"turnStarted\"").count(), 2, "{kept}");
}

#[test]
fn wait_waits_for_the_server_to_come_back() {
    let line = Line::new();
    let (mut machines, to, session) = machines_behind(&line);
    let (host, url) = (line.address.clone(), line.url());
    let (tell, told) = sync_channel(1024);
    let is_open = AtomicBool::new(false);
    let listen = move |said: &[u8]| {
        let text = String::from_utf8_lossy(said);
        // Once events arrive over its socket, `wait` asks for the session's state.
        let asks = text.starts_with("GET /v1/sessions/");
        let is_watched = asks && is_open.load(Ordering::SeqCst);
        if asks && text.contains("/ws?") {
            is_open.store(true, Ordering::SeqCst);
        }
        if text.is_empty() || is_watched {
            let _ = tell.try_send(text.is_empty());
        }
        false
    };
    line.lead(&to, Duration::ZERO, Arc::new(listen));
    let args = ["wait", "--for", "ended", "--json", short(&session), "--url", &url];
    let waits = Watcher::start(&machines, From::There, &args);
    assert!(!told.recv_timeout(PATIENCE).expect("it watches the session"));
    let http = machines.kill();
    for _ in 0..3 {
        while !told.recv_timeout(PATIENCE).expect("it retries") {}
    }
    machines.serve_with(&http, &["--host", &host]);
    let (printed, code) = waits.end();
    assert!(printed.contains("\"ended\""), "{printed}");
    // The session failed when its server was killed.
    assert_eq!(code, Some(1));
}
