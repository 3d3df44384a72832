//! A client and a gateway in one: what goes in is said here, what comes out must be taken.

use agentwire_dialects::backend::Backend;
use agentwire_dialects::front::{Ask, Effect, Front as _, Outbox, Reply};
use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, Event, EventKind, GatewayError, Json, NewSession,
    SessionId, SessionState, SessionSummary, Text,
};
use serde_json::Value;

pub(crate) const SESSION: &str = "11111111-1111-4111-8111-111111111111";

pub(crate) struct Client {
    front: Backend,
    out: Outbox,
    said: Vec<String>,
    asks: Vec<(Call, Ask)>,
    followed: Vec<(SessionId, u64)>,
    seq: u64,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self {
            front: Backend::new(AgentType::Demo),
            out: Outbox::default(),
            said: Vec::new(),
            asks: Vec::new(),
            followed: Vec::new(),
            seq: 0,
        }
    }

    /// A client with a session that runs.
    pub(crate) fn with_session() -> Self {
        Self::with_options("{}")
    }

    pub(crate) fn with_options(options: &str) -> Self {
        let mut client = Self::new();
        client.line(&format!(
            r#"{{"type":"session.create","id":"c","payload":{{"prompt":"hi","cwd":"/","options":{options}}}}}"#
        ));
        client.start_of();
        client.started(0);
        let created = client.frame();
        assert_eq!(created["type"], "session.created", "{created}");
        client
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.bytes(line.as_bytes());
    }

    pub(crate) fn bytes(&mut self, line: &[u8]) {
        self.front.on_line(line, &mut self.out);
        self.take();
    }

    pub(crate) fn overlong(&mut self, bytes: u64) {
        self.front.on_overlong(bytes, &mut self.out);
        self.take();
    }

    /// What is said to the session, with its id and name.
    pub(crate) fn say(&mut self, kind: &str, id: &str, payload: &str) {
        self.line(&format!(
            r#"{{"type":"{kind}","id":"{id}","session_id":"{SESSION}","payload":{payload}}}"#
        ));
    }

    /// The next call, which must start a session.
    pub(crate) fn start_of(&mut self) -> NewSession {
        match &self.asks.first().expect("a call").1 {
            Ask::Start(new) => (**new).clone(),
            other => panic!("not a start: {other:?}"),
        }
    }

    /// The next call, which must be a command.
    pub(crate) fn command(&mut self) -> Command {
        match &self.asks.first().expect("a call").1 {
            Ask::Command(session, command) => {
                assert_eq!(session.as_str(), SESSION);
                command.clone()
            }
            other => panic!("not a command: {other:?}"),
        }
    }

    pub(crate) fn asks(&self) -> usize {
        self.asks.len()
    }

    /// The next call comes back: the session runs.
    pub(crate) fn started(&mut self, after: u64) {
        let session = Box::new(summary());
        self.reply(Ok(Reply::Started { session, after }));
        assert_eq!(self.followed.pop(), Some((SessionId::from(SESSION), after)));
    }

    pub(crate) fn done(&mut self, value: &str) {
        let value = Json::parse(value).expect("JSON").into_owned();
        self.reply(Ok(Reply::Done(value)));
    }

    pub(crate) fn failed(&mut self, code: ErrorCode, message: &str) {
        self.reply(Err(GatewayError::new(code, message)));
    }

    fn reply(&mut self, reply: Result<Reply, GatewayError>) {
        let (call, _) = self.asks.remove(0);
        self.front.on_reply(call, reply, &mut self.out);
        self.take();
    }

    /// An event of the session, and the end of its batch.
    pub(crate) fn event<'k>(&mut self, kind: impl Into<EventKind<'k>>) {
        self.events([kind.into()]);
    }

    /// Events that became durable together.
    pub(crate) fn events<'k>(&mut self, kinds: impl IntoIterator<Item = EventKind<'k>>) {
        for kind in kinds {
            self.seq += 1;
            let event = Event {
                id: format!("evt_{}", self.seq).into(),
                session_id: SESSION.into(),
                seq: self.seq,
                timestamp: "2026-01-01T00:00:00.000Z".into(),
                kind,
                agent_id: Text::from("main"),
                parent_agent_id: None,
                native: agentwire_protocol::Lines::default(),
            };
            let mut line = Vec::new();
            event.write_line(&mut line).expect("an event");
            self.raw_event(std::str::from_utf8(&line).expect("UTF-8"));
        }
        self.shown();
    }

    pub(crate) fn raw_event(&mut self, line: &str) {
        self.front.on_event(&SessionId::from(SESSION), line.trim_end(), &mut self.out);
        self.take();
    }

    pub(crate) fn shown(&mut self) {
        self.front.on_pause(&SessionId::from(SESSION), &mut self.out);
        self.take();
    }

    pub(crate) fn end(&mut self) {
        self.front.on_end(&SessionId::from(SESSION), &mut self.out);
        self.take();
    }

    /// The next line, as it is.
    pub(crate) fn text(&mut self) -> String {
        assert!(!self.said.is_empty(), "nothing more was said");
        self.said.remove(0)
    }

    pub(crate) fn frame(&mut self) -> Value {
        serde_json::from_str(&self.text()).expect("a frame is JSON")
    }

    /// The next line must be an error of this code; gives its payload.
    pub(crate) fn error(&mut self, code: &str) -> Value {
        let frame = self.frame();
        assert_eq!(
            (&frame["type"], &frame["payload"]["code"]),
            (&"error".into(), &code.into()),
            "{frame}"
        );
        frame
    }

    pub(crate) fn silent(&self) {
        assert!(self.said.is_empty(), "unread: {:?}", self.said);
    }

    pub(crate) fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    fn take(&mut self) {
        for effect in self.out.take() {
            match effect {
                Effect::Say(line) => {
                    let line = String::from_utf8(line).expect("UTF-8");
                    assert!(!line.contains('\n'), "one line: {line}");
                    self.said.push(line);
                }
                Effect::Ask(call, ask) => self.asks.push((call, ask)),
                Effect::Follow(session, after) => self.followed.push((session, after)),
                other => panic!("unexpected: {other:?}"),
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.silent();
            assert!(self.asks.is_empty(), "unanswered: {:?}", self.asks);
        }
    }
}

pub(crate) fn summary() -> SessionSummary {
    SessionSummary {
        id: SessionId::from(SESSION),
        agent_type: AgentType::Demo,
        state: SessionState::Idle,
        reason: None,
        error: None,
        title: None,
        working_directory: None,
        model: None,
        approval_mode: None,
        driver: None,
        native_session_id: None,
        agent_version: None,
        gateway_version: None,
        created_at: "2026-01-01T00:00:00.000Z".to_owned(),
        updated_at: "2026-01-01T00:00:00.000Z".to_owned(),
        last_seq: 0,
        turns: 0,
        last_turn: None,
        usage: Default::default(),
        cost_usd: None,
        open_requests: 0,
    }
}

/// A request as an agent raises it: the fields that are given.
pub(crate) fn request(fields: &Value) -> RequestRaised<'static> {
    let mut request =
        serde_json::json!({ "requestId": "r1", "kind": "permission", "inputDigest": "" });
    let given = fields.as_object().expect("fields").clone();
    request.as_object_mut().expect("an object").extend(given);
    serde_json::from_value(request).expect("a request")
}
