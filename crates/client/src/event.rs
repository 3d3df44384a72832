//! One event: its meaning, its exact text, and what can be done about it.

use std::fmt;
use std::ops::Deref;

use agentwire_protocol::{self as protocol, OpenRequest};

use crate::error::{AgentError, AgentErrorType};
use crate::request::Request;
use crate::session::Session;

/// One event of a session.
///
/// It is the [`protocol::Event`] (`event.kind` says what happened), and keeps the exact text that it was
/// read from: what a newer gateway says and this crate does not know is there.
#[derive(Clone)]
pub struct Event {
    /// Its own: one event that is kept does not keep those that it came with.
    raw: Box<str>,
    event: protocol::Event<'static>,
    session: Session,
}

impl Event {
    pub(crate) fn read(raw: &[u8], session: &Session) -> Result<Self, AgentError> {
        let text = std::str::from_utf8(raw).unwrap_or_default();
        let event = protocol::Event::from_json(text).map_err(|error| {
            let message = format!("failed to read an event: {error}");
            session.named(AgentError::new(AgentErrorType::ProtocolError, message).with_native(text))
        })?;
        Ok(Self { event, raw: text.into(), session: session.clone() })
    }

    /// The exact JSON.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the agent asks, if it asks: with the means to answer. Of an event that was read from the past,
    /// it may have been answered since; [`Session::requests`] has what is open.
    pub fn request(&self) -> Option<Request> {
        let open = OpenRequest::of(&self.event)?;
        let agent = Some(self.session.agent_type());
        Some(Request::new(self.session.client().clone(), agent, open))
    }

    /// What went wrong, if it tells of something: a turn or a tool that failed, an error, a bad end.
    pub fn error(&self) -> Option<AgentError> {
        AgentError::of_event(&self.event, Some(self.session.agent_type()))
    }

    /// Whether a turn is over, well or not, or the session itself.
    pub fn ends_turn(&self) -> bool {
        // By its name: its reason may be one that is not known here.
        matches!(self.event.kind.name(), "turnCompleted" | "turnFailed" | "sessionEnded")
    }

    /// The event alone.
    pub fn into_inner(self) -> protocol::Event<'static> {
        self.event
    }
}

impl Deref for Event {
    type Target = protocol::Event<'static>;

    fn deref(&self) -> &Self::Target {
        &self.event
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.event, f)
    }
}
