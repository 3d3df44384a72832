//! Records requests and reported usage, up to a limit.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde_json::Value;

use crate::api::ApiRequest;
use crate::usage::Usage;

const REQUESTS: usize = 4096;
const BYTES: usize = 128 * 1024 * 1024;
const UNKNOWN: usize = 256;
/// How many bytes of an unknown request's body are kept.
const UNKNOWN_BODY: usize = 64 * 1024;
const SECRETS: [&str; 4] = ["authorization", "cookie", "x-api-key", "x-goog-api-key"];

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The API's name, such as `anthropic`; `None` if the request is for no API.
    pub api: Option<&'static str>,
    /// The HTTP method.
    pub method: String,
    /// The path with the query; a key in it is shown as `(set)`.
    pub path: String,
    /// The headers, with names in lower case; keys are shown as `(set)`.
    pub headers: BTreeMap<String, String>,
    /// The exact body.
    pub body: Bytes,
    /// The requested model.
    pub model: Option<String>,
    /// Whether the program made the call on its own behalf: a title, a summary, a probe.
    pub side: bool,
    /// The status of the answer; 0 until there is one.
    pub status: u16,
    /// The usage reported to the client.
    pub usage: Usage,
}

impl RecordedRequest {
    /// The body as JSON, if it is valid.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(crate) fn new(request: &ApiRequest, api: Option<&'static str>) -> Self {
        let headers = request.headers.iter().map(|(name, value)| {
            let value = if SECRETS.contains(&name.as_str()) {
                "(set)".to_owned()
            } else {
                String::from_utf8_lossy(value.as_bytes()).into_owned()
            };
            (name.as_str().to_owned(), value)
        });
        let query = if request.query.is_empty() { "" } else { "?" };
        let pairs = request.query.split('&').map(|pair| match pair.split_once('=') {
            Some(("key", _)) => "key=(set)",
            _ => pair,
        });
        Self {
            api,
            method: request.method.to_string(),
            path: format!("{}{query}{}", request.path, pairs.collect::<Vec<_>>().join("&")),
            headers: headers.collect(),
            body: request.body.clone(),
            model: None,
            side: false,
            status: 0,
            usage: Usage::default(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    seen: VecDeque<RecordedRequest>,
    /// How many requests were removed from `seen`.
    gone: u64,
    bytes: usize,
    unknown: VecDeque<RecordedRequest>,
    reported: Usage,
}

impl RequestLog {
    /// Adds a request and returns its number.
    pub(crate) fn note(&mut self, seen: RecordedRequest) -> u64 {
        self.bytes = self.bytes.saturating_add(seen.body.len());
        self.seen.push_back(seen);
        while self.seen.len() > REQUESTS || (self.bytes > BYTES && self.seen.len() > 1) {
            if let Some(old) = self.seen.pop_front() {
                self.bytes = self.bytes.saturating_sub(old.body.len());
                self.gone += 1;
            }
        }
        self.gone + self.seen.len() as u64 - 1
    }

    /// Changes a request, if it is still recorded.
    pub(crate) fn change(
        &mut self,
        number: u64,
        change: impl FnOnce(&mut RecordedRequest),
    ) -> Option<RecordedRequest> {
        let place = usize::try_from(number.checked_sub(self.gone)?).ok()?;
        let seen = self.seen.get_mut(place)?;
        change(seen);
        Some(seen.clone())
    }

    pub(crate) fn note_unknown(&mut self, number: u64) {
        let Some(mut seen) = self.change(number, |_| {}) else { return };
        if let Some(start) = seen.body.get(..UNKNOWN_BODY) {
            seen.body = Bytes::copy_from_slice(start);
        }
        if self.unknown.len() == UNKNOWN {
            self.unknown.pop_front();
        }
        self.unknown.push_back(seen);
    }

    pub(crate) fn report(&mut self, number: u64, usage: Usage) {
        self.reported += usage;
        self.change(number, |seen| seen.usage = usage);
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.seen.iter().cloned().collect()
    }

    pub(crate) fn unknown(&self) -> Vec<RecordedRequest> {
        self.unknown.iter().cloned().collect()
    }

    pub(crate) fn reported(&self) -> Usage {
        self.reported
    }
}
