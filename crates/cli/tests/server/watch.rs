//! All sessions at once: summaries and open requests, then changes, over a stream and a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::shared::{PATIENCE, Server, Socket, read_answer};

/// What a client knows: each session, and its open requests.
#[derive(Debug, Default)]
struct Known {
    sessions: BTreeMap<String, (Value, Vec<Value>)>,
    cursor: String,
    is_ready: bool,
    messages: Vec<Value>,
}

impl Known {
    /// Does with a message what the documents say.
    fn apply(&mut self, change: &Value) {
        if change["reset"] == true {
            self.sessions.clear();
        }
        for changed in change["sessions"].as_array().expect("sessions") {
            let id = changed["session"]["id"].as_str().expect("an id").to_owned();
            let known = self.sessions.entry(id).or_default();
            known.0 = changed["session"].clone();
            if let Some(requests) = changed["requests"].as_array() {
                known.1.clone_from(requests);
            }
        }
        for id in change["forgotten"].as_array().into_iter().flatten() {
            self.sessions.remove(id.as_str().expect("an id"));
        }
        self.cursor = change["cursor"].as_str().expect("a cursor").to_owned();
        self.is_ready |= change["ready"] == true;
        self.messages.push(change.clone());
    }

    fn until(&mut self, source: &mut impl Source, fits: impl Fn(&Self) -> bool) {
        while !fits(self) {
            let change = source.next();
            self.apply(&change);
        }
    }

    fn state(&self, session: &str) -> &str {
        self.sessions.get(session).and_then(|known| known.0["state"].as_str()).unwrap_or("")
    }

    fn requests(&self, session: &str) -> usize {
        self.sessions.get(session).map_or(0, |known| known.1.len())
    }
}

trait Source {
    fn next(&mut self) -> Value;
}

impl Source for Socket {
    fn next(&mut self) -> Value {
        self.until(|frame| frame["watch"].is_object())["watch"].clone()
    }
}

struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(server: &Server, cursor: Option<&str>) -> Self {
        let mut stream = server.stream();
        let last = cursor.map(|cursor| format!("last-event-id: {cursor}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /v1/watch HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             accept: text/event-stream\r\n{last}\r\n",
            server.http, server.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        Self(BufReader::new(stream))
    }
}

impl Source for Stream {
    fn next(&mut self) -> Value {
        let mut id = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("a line") > 0, "the stream ended");
            if let Some(cursor) = line.strip_prefix("id: ") {
                id = cursor.trim_end().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).expect("JSON");
                assert_eq!(data["cursor"], id.as_str());
                return data;
            }
        }
    }
}

fn socket(server: &Server, after: Option<&str>) -> Socket {
    let mut socket = server.socket("/v1/ws");
    socket.say(&json!({ "id": "w", "command": "watch", "after": after }));
    assert_eq!(socket.frame(), json!({ "id": "w", "reply": {} }));
    socket
}

/// Everything that can happen to a session arrives, and nothing else is left at the end.
fn follow(server: &Server, open: impl Fn(Option<&str>) -> Box<dyn FnMut() -> Value>) {
    struct Opened(Box<dyn FnMut() -> Value>);
    impl Source for Opened {
        fn next(&mut self) -> Value {
            (self.0)()
        }
    }
    let before = server.session("/say hi");
    server.until(&before, "turnCompleted");
    let asking = server.session("/write a.txt x");
    server.until_open(&asking);
    let mut known = Known::default();
    let mut source = Opened(open(None));
    known.until(&mut source, |known| known.is_ready);
    assert_eq!(known.messages.first().map(|first| &first["reset"]), Some(&json!(true)));
    assert_eq!((known.state(&before), known.requests(&before)), ("idle", 0));
    assert_eq!((known.state(&asking), known.requests(&asking)), ("waitingPermission", 1));
    let request = known.sessions[&asking].1[0].clone();
    assert_eq!(request, server.get("/v1/requests")["requests"][0]);
    // A new session, a settled request, an end.
    let new = server.session("/hang");
    known.until(&mut source, |known| known.state(&new) == "working");
    let id = request["requestId"].as_str().expect("an id");
    server.post(
        &format!("/v1/sessions/{asking}/requests/{id}"),
        &json!({ "behavior": "deny", "message": "no" }),
    );
    known.until(&mut source, |known| known.requests(&asking) == 0);
    server.post(&format!("/v1/sessions/{new}/stop"), &json!({}));
    known.until(&mut source, |known| known.state(&new) == "ended");
    // The client is away while more happens, and continues without starting over.
    drop(source);
    let cursor = known.cursor.clone();
    server.post(&format!("/v1/sessions/{before}/prompt"), &json!({ "prompt": "/write b.txt x" }));
    server.until_open(&before);
    assert_eq!(server.ask("DELETE", &format!("/v1/sessions/{new}"), None).status, 200);
    let mut source = Opened(open(Some(&cursor)));
    (known.is_ready, known.messages) = (false, Vec::new());
    known.until(&mut source, |known| known.is_ready);
    assert!(known.messages.iter().all(|message| message["reset"].is_null()), "{known:?}");
    known.until(&mut source, |known| known.requests(&before) == 1);
    known.until(&mut source, |known| !known.sessions.contains_key(&new));
    // It has everything that the list has.
    known.until(&mut source, |known| {
        let listed = server.get("/v1/sessions?limit=500")["sessions"].clone();
        let mut all: Vec<_> = known.sessions.values().map(|known| known.0.clone()).collect();
        all.sort_by_key(|session| session["id"].to_string());
        let mut listed = listed.as_array().expect("sessions").clone();
        listed.sort_by_key(|session| session["id"].to_string());
        all == listed
    });
    // An unknown cursor starts over.
    let mut source = Opened(open(Some("elsewhere.7")));
    let mut other = Known::default();
    other.until(&mut source, |known| known.is_ready);
    assert_eq!(other.messages.first().map(|first| &first["reset"]), Some(&json!(true)));
    assert_eq!(other.sessions.len(), known.sessions.len());
}

#[test]
fn a_stream_shows_all_sessions_and_what_changes() {
    let server = Server::start();
    follow(&server, |cursor| {
        let mut stream = Stream::open(&server, cursor);
        Box::new(move || stream.next())
    });
}

#[test]
fn a_socket_shows_all_sessions_and_what_changes() {
    let server = Server::start();
    follow(&server, |cursor| {
        let mut socket = socket(&server, cursor);
        Box::new(move || Source::next(&mut socket))
    });
}

#[test]
fn messages_are_polled_one_by_one() {
    let server = Server::start();
    follow(&server, |cursor| {
        let (http, token) = (server.http.clone(), server.token.clone());
        let mut cursor = cursor.map(str::to_owned);
        Box::new(move || {
            let after =
                cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
            let mut stream = TcpStream::connect(&http).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            let head = format!(
                "GET /v1/watch?wait=9{after} HTTP/1.1\r\nhost: {http}\r\n\
                 authorization: Bearer {token}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).expect("it listens");
            let change = read_answer(stream).json();
            cursor = change["cursor"].as_str().map(str::to_owned);
            change
        })
    });
}

#[test]
fn many_sessions_come_in_pieces_and_each_piece_can_be_resumed() {
    let server = Server::start();
    // More than a message has, and none of them needs an agent.
    let mut all = BTreeSet::new();
    for _ in 0..60 {
        let session = server.session("/say hi");
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
        all.insert(session);
    }
    let mut known = Known::default();
    let first = server.get("/v1/watch");
    assert_eq!(first["sessions"].as_array().map(Vec::len), Some(50));
    known.apply(&first);
    assert!(!known.is_ready);
    // What changes meanwhile is not missed.
    let gone = all.pop_first().expect("a session");
    assert_eq!(server.ask("DELETE", &format!("/v1/sessions/{gone}"), None).status, 200);
    while !known.is_ready || known.sessions.contains_key(&gone) {
        let next = server.get(&format!("/v1/watch?wait=9&after={}", known.cursor));
        assert!(next["reset"].is_null(), "{next}");
        known.apply(&next);
    }
    assert_eq!(known.sessions.keys().cloned().collect::<BTreeSet<_>>(), all);
}

#[test]
fn changes_of_a_session_are_put_together() {
    let server = Server::start();
    let mut source = Stream::open(&server, None);
    let mut known = Known::default();
    known.until(&mut source, |known| known.is_ready);
    let session = server.session("/repeat 40000 word ");
    known.until(&mut source, |known| known.state(&session) == "idle");
    let events = known.sessions[&session].0["lastSeq"].as_u64().expect("a number");
    let created = known.sessions[&session].0["createdAt"].as_str().expect("a time").to_owned();
    let updated = known.sessions[&session].0["updatedAt"].as_str().expect("a time").to_owned();
    let milliseconds = |time: &str| {
        let clock: Vec<f64> =
            time[11..time.len() - 1].split(':').map(|it| it.parse().expect("a number")).collect();
        (clock[0] * 3600.0 + clock[1] * 60.0 + clock[2]) * 1000.0
    };
    // At most one for each quarter of a second, and one at each end.
    let lasted = (milliseconds(&updated) - milliseconds(&created)).rem_euclid(86_400_000.0);
    let most = lasted / 250.0 + 3.0;
    let count = known.messages.len();
    assert!((count as f64) <= most, "{count} {most} {events}");
    assert!((count as u64) < events, "{count} {events}");
}

#[test]
fn a_socket_attaches_to_many_sessions_and_stops_watching() {
    let server = Server::start();
    let sessions = [server.session("/say one"), server.session("/say two")];
    let mut socket = socket(&server, None);
    let mut known = Known::default();
    known.until(&mut socket, |known| known.is_ready);
    for session in &sessions {
        server.until(session, "turnCompleted");
        socket.say(&json!({ "id": session, "command": "attach", "sessionId": session }));
        socket.until(|frame| frame["id"] == session.as_str() && frame["reply"].is_object());
        socket.until(|frame| {
            frame["type"] == "turnCompleted" && frame["sessionId"] == session.as_str()
        });
    }
    socket.say(&json!({ "id": 1, "command": "detach", "sessionId": sessions[0] }));
    socket.until(|frame| frame["id"] == 1);
    socket.say(&json!({ "id": 2, "command": "unwatch", "why": "enough" }));
    socket.until(|frame| frame["id"] == 2 && frame["reply"].is_object());
    for session in &sessions {
        let command =
            json!({ "id": 3, "command": "prompt", "sessionId": session, "prompt": "/say x" });
        socket.say(&command);
    }
    // Only the attached session is shown, and no change.
    let mut replies = 0;
    loop {
        let frame = socket.frame();
        assert!(frame["watch"].is_null(), "{frame}");
        replies += usize::from(frame["id"] == 3);
        if frame["type"].is_string() {
            assert_eq!(frame["sessionId"], sessions[1].as_str(), "{frame}");
        }
        if frame["type"] == "turnCompleted" && replies == 2 {
            break;
        }
    }
}

#[test]
fn sessions_of_another_process_are_watched_too() {
    let server = Server::start();
    let mut source = Stream::open(&server, None);
    let mut known = Known::default();
    known.until(&mut source, |known| known.is_ready);
    let beside = server.beside();
    let session = beside.session("/write a.txt x");
    known.until(&mut source, |known| known.requests(&session) == 1);
    beside.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    known.until(&mut source, |known| known.state(&session) == "ended");
    assert_eq!(beside.ask("DELETE", &format!("/v1/sessions/{session}"), None).status, 200);
    known.until(&mut source, |known| !known.sessions.contains_key(&session));
}
