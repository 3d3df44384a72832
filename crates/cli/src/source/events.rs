//! A session's events, from the local log or from a server.

use agentwire_client::{AgentError, Update, Updates};
use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_sessions::hub;
use agentwire_sessions::store::Batch;

use crate::failure::Failure;

pub(crate) enum Events {
    Log(Box<hub::Events>),
    Stream(Updates),
}

pub(crate) enum EventUpdate {
    Events(Batch),
    /// The connection to the server is lost; a reconnect is under way.
    Lost(String),
    /// The connection is back.
    Back,
}

impl Events {
    pub(crate) fn of(events: hub::Events) -> Self {
        Self::Log(Box::new(events))
    }

    /// `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<EventUpdate>, Failure> {
        let events = match self {
            Self::Log(events) => {
                let batch = events.next().await.map_err(|error| {
                    let message = format!("failed to read the log: {error}");
                    GatewayError::new(ErrorCode::Internal, message)
                })?;
                return Ok(batch.map(EventUpdate::Events));
            }
            Self::Stream(updates) => match updates.try_next().await? {
                Some(Update::Events(events)) => events,
                Some(Update::Lost(why)) => return Ok(Some(EventUpdate::Lost(why.to_string()))),
                Some(Update::Back) => return Ok(Some(EventUpdate::Back)),
                Some(Update::Gap(gap)) => return Err(AgentError::from(gap).into()),
                None => return Ok(None),
            },
        };
        let (first, count) = (events.first(), events.len() as u64);
        Ok(Some(EventUpdate::Events(Batch { first, count, lines: events.text().clone() })))
    }

    /// The number of the last event returned.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Log(events) => events.position(),
            Self::Stream(events) => events.position(),
        }
    }
}
