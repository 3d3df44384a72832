//! The server and the relay as processes, and what they cost.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::reader::Reader;
use crate::{agent, rawrelay};

/// The server or the relay.
pub trait Gateway {
    fn address(&self) -> &str;

    fn pid(&self) -> u32;

    /// Starts a session whose agent waits for orders.
    async fn session(&self) -> String;

    /// A reader that starts after the last event so far.
    async fn reader(&self, session: &str) -> Reader;

    async fn order(&self, session: &str, order: &str);
}

/// A directory on a real disk, with settings that make this program the agent.
pub fn directory() -> TempDir {
    let disk = std::env::var_os("AGENTWIRE_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let directory = tempfile::Builder::new().prefix("server-").tempdir_in(disk).unwrap();
    let own = std::env::current_exe().unwrap();
    let config = format!(
        "[agents.claude]\ncommand = {:?}\nargs = [{:?}]\n",
        own.to_str().unwrap(),
        agent::VERB
    );
    std::fs::write(directory.path().join("config.toml"), config).unwrap();
    std::fs::create_dir(work(&directory)).unwrap();
    directory
}

/// Where agents work: not next to the log, which agentwire keeps them out of.
pub fn work(directory: &TempDir) -> PathBuf {
    directory.path().join("work")
}

/// The other build to compare with, from `AGENTWIRE_BENCH_OTHER`.
pub fn other() -> Option<PathBuf> {
    std::env::var_os("AGENTWIRE_BENCH_OTHER").map(PathBuf::from)
}

/// The builds of agentwire to measure, and their names in tables.
pub fn builds() -> Vec<(&'static str, PathBuf)> {
    let own = ("agentwire", PathBuf::from(env!("CARGO_BIN_EXE_agentwire")));
    std::iter::once(own).chain(other().map(|other| ("agentwire, other build", other))).collect()
}

/// `agentwire serve` with its own log.
pub struct Server {
    program: PathBuf,
    child: Child,
    address: String,
    token: String,
    directory: TempDir,
    /// From its start to the line that says it listens.
    pub ready: Duration,
}

impl Server {
    pub fn start() -> Self {
        Self::of(Path::new(env!("CARGO_BIN_EXE_agentwire")))
    }

    /// Another build.
    pub fn of(program: &Path) -> Self {
        Self::again(program.to_owned(), directory())
    }

    /// Starts a server over the existing log.
    fn again(program: PathBuf, directory: TempDir) -> Self {
        let begun = Instant::now();
        let mut child = Command::new(&program)
            .args(["serve", "--http", "127.0.0.1:0", "--insights", "127.0.0.1:0"])
            .env("AGENTWIRE_DATA_DIR", directory.path().join("data"))
            .env("AGENTWIRE_CONFIG", directory.path().join("config.toml"))
            .env("AGENTWIRE_LOG", "error")
            .current_dir(work(&directory))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let ready = begun.elapsed();
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let address = told["http"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let token = std::fs::read_to_string(told["tokenFile"].as_str().unwrap()).unwrap();
        Self { program, child, address, token: token.trim().to_owned(), directory, ready }
    }

    pub fn restart(mut self) -> Self {
        self.end();
        let empty = tempfile::tempdir().unwrap();
        let directory = std::mem::replace(&mut self.directory, empty);
        Self::again(std::mem::take(&mut self.program), directory)
    }

    /// Bytes on disk of everything that the server has stored, once it has stopped.
    pub fn stored(mut self) -> u64 {
        self.end();
        let data = std::fs::read_dir(self.directory.path().join("data")).unwrap();
        let files = data.map(|file| file.unwrap().path());
        let store = files.filter(|path| path.to_string_lossy().contains("agentwire.db"));
        store.map(|path| std::fs::metadata(path).unwrap().len()).sum()
    }

    fn end(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }

    /// The address and token for the client library.
    pub fn at(&self) -> agentwire_client::Server {
        let server = agentwire_client::Server::new(&format!("http://{}", self.address)).unwrap();
        server.with_token(&self.token).unwrap()
    }

    /// Sends a request over a new connection.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: \
             application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{text}");
        serde_json::from_str(body).unwrap()
    }

    pub async fn reader_after(&self, session: &str, after: u64) -> Reader {
        let path = format!("/v1/sessions/{session}/ws?after={after}");
        Reader::open(&self.address, &path, &self.token).await
    }
}

impl Gateway for Server {
    fn address(&self) -> &str {
        &self.address
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    async fn session(&self) -> String {
        let body = json!({ "agentType": "claude", "prompt": "" }).to_string();
        let id = self.ask("POST", "/v1/sessions", &body).await["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/sessions/{id}");
        while self.ask("GET", &path, "").await["state"] != "idle" {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        id
    }

    async fn reader(&self, session: &str) -> Reader {
        let shown = self.ask("GET", &format!("/v1/sessions/{session}"), "").await;
        self.reader_after(session, shown["lastSeq"].as_u64().unwrap()).await
    }

    async fn order(&self, session: &str, order: &str) {
        let body = json!({ "prompt": order }).to_string();
        self.ask("POST", &format!("/v1/sessions/{session}/prompt"), &body).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

pub struct Relay {
    child: Child,
    address: String,
}

impl Relay {
    pub fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(rawrelay::VERB)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().to_owned() }
    }
}

impl Gateway for Relay {
    fn address(&self) -> &str {
        &self.address
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    async fn session(&self) -> String {
        rawrelay::ask(&self.address, "start").await
    }

    async fn reader(&self, session: &str) -> Reader {
        Reader::open(&self.address, &format!("/{session}"), "").await
    }

    async fn order(&self, session: &str, order: &str) {
        rawrelay::ask(&self.address, &format!("order {session} {order}")).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The relay and its agents end when stdin closes.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// User and kernel time of a process so far.
pub fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum();
    // A tick is a hundredth of a second on every Linux.
    Duration::from_millis(ticks * 10)
}

/// A memory field of a process, in kB.
pub fn memory(pid: u32, field: &str) -> u64 {
    let file = if field == "Pss" { "smaps_rollup" } else { "status" };
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
