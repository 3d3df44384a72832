//! A running server in its own home, and a client that talks to it over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};

use super::{AGENTWIRE, Answer, Home, PATIENCE, Socket, naming, read_answer, write_program};

pub(crate) struct Server {
    home: Home,
    child: Child,
    /// The line it printed when it was ready.
    pub(crate) ready: Value,
    /// `127.0.0.1:PORT`
    pub(crate) http: String,
    pub(crate) insights: String,
    pub(crate) token: String,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
    /// Dropping it does not wait for its agents.
    is_killed: bool,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(args: &[&str]) -> Self {
        Self::launched(&[], args)
    }

    /// A server started through a launcher, which must `exec` it.
    pub(crate) fn launched(launcher: &[&str], args: &[&str]) -> Self {
        Self::launch(Self::home_with(""), launcher, args, |_, _| {})
    }

    /// A server with these settings. `change` may change its command; the path is its home.
    pub(crate) fn set_up(
        args: &[&str],
        settings: &str,
        change: impl FnOnce(&mut Command, &Path),
    ) -> Self {
        Self::launch(Self::home_with(settings), &[], args, change)
    }

    /// A server with these settings. `WORK` in them becomes its working directory.
    pub(crate) fn with_settings(settings: &str) -> Self {
        Self::launch(Self::home_with(settings), &[], &[], |_, _| {})
    }

    /// Another server in the same home.
    pub(crate) fn beside(&self) -> Self {
        Self::at(&self.home, &[])
    }

    /// Stops it and starts another in the same home.
    pub(crate) fn again(self) -> Self {
        let home = self.home.clone();
        assert_eq!(self.stop(), Some(0));
        Self::at(&home, &[])
    }

    /// A server whose agent `claude` is this script.
    pub(crate) fn with_script(script: &str) -> Self {
        let server = Self::with_settings("[agents.claude]\ncommand = \"WORK/../home/claude\"\n");
        write_program(&server.home.path("home/claude"), script);
        server
    }

    pub(crate) fn home_with(settings: &str) -> Home {
        let home = Home::new();
        let settings = settings.replace("WORK", &home.path("work").display().to_string());
        std::fs::write(home.path("config.toml"), settings).expect("a file");
        home
    }

    pub(crate) fn at(home: &Home, args: &[&str]) -> Self {
        Self::launch(home.clone(), &[], args, |_, _| {})
    }

    /// A server started through a launcher, which must `exec` it. `change` may change the command.
    pub(crate) fn launch(
        home: Home,
        launcher: &[&str],
        args: &[&str],
        change: impl FnOnce(&mut Command, &Path),
    ) -> Self {
        let settings = std::fs::read_to_string(home.path("config.toml")).unwrap_or_default();
        let is_set = |name: &str| {
            args.contains(&&*format!("--{name}")) || settings.contains(&format!("{name} = "))
        };
        let mut command = Self::command(&home, launcher);
        change(&mut command, home.root());
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
        // Later output must not fill the pipe.
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
        Self { home, child, ready, http, insights, token, said, listener, is_killed: false }
    }

    /// The program in this home, with its settings and the demo agent, optionally started through a
    /// launcher.
    pub(crate) fn command(home: &Home, launcher: &[&str]) -> Command {
        let words: Vec<&str> = launcher.iter().copied().chain([AGENTWIRE]).collect();
        let mut command = Command::new(words[0]);
        Self::settle(home, &mut command);
        command.args(&words[1..]);
        command
    }

    /// Gives a command the environment and settings of this home, and the demo agent.
    pub(crate) fn settle(home: &Home, command: &mut Command) {
        let settings = home.path("config.toml");
        if !settings.exists() {
            std::fs::write(&settings, "").expect("a file");
        }
        home.settle(command);
        command.env("AGENTWIRE_CONFIG", settings).env("AGENTWIRE_AGENT", "demo");
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Kills it without waiting for its agents. Returns its address.
    pub(crate) fn kill(mut self) -> String {
        self.is_killed = true;
        self.child.kill().expect("it is killed");
        self.child.wait().expect("it ends");
        self.http.clone()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.home.path("work")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.data()
    }

    /// Runs another command of agentwire in the same home.
    pub(crate) fn verb(&self, args: &[&str]) -> String {
        let output = Self::command(&self.home, &[]).args(args).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    /// Sends a request with the operator's token.
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

    /// Sends a request with these headers, and Host if it is missing.
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

    /// Starts a session of the demo agent and returns its id.
    pub(crate) fn session(&self, prompt: &str) -> String {
        let created = self.post("/v1/sessions", &json!({ "agentType": "demo", "prompt": prompt }));
        created["id"].as_str().expect("an id").to_owned()
    }

    /// All events up to the first of this type, read by long polls.
    pub(crate) fn until(&self, session: &str, kind: &str) -> Vec<Value> {
        let (mut events, mut after) = (Vec::new(), 0);
        let begun = Instant::now();
        loop {
            let path = format!("/v1/sessions/{session}/events?after={after}&wait=10");
            let page = self.get(&path);
            after = page["next"].as_u64().expect("a number");
            for event in page["events"].as_array().expect("events") {
                events.push(event.clone());
                if event["type"] == kind {
                    return events;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "{kind} never came: {events:?}");
            assert!(page["ended"] != true, "{kind} never came: {events:?}");
        }
    }

    /// Waits for the end of a turn after this event.
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
            assert!(begun.elapsed() < PATIENCE, "the turn never ends");
        }
    }

    pub(crate) fn until_open(&self, session: &str) {
        let begun = Instant::now();
        while self.get(&format!("/v1/sessions/{session}"))["openRequests"] == 0 {
            assert!(begun.elapsed() < PATIENCE, "no request is open");
        }
    }

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
        Socket::open(address, path, headers)
    }

    /// A WebSocket at this path, as a raw stream.
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

    /// The events of a session after this number, from an event stream.
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

    /// Stderr so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    /// Stops it. Returns its exit code and all of stderr.
    pub(crate) fn stop_and_hear(mut self) -> (Option<i32>, String) {
        let said = Arc::clone(&self.said);
        let listener = self.listener.take();
        let code = self.stop();
        listener.into_iter().for_each(|listener| listener.join().expect("it listens to the end"));
        let said = said.lock().expect("no panic").clone();
        (code, said)
    }

    /// Stops it. Returns its exit code.
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
        // An agent that is being killed could still write files into a home that is being removed.
        let begun = Instant::now();
        let is_used = || !self.is_killed && !naming(self.home.root()).is_empty();
        while is_used() && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    }
}
