//! A server of its own, in a directory of its own, and clients that know HTTP and no more.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::client::IntoClientRequest as _;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const AGENTWIRE: &str = env!("CARGO_BIN_EXE_agentwire");

pub(crate) struct Server {
    place: Arc<TempDir>,
    child: Child,
    /// What it said when it listened.
    pub(crate) ready: Value,
    /// `127.0.0.1:PORT`
    pub(crate) http: String,
    pub(crate) insights: String,
    pub(crate) token: String,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The body, which must be a problem with that code.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], self.status, "{body}");
        assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{body}");
        body["code"].as_str().expect("a code").to_owned()
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(args: &[&str]) -> Self {
        Self::launched(&[], args)
    }

    /// One that another program starts by becoming it.
    pub(crate) fn launched(launcher: &[&str], args: &[&str]) -> Self {
        Self::at(Self::place(""), launcher, args, |_, _| {})
    }

    /// With these settings, and a command that was changed; the path is that of its place.
    pub(crate) fn set_up(
        args: &[&str],
        settings: &str,
        change: impl FnOnce(&mut Command, &Path),
    ) -> Self {
        Self::at(Self::place(settings), &[], args, change)
    }

    /// With these settings; `WORK` in them is the directory that it works in.
    pub(crate) fn with_settings(settings: &str) -> Self {
        Self::at(Self::place(settings), &[], &[], |_, _| {})
    }

    /// Another in the same place.
    pub(crate) fn beside(&self) -> Self {
        Self::at(Arc::clone(&self.place), &[], &[], |_, _| {})
    }

    /// Ends it, and starts another in the same place.
    pub(crate) fn again(self) -> Self {
        let place = Arc::clone(&self.place);
        assert_eq!(self.stop(), Some(0));
        Self::at(place, &[], &[], |_, _| {})
    }

    /// One whose agent `claude` is that script.
    pub(crate) fn with_script(script: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let server = Self::with_settings("[agents.claude]\ncommand = \"WORK/../home/claude\"\n");
        let program = server.work().join("../home/claude");
        std::fs::write(&program, script).expect("a file");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("a program");
        server
    }

    /// A place with these settings.
    pub(crate) fn place(settings: &str) -> Arc<TempDir> {
        let place = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "home"] {
            std::fs::create_dir(place.path().join(name)).expect("a directory");
        }
        let work = place.path().join("work").display().to_string();
        let settings = settings.replace("WORK", &work);
        std::fs::write(place.path().join("config.toml"), settings).expect("a file");
        Arc::new(place)
    }

    fn at(
        place: Arc<TempDir>,
        launcher: &[&str],
        args: &[&str],
        change: impl FnOnce(&mut Command, &Path),
    ) -> Self {
        let settings =
            std::fs::read_to_string(place.path().join("config.toml")).unwrap_or_default();
        let is_set = |name: &str| {
            args.contains(&&*format!("--{name}")) || settings.contains(&format!("{name} = "))
        };
        let mut command = program_by(launcher, place.path());
        change(&mut command, place.path());
        let mut child = command
            .arg("serve")
            .args(if is_set("http") { &[][..] } else { &["--http", "127.0.0.1:0"] })
            .args(if is_set("insights") { &[][..] } else { &["--insights", "127.0.0.1:0"] })
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        let said = Arc::new(Mutex::new(String::new()));
        let hear = |line: &str, said: &Mutex<String>| said.lock().expect("no panic").push_str(line);
        let ready: Value = loop {
            assert!(lines.read_line(&mut line).expect("a line") > 0, "it ended: {said:?}");
            let found = serde_json::from_str(&line).ok();
            hear(&line, &said);
            line.clear();
            if let Some(found) = found.filter(|found: &Value| found["ready"] == true) {
                break found;
            }
        };
        // What it says later must not fill the pipe.
        let heard = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
                hear(&line, &heard);
                line.clear();
            }
        });
        let address = |name: &str| {
            let url = ready[name].as_str().expect("an address");
            url.split_once("://").expect("an address").1.to_owned()
        };
        let token = match ready["tokenFile"].as_str() {
            Some(file) => std::fs::read_to_string(file).expect("a token").trim().to_owned(),
            None => String::new(),
        };
        let listener = Some(listener);
        let (http, insights) = (address("http"), address("insights"));
        Self { http, insights, token, ready, child, place, said, listener }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.place.path().join("work")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Another verb, in the same place.
    pub(crate) fn verb(&self, args: &[&str]) -> String {
        let output = program(self.place.path()).args(args).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    /// Asks with the operator's token.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.ask_as(&self.token, method, path, body)
    }

    pub(crate) fn ask_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        if method != "GET" {
            headers.push(("content-type", "application/json"));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        self.raw(method, path, &headers, body.as_bytes())
    }

    /// Asks with these headers, beside Host.
    pub(crate) fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head += &format!("host: {}\r\n", self.http);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = self.stream();
        stream.write_all(head.as_bytes()).expect("it listens");
        let _ = stream.write_all(body);
        read_answer(stream)
    }

    pub(crate) fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.http).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, None);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.ask("POST", path, Some(body));
        assert!((200..300).contains(&answer.status), "{answer:?}");
        answer.json()
    }

    /// A session of the demo agent, and its id.
    pub(crate) fn session(&self, prompt: &str) -> String {
        let created = self.post("/v1/sessions", &json!({ "agentType": "demo", "prompt": prompt }));
        created["id"].as_str().expect("an id").to_owned()
    }

    /// All events up to the first of that type, by waiting pages.
    pub(crate) fn until(&self, session: &str, kind: &str) -> Vec<Value> {
        self.until_one(session, kind, |event| event["type"] == kind)
    }

    /// Waits for an event with that message.
    pub(crate) fn until_message(&self, session: &str, message: &str) -> Vec<Value> {
        self.until_one(session, message, |event| event["message"] == message)
    }

    fn until_one(&self, session: &str, kind: &str, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let (mut events, mut after) = (Vec::new(), 0);
        let begun = Instant::now();
        loop {
            let path = format!("/v1/sessions/{session}/events?after={after}&wait=10");
            let page = self.get(&path);
            after = page["next"].as_u64().expect("a number");
            for event in page["events"].as_array().expect("events") {
                events.push(event.clone());
                if fits(event) {
                    return events;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "{kind} never came: {events:?}");
            assert!(page["ended"] != true, "{kind} never came: {events:?}");
        }
    }

    /// Waits until a turn of that session is over that ended after that event.
    pub(crate) fn until_turn(&self, session: &str, mut after: u64) {
        let begun = Instant::now();
        loop {
            let path = format!("/v1/sessions/{session}/events?after={after}&wait=10");
            let page = self.get(&path);
            after = page["next"].as_u64().expect("a number");
            let events = page["events"].as_array().expect("events");
            if events.iter().any(|event| event["type"] == "turnCompleted") {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "the turn is never over");
        }
    }

    /// Waits until a request of that session is open.
    pub(crate) fn until_open(&self, session: &str) {
        let begun = Instant::now();
        while self.get(&format!("/v1/sessions/{session}"))["openRequests"] == 0 {
            assert!(begun.elapsed() < PATIENCE, "it asks nothing");
        }
    }

    /// A WebSocket at that path of the main address.
    pub(crate) fn socket(&self, path: &str) -> Socket {
        self.socket_at(&self.http, path, &[("authorization", &format!("Bearer {}", self.token))])
            .expect("the socket opens")
    }

    pub(crate) fn socket_at(
        &self,
        address: &str,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, u16> {
        let mut request = format!("ws://{address}{path}").into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a value"));
        }
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        // What the server says may be as long as it likes.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let stream = MaybeTlsStream::Plain(stream);
        match tungstenite::client::client_with_config(request, stream, Some(config)) {
            Ok((socket, _)) => Ok(Socket { socket }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A WebSocket at that path, as the wire that it is.
    pub(crate) fn upgraded(&self, path: &str) -> TcpStream {
        let mut stream = self.stream();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            self.http, self.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("an answer");
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
        stream
    }

    /// The events of a session after that number, as a stream gives them.
    pub(crate) fn events(&self, path: &str, after: u64) -> impl Iterator<Item = Value> + use<> {
        let mut stream = self.stream();
        let head = format!(
            "GET {path}?after={after} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             accept: text/event-stream\r\nconnection: close\r\n\r\n",
            self.http, self.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        BufReader::new(stream)
            .lines()
            .map_while(|line| {
                let line = line.expect("a line");
                Some(line.strip_prefix("data: ").map(str::to_owned))
            })
            .flatten()
            .map(|data| serde_json::from_str(&data).expect("JSON"))
    }

    /// What it has said on stderr so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    /// Tells it to end, and gives its exit code and all that it said.
    pub(crate) fn stop_and_hear(mut self) -> (Option<i32>, String) {
        let said = Arc::clone(&self.said);
        let listener = self.listener.take();
        let code = self.stop();
        listener.into_iter().for_each(|listener| listener.join().expect("it listens to the end"));
        let said = said.lock().expect("no panic").clone();
        (code, said)
    }

    /// Tells it to end, and gives its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let code = self.child.wait().expect("it ends").code();
        assert!(!self.data().join("server.json").exists());
        code
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // An agent that is just being killed could still write where nothing is to be left.
        let begun = Instant::now();
        while agents_in(self.place.path()) > 0 && begun.elapsed() < PATIENCE {}
    }
}

/// How many agents have their state there.
pub(crate) fn agents_in(place: &Path) -> usize {
    let place = place.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let words = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words.filter(|words| String::from_utf8_lossy(words).contains(&place)).count()
}

pub(crate) fn program(place: &Path) -> Command {
    program_by(&[], place)
}

fn program_by(launcher: &[&str], place: &Path) -> Command {
    let words: Vec<&str> = launcher.iter().copied().chain([AGENTWIRE]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    settle_in(&mut command, place);
    if !place.join("config.toml").exists() {
        std::fs::write(place.join("config.toml"), "").expect("a file");
    }
    command
}

/// Makes a command one of that place alone.
pub(crate) fn settle_in(command: &mut Command, place: &Path) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("AGENTWIRE_") || text.starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
        .env("AGENTWIRE_DATA_DIR", place.join("data"))
        .env("AGENTWIRE_CONFIG", place.join("config.toml"))
        .env("AGENTWIRE_AGENT", "demo")
        .env("HOME", place.join("home"))
        .current_dir(place.join("work"));
}

pub(crate) fn read_answer(stream: TcpStream) -> Answer {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("an answer");
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {line:?}"));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut bytes = Vec::new();
    match headers.get("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => {
            bytes.resize(length, 0);
            reader.read_exact(&mut bytes).expect("a body");
        }
        None => drop(reader.read_to_end(&mut bytes)),
    }
    Answer { status, headers, text: String::from_utf8(bytes).expect("UTF-8") }
}

pub(crate) struct Socket {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
}

impl Socket {
    pub(crate) fn say(&mut self, frame: &Value) {
        self.text(&frame.to_string());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).expect("it listens");
    }

    /// What the server says when it closes, after all else.
    pub(crate) fn closed(&mut self) -> (u16, String) {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(close))) => {
                    return (close.code.into(), close.reason.to_string());
                }
                Ok(Message::Close(None)) => return (1005, String::new()),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Writes these bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let MaybeTlsStream::Plain(stream) = self.socket.get_mut() else { panic!("plain") };
        let _ = stream.write_all(bytes);
    }

    /// The next frame's text; none once the server has closed.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Some(text.to_string()),
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => return None,
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads on to the end: the code and the reason with which the server closes.
    pub(crate) fn farewell(&mut self) -> (u16, String) {
        loop {
            match self.socket.read() {
                Ok(Message::Close(Some(close))) => {
                    return (close.code.into(), close.reason.to_string());
                }
                Ok(Message::Close(None)) => panic!("it closes without a word"),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until the server asks whether anybody is there.
    pub(crate) fn pinged(&mut self) {
        while !matches!(self.socket.read().expect("it is open"), Message::Ping(_)) {}
    }

    pub(crate) fn frame(&mut self) -> Value {
        let text = self.next().expect("one more frame");
        serde_json::from_str(&text).expect("JSON")
    }

    pub(crate) fn until(&mut self, mut fits: impl FnMut(&Value) -> bool) -> Value {
        loop {
            let frame = self.frame();
            if fits(&frame) {
                return frame;
            }
        }
    }
}
