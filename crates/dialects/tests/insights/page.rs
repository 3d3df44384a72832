//! A page and the gateway at its other side.

use std::collections::{BTreeMap, VecDeque};

use agentwire_dialects::front::{Ask, Effect, Front as _, Outbox, Reply};
use agentwire_dialects::insights::Insights;
use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, GatewayError, Json, Price, SessionId,
};
use serde_json::{Value, json};

use crate::words::check;

pub(crate) const SESSION: &str = "11111111-1111-4111-8111-111111111111";

pub(crate) struct Page {
    front: Insights,
    out: Outbox,
    said: VecDeque<Value>,
    asks: VecDeque<(Call, Ask)>,
    pub(crate) followed: bool,
    /// After which event it was followed last.
    pub(crate) followed_after: u64,
    /// After which event it was waited for last, if it is.
    pub(crate) awaited: Option<u64>,
    pub(crate) seq: u64,
}

impl Page {
    pub(crate) fn new() -> Self {
        Self::of(AgentType::Demo)
    }

    pub(crate) fn of(agent: AgentType) -> Self {
        let dear = Price { input: 1e6, output: 0.0, cache_read: 0.0, cache_write: 0.0 };
        let prices = BTreeMap::from([("dear".to_owned(), dear)]);
        Self {
            front: Insights::new(agent, prices),
            out: Outbox::default(),
            said: VecDeque::new(),
            asks: VecDeque::new(),
            followed: false,
            followed_after: 0,
            awaited: None,
            seq: 0,
        }
    }

    /// A page whose session runs, and what it was told of that.
    pub(crate) fn running() -> Self {
        let mut page = Self::new();
        page.say("session.create", json!({ "prompt": "go", "cwd": "/w" }));
        page.start();
        assert_eq!(page.types(), ["session.created", "agent.spawned"]);
        page
    }

    fn take(&mut self) {
        for effect in self.out.take() {
            match effect {
                Effect::Say(line) => {
                    let text = String::from_utf8(line).expect("UTF-8");
                    let frame: Value = serde_json::from_str(&text).expect("JSON");
                    check(&frame);
                    self.said.push_back(frame);
                }
                Effect::Ask(call, ask) => self.asks.push_back((call, ask)),
                Effect::Follow(_, after) => {
                    self.followed = true;
                    self.followed_after = after;
                    self.awaited = None;
                }
                Effect::Await(_, after) => {
                    self.followed = false;
                    self.awaited = Some(after);
                }
                Effect::Leave(_) => self.followed = false,
                effect @ (Effect::Finish(_) | Effect::Close(_)) => panic!("{effect:?}"),
            }
        }
    }

    pub(crate) fn say(&mut self, kind: &str, payload: Value) {
        self.line(&json!({ "type": kind, "id": "x", "payload": payload }).to_string());
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.bytes(line.as_bytes());
    }

    pub(crate) fn bytes(&mut self, line: &[u8]) {
        self.front.on_line(line, &mut self.out);
        self.take();
    }

    pub(crate) fn ask(&mut self) -> (Call, Ask) {
        self.asks.pop_front().expect("the gateway is asked")
    }

    pub(crate) fn command(&mut self) -> (Call, Command) {
        match self.ask() {
            (call, Ask::Command(session, command)) => {
                assert_eq!(session.as_str(), SESSION);
                (call, command)
            }
            (_, ask) => panic!("{ask:?}"),
        }
    }

    pub(crate) fn start(&mut self) -> Ask {
        let (call, ask) = self.ask();
        self.started(call);
        ask
    }

    pub(crate) fn started(&mut self, call: Call) {
        let summary = json!({
            "id": SESSION, "agentType": "demo", "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": 0, "turns": 0, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        });
        let session = serde_json::from_value(summary).expect("a summary");
        self.reply(call, Ok(Reply::Started { session, after: self.seq }));
    }

    /// The session is this client's, from an earlier connection.
    pub(crate) fn earlier(&mut self, call: Call, more: Value) {
        let mut summary = json!({
            "id": SESSION, "agentType": "demo", "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": 0, "turns": 1, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        });
        let fields = summary.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        let summary = serde_json::from_value(summary).expect("a summary");
        self.reply(call, Ok(Reply::Session(summary)));
    }

    pub(crate) fn reply(&mut self, call: Call, reply: Result<Reply, GatewayError>) {
        self.front.on_reply(call, reply, &mut self.out);
        self.take();
    }

    pub(crate) fn done(&mut self, call: Call) {
        self.reply(call, Ok(Reply::Done(Json::trusted("{}"))));
    }

    pub(crate) fn event(&mut self, mut fields: Value) {
        self.seq += 1;
        fields["id"] = json!(format!("evt_{}", self.seq));
        fields["sessionId"] = json!(SESSION);
        fields["seq"] = json!(self.seq);
        fields["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        if fields.get("agentId").is_none() {
            fields["agentId"] = json!("main");
        }
        self.raw_event(&fields.to_string());
    }

    pub(crate) fn raw_event(&mut self, event: &str) {
        self.front.on_event(&SessionId::from(SESSION), event, &mut self.out);
        self.take();
    }

    pub(crate) fn pause(&mut self) {
        self.front.on_pause(&SessionId::from(SESSION), &mut self.out);
        self.take();
    }

    pub(crate) fn end(&mut self) {
        self.front.on_end(&SessionId::from(SESSION), &mut self.out);
        self.take();
    }

    pub(crate) fn lose(&mut self) {
        let error = GatewayError::new(ErrorCode::Internal, "the disk is gone");
        self.front.on_lost(&SessionId::from(SESSION), error, &mut self.out);
        self.followed = false;
        self.take();
    }

    /// The session takes no more, and its last events are yet to be shown.
    pub(crate) fn refuse(&mut self, call: Call, code: ErrorCode) {
        self.reply(call, Err(GatewayError::new(code, "no")));
    }

    /// All that was said and not looked at.
    pub(crate) fn said(&mut self) -> Vec<Value> {
        self.said.drain(..).collect()
    }

    pub(crate) fn types(&mut self) -> Vec<String> {
        self.said().iter().map(|frame| frame["type"].as_str().expect("a type").to_owned()).collect()
    }

    pub(crate) fn error(&mut self) -> String {
        let said = self.said();
        assert_eq!((said.len(), &said[0]["type"]), (1, &json!("error")), "{said:?}");
        said[0]["payload"]["code"].as_str().expect("a code").to_owned()
    }

    pub(crate) fn is_quiet(&mut self) {
        assert!(self.said.is_empty(), "{:?}", self.said);
        assert!(self.asks.is_empty(), "{:?}", self.asks);
    }
}
