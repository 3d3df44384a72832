//! A page that sends what the specification allows and accepts only what the specification allows.

use serde_json::{Value, json};

use crate::shared::{Server, Socket};
pub(super) use crate::specified::insights as check;

pub(super) struct Page {
    socket: Socket,
    /// Whether permission requests are allowed at once.
    pub(super) allows: bool,
}

impl Page {
    /// At the insights address, or at `/insights` of the main address.
    pub(super) fn open(server: &Server, at_insights: bool) -> Self {
        let bearer = format!("Bearer {}", server.token);
        let (address, path) = match at_insights {
            true => (&server.insights, "/"),
            false => (&server.http, "/insights"),
        };
        let socket = server.socket_at(address, path, &[("authorization", &bearer)]);
        Self { socket: socket.expect("the socket opens"), allows: true }
    }

    pub(super) fn open_as(server: &Server, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        let socket = server.socket_at(&server.insights, "/", &[("authorization", &bearer)]);
        Self { socket: socket.expect("the socket opens"), allows: true }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.socket.text(text);
    }

    pub(super) fn say(&mut self, kind: &str, payload: Value) {
        let id = "6b1f2f0e-9d0c-4a6e-8a53-0d1c2b3a4f5e";
        let mut message = json!({ "type": kind, "id": id });
        message["payload"] = payload;
        self.socket.say(&message);
    }

    /// Creates a session and returns its id.
    pub(super) fn create(&mut self, prompt: &str) -> Value {
        self.say("session.create", json!({ "prompt": prompt }));
        let created = self.next();
        assert_eq!(created["type"], "session.created", "{created}");
        created["payload"]["session_id"].clone()
    }

    pub(super) fn input(&mut self, session: &Value, agent: Value, text: &str) {
        let mut payload = json!({ "session_id": session, "text": text });
        payload["agent_id"] = agent;
        self.say("user.input", payload);
    }

    pub(super) fn permit(&mut self, asked: &Value, approved: bool) {
        let payload = &asked["payload"];
        let (session, id) = (&payload["session_id"], &payload["permission_id"]);
        self.say(
            "permission.response",
            json!({ "session_id": session, "permission_id": id,
            "approved": approved }),
        );
    }

    pub(super) fn next(&mut self) -> Value {
        let frame = self.socket.frame();
        check(&frame);
        if self.allows && frame["type"] == "permission.request" {
            self.permit(&frame, true);
        }
        frame
    }

    /// All messages up to the first of this type.
    pub(super) fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut said = Vec::new();
        loop {
            let frame = self.next();
            let is_it = frame["type"] == kind;
            said.push(frame);
            if is_it {
                return said;
            }
        }
    }

    pub(super) fn first(&mut self, kind: &str) -> Value {
        self.until(kind).pop().expect("a message")
    }

    pub(super) fn error(&mut self) -> String {
        self.first("error")["payload"]["code"].as_str().expect("a code").to_owned()
    }
}

pub(super) fn kinds(said: &[Value]) -> Vec<&str> {
    said.iter().map(|frame| frame["type"].as_str().expect("a type")).collect()
}

/// The text output, without thinking.
pub(super) fn text(said: &[Value]) -> String {
    let spoken = said.iter().filter(|it| it["payload"]["content_type"] == "text");
    spoken.filter_map(|it| it["payload"]["content"].as_str()).collect()
}

/// The model of the first tool call.
pub(super) fn model_of(said: &[Value]) -> String {
    let used = said.iter().find(|it| it["type"] == "agent.tool_use").expect("a call");
    used["payload"]["model"].as_str().expect("a model").to_owned()
}
