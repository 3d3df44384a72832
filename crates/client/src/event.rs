//! One event: typed, with its exact text, its request and its error.

use std::fmt;
use std::ops::Deref;

use agentwire_protocol::{self as protocol, OpenRequest};

use crate::error::{AgentError, AgentErrorType};
use crate::request::Request;
use crate::session::Session;

/// One event of a session.
///
/// It dereferences to [`protocol::Event`] (`event.kind` says what happened) and keeps the exact text it was
/// read from, so what a newer gateway adds is not lost.
#[derive(Clone)]
pub struct Event {
    /// A copy: keeping one event does not keep its whole batch in memory.
    raw: Box<str>,
    event: protocol::Event<'static>,
    session: Session,
}

impl Event {
    pub(crate) fn read(raw: &[u8], session: &Session) -> Result<Self, AgentError> {
        let text = std::str::from_utf8(raw).unwrap_or_default();
        let event = protocol::Event::from_json(text).map_err(|error| {
            let message = format!("failed to read an event: {error}");
            session.with_agent(
                AgentError::new(AgentErrorType::ProtocolError, message).with_native(text),
            )
        })?;
        Ok(Self { event, raw: text.into(), session: session.clone() })
    }

    /// The exact JSON text.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The session that the event belongs to.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The agent's request, if this event raises one. For an event from the past, the request may be
    /// settled already; [`Session::requests`] lists those that are open.
    pub fn request(&self) -> Option<Request> {
        let open = OpenRequest::of(&self.event)?;
        let agent = Some(self.session.agent_type());
        Some(Request::new(self.session.client().clone(), agent, open))
    }

    /// The failure, if this event reports one: a failed turn or tool, an error, or a session that ended
    /// badly.
    pub fn error(&self) -> Option<AgentError> {
        AgentError::of_event(&self.event, Some(self.session.agent_type()))
    }

    /// Whether this event ends a turn (completed or failed) or the session.
    pub fn ends_turn(&self) -> bool {
        // By name, because a newer gateway may send a reason that this version cannot parse.
        matches!(self.event.kind.name(), "turnCompleted" | "turnFailed" | "sessionEnded")
    }

    /// The protocol event without the text and the session.
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
