//! Where a command finds sessions: in the log on this machine, whichever process runs them, or at a
//! server. The commands do not know which.

mod control;
mod events;

use std::time::Duration;

use agentwire_client::{
    AgentClient, AgentError, OpenRequest, Request, SessionDetails, SessionFilter,
};
use agentwire_protocol::reply::SessionList;
use agentwire_protocol::{
    ErrorCode, GatewayError, Json, LabelChange, ListQuery, SearchQuery, SearchResult, SessionId,
    SessionSummary, UsageQuery, UsageReport,
};
use agentwire_sessions::Hub;
use agentwire_sessions::settings::StoreKind;
use agentwire_sessions::store::Filter;

pub(crate) use self::control::ControlPath;
pub(crate) use self::events::{EventUpdate, Events};
use crate::args::{At, Global};
use crate::failure::Failure;
use crate::remote::{self, Local};
use crate::{engine, settings};

/// How long the index may read new events before an answer: as long as it takes.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone)]
pub(crate) enum Source {
    Here {
        hub: Hub,
        /// The server on this machine, for commands.
        server: Result<Local, AgentError>,
    },
    There(AgentClient),
}

/// Works on sessions without starting an agent here.
pub(crate) fn open<T>(
    global: &Global,
    at: &At,
    work: impl AsyncFnOnce(&Source) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(client) = remote::named(at)? {
        return engine::small()?.block_on(work(&Source::There(client)));
    }
    let loaded = settings::load(global)?;
    let server = remote::local(&loaded.engine.data_dir, at);
    // With the memory store, sessions are in the server's memory.
    if let (StoreKind::Memory, Ok(server)) = (&loaded.engine.store, &server) {
        return engine::small()?.block_on(work(&Source::There(server.client.clone())));
    }
    engine::reading_with(loaded, async |hub| work(&Source::Here { hub: hub.clone(), server }).await)
}

impl Source {
    /// The session whose id starts with this, if there is exactly one.
    pub(crate) async fn find(&self, beginning: &str) -> Result<SessionId, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.find(beginning).await?),
            Self::There(client) => Ok(client.find(beginning).await?),
        }
    }

    pub(crate) async fn summary(&self, id: &SessionId) -> Result<SessionSummary, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.summary(id).await?),
            Self::There(client) => Ok(client.summary(id).await?),
        }
    }

    /// The same; `None` while the server is unreachable.
    pub(crate) async fn present(&self, id: &SessionId) -> Result<Option<SessionSummary>, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(Some(hub.summary(id).await?)),
            Self::There(client) => match client.summary(id).await {
                Ok(summary) => Ok(Some(summary)),
                Err(error) if error.is_retryable() => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    pub(crate) async fn details(&self, id: &SessionId) -> Result<SessionDetails, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.details(id).await?),
            Self::There(client) => Ok(client.details(id).await?),
        }
    }

    pub(crate) async fn sessions(
        &self,
        only_live: bool,
        limit: Option<usize>,
    ) -> Result<Vec<SessionSummary>, Failure> {
        match self {
            Self::Here { hub, .. } => {
                Ok(hub.sessions(Filter { live: only_live, before: None, limit }).await?)
            }
            Self::There(client) => {
                let filter = SessionFilter { only_live, limit, ..SessionFilter::default() };
                Ok(client.sessions(filter).await?)
            }
        }
    }

    /// Sessions that fit, in the order of the query.
    pub(crate) async fn list(&self, query: ListQuery) -> Result<SessionList, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.page(query).await?),
            Self::There(client) => Ok(client.page(query).await?),
        }
    }

    pub(crate) async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.usage(query, PATIENCE).await?),
            Self::There(client) => Ok(client.usage(query.clone()).await?),
        }
    }

    pub(crate) async fn search(&self, query: &SearchQuery) -> Result<SearchResult, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.search(query.clone(), PATIENCE).await?),
            Self::There(client) => Ok(client.search(query.clone()).await?),
        }
    }

    /// Makes the index again, from the whole log.
    pub(crate) async fn rebuild_index(&self) -> Result<(), Failure> {
        let Self::Here { hub, .. } = self else {
            let message = "the index can be made again only on the machine of the server";
            return Err(GatewayError::new(ErrorCode::Unsupported, message).into());
        };
        hub.clear_index().await?;
        hub.search(SearchQuery::default(), PATIENCE).await?;
        Ok(())
    }

    /// Changes what a session is called.
    pub(crate) async fn label(
        &self,
        id: &SessionId,
        change: LabelChange,
    ) -> Result<SessionSummary, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(hub.label(id, change).await?),
            Self::There(client) => Ok(client.label(id, change).await?),
        }
    }

    /// Open requests of one session or of all, oldest first.
    pub(crate) async fn requests(
        &self,
        of: Option<&SessionId>,
    ) -> Result<Vec<OpenRequest>, Failure> {
        let hub = match self {
            Self::Here { hub, .. } => hub,
            Self::There(client) => {
                let requests = match of {
                    Some(id) => client.attach(id.clone()).await?.requests().await?,
                    None => client.requests().await?,
                };
                return Ok(requests.into_iter().map(Request::into_open).collect());
            }
        };
        Ok(hub.open_requests(of).await?)
    }

    pub(crate) async fn event(
        &self,
        id: &SessionId,
        seq: u64,
    ) -> Result<Option<Json<'static>>, Failure> {
        let after = seq.saturating_sub(1);
        let mut events = self.events(id, after, false).await?;
        let Some(EventUpdate::Events(batch)) = events.next().await? else { return Ok(None) };
        let line = batch.events().find(|(at, _)| *at == seq).map(|(_, line)| line);
        let text = line.and_then(|line| std::str::from_utf8(line).ok());
        Ok(text.map(|text| Json::trusted(text).into_owned()))
    }

    /// The events after `after`: the stored ones, and if `follow` is set also new ones, until the
    /// session ends.
    pub(crate) async fn events(
        &self,
        id: &SessionId,
        after: u64,
        follows: bool,
    ) -> Result<Events, Failure> {
        match self {
            Self::Here { hub, .. } => Ok(Events::of(hub.events(id, after).await?)),
            Self::There(client) => {
                let session = client.attach(id.clone()).await?;
                let updates = session.updates_after(after);
                Ok(Events::Stream(match follows {
                    true => updates,
                    false => updates.up_to(session.snapshot().last_seq),
                }))
            }
        }
    }
}
