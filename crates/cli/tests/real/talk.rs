//! One session over HTTP: what it said so far, and what is waited for.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Place};

pub(crate) struct Talk<'p> {
    place: &'p Place,
    pub(crate) id: String,
    pub(crate) events: Vec<Value>,
    /// How many of them were looked at.
    seen: usize,
    after: u64,
    /// Where the turn begins that is looked at.
    turn: usize,
}

impl<'p> Talk<'p> {
    pub(crate) fn new(place: &'p Place, id: &str) -> Self {
        Self { place, id: id.to_owned(), events: Vec::new(), seen: 0, after: 0, turn: 0 }
    }

    /// The next event that is wanted; those before it are passed over.
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

    /// The next event of that type.
    pub(crate) fn next(&mut self, kind: &str) -> Value {
        self.until(kind, |event| event["type"] == kind)
    }

    /// The end of the turn.
    pub(crate) fn ended(&mut self) -> Value {
        self.until("end of the turn", |event| {
            event["type"] == "turnCompleted" || event["type"] == "turnFailed"
        })
    }

    /// The end of the turn, which must be a good one.
    pub(crate) fn completed(&mut self) -> Value {
        let end = self.ended();
        assert_eq!(end["type"], "turnCompleted", "{end}; there was {}", self.digest());
        end
    }

    /// What the agent asks next, and its id.
    pub(crate) fn asked(&mut self) -> (Value, String) {
        let request = self.next("requestRaised");
        let id = request["requestId"].as_str().expect("an id").to_owned();
        (request, id)
    }

    /// Answers a request.
    pub(crate) fn settle(&self, request: &str, answer: &Value) {
        let path = format!("/v1/sessions/{}/requests/{request}", self.id);
        self.place.ask("POST", &path, answer).expect("it is taken");
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

    /// What the agent wrote since the last prompt, its subagents' words left out.
    pub(crate) fn text(&self) -> String {
        self.joined("textChunk")
    }

    pub(crate) fn thinking(&self) -> String {
        self.joined("thinkingChunk")
    }

    /// The events of that type since the last prompt.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.events[self.turn..].iter().filter(|event| event["type"] == kind).collect()
    }

    /// Whether a call of this turn was denied by the policy or failed: it was tried, and did not run.
    pub(crate) fn has_stopped_call(&self) -> bool {
        let denied = |event: &&Value| event["outcome"] == "denied" && event["by"] == "policy";
        let failed = |event: &&Value| event["success"] == false;
        self.of("requestSettled").iter().any(denied)
            || self.of("toolCompleted").iter().any(failed)
            || !self.of("toolFailed").is_empty()
    }

    /// Ends the session.
    pub(crate) fn stop(&mut self) {
        self.post("stop", &Value::Null);
        self.next("sessionEnded");
    }

    /// All of it, in short, for whoever must find out.
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
