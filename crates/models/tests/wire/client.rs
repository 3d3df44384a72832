//! A small HTTP client that shows an answer exactly as it arrives.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use agentwire_models::ModelServer;
use serde_json::Value;

/// The time limit of any wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// An answer, as far as it arrived.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// The body is complete.
    pub(crate) whole: bool,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    /// The events of a stream: the name, if there is one, and the data.
    pub(crate) fn events(&self) -> Vec<(String, String)> {
        let text = self.text();
        let events = text.split("\n\n").filter(|event| !event.is_empty());
        events
            .map(|event| {
                let field = |name: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
                };
                (field("event: "), field("data: "))
            })
            .collect()
    }
}

/// A request whose answer is still arriving.
pub(crate) struct Exchange {
    reader: BufReader<TcpStream>,
}

impl Exchange {
    pub(crate) fn start(
        server: &ModelServer,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Self {
        let mut stream = TcpStream::connect(server.address()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).expect("the head is sent");
        // The server may refuse before it has read everything.
        let _ = stream.write_all(body);
        Self { reader: BufReader::new(stream) }
    }

    /// Reads until the body contains this text; the connection stays open.
    pub(crate) fn read_until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.reader.read_line(&mut line).expect("a line"), 0, "{text} never came");
        }
    }

    pub(crate) fn status(&mut self) -> u16 {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a status line");
        line.split(' ').nth(1).expect("a status").parse().expect("a number")
    }

    pub(crate) fn finish(mut self) -> HttpResponse {
        let status = self.status();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut body = Vec::new();
        let whole = match headers.get("content-length") {
            Some(length) => {
                let length: u64 = length.parse().expect("a length");
                let read = (&mut self.reader).take(length).read_to_end(&mut body);
                read.is_ok_and(|read| read as u64 == length)
            }
            None => self.chunks(&mut body).is_some(),
        };
        HttpResponse { status, headers, body, whole }
    }

    /// Reads chunks up to the last one.
    fn chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok()?;
            let size = u64::from_str_radix(line.trim(), 16).ok()?;
            let read = (&mut self.reader).take(size + 2).read_to_end(body).ok()?;
            if read as u64 != size + 2 {
                return None;
            }
            body.truncate(body.len() - 2);
            if size == 0 {
                return Some(());
            }
        }
    }
}

/// Posts JSON and reads the whole answer.
pub(crate) fn post(server: &ModelServer, path: &str, body: &Value) -> HttpResponse {
    let headers = [("content-type", "application/json")];
    Exchange::start(server, "POST", path, &headers, body.to_string().as_bytes()).finish()
}

/// Polls until the condition holds.
pub(crate) fn eventually(what: &str, so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::yield_now();
    }
}
