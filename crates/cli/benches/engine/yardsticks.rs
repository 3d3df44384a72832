//! What the engine is compared with: the least work that could be done with the same lines.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use rusqlite::{Connection, params};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::agent;
use crate::gateway::Reader;
use crate::report::micros;

/// Bytes per read, as in the engine.
const READ: usize = 128 << 10;

/// Lines that may queue for a reader of the relay.
const QUEUE: usize = 1024;

/// Starts the agent, splits its lines and sends each to every reader. It parses nothing and stores nothing.
pub struct Relay {
    child: Child,
    stdin: ChildStdin,
    pump: JoinHandle<()>,
}

impl Relay {
    pub async fn start(readers: usize) -> (Self, Vec<Reader>) {
        let own = std::env::current_exe().expect("this program");
        let mut command = tokio::process::Command::new(own);
        command.arg(agent::VERB).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("an agent");
        let stdin = child.stdin.take().expect("a pipe");
        let mut stdout = child.stdout.take().expect("a pipe");
        let (senders, mut receivers): (Vec<_>, Vec<_>) =
            (0..readers).map(|_| mpsc::channel::<Bytes>(QUEUE)).unzip();
        let pump = tokio::spawn(async move {
            let mut buffer = BytesMut::new();
            let mut scanned = 0;
            loop {
                buffer.reserve(READ);
                if stdout.read_buf(&mut buffer).await.expect("a pipe that reads") == 0 {
                    return;
                }
                while let Some(end) = memchr::memchr(b'\n', &buffer[scanned..]) {
                    let line = buffer.split_to(scanned + end + 1).freeze();
                    scanned = 0;
                    for sender in &senders {
                        // Readers that are gone are skipped.
                        let _ = sender.send(line.clone()).await;
                    }
                }
                scanned = buffer.len();
            }
        });
        let mut relay = Self { child, stdin, pump };
        relay.tell(&agent::greeting()).await;
        for receiver in &mut receivers {
            receiver.recv().await.expect("an answer");
        }
        (relay, receivers.into_iter().map(Reader::relay).collect())
    }

    pub async fn order(&mut self, order: &str) {
        self.tell(&agent::ordering(order)).await;
    }

    async fn tell(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("an agent that listens");
    }

    pub async fn end(self) {
        let Self { mut child, stdin, pump } = self;
        drop(stdin);
        pump.await.expect("a relay that ends");
        child.wait().await.expect("an agent that ends");
    }
}

/// Reads and drops the agent's output. Returns the bytes and the time.
pub fn copy_pipe(order: &str) -> (u64, Duration) {
    let own = std::env::current_exe().expect("this program");
    let mut command = Command::new(own);
    let mut child = command
        .arg(agent::VERB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("an agent");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut buffer = vec![0; READ];
    writeln!(stdin, "{}", agent::greeting()).expect("an agent that listens");
    let _ = stdout.read(&mut buffer).expect("an answer");
    let begun = Instant::now();
    writeln!(stdin, "{}", agent::ordering(order)).expect("an agent that listens");
    drop(stdin);
    let mut bytes = 0;
    loop {
        match stdout.read(&mut buffer).expect("a pipe that reads") {
            0 => break,
            count => bytes += count as u64,
        }
    }
    let time = begun.elapsed();
    child.wait().expect("an agent that ends");
    (bytes, time)
}

/// SQLite with the engine's durability and one row per event.
pub struct Rows {
    connection: Connection,
    seq: u64,
}

impl Rows {
    pub fn open(path: &Path) -> Self {
        let connection = Connection::open(path).expect("a database");
        connection.pragma_update(None, "journal_mode", "wal").expect("a setting");
        connection.pragma_update(None, "synchronous", "full").expect("a setting");
        let table = "CREATE TABLE events (session INTEGER, seq INTEGER, line BLOB, PRIMARY KEY (session, seq)) WITHOUT ROWID";
        connection.execute_batch(table).expect("a table");
        Self { connection, seq: 0 }
    }

    /// Appends the lines in one transaction.
    pub fn append(&mut self, lines: &[u8]) {
        let transaction = self.connection.transaction().expect("a transaction");
        let mut insert = transaction
            .prepare_cached("INSERT INTO events VALUES (1, ?1, ?2)")
            .expect("a statement");
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.seq += 1;
            insert.execute(params![self.seq, line]).expect("a row");
        }
        drop(insert);
        transaction.commit().expect("a commit");
    }
}

/// A file with a sync after each append.
pub struct Appended(File);

impl Appended {
    pub fn open(path: &Path) -> Self {
        Self(File::create_new(path).expect("a file"))
    }

    pub fn append(&mut self, lines: &[u8]) {
        self.0.write_all(lines).expect("room");
        self.0.sync_data().expect("a disk that syncs");
    }
}

/// Microseconds to append and sync one line, measured `count` times, every ten milliseconds: a disk that
/// rests in between takes longer.
pub async fn syncs(path: PathBuf, count: usize) -> Vec<f64> {
    let measure = move || {
        let mut file = Appended::open(&path);
        let line = vec![b'x'; 1000];
        let begun = agent::now();
        let one = |number| {
            agent::wait_until(begun + number * 10_000_000);
            let begun = Instant::now();
            file.append(&line);
            micros(begun.elapsed())
        };
        let times = (0..count as u64).map(one).collect();
        std::fs::remove_file(&path).expect("a file to remove");
        times
    };
    tokio::task::spawn_blocking(measure).await.expect("a disk that syncs")
}
