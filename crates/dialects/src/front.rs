//! What a dialect must do to serve a client.
//!
//! A front is one client's connection in that client's words: text and events in, text and calls out.
//! Like the rest of this crate it is pure; `server` has the pump that carries out what it asks for.

use agentwire_protocol::{
    Call, Command, GatewayError, Json, NewSession, Resume, SessionId, SessionSummary,
};

/// How many sessions one client may watch.
pub const WATCHED: usize = 256;

/// One client, in its words. Never fails: what it does not understand it answers, as its wire answers.
pub trait Front: Send {
    /// The connection is open.
    fn on_open(&mut self, _out: &mut Outbox) {}

    /// The client said this: one line without its end, or one message.
    fn on_line(&mut self, line: &[u8], out: &mut Outbox);

    /// The client said something that is not to be read: more than a line may have.
    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox);

    /// A call came back. The events of what it did have been shown before, if its session is followed.
    fn on_reply(&mut self, call: Call, reply: Result<Reply, GatewayError>, out: &mut Outbox);

    /// An event of a session that is followed: its JSON, as it stands in the log.
    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox);

    /// Whether it says the events of a session as they stand in the log, and nothing else of them: then it
    /// need not be asked for each.
    fn passes(&self, _session: &SessionId) -> bool {
        false
    }

    /// The events of a session up to that one were said as they stand in the log.
    fn on_passed(&mut self, _session: &SessionId, _last: u64) {}

    /// What became durable together has been shown. A request that a rule settled came and went before
    /// this: whoever is asked need not hear of it.
    fn on_pause(&mut self, _session: &SessionId, _out: &mut Outbox) {}

    /// A session that is followed is over: there are no more events.
    fn on_end(&mut self, _session: &SessionId, _out: &mut Outbox) {}

    /// The events of a session that is followed cannot be read any more. It may go on, unseen.
    fn on_lost(&mut self, session: &SessionId, _error: GatewayError, out: &mut Outbox) {
        self.on_end(session, out);
    }

    /// Whether so much waits in it that the client is not to be listened to for now.
    fn is_full(&self) -> bool {
        false
    }

    /// The client says no more. Sessions are then told to finish by whoever serves them.
    fn on_close(&mut self, _out: &mut Outbox) {}

    /// Why it closed the connection, for a wire that can say so.
    fn farewell(&self) -> &'static str {
        ""
    }
}

/// What a front wants of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// A session. The reply is [`Reply::Started`].
    Start(Box<NewSession>),
    /// Something of a session that runs here. The reply is [`Reply::Done`].
    Command(SessionId, Command),
    /// The sessions there are, newest first. The reply is [`Reply::Sessions`].
    Sessions {
        /// At most so many.
        limit: usize,
    },
    /// Some events of a session that are there already. The reply is [`Reply::Events`].
    Events {
        /// Whose.
        session: SessionId,
        /// The last that is known.
        after: u64,
        /// At most so many.
        limit: usize,
    },
    /// A session, wherever it runs. The reply is [`Reply::Session`].
    Session(SessionId),
    /// A session that this client started, on this connection or an earlier one. The reply is
    /// [`Reply::Session`]; a session of anyone else is not found.
    Own(SessionId),
    /// What there is, as it is shown over HTTP. The reply is [`Reply::Done`].
    Look(Look),
}

/// What a client may look at.
#[derive(Clone, Debug, PartialEq)]
pub enum Look {
    /// The sessions there are, newest first: `{"sessions","next"?}`.
    Sessions {
        /// Only those that are not over.
        live: bool,
        /// The last of the page before.
        after: Option<SessionId>,
        /// At most so many.
        limit: Option<usize>,
    },
    /// A session, and what it runs with.
    Session(SessionId),
    /// What agents ask and wait for, `{"requests"}`: of one session, or of all.
    Requests(Option<SessionId>),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The session runs. Its first event of this run comes after that number.
    Started {
        /// The session.
        session: Box<SessionSummary>,
        /// The number of the last event before.
        after: u64,
    },
    /// A session.
    Session(Box<SessionSummary>),
    /// Sessions.
    Sessions(Vec<SessionSummary>),
    /// Events as they stand in the log, and the number of the last.
    Events {
        /// A list of them.
        events: Json<'static>,
        /// The last.
        next: u64,
        /// Whether the client can go on with them without a gap.
        resume: Resume,
    },
    /// What the command gives.
    Done(Json<'static>),
}

/// What a front wants done, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    effects: Vec<Effect>,
    next: u64,
    seed: u128,
    messages: u64,
}

/// One thing that a front wants done.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few are held at once, and not for long")]
pub enum Effect {
    /// Say this line or message; it has no line end in it.
    Say(Vec<u8>),
    /// Ask the gateway.
    Ask(Call, Ask),
    /// Show the events of a session after that number, then those that come.
    Follow(SessionId, u64),
    /// Show the events of a session after that number, once it runs again.
    Await(SessionId, u64),
    /// Show no more of that session.
    Leave(SessionId),
    /// Let a session work off what it has, then end.
    Finish(SessionId),
    /// The connection is done; a program that serves nothing else ends with this code.
    Close(u8),
}

impl Outbox {
    /// An outbox whose ids of messages come from that number, which must be random: a session takes
    /// an id once, whoever says it.
    pub fn new(seed: u128) -> Self {
        Self { seed, ..Self::default() }
    }

    /// A new id for a message, as UUIDs are written.
    pub fn message_id(&mut self) -> String {
        self.messages += 1;
        // Of the random number the version is 4, whatever it was.
        let bits = self.seed.wrapping_add(u128::from(self.messages));
        let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let hex = format!("{bits:032x}");
        let (a, rest) = hex.split_at(8);
        let (b, rest) = rest.split_at(4);
        let (c, rest) = rest.split_at(4);
        let (d, e) = rest.split_at(4);
        format!("{a}-{b}-{c}-{d}-{e}")
    }

    /// Says this text. It must be one line already: JSON that [`Json`] or the line writer made.
    pub fn say(&mut self, line: impl Into<Vec<u8>>) {
        self.effects.push(Effect::Say(line.into()));
    }

    /// Says this value as JSON.
    pub fn say_json(&mut self, value: &impl serde::Serialize) {
        self.say(Json::of(value).get().as_bytes());
    }

    /// Asks the gateway. The number comes back with the reply.
    pub fn ask(&mut self, ask: Ask) -> Call {
        self.next += 1;
        let call = Call(self.next);
        self.effects.push(Effect::Ask(call, ask));
        call
    }

    /// Asks something of a session.
    pub fn command(&mut self, session: &SessionId, command: Command) -> Call {
        self.ask(Ask::Command(session.clone(), command))
    }

    /// Shows the events of a session.
    pub fn follow(&mut self, session: &SessionId, after: u64) {
        self.effects.push(Effect::Follow(session.clone(), after));
    }

    /// Shows the events of a session that is over, once somebody resumes it.
    pub fn wait_for(&mut self, session: &SessionId, after: u64) {
        self.effects.push(Effect::Await(session.clone(), after));
    }

    /// Shows no more of a session.
    pub fn leave(&mut self, session: &SessionId) {
        self.effects.push(Effect::Leave(session.clone()));
    }

    /// Lets a session work off what it has, then end.
    pub fn finish(&mut self, session: &SessionId) {
        self.effects.push(Effect::Finish(session.clone()));
    }

    /// Ends the connection once all that was said before is out.
    pub fn close(&mut self, code: u8) {
        self.effects.push(Effect::Close(code));
    }

    /// Whether nothing has gathered.
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty()
    }

    /// Takes what has gathered.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
