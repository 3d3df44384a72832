//! A hub whose agent is a script, and clients on in-memory connections.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use agentwire_dialects::front::Front;
use agentwire_dialects::unified::Unified;
use agentwire_server::{Connection, Terms, serve};
use agentwire_sessions::settings::{AgentCommand, StoreKind};
use agentwire_sessions::{Hub, Settings};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The buffer size of an in-memory connection.
const WIRE: usize = 64 << 10;

pub(crate) struct Gateway {
    pub(crate) hub: Hub,
    dir: tempfile::TempDir,
}

impl Gateway {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("work")).expect("a directory");
        let mut settings = Settings {
            data_dir: dir.path().join("data"),
            store: StoreKind::Memory,
            ..Settings::default()
        };
        let agents = [("claude", include_str!("agent.sh")), ("codex", include_str!("exec.sh"))];
        for (agent, script) in agents {
            let program = dir.path().join(agent);
            std::fs::write(&program, script).expect("a script");
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
                .expect("it runs");
            let program = Some(program.to_string_lossy().into_owned());
            settings.agents.insert(agent, AgentCommand { program, ..AgentCommand::default() });
        }
        let hub = Hub::open(settings).await.expect("a hub");
        Self { hub, dir }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A client of the unified protocol.
    pub(crate) fn client(&self) -> Client {
        self.client_of(Unified::default(), None)
    }

    /// A client of any front. Its sessions may continue for `linger` after it closes its input.
    pub(crate) fn client_of(
        &self,
        mut front: impl Front + 'static,
        linger: Option<Duration>,
    ) -> Client {
        let (ours, theirs) = tokio::io::duplex(WIRE);
        let (stop, stopped) = oneshot::channel::<()>();
        let hub = self.hub.clone();
        let served = tokio::spawn(async move {
            let (read, write) = tokio::io::split(theirs);
            let connection = Connection::lines(read, write, hub.log().budget().work.clone());
            let stop = async {
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            serve(&hub, connection, &mut front, Terms::of_parent(linger), stop).await
        });
        let (read, write) = tokio::io::split(ours);
        let (read, write) = (BufReader::new(read), Some(write));
        Client { read, write, served, stop: Some(stop), work: self.work() }
    }

    pub(crate) async fn end(self) {
        self.hub.shutdown().await;
    }
}

pub(crate) struct Client {
    read: BufReader<ReadHalf<DuplexStream>>,
    /// `None` once the client has closed its input.
    write: Option<WriteHalf<DuplexStream>>,
    served: JoinHandle<u8>,
    stop: Option<oneshot::Sender<()>>,
    work: PathBuf,
}

impl Client {
    pub(crate) async fn bytes(&mut self, bytes: &[u8]) {
        let write = self.write.as_mut().expect("it speaks");
        let written = tokio::time::timeout(PATIENCE, write.write_all(bytes)).await;
        written.expect("it listens").expect("it listens");
    }

    /// Sends all this in the background, then closes the input.
    pub(crate) fn pour(&mut self, text: String) {
        let mut write = self.write.take().expect("it speaks");
        tokio::spawn(async move {
            write.write_all(text.as_bytes()).await.expect("it listens");
            write.shutdown().await.expect("the wire closes");
        });
    }

    pub(crate) async fn say(&mut self, frame: Value) {
        self.bytes(format!("{frame}\n").as_bytes()).await;
    }

    /// Starts a session and returns its id.
    pub(crate) async fn start(&mut self, prompt: &str) -> String {
        self.say(json!({ "id": "start", "command": "start", "agentType": "claude",
            "prompt": prompt, "config": { "workingDirectory": self.work } }))
            .await;
        let reply = self.until(|frame| frame["id"] == "start").await;
        reply["reply"]["id"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// The next line, or `None` at the end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.read.read_line(&mut line)).await;
        let count = read.expect("it says something").expect("lines");
        (count > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    pub(crate) async fn frame(&mut self) -> Value {
        let line = self.line().await.expect("one more frame");
        serde_json::from_str(&line).expect("a frame is JSON")
    }

    /// Reads up to a frame that fits, and returns it.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.frame().await;
            if fits(&frame) {
                return frame;
            }
        }
    }

    pub(crate) async fn event(&mut self, kind: &str) -> Value {
        self.until(|frame| frame["type"] == kind).await
    }

    /// Closes the input.
    pub(crate) async fn hang_up(&mut self) {
        self.write.take().expect("it speaks").shutdown().await.expect("the wire closes");
    }

    /// Tells the server to stop.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().expect("it runs").send(());
    }

    /// Disconnects: neither writes nor reads any more. Returns the exit code.
    pub(crate) async fn vanish(self) -> u8 {
        let Self { read, write, served, .. } = self;
        drop((read, write));
        tokio::time::timeout(PATIENCE, served).await.expect("it ends").expect("it ends well")
    }

    /// Ends its session, and closes the input.
    pub(crate) async fn stop_session(mut self, id: &str) {
        self.say(json!({ "command": "stop", "sessionId": id })).await;
        self.event("sessionEnded").await;
        self.hang_up().await;
        self.rest().await;
    }

    /// Reads everything to the end. Returns the frames and the exit code.
    pub(crate) async fn rest(mut self) -> (Vec<Value>, u8) {
        let mut frames = Vec::new();
        while let Some(line) = self.line().await {
            frames.push(serde_json::from_str(&line).expect("a frame is JSON"));
        }
        let code = tokio::time::timeout(PATIENCE, self.served).await.expect("it ends");
        (frames, code.expect("it ends well"))
    }
}

pub(crate) fn types(frames: &[Value]) -> Vec<&str> {
    frames.iter().filter_map(|frame| frame["type"].as_str()).collect()
}
