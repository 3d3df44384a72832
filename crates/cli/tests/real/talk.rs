//! One session over HTTP: its events so far, and ways to wait for more.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Place};

pub(crate) struct Talk<'p> {
    place: &'p Place,
    pub(crate) id: String,
    pub(crate) events: Vec<Value>,
    /// How many of them were checked.
    seen: usize,
    after: u64,
    /// The index at which the current turn starts.
    turn: usize,
}

impl<'p> Talk<'p> {
    pub(crate) fn new(place: &'p Place, id: &str) -> Self {
        Self { place, id: id.to_owned(), events: Vec::new(), seen: 0, after: 0, turn: 0 }
    }

    /// The next event that is wanted. Skips those before it.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            while let Some(event) = self.events.get(self.seen) {
                self.seen += 1;
                if wanted(event) {
                    return event.clone();
                }
            }
            assert!(begun.elapsed() < PATIENCE, "no {what} came; there was {}", self.digest());
            self.more();
            let is_over = self.events.last().is_some_and(|event| event["type"] == "sessionEnded");
            if is_over && self.seen == self.events.len() {
                panic!("no {what} came before the session ended; there was {}", self.digest());
            }
        }
    }

    pub(crate) fn next(&mut self, kind: &str) -> Value {
        self.until(kind, |event| event["type"] == kind)
    }

    pub(crate) fn ended(&mut self) -> Value {
        self.until("end of the turn", |event| {
            event["type"] == "turnCompleted" || event["type"] == "turnFailed"
        })
    }

    /// The end of the turn, which must have succeeded.
    pub(crate) fn completed(&mut self) -> Value {
        let end = self.ended();
        assert_eq!(end["type"], "turnCompleted", "{end}; there was {}", self.digest());
        end
    }

    /// The agent's next request, and its id.
    pub(crate) fn asked(&mut self) -> (Value, String) {
        let request = self.next("requestRaised");
        let id = request["requestId"].as_str().expect("an id").to_owned();
        (request, id)
    }

    pub(crate) fn settle(&self, request: &str, answer: &Value) {
        let path = format!("/v1/sessions/{}/requests/{request}", self.id);
        self.place.ask("POST", &path, answer).expect("accepted");
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.say(&json!({ "prompt": text }));
    }

    pub(crate) fn say(&mut self, prompt: &Value) {
        self.turn = self.events.len();
        self.post("prompt", prompt);
    }

    pub(crate) fn post(&self, verb: &str, body: &Value) -> Value {
        let path = format!("/v1/sessions/{}/{verb}", self.id);
        self.place.ask("POST", &path, body).unwrap_or_else(|problem| panic!("{verb}: {problem}"))
    }

    pub(crate) fn change(&self, body: &Value) -> Value {
        let path = format!("/v1/sessions/{}", self.id);
        self.place.ask("PATCH", &path, body).unwrap_or_else(|problem| panic!("{problem}"))
    }

    pub(crate) fn summary(&self) -> Value {
        self.place
            .ask("GET", &format!("/v1/sessions/{}", self.id), &Value::Null)
            .expect("a session")
    }

    /// The agent's text since the last prompt, without its subagents.
    pub(crate) fn text(&self) -> String {
        self.joined("textChunk")
    }

    pub(crate) fn thinking(&self) -> String {
        self.joined("thinkingChunk")
    }

    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.events[self.turn..].iter().filter(|event| event["type"] == kind).collect()
    }

    /// Whether a call of this turn was attempted but did not run: the policy denied it, or it failed.
    pub(crate) fn has_stopped_call(&self) -> bool {
        let denied = |event: &&Value| event["outcome"] == "denied" && event["by"] == "policy";
        let failed = |event: &&Value| event["success"] == false;
        self.of("requestSettled").iter().any(denied)
            || self.of("toolCompleted").iter().any(failed)
            || !self.of("toolFailed").is_empty()
    }

    pub(crate) fn stop(&mut self) {
        self.post("stop", &Value::Null);
        self.next("sessionEnded");
    }

    /// The last events, shortened, for failure messages.
    pub(crate) fn digest(&self) -> String {
        let short = |event: &Value| {
            let mut event = event.clone();
            let fields = event.as_object_mut().expect("an object");
            for name in ["id", "sessionId", "timestamp", "native", "agentId", "seq"] {
                fields.remove(name);
            }
            let text = event.to_string();
            text.chars().take(300).collect::<String>()
        };
        let from = self.events.len().saturating_sub(25);
        let lines: Vec<String> = self.events[from..].iter().map(short).collect();
        format!("{} events, the last:\n    {}", self.events.len(), lines.join("\n    "))
    }

    fn joined(&self, kind: &str) -> String {
        let own = self.of(kind).into_iter().filter(|event| event["agentId"] == "main");
        own.filter_map(|event| event["content"].as_str()).collect()
    }

    fn more(&mut self) {
        let path = format!("/v1/sessions/{}/events?after={}&wait=5", self.id, self.after);
        let page = self.place.ask("GET", &path, &Value::Null).expect("events");
        self.after = page["next"].as_u64().expect("a number");
        self.events.extend(page["events"].as_array().expect("events").iter().cloned());
    }
}
