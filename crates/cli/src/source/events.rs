//! A session's events, wherever they come from.

use agentwire_client::{AgentError, Update, Updates};
use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_sessions::hub;
use agentwire_sessions::store::Batch;

use crate::failure::Failure;

/// A session's events.
pub(crate) enum Events {
    /// Of the log on this machine.
    Log(Box<hub::Events>),
    /// Of a server.
    Stream(Updates),
}

/// What comes next.
pub(crate) enum Seen {
    Events(Batch),
    /// The connection to the server is lost; it is tried again.
    Lost(String),
    /// It is there again.
    Back,
}

impl Events {
    pub(crate) fn of(events: hub::Events) -> Self {
        Self::Log(Box::new(events))
    }

    /// What comes next; none at the end. Nothing is lost if this is cancelled.
    pub(crate) async fn next(&mut self) -> Result<Option<Seen>, Failure> {
        let events = match self {
            Self::Log(events) => {
                let batch = events.next().await.map_err(|error| {
                    let message = format!("failed to read the log: {error}");
                    GatewayError::new(ErrorCode::Internal, message)
                })?;
                return Ok(batch.map(Seen::Events));
            }
            Self::Stream(updates) => match updates.try_next().await? {
                Some(Update::Events(events)) => events,
                Some(Update::Lost(why)) => return Ok(Some(Seen::Lost(why.to_string()))),
                Some(Update::Back) => return Ok(Some(Seen::Back)),
                Some(Update::Gap(gap)) => return Err(AgentError::from(gap).into()),
                None => return Ok(None),
            },
        };
        let (first, count) = (events.first(), events.len() as u64);
        Ok(Some(Seen::Events(Batch { first, count, lines: events.text().clone() })))
    }

    /// The number of the last event that was handed out.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Log(events) => events.position(),
            Self::Stream(events) => events.position(),
        }
    }
}
