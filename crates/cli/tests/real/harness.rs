//! Where one column runs: a model server, `agentwire serve` in a clean environment, and separate
//! directories.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use agentwire_models::{ModelServer, Options};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::WebSocket;
use tungstenite::client::IntoClientRequest as _;

use crate::agents::{Agent, KEY};
use crate::talk::Talk;
use crate::trouble::{Trouble, Variables};

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// How long a process may outlive its session.
const SURVIVAL: Duration = Duration::from_secs(15);

pub(crate) struct Place {
    pub(crate) agent: Agent,
    pub(crate) program: PathBuf,
    pub(crate) models: ModelServer,
    trouble: Trouble,
    server: Server,
    count: Cell<usize>,
    /// Last, so that everything that runs in it has ended before it is removed.
    directory: TempDir,
}

struct Server {
    child: Child,
    address: String,
    token: String,
    token_file: PathBuf,
}

impl Place {
    pub(crate) fn new(agent: Agent, program: &Path) -> Self {
        Self::in_trouble(agent, program, Trouble::default())
    }

    /// Another place for the same program, in which something is wrong.
    pub(crate) fn with(&self, trouble: Trouble) -> Self {
        Self::in_trouble(self.agent, &self.program, trouble)
    }

    fn in_trouble(agent: Agent, program: &Path, trouble: Trouble) -> Self {
        let directory = tempfile::Builder::new().prefix("real-").tempdir().expect("a directory");
        for name in ["data", "work", "home", "tmp"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        let models = ModelServer::start(Options::default()).expect("a model server");
        let url = trouble.url.clone().unwrap_or(models.url());
        (agent.set_up)(&directory.path().join("home"), &url);
        let program = program.to_owned();
        let command = command(&agent, &program, directory.path(), &url, &trouble);
        let server = Server::start(command);
        Self { agent, program, models, trouble, server, count: Cell::new(0), directory }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// A new working directory that contains only a repository.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.count.set(self.count.get() + 1);
        let path = self.directory.path().join(format!("work/w{}", self.count.get()));
        fs::create_dir(&path).expect("a directory");
        let _ = Command::new("git").args(["init", "-q"]).current_dir(&path).status();
        path
    }

    /// Starts a session with this prompt; `config` is merged into its configuration.
    pub(crate) fn session(&self, workspace: &Path, prompt: &str, config: Value) -> Talk<'_> {
        let body = self.request(workspace, prompt, config);
        let answer = self.ask("POST", "/v1/sessions", &body).expect("a session");
        Talk::new(self, answer["id"].as_str().expect("an id"))
    }

    /// The body of the request that starts a session.
    pub(crate) fn request(&self, workspace: &Path, prompt: &str, config: Value) -> Value {
        let mut all = json!({
            "workingDirectory": workspace,
            "driver": self.agent.driver,
            "model": self.agent.model,
        });
        for (name, value) in config.as_object().expect("an object") {
            all[name] = value.clone();
        }
        json!({ "agentType": self.agent.kind, "prompt": prompt, "config": all })
    }

    /// Runs a command of agentwire to its end, in the same place.
    pub(crate) fn verb(&self, workspace: &Path, args: &[&str]) -> Output {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let errors = log.reopen().expect("a file");
        let mut command = self.command();
        command.args(args).current_dir(workspace).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().expect("it runs");
        let mut stdout = child.stdout.take().expect("stdout");
        let reading = std::thread::spawn(move || {
            let mut text = Vec::new();
            stdout.read_to_end(&mut text).map(|_| text)
        });
        let status = wait(&mut child);
        let stdout = reading.join().expect("a reader").expect("its output");
        Output { status, stdout, stderr: fs::read(log.path()).expect("a file") }
    }

    pub(crate) fn command(&self) -> Command {
        let url = self.models.url();
        command(&self.agent, &self.program, self.directory.path(), &url, &self.trouble)
    }

    /// agentwire with another home.
    pub(crate) fn stranger(&self, home: &Path, has_key: bool) -> Command {
        let mut command =
            self.at_home(home, Command::new(env!("CARGO_BIN_EXE_agentwire")), has_key);
        command
            .env("AGENTWIRE_DATA_DIR", home.join("data"))
            .env(self.agent.variable, &self.program);
        command
    }

    /// A program in a clean environment with this home, with or without the agent's key.
    pub(crate) fn at_home(&self, home: &Path, mut command: Command, has_key: bool) -> Command {
        let variables = (self.agent.environment)(home, &self.models.url());
        cleaned(&mut command, home)
            .envs(variables.into_iter().filter(|(_, value)| has_key || value != KEY));
        command
    }

    /// Writes the log of each session to this directory.
    pub(crate) fn record(&self, directory: &Path) {
        fs::create_dir_all(directory).expect("a directory");
        let list = self.verb(&self.home(), &["ls", "--all", "--json"]);
        let list: Value = serde_json::from_slice(&list.stdout).expect("JSON");
        for session in list["sessions"].as_array().expect("a list") {
            let id = session["id"].as_str().expect("an id");
            let file = directory.join(format!("{id}.jsonl")).display().to_string();
            let output = self.verb(&self.home(), &["export", id, "--output", &file]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Stops the server and starts another over the same log.
    pub(crate) fn restart(&mut self) {
        self.server.end();
        self.server = Server::start(self.command());
    }

    /// Sends a request; a problem is an error.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.ask(method, path, &body)
    }

    /// Sends a request with another token than the operator's.
    pub(crate) fn ask_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Value, Value> {
        self.server.ask_as(token, method, path, &body.to_string())
    }

    /// The operator's token and its file.
    pub(crate) fn operator(&self) -> (&str, &Path) {
        (&self.server.token, &self.server.token_file)
    }

    /// Sends a body that need not be valid.
    pub(crate) fn post_text(&self, path: &str, body: &str) -> Result<Value, Value> {
        self.server.ask("POST", path, body)
    }

    pub(crate) fn socket(&self, path: &str) -> WebSocket<TcpStream> {
        let Server { address, token, .. } = &self.server;
        let url = format!("ws://{address}{path}");
        let mut request = url.into_client_request().expect("a request");
        let bearer = format!("Bearer {token}").parse().expect("a value");
        request.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        tungstenite::client::client(request, stream).expect("the socket opens").0
    }

    /// A new directory for scripts.
    pub(crate) fn scripts(&self) -> PathBuf {
        self.count.set(self.count.get() + 1);
        let path = self.directory.path().join(format!("scripts{}", self.count.get()));
        fs::create_dir(&path).expect("a directory");
        path
    }

    /// Runs `agentwire run` to its end, with `more` arguments.
    pub(crate) fn run(&self, workspace: &Path, more: &[&str], prompt: &str) -> Output {
        let agent = &self.agent;
        let model = if more.contains(&"-m") { &[][..] } else { &["-m", agent.model] };
        let words = ["run", "-a", agent.kind, "--driver", agent.driver];
        self.verb(workspace, &[&words[..], model, more, &[prompt]].concat())
    }

    /// Stops the sessions that a scenario left running; no process may be left.
    pub(crate) fn stop_all(&self) {
        let live = self.ask("GET", "/v1/sessions?live=true", &Value::Null).expect("a list");
        for session in live["sessions"].as_array().expect("a list") {
            let id = session["id"].as_str().expect("an id");
            let _ = self.ask("POST", &format!("/v1/sessions/{id}/stop"), &Value::Null);
        }
        self.assert_none_left(&self.directory.path().join("work"));
    }

    /// Waits until no process works in this directory or has it in its arguments.
    pub(crate) fn assert_none_left(&self, workspace: &Path) {
        let begun = Instant::now();
        loop {
            let left = of(workspace);
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < SURVIVAL, "left behind: {left:?}");
            pause();
        }
    }
}

/// Waits for a process, and kills it when it takes too long.
fn wait(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
        }
        pause();
    }
}

/// Sleeps a little between two checks of a condition.
pub(crate) fn pause() {
    let (_sender, receiver) = std::sync::mpsc::sync_channel::<()>(0);
    let _ = receiver.recv_timeout(Duration::from_millis(20));
}

/// agentwire as a user would start it.
fn command(agent: &Agent, program: &Path, place: &Path, url: &str, trouble: &Trouble) -> Command {
    let own = Path::new(env!("CARGO_BIN_EXE_agentwire"));
    let mut command = dressed(own, place, trouble.variables(agent, &place.join("home"), url));
    let program = trouble.program.as_deref().unwrap_or(program);
    command.env("AGENTWIRE_DATA_DIR", place.join("data")).env(agent.variable, program);
    if let Some(settings) = &trouble.settings {
        let path = place.join("agentwire.toml");
        fs::write(&path, settings).expect("a file");
        command.env("AGENTWIRE_CONFIG", path);
    }
    command
}

/// A program in a clean environment with these variables.
pub(crate) fn dressed(program: &Path, place: &Path, variables: Variables) -> Command {
    let mut command = Command::new(program);
    cleaned(&mut command, &place.join("home")).env("TMPDIR", place.join("tmp")).envs(variables);
    command
}

/// Clears the environment except for `PATH`.
fn cleaned<'c>(command: &'c mut Command, home: &Path) -> &'c mut Command {
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("LANG", "C.UTF-8")
        .current_dir(home)
}

/// Processes that work in this directory or have it in their arguments.
pub(crate) fn of(workspace: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("processes").flatten() {
        let path = entry.path();
        if !entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let words = fs::read(path.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_there = fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(workspace));
        if is_there || words.contains(&*workspace.to_string_lossy()) {
            found.push(format!("{} {words}", entry.file_name().display()));
        }
    }
    found
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .args(["serve", "--http", "127.0.0.1:0", "--insights", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut said = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        let ready: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line}"));
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::stderr()));
        let address =
            ready["http"].as_str().expect("an address").trim_start_matches("http://").to_owned();
        let token_file = PathBuf::from(ready["tokenFile"].as_str().expect("a file"));
        let token = fs::read_to_string(&token_file).expect("a token").trim().to_owned();
        Self { child, address, token, token_file }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value, Value> {
        self.ask_as(&self.token, method, path, body)
    }

    fn ask_as(&self, token: &str, method: &str, path: &str, body: &str) -> Result<Value, Value> {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            token,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        let value = serde_json::from_str(body).unwrap_or(Value::Null);
        if head.starts_with("HTTP/1.1 2") { Ok(value) } else { Err(value) }
    }

    /// Checks that it still runs: after it was waited for, its pid may belong to another process.
    fn end(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            wait(&mut self.child);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
