//! When the server dies and restarts, watchers miss nothing and see nothing twice.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdout};
use std::thread;

use crate::client::harness::{From, Machines, numbers, short};
use crate::pty::Pty;

/// A program whose output is read while it runs.
pub(crate) struct Watcher {
    child: Child,
    lines: BufReader<ChildStdout>,
    printed: String,
}

impl Watcher {
    pub(crate) fn start(machines: &Machines, from: From, args: &[&str]) -> Self {
        let mut child = machines.verb(from, args).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout"));
        Self { child, lines, printed: String::new() }
    }

    pub(crate) fn until(&mut self, text: &str) {
        loop {
            let before = self.printed.len();
            let read = self.lines.read_line(&mut self.printed).expect("UTF-8");
            assert!(read > 0, "{text} never came: {}", self.printed);
            if self.printed[before..].contains(text) {
                return;
            }
        }
    }

    /// Everything that it printed, and its exit code.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        self.lines.read_to_string(&mut self.printed).expect("UTF-8");
        let code = self.child.wait().expect("it ends").code();
        (std::mem::take(&mut self.printed), code)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watchers_go_on_where_they_were() {
    let mut machines = Machines::new();
    let session = machines.session("/repeat 200 word \n/bash true");
    machines.request(&session);
    let id = short(&session).to_owned();
    let mut watchers = [
        Watcher::start(&machines, From::There, &["logs", "-f", "--format", "jsonl", &id]),
        Watcher::start(&machines, From::There, &["attach", "--format", "jsonl", &id]),
        Watcher::start(&machines, From::Here, &["attach", "--format", "jsonl", &id]),
        Watcher::start(&machines, From::There, &["wait", "--for", "ended", "--json", &id]),
    ];
    for watcher in &mut watchers[..3] {
        watcher.until("requestRaised");
    }
    let http = machines.kill();
    machines.serve(&http);
    let kept = machines.told(From::Here, &["export", &id]);
    assert!(kept.contains("sessionEnded"), "{kept}");
    let [logs, attached, found, waited] = watchers.map(Watcher::end);
    for (printed, code) in [&logs, &attached, &found] {
        assert_eq!(*printed, kept, "{:?}", numbers(printed));
        assert!(code.is_some(), "{code:?}");
    }
    assert_eq!(logs.1, Some(0));
    // The session failed when its server was killed.
    assert_eq!((attached.1, found.1, waited.1), (Some(1), Some(1), Some(1)));
}

/// A server found through the data directory is also found at a new address.
#[test]
fn a_server_is_found_again_at_another_address() {
    let mut machines = Machines::new();
    let session = machines.session("/hang");
    machines.until(&session, "turnStarted", 0);
    let id = short(&session).to_owned();
    let mut pty = Pty::start(&mut machines.verb(From::Here, &["attach", &id]));
    pty.expect("ctrl-c detaches");
    machines.kill();
    pty.expect("reconnecting");
    machines.serve("127.0.0.1:0");
    pty.expect("reconnected");
    assert_eq!(pty.end(), Some(1), "{}", pty.shown);
    assert!(pty.shown.contains("agentwire ended while the session ran"), "{}", pty.shown);
}

/// Watchers also see a session that was resumed.
#[test]
fn a_session_that_goes_on_is_watched_on() {
    let machines = Machines::new();
    let session = machines.session("/say one");
    machines.until(&session, "turnCompleted", 0);
    let id = short(&session);
    machines.told(From::Here, &["stop", id]);
    machines.told(From::Here, &["send", id, "/say two\n/hang"]);
    let mut watcher =
        Watcher::start(&machines, From::There, &["logs", "-f", "--format", "jsonl", id]);
    watcher.until("\"two\"");
    machines.told(From::Here, &["stop", id]);
    let (printed, code) = watcher.end();
    assert_eq!((printed, code), (machines.told(From::Here, &["export", id]), Some(0)));
}

/// Forwards each client to that address, and cuts the connection after that many bytes from the server.
fn cut_short(listener: &TcpListener, to: &str, bytes: usize) {
    for client in listener.incoming().map_while(Result::ok) {
        let Ok(server) = TcpStream::connect(to) else { return };
        let pass = |mut from: TcpStream, mut to: TcpStream, mut left: usize| {
            thread::spawn(move || {
                let mut buffer = [0; 8192];
                while left > 0
                    && let Ok(read @ 1..) = from.read(&mut buffer)
                    && to.write_all(&buffer[..read.min(left)]).is_ok()
                {
                    left -= read.min(left);
                }
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            });
        };
        let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
        pass(copy(&client), copy(&server), usize::MAX);
        pass(server, client, bytes);
    }
}

/// A connection that keeps breaking in the middle of events loses nothing.
#[test]
fn cut_connections_lose_and_double_nothing() {
    let mut machines = Machines::without_server();
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = proxy.local_addr().expect("an address").to_string();
    machines.serve_with("127.0.0.1:0", &["--host", &address]);
    let to = machines.url().split_once("://").expect("an address").1.to_owned();
    thread::spawn(move || cut_short(&proxy, &to, 400_000));
    let session = machines.session("/repeat 10000 word ");
    machines.until(&session, "turnCompleted", 0);
    let id = short(&session);
    machines.told(From::Here, &["stop", id]);
    let kept = machines.told(From::Here, &["export", id]);
    assert!(kept.len() > 2_000_000, "{}", kept.len());
    let url = format!("http://{address}");
    let followed =
        machines.run(From::There, &["logs", "-f", "--format", "jsonl", id, "--url", &url]);
    assert!(followed.stdout == kept.as_bytes(), "{:?}", followed.status);
    let told = crate::shared::error(&followed);
    assert!(told.matches("reconnecting").count() > 3, "{told}");
}
