//! Queries about sessions as a whole, the same over HTTP and on every line.

use agentwire_protocol::reply::{RequestList, SessionDetails, SessionList};
use agentwire_protocol::{GatewayError, SessionId};

use super::Hub;
use crate::store::Filter;

impl Hub {
    pub async fn page(
        &self,
        live: bool,
        after: Option<SessionId>,
        limit: Option<usize>,
    ) -> Result<SessionList, GatewayError> {
        let limit = limit.unwrap_or(SessionList::PAGE).clamp(1, SessionList::LIMIT);
        if let Some(before) = &after {
            self.summary(before).await?;
        }
        // One more than asked for, to know whether there is a further page.
        let filter = Filter { live, before: after, limit: Some(limit + 1) };
        let mut sessions = self.sessions(filter).await?;
        let has_more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| has_more).map(|session| session.id.clone());
        Ok(SessionList { sessions, next })
    }

    /// A session and its configuration.
    pub async fn details(&self, id: &SessionId) -> Result<SessionDetails, GatewayError> {
        let record = self.record(id).await?;
        Ok(SessionDetails { summary: record.summary, config: record.config.shown() })
    }

    /// The open requests of one session or of all.
    pub async fn requests(&self, of: Option<&SessionId>) -> Result<RequestList, GatewayError> {
        Ok(RequestList { requests: self.open_requests(of).await? })
    }
}
