//! Transports to a gateway. Each one makes calls and opens connections; the code above them makes streams
//! reliable, in the same way for all.

#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(feature = "in-process")]
pub mod in_process;
pub(crate) mod scripted;
#[cfg(feature = "stdio")]
pub(crate) mod stdio;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use agentwire_protocol::{
    Command, Json, LabelChange, ListQuery, Profile, SearchQuery, SessionId, SessionRequest,
    UsageQuery,
};
use futures_core::Stream;

use crate::error::AgentError;
use crate::event_lines::EventLines;

/// Connects to a gateway. A call gets one reply, and a connection shows the events of a session for as long
/// as it lasts. An implementation need not handle broken connections, repeated events or slow readers.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// The gateway's name for use in a sentence: `the server at http://127.0.0.1:8080`.
    fn name(&self) -> String;

    /// Makes a call. The reply is the JSON that the command frame of the same name gets, as described in
    /// `docs/protocols/unified.md`.
    fn call(&self, call: Call) -> Calling<'_>;

    /// Opens a connection that shows the session's events after number `after`, past and future.
    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_>;

    /// Ends what the transport runs, and waits for it.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn call(&self, call: Call) -> Calling<'_> {
        (**self).call(call)
    }

    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
        (**self).follow(session, after, profile)
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        (**self).close()
    }
}

/// The future of [`Transport::call`].
pub type Calling<'t> = Pin<Box<dyn Future<Output = Result<Json<'static>, AgentError>> + Send + 't>>;

/// The future of [`Transport::follow`].
pub type Opening<'t> = Pin<Box<dyn Future<Output = Result<Connection, AgentError>> + Send + 't>>;

/// One connection to a session. It is read only while the buffer has space. After the first error, or when
/// it ends, the client opens a new one after the last event. The first number may be wrong and numbers may
/// be missing; the reader checks that.
pub type Connection = Pin<Box<dyn Stream<Item = Result<Followed, AgentError>> + Send>>;

/// An item of a [`Connection`].
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// The next events: at most a few hundred kilobytes, or a single event.
    Events(EventLines),
    /// The session has ended and every event was shown. A transport that cannot know this does not send it:
    /// the client asks the gateway.
    End,
    /// The reader was too slow and lost its connection. The client reconnects at once.
    LetGo,
}

/// A call to a gateway.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Call {
    /// Starts or resumes a session. Calls with the same key count once.
    Start {
        /// The session to start or resume.
        request: Box<SessionRequest>,
        /// The idempotency key.
        key: String,
    },
    /// Lists sessions: `{"sessions","next"?}`.
    List(Box<ListQuery>),
    /// Changes the labels of a session; the reply is the session.
    Label(SessionId, LabelChange),
    /// Reports the usage of turns that have ended.
    Usage(UsageQuery),
    /// Searches in the texts of sessions.
    Search(Box<SearchQuery>),
    /// Returns a session's summary and its configuration.
    Show(SessionId),
    /// Lists open requests, of one session or of all: `{"requests"}`.
    Requests(Option<SessionId>),
    /// Sends a command to a session.
    Command(SessionId, Command),
}

impl Call {
    /// The call's name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::List(_) => "list",
            Self::Label(..) => "label",
            Self::Usage(_) => "usage",
            Self::Search(_) => "search",
            Self::Show(_) => "show",
            Self::Requests(_) => "requests",
            Self::Command(_, command) => command.name(),
        }
    }

    /// Whether it is safe to repeat: it counts once, or only reads.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Start { .. } | Self::List(_) | Self::Show(_) | Self::Requests(_) => true,
            Self::Label(..) | Self::Usage(_) | Self::Search(_) => true,
            Self::Command(_, Command::Prompt(prompt)) => prompt.message_id.is_some(),
            Self::Command(_, Command::Stop | Command::Queue) => true,
            Self::Command(..) => false,
        }
    }
}
