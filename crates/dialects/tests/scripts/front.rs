//! A front's client and the gateway after it: `client>`, `gateway>` and `log>` in; `client<` and `gateway<`
//! out.

use std::collections::BTreeMap;

use agentwire_dialects::backend::Backend;
use agentwire_dialects::board::Watcher;
use agentwire_dialects::claude::{ClaudeFront, FrontOptions};
use agentwire_dialects::front::{Effect, Front, GatewayCall, GatewayReply, Outbox};
use agentwire_dialects::insights::Insights;
use agentwire_dialects::jsonrpc::JsonRpc;
use agentwire_dialects::unified::Unified;
use agentwire_protocol::{
    AgentType, Call, Command, ErrorCode, Event, EventKind, GatewayError, Json, NewSession, Price,
    Resume, SessionId, SessionSummary,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::common;
use crate::messages::Messages;
use crate::script::{bytes, happening, named};

/// The session of every script.
pub(crate) const SESSION: &str = "11111111-1111-4111-8111-111111111111";

pub(crate) struct Client {
    front: Served,
    out: Outbox,
    /// The number of the last event.
    seq: u64,
}

enum Served {
    Claude(Box<ClaudeFront>),
    Insights(Box<Insights>),
    Other(Box<dyn Front>),
}

impl Served {
    fn front(&mut self) -> &mut dyn Front {
        match self {
            Self::Claude(front) => front.as_mut(),
            Self::Insights(front) => front.as_mut(),
            Self::Other(front) => front.as_mut(),
        }
    }
}

impl Client {
    /// `front> NAME {"agent", …}`, with the options of the front.
    pub(crate) fn open(what: &str) -> (Self, Vec<String>) {
        let (name, mut options) = named(what);
        let agent = match options["agent"].take() {
            Value::Null => AgentType::Demo,
            agent => serde_json::from_value(agent).expect("an agent"),
        };
        let is = |option: &str| options[option] == true;
        let front = match name {
            "claude" => Served::Claude(Box::new(ClaudeFront::new(FrontOptions {
                new: NewSession::of(agent),
                asks_client: is("asksClient"),
                partial: is("partial"),
                replays: is("replays"),
                may_bypass: is("mayBypass"),
                pid: 7,
            }))),
            "backend" => Served::Other(Box::new(Backend::new(agent))),
            "board" => Served::Other(Box::new(Watcher::new(SessionId::from(SESSION), is("ends")))),
            "insights" => Served::Insights(Box::new(Insights::new(agent, prices(&options)))),
            "messages" => Served::Other(Box::new(Messages::new(is("partial")))),
            "jsonrpc" => Served::Other(Box::new(JsonRpc::new(agent))),
            "unified" => Served::Other(Box::new(Unified::default())),
            _ => panic!("no front {name}"),
        };
        let mut client = Self { front, out: Outbox::default(), seq: 0 };
        client.front.front().on_open(&mut client.out);
        let came = client.came();
        (client, came)
    }

    pub(crate) fn step(&mut self, who: &str, what: &str) -> Vec<String> {
        let session = SessionId::from(SESSION);
        match (who, happening(what)) {
            ("client", happening) => match (bytes(what), happening) {
                (Some(line), _) => self.front.front().on_line(&line, &mut self.out),
                (None, Some("closes")) => self.front.front().on_close(&mut self.out),
                (None, happening) => {
                    let length = happening.and_then(|what| what.strip_prefix("a line of "));
                    let length = length.and_then(|what| what.strip_suffix(" bytes"));
                    let length =
                        length.unwrap_or_else(|| panic!("nothing that clients do: {what}"));
                    let length = length.parse().expect("a length");
                    self.front.front().on_overlong(length, &mut self.out);
                }
            },
            ("log", Some("all is shown")) => self.front.front().on_pause(&session, &mut self.out),
            ("log", Some("the session is over")) => {
                self.front.front().on_end(&session, &mut self.out);
            }
            ("log", Some(happening)) => {
                let message = happening.strip_prefix("cannot be read: ");
                let message = message.unwrap_or_else(|| panic!("nothing of a log: {what}"));
                let error = GatewayError::new(ErrorCode::Internal, message);
                self.front.front().on_lost(&session, error, &mut self.out);
            }
            ("log", None) => {
                let event = self.event(what);
                self.front.front().on_event(&session, &event, &mut self.out);
            }
            _ => {
                let (call, reply) = what.split_once(' ').expect("the number of what was asked");
                let call = Call(call.parse().expect("a number"));
                self.front.front().on_reply(call, reply_of(reply), &mut self.out);
            }
        }
        self.came()
    }

    /// `log> TYPE {…}`: the event with these fields, plus its stamps. `seq` continues from the last.
    fn event(&mut self, what: &str) -> String {
        let (name, fields) = what.split_once(' ').unwrap_or((what, "{}"));
        // Field values are passed on unchanged.
        let mut event: BTreeMap<String, Json<'_>> = serde_json::from_str(fields).expect("fields");
        let seq = event.get("seq").map(|seq| seq.read().expect("a number"));
        self.seq = seq.unwrap_or(self.seq + 1);
        let stamps = json!({
            "type": name, "id": format!("evt_{}", self.seq), "sessionId": SESSION, "seq": self.seq,
            "timestamp": "2026-01-01T00:00:00.000Z",
        });
        for (name, value) in stamps.as_object().into_iter().flatten() {
            event.entry(name.clone()).or_insert_with(|| Json::of(value));
        }
        let event = serde_json::to_string(&event).expect("JSON");
        // A front ignores what is not an event, so a script with a typo would show nothing.
        let read = Event::from_json(&event).unwrap_or_else(|error| panic!("{error}: {event}"));
        assert!(!matches!(read.kind, EventKind::Unknown(_)), "{event}");
        event
    }

    fn came(&mut self) -> Vec<String> {
        let effects = self.out.take();
        effects.into_iter().map(|effect| self.shown(effect)).collect()
    }

    fn shown(&self, effect: Effect) -> String {
        match effect {
            Effect::Send(line) => {
                let line = String::from_utf8(line).expect("UTF-8");
                if let Served::Insights(_) = self.front {
                    common::insights::check(&crate::script::json(&line));
                }
                format!("client< {line}")
            }
            Effect::Call(call, ask) => format!("gateway< {} {}", call.0, asked(&ask)),
            Effect::Follow(session, after) => format!("gateway< follow {session} after {after}"),
            Effect::Await(session, after) => format!("gateway< await {session} after {after}"),
            Effect::Watch(after) => format!("gateway< watch {after:?}"),
            Effect::Unwatch => "gateway< unwatch".to_owned(),
            Effect::Unfollow(session) => format!("gateway< leave {session}"),
            Effect::Finish(session) => format!("gateway< finish {session}"),
            Effect::Close(code) => match self.farewell() {
                "" => format!("client< (closed with code {code})"),
                why => format!("client< (closed with code {code}: {why})"),
            },
        }
    }

    fn farewell(&self) -> &str {
        match &self.front {
            Served::Claude(front) => front.failure().unwrap_or_default(),
            Served::Insights(front) => front.farewell(),
            Served::Other(front) => front.farewell(),
        }
    }
}

/// `"prices": {MODEL: [input, output, cache read, cache write]}`, in dollars for a million tokens.
fn prices(options: &Value) -> BTreeMap<String, Price> {
    let Some(prices) = options.get("prices") else { return BTreeMap::new() };
    let prices: BTreeMap<String, [f64; 4]> =
        serde_json::from_value(prices.clone()).expect("prices");
    let price = |(model, figures): (String, [f64; 4])| {
        let [input, output, cache_read, cache_write] = figures;
        (model, Price { input, output, cache_read, cache_write })
    };
    prices.into_iter().map(price).collect()
}

/// What a front wants of the gateway, in the terms of the unified protocol where it has them.
fn asked(ask: &GatewayCall) -> String {
    match ask {
        GatewayCall::Start(new) => format!("start {}", start(new)),
        GatewayCall::Command(session, command) => format!("{session} {}", commanded(command)),
        GatewayCall::Sessions { limit } => format!("sessions, at most {limit}"),
        GatewayCall::Events { session, after, limit } => {
            format!("{session} events after {after}, at most {limit}")
        }
        GatewayCall::Session(session) => format!("session {session}"),
        GatewayCall::Own(session) => format!("own session {session}"),
        GatewayCall::Query(look) => format!("look {look:?}"),
    }
}

/// The fields that differ from `NewSession::of`.
fn start(new: &NewSession) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        if !matches!(value, Value::Null | Value::Bool(false)) {
            fields.insert(name.to_owned(), value);
        }
    };
    set("agentType", json!(new.agent));
    set("prompt", json!(new.prompt));
    set("resume", json!(new.resume));
    set("fork", json!(new.fork));
    set("nativeResume", json!(new.native_resume));
    set("id", json!(new.id));
    set("config", json!(new.config));
    set("replacesConfig", json!(new.replaces_config));
    set("key", json!(new.key));
    set("client", json!(new.client));
    set("isLimited", json!(new.is_limited));
    fields.into()
}

fn commanded(command: &Command) -> String {
    let name = command.name();
    match command {
        Command::Start(request) => frame(name, request),
        Command::Attach { after } => frame(name, &json!({ "after": after })),
        Command::Prompt(prompt) => frame(name, prompt),
        Command::Interrupt { cancel_queued: true } => frame(name, &json!({ "cancelQueued": true })),
        Command::Interrupt { .. } | Command::Stop | Command::Finish | Command::Queue => {
            frame(name, &json!({}))
        }
        Command::Cancel { message_id } => frame(name, &json!({ "messageId": message_id })),
        Command::Edit { message_id, text } => {
            frame(name, &json!({ "messageId": message_id, "prompt": text }))
        }
        Command::Settle(settlement) => frame(name, settlement),
        Command::Configure(change) => frame(name, change),
        // A client's JSON stays as it was sent.
        Command::Query { method, args } => {
            let args: Vec<&str> = args.iter().map(Json::get).collect();
            let method = json!(method);
            format!(r#"{{"command":"{name}","method":{method},"args":[{}]}}"#, args.join(","))
        }
        Command::Rewind { message_id, dry_run } => {
            frame(name, &json!({ "messageId": message_id, "dryRun": dry_run }))
        }
    }
}

fn frame(name: &str, fields: &impl Serialize) -> String {
    let fields = serde_json::to_string(fields).expect("JSON");
    let rest = fields.strip_prefix('{').expect("an object");
    let comma = if rest == "}" { "" } else { "," };
    format!(r#"{{"command":"{name}"{comma}{rest}"#)
}

/// `started {"after", …}`, `session {…}`, `sessions [{…}]`, `events {"events","next"}`, `done JSON` or
/// `error {"code","message"}`.
fn reply_of(what: &str) -> Result<GatewayReply, GatewayError> {
    let (name, text) = what.split_once(' ').expect("a reply and what it has");
    let fields = crate::script::json(text);
    Ok(match name {
        "done" => GatewayReply::Done(Json::parse(text).expect("JSON").into_owned()),
        "error" => return Err(serde_json::from_value(fields).expect("an error")),
        "started" => {
            let mut session = fields;
            let after = session.as_object_mut().and_then(|session| session.remove("after"));
            let after = after.and_then(|after| after.as_u64()).unwrap_or_default();
            GatewayReply::Started { session: Box::new(summary(&session)), after }
        }
        "session" => GatewayReply::Session(Box::new(summary(&fields))),
        "sessions" => {
            let sessions = fields.as_array().expect("sessions");
            GatewayReply::Sessions(sessions.iter().map(summary).collect())
        }
        "events" => GatewayReply::Events {
            events: Json::trusted(format!("[{}]", texts(&fields["events"]).join(","))),
            next: fields["next"].as_u64().expect("the last"),
            resume: Resume::Exact,
        },
        _ => panic!("no reply {name}"),
    })
}

fn texts(events: &Value) -> Vec<String> {
    serde_json::from_value(events.clone()).expect("texts of events")
}

/// A session; fields that do not matter may be left out.
pub(crate) fn summary(fields: &Value) -> SessionSummary {
    let mut summary = json!({
        "id": SESSION, "agentType": "demo", "state": "idle", "createdAt": "", "updatedAt": "",
        "lastSeq": 0, "turns": 0, "openRequests": 0,
        "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
    });
    let given = fields.as_object().expect("the fields of a session").clone();
    summary.as_object_mut().expect("an object").extend(given);
    serde_json::from_value(summary).expect("a session")
}
