//! What a dialect must do to serve a client.
//!
//! A front is one client's connection in that client's dialect: text and events in, text and calls out.
//! Like the rest of this crate it is pure; `server` has the pump that does the work.

use agentwire_protocol::{
    Call, Command, GatewayError, Json, LabelChange, ListQuery, NewSession, Resume, SearchQuery,
    SessionId, SessionSummary, UsageQuery,
};

use crate::digest::dashed;

/// How many sessions one client may watch.
pub const WATCHED: usize = 256;

/// One client, in its dialect. Never fails: it answers what it does not understand in the way of its wire.
pub trait Front: Send {
    fn on_open(&mut self, _out: &mut Outbox) {}

    /// The client sent one line, without its line end, or one message.
    fn on_line(&mut self, line: &[u8], out: &mut Outbox);

    /// The client sent a line or message over the limit, which was not read.
    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox);

    /// The reply to a call. If its session is followed, the events that the call caused were shown before.
    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox);

    /// An event of a followed session: its JSON as it is in the log.
    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox);

    /// Whether it sends the events of a session exactly as they are in the log and nothing else: then it
    /// need not be asked for each.
    fn passes(&self, _session: &SessionId) -> bool {
        false
    }

    /// The events of a session up to `last` were sent exactly as they are in the log.
    fn on_passed(&mut self, _session: &SessionId, _last: u64) {}

    /// All events that became durable together have been shown. A request that a rule settled came and went
    /// before this, so the client need not see it.
    fn on_pause(&mut self, _session: &SessionId, _out: &mut Outbox) {}

    /// A followed session has ended: there are no more events.
    fn on_end(&mut self, _session: &SessionId, _out: &mut Outbox) {}

    /// The events of a followed session can no longer be read. The session may continue unseen.
    fn on_lost(&mut self, session: &SessionId, _error: GatewayError, out: &mut Outbox) {
        self.on_end(session, out);
    }

    /// Sessions have changed that the front watches ([`Outbox::watch`]): JSON on one line.
    fn on_change(&mut self, _change: &str, _out: &mut Outbox) {}

    /// The changes can no longer be read.
    fn on_watch_lost(&mut self, _error: GatewayError, _out: &mut Outbox) {}

    /// Whether so much is waiting that the client's input must pause.
    fn is_full(&self) -> bool {
        false
    }

    /// The client sends nothing more. The server, not the front, tells its sessions to finish.
    fn on_close(&mut self, _out: &mut Outbox) {}

    /// Why the front closed the connection, for a wire that can say so.
    fn farewell(&self) -> &'static str {
        ""
    }
}

/// What a front wants of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum GatewayCall {
    /// Starts a session. The reply is [`GatewayReply::Started`].
    Start(Box<NewSession>),
    /// A command for a session that runs here. The reply is [`GatewayReply::Done`].
    Command(SessionId, Command),
    /// All sessions, newest first. The reply is [`GatewayReply::Sessions`].
    Sessions { limit: usize },
    /// Past events of a session. The reply is [`GatewayReply::Events`].
    Events {
        session: SessionId,
        /// The last event that the client has.
        after: u64,
        limit: usize,
    },
    /// A session, wherever it runs. The reply is [`GatewayReply::Session`].
    Session(SessionId),
    /// A session that this client started, on this connection or an earlier one. The reply is
    /// [`GatewayReply::Session`]; a session of anyone else is not found.
    Own(SessionId),
    /// A query as over HTTP. The reply is [`GatewayReply::Done`].
    Query(GatewayQuery),
}

#[derive(Clone, Debug, PartialEq)]
pub enum GatewayQuery {
    /// Sessions: `{"sessions","next"?}`.
    Sessions(Box<ListQuery>),
    /// Changes the labels of a session; the reply is the session.
    Label(SessionId, LabelChange),
    /// A session and its config.
    Session(SessionId),
    Usage(UsageQuery),
    Search(Box<SearchQuery>),
    /// Open requests, `{"requests"}`: of one session, or of all.
    Requests(Option<SessionId>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum GatewayReply {
    /// The session runs. The first event of this run comes after `after`.
    Started {
        session: Box<SessionSummary>,
        after: u64,
    },
    Session(Box<SessionSummary>),
    Sessions(Vec<SessionSummary>),
    /// Events as they are in the log.
    Events {
        /// A JSON list.
        events: Json<'static>,
        /// The number of the last event.
        next: u64,
        /// Whether the client can continue without a gap.
        resume: Resume,
    },
    /// The result of the command.
    Done(Json<'static>),
}

/// What became of a call.
pub type GatewayResult = Result<GatewayReply, GatewayError>;

/// What a front wants done, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    effects: Vec<Effect>,
    next: u64,
    seed: u128,
    messages: u64,
}

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few are held at once, and not for long")]
pub enum Effect {
    /// Send this line or message; it contains no line end.
    Send(Vec<u8>),
    Call(Call, GatewayCall),
    /// Show the events of a session after that number, and then new ones.
    Follow(SessionId, u64),
    /// Show the events of a session after that number, once it runs again.
    Await(SessionId, u64),
    Unfollow(SessionId),
    /// Show all sessions and open requests, and then changes; from the cursor, if it is given.
    Watch(Option<String>),
    /// Show no more changes.
    Unwatch,
    /// Let a session finish its work, then end it.
    Finish(SessionId),
    /// Close the connection; a program that serves nothing else exits with this code.
    Close(u8),
}

impl Outbox {
    /// `seed` is the base of the message ids and must be random: a session accepts each id once, from any
    /// client.
    pub fn new(seed: u128) -> Self {
        Self { seed, ..Self::default() }
    }

    /// A new message id, in UUID form.
    pub fn message_id(&mut self) -> String {
        self.messages += 1;
        // Set the version to 4 and the variant to RFC 9562.
        let bits = self.seed.wrapping_add(u128::from(self.messages));
        let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        dashed(format!("{bits:032x}"))
    }

    /// Sends this text. It must already be one line: JSON that [`Json`] or the line writer made.
    pub fn send(&mut self, line: impl Into<Vec<u8>>) {
        self.effects.push(Effect::Send(line.into()));
    }

    pub fn send_json(&mut self, value: &impl serde::Serialize) {
        self.send(Json::of(value).get().as_bytes());
    }

    /// Calls the gateway. The reply carries the returned number.
    pub fn call(&mut self, wanted: GatewayCall) -> Call {
        self.next += 1;
        let call = Call(self.next);
        self.effects.push(Effect::Call(call, wanted));
        call
    }

    pub fn command(&mut self, session: &SessionId, command: Command) -> Call {
        self.call(GatewayCall::Command(session.clone(), command))
    }

    pub fn follow(&mut self, session: &SessionId, after: u64) {
        self.effects.push(Effect::Follow(session.clone(), after));
    }

    /// Shows the events of an ended session, once someone resumes it.
    pub fn wait_for(&mut self, session: &SessionId, after: u64) {
        self.effects.push(Effect::Await(session.clone(), after));
    }

    pub fn unfollow(&mut self, session: &SessionId) {
        self.effects.push(Effect::Unfollow(session.clone()));
    }

    /// Watches all sessions, from the cursor if it is given. Replaces an earlier watch.
    pub fn watch(&mut self, after: Option<String>) {
        self.effects.push(Effect::Watch(after));
    }

    pub fn unwatch(&mut self) {
        self.effects.push(Effect::Unwatch);
    }

    /// Lets a session finish its work, then ends it.
    pub fn finish(&mut self, session: &SessionId) {
        self.effects.push(Effect::Finish(session.clone()));
    }

    /// Closes the connection once everything sent before is out.
    pub fn close(&mut self, code: u8) {
        self.effects.push(Effect::Close(code));
    }

    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
