//! The live client: its lines by kind, and its ids in place of the recorded ones.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Instant;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::transcript::Entry;
use crate::print;

/// How many lines may be queued.
const QUEUE: usize = 64;

/// Fields with an id that the client may have chosen.
const NAMES: [&str; 6] =
    ["sessionId", "session_id", "threadId", "thread_id", "conversationId", "uuid"];

pub(super) struct Client {
    lines: Receiver<String>,
    listening: bool,
    /// Lines that arrived early.
    early: VecDeque<(String, String)>,
    /// The kinds of lines that the recording still expects.
    places: VecDeque<String>,
    /// Recorded and live ids of requests, as JSON.
    requests: BTreeMap<String, String>,
    /// Recorded and live other ids, as JSON.
    names: BTreeMap<String, String>,
}

impl Client {
    /// Starts to listen for the lines that the recording expects.
    pub(super) fn listen<'e>(entries: impl Iterator<Item = &'e Entry>) -> io::Result<Self> {
        let (sender, lines) = sync_channel(QUEUE);
        thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if !line.is_empty() && sender.send(line).is_err() {
                    return;
                }
            }
        })?;
        let places = entries.filter_map(|entry| match entry {
            Entry::Client { line, .. } => Some(kind(line)),
            Entry::Agent { .. } => None,
        });
        Ok(Self {
            lines,
            listening: true,
            early: VecDeque::new(),
            places: places.collect(),
            requests: BTreeMap::new(),
            names: BTreeMap::new(),
        })
    }

    /// Waits for the line that the recording expects here; `false` at the end of input.
    pub(super) fn expect(&mut self, recorded: &str) -> io::Result<bool> {
        let wanted = kind(recorded);
        self.flush()?;
        loop {
            let found = self.early.iter().position(|(kind, _)| *kind == wanted);
            if let Some((_, live)) = found.and_then(|at| self.early.remove(at)) {
                self.places.pop_front();
                self.learn(recorded, &live);
                return Ok(true);
            }
            if !self.listening {
                return Ok(false);
            }
            self.hear(None)?;
        }
    }

    /// Listens until the end of input.
    pub(super) fn await_end(&mut self) -> io::Result<()> {
        self.flush()?;
        while self.listening {
            self.hear(None)?;
        }
        Ok(())
    }

    /// Sleeps, and listens meanwhile.
    pub(super) fn linger(&mut self, until: Option<Instant>) -> io::Result<()> {
        let is_over = || until.is_none_or(|until| until <= Instant::now());
        while !is_over() {
            self.flush()?;
            self.hear(until)?;
        }
        Ok(())
    }

    fn hear(&mut self, until: Option<Instant>) -> io::Result<()> {
        let heard = match until {
            Some(until) => self.lines.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => self.lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(line) => self.take(line),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                self.listening = false;
                if let Some(until) = until {
                    // The client is gone; sleep all the same.
                    thread::park_timeout(until.saturating_duration_since(Instant::now()));
                }
                Ok(())
            }
        }
    }

    /// Refuses a request that is not in the recording, so that the client does not wait forever.
    fn take(&mut self, line: String) -> io::Result<()> {
        let kind = kind(&line);
        let waiting = self.early.iter().filter(|(early, _)| *early == kind).count();
        if self.places.iter().filter(|place| **place == kind).count() > waiting {
            self.early.push_back((kind, line));
            return Ok(());
        }
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let refusal = match (message.get("type").and_then(Value::as_str), message.get("id")) {
            (Some("control_request"), _) => json!({ "type": "control_response", "response": {
                "subtype": "error",
                "request_id": message.get("request_id"),
                "error": "not in the recording",
            } }),
            (_, Some(id)) if message.get("method").is_some() => json!({
                "jsonrpc": "2.0",
                "id": id,
                "error": { "code": -32601, "message": "not in the recording" },
            }),
            _ => return Ok(()),
        };
        self.write(&refusal.to_string())?;
        self.flush()
    }

    /// Maps the recorded ids of a line to the live ones.
    fn learn(&mut self, recorded: &str, live: &str) {
        let (Some(then), Some(now)) = (Fields::of(recorded), Fields::of(live)) else { return };
        // The id of an answer is the agent's.
        let asks = then.get("method").is_some() || then.get("type") == Some("\"control_request\"");
        for name in ["id", "request_id"].into_iter().filter(|_| asks) {
            if let (Some(then), Some(now)) = (then.get(name), now.get(name)) {
                self.requests.insert(then.to_owned(), now.to_owned());
            }
        }
        self.learn_names(&then, &now);
        if let (Some(then), Some(now)) = (then.inner("params"), now.inner("params")) {
            self.learn_names(&then, &now);
        }
    }

    fn learn_names(&mut self, then: &Fields<'_>, now: &Fields<'_>) {
        for name in NAMES {
            match (then.get(name), now.get(name)) {
                (Some(then), Some(now)) if then != now && is_id(then) && is_id(now) => {
                    self.names.insert(then.to_owned(), now.to_owned());
                }
                _ => {}
            }
        }
    }

    /// The line with the live client's ids.
    pub(super) fn translated(&self, line: &str) -> String {
        let mut line = line.to_owned();
        let place = Fields::of(&line).and_then(|fields| {
            if fields.get("method").is_some() {
                return None;
            }
            let response = fields.inner("response");
            let id = response.as_ref().and_then(|response| response.get("request_id"));
            let id = id.or(fields.get("id"))?;
            let live = self.requests.get(id)?;
            // The id is a slice of the line.
            let start = (id.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
            Some((start..start + id.len(), live.clone()))
        });
        if let Some((range, live)) = place {
            line.replace_range(range, &live);
        }
        for (then, now) in &self.names {
            if line.contains(then.as_str()) {
                line = line.replace(then.as_str(), now);
            }
        }
        line
    }

    pub(super) fn write(&self, line: &str) -> io::Result<()> {
        let mut stdout = print::stdout();
        stdout.write_all(line.as_bytes())?;
        stdout.write_all(b"\n")
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        print::stdout().flush()
    }
}

/// The fields of an object as raw JSON.
struct Fields<'l>(BTreeMap<String, &'l RawValue>);

impl<'l> Fields<'l> {
    fn of(line: &'l str) -> Option<Self> {
        serde_json::from_str(line).ok().map(Self)
    }

    fn get(&self, name: &str) -> Option<&'l str> {
        self.0.get(name).map(|value| value.get())
    }

    fn inner(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?)
    }
}

/// A string that is too long to be a keyword such as `default`.
fn is_id(json: &str) -> bool {
    json.starts_with('"') && json.len() >= 16
}

/// The kind of a line. Lines of one kind are interchangeable.
fn kind(line: &str) -> String {
    let Some(fields) = Fields::of(line) else { return "raw".to_owned() };
    let text = |fields: &Fields<'_>, name: &str| fields.get(name).unwrap_or_default().to_owned();
    match fields.get("type") {
        // The answer to a request of the agent has the agent's id.
        Some("\"control_response\"") => {
            let id = fields.inner("response").map(|response| text(&response, "request_id"));
            format!("response {}", id.unwrap_or_default())
        }
        Some("\"control_request\"") => {
            let subtype = fields.inner("request").map(|request| text(&request, "subtype"));
            format!("request {}", subtype.unwrap_or_default())
        }
        Some(kind) => kind.to_owned(),
        None => match fields.get("method") {
            Some(method) => format!("method {method}"),
            None => format!("response {}", text(&fields, "id")),
        },
    }
}
