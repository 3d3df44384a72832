//! The ways to a gateway: what each must do, and nothing of what makes a stream reliable. That is the
//! same for all and stands above them.

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

use agentwire_protocol::{Command, Json, Profile, SessionId, SessionRequest};
use futures_core::Stream;

use crate::error::AgentError;
use crate::lines::EventLines;

/// A way to a gateway. It does two things: a call gets one reply, and a session is followed for as long
/// as a connection lasts. Whoever writes one need not care for connections that break, events that come
/// twice, or readers that are slow.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Where it leads, in the middle of a sentence: `the server at http://127.0.0.1:8080`.
    fn name(&self) -> String;

    /// Makes a call. The reply is the JSON that the command frame of the same name gets, as
    /// `docs/protocols/unified.md` says.
    fn call(&self, call: Call) -> Calling<'_>;

    /// Opens a connection that shows the events of a session after that number, then those that come.
    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_>;

    /// Ends what the transport runs, and waits until it has.
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

/// A call that is made.
pub type Calling<'t> = Pin<Box<dyn Future<Output = Result<Json<'static>, AgentError>> + Send + 't>>;

/// A connection that is opened.
pub type Opening<'t> = Pin<Box<dyn Future<Output = Result<Connection, AgentError>> + Send + 't>>;

/// One connection's worth of a session. It is read only while there is room for what it gives. It is
/// over with the first error, or when it ends: then it is opened again after the last event that came.
/// The numbers need not begin where they should, nor be dense; whoever reads sees to that.
pub type Connection = Pin<Box<dyn Stream<Item = Result<Followed, AgentError>> + Send>>;

/// What comes over a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// The next events: at most some hundred kilobytes, or one.
    Events(EventLines),
    /// The session is over, and all of it was shown. A transport that cannot know says nothing: the
    /// gateway is asked.
    End,
    /// The reader was too slow, and the connection was let go. It is opened again at once.
    LetGo,
}

/// What is asked of a gateway.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Call {
    /// Begin a session, or go on with one. Under the same key it counts once.
    Start {
        /// What is wanted.
        request: Box<SessionRequest>,
        /// The key.
        key: String,
    },
    /// Sessions, newest first: `{"sessions","next"?}`.
    List {
        /// Only those that are not over.
        only_live: bool,
        /// The last of the page before.
        after: Option<SessionId>,
        /// At most so many.
        limit: usize,
    },
    /// A session, and what it runs with.
    Show(SessionId),
    /// What agents ask and wait for: `{"requests"}`; of one session, or of all.
    Requests(Option<SessionId>),
    /// Something of a session.
    Command(SessionId, Command),
}

impl Call {
    /// The name as it stands on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::List { .. } => "list",
            Self::Show(_) => "show",
            Self::Requests(_) => "requests",
            Self::Command(_, command) => command.name(),
        }
    }

    /// Whether it may be made again: it counts once, or only asks.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Start { .. } | Self::List { .. } | Self::Show(_) | Self::Requests(_) => true,
            Self::Command(_, Command::Prompt(prompt)) => prompt.message_id.is_some(),
            Self::Command(_, Command::Stop) => true,
            Self::Command(..) => false,
        }
    }
}
