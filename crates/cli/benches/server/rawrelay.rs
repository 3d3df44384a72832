//! The yardstick: starts agents, splits their lines and pushes each, unparsed, to WebSockets. It stores
//! nothing, checks nothing and waits for no disk: the least work a gateway could do.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::agent;

/// The argument that makes this program the relay.
pub const VERB: &str = "rawrelay";

/// Bytes per read, as in the server.
const READ: usize = 128 << 10;

/// Lines that may queue for a reader.
const QUEUE: usize = 1024;

#[derive(Default)]
struct Session {
    stdin: Option<ChildStdin>,
    readers: Arc<Mutex<Vec<mpsc::Sender<Bytes>>>>,
}

type Sessions = Arc<tokio::sync::Mutex<HashMap<String, Session>>>;

/// Serves until stdin ends. A connection that starts with `GET` is a reader; any other sends one line and
/// receives one.
pub async fn run() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", listener.local_addr().unwrap()).unwrap();
    stdout.flush().unwrap();
    let sessions = Sessions::default();
    let mut stdin = tokio::io::stdin();
    loop {
        tokio::select! {
            _ = stdin.read_u8() => return,
            accepted = listener.accept() => {
                let (stream, _) = accepted.unwrap();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(serve(stream, sessions.clone()));
            }
        }
    }
}

async fn serve(stream: TcpStream, sessions: Sessions) {
    let mut first = [0; 3];
    stream.peek(&mut first).await.unwrap();
    if first != *b"GET" {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let answer = answer(line.trim(), &sessions).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        return;
    }
    let mut session = String::new();
    let note = |request: &http::Request<()>, response| {
        session = request.uri().path().trim_start_matches('/').to_owned();
        Ok(response)
    };
    let mut socket = tokio_tungstenite::accept_hdr_async(stream, note).await.unwrap();
    let (sender, mut lines) = mpsc::channel(QUEUE);
    sessions.lock().await[&session].readers.lock().unwrap().push(sender);
    while let Some(line) = lines.recv().await {
        let text = |line| Message::Text(Utf8Bytes::try_from(line).unwrap());
        let mut said = socket.feed(text(line)).await;
        while let Ok(line) = lines.try_recv() {
            said = said.and(socket.feed(text(line)).await);
        }
        if said.is_err() || socket.flush().await.is_err() {
            return;
        }
    }
}

async fn answer(line: &str, sessions: &Sessions) -> String {
    let mut words = line.splitn(3, ' ');
    let verb = words.next().unwrap();
    let mut sessions = sessions.lock().await;
    if verb == "start" {
        let id = sessions.len().to_string();
        sessions.insert(id.clone(), start().await);
        return id;
    }
    let session = sessions.get_mut(words.next().unwrap()).unwrap();
    let order = format!("{}\n", agent::ordering(words.next().unwrap()));
    session.stdin.as_mut().unwrap().write_all(order.as_bytes()).await.unwrap();
    String::new()
}

async fn start() -> Session {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.arg(agent::VERB).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(format!("{}\n", agent::greeting()).as_bytes()).await.unwrap();
    let session = Session { stdin: Some(stdin), ..Session::default() };
    let readers = session.readers.clone();
    tokio::spawn(async move {
        let _child = child;
        let mut buffer = BytesMut::new();
        let mut scanned = 0;
        loop {
            buffer.reserve(READ);
            if stdout.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
            let readers = readers.lock().unwrap().clone();
            while let Some(end) = memchr::memchr(b'\n', &buffer[scanned..]) {
                let mut line = buffer.split_to(scanned + end + 1);
                line.truncate(line.len() - 1);
                let line = line.freeze();
                scanned = 0;
                for reader in &readers {
                    // Readers that are gone are skipped.
                    let _ = reader.send(line.clone()).await;
                }
            }
            scanned = buffer.len();
        }
    });
    session
}

/// Sends one line to the relay and returns the answer.
pub async fn ask(address: &str, line: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
