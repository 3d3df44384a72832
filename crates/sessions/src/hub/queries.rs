//! Queries about sessions as a whole, the same over HTTP and on every line.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use agentwire_protocol::reply::{RequestList, SessionDetails, SessionList};
use agentwire_protocol::{
    ErrorCode, GatewayError, LabelChange, ListQuery, SessionId, SessionSort, SessionState,
    SessionSummary,
};

use super::Hub;
use crate::store::{Brief, Filter};

/// Separates the parts of a position in a list.
const APART: char = '~';

/// Where a session is in a list: whether it comes first because it is pinned, the time that the list is
/// sorted by, and its id. No two sessions have the same place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_first: bool,
    time: String,
    id: SessionId,
}

impl Hub {
    pub async fn page(&self, query: ListQuery) -> Result<SessionList, GatewayError> {
        let limit = query.limit.unwrap_or(SessionList::PAGE).clamp(1, SessionList::LIMIT);
        let sort = query.sort.unwrap_or_default();
        let has_filter = query.state.is_some()
            || query.agent.is_some()
            || query.directory.is_some()
            || query.q.is_some();
        if sort == SessionSort::Created && !has_filter {
            return self.newest(query.live, query.after, limit).await;
        }
        let shared = Arc::clone(&self.shared);
        let page = self.read_store(move |store| {
            let filter = ListFilter::new(&query);
            let mut briefs: Vec<Brief> = store.briefs()?;
            let after = query.after.as_deref().map(|after| Place::read(after, sort, &briefs));
            let after = match after {
                Some(None) => return Ok(None),
                Some(Some(place)) => Some(place),
                None => None,
            };
            briefs.retain(|brief| {
                let is_further = after.as_ref().is_none_or(|after| brief.place(sort) < *after);
                is_further && filter.fits(brief)
            });
            briefs.sort_by_cached_key(|brief| Reverse(brief.place(sort)));
            let next = briefs.get(limit).and(briefs.get(limit - 1));
            let next = next.map(|last| last.place(sort).text());
            let mut sessions = Vec::with_capacity(limit.min(briefs.len()));
            let mut may_write = true;
            for brief in briefs.into_iter().take(limit) {
                // It may have been deleted since.
                let Some(record) = store.session(&brief.id)? else { continue };
                let mut summary = shared.looked_after(store, record, &mut may_write)?.summary;
                if filter.fits_state(summary.state) {
                    brief.labels.put_on(&mut summary);
                    sessions.push(summary);
                }
            }
            Ok(Some(SessionList { sessions, next }))
        });
        page.await?.ok_or_else(|| {
            let message =
                "after: there is no such session or place in the list; use the next of a page";
            GatewayError::new(ErrorCode::SessionNotFound, message)
        })
    }

    /// The last started first.
    async fn newest(
        &self,
        live: bool,
        after: Option<String>,
        limit: usize,
    ) -> Result<SessionList, GatewayError> {
        let after = after.map(SessionId::from);
        if let Some(before) = &after {
            self.summary(before).await?;
        }
        // One more than asked for, to know whether there is a further page.
        let filter = Filter { live, before: after, limit: Some(limit + 1) };
        let mut sessions = self.sessions(filter).await?;
        let has_more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| has_more).map(|session| session.id.to_string());
        Ok(SessionList { sessions, next })
    }

    /// A session and its configuration.
    pub async fn details(&self, id: &SessionId) -> Result<SessionDetails, GatewayError> {
        let record = self.record(id).await?;
        let summary = self.labelled(record.summary).await;
        Ok(SessionDetails { summary, config: record.config.shown() })
    }

    /// The open requests of one session or of all.
    pub async fn requests(&self, of: Option<&SessionId>) -> Result<RequestList, GatewayError> {
        Ok(RequestList { requests: self.open_requests(of).await? })
    }

    /// Changes what a session is called, whichever process runs it.
    pub async fn label(
        &self,
        id: &SessionId,
        change: LabelChange,
    ) -> Result<SessionSummary, GatewayError> {
        let session = id.clone();
        let is_known =
            self.shared.write_store(move |store| store.set_label(&session, change)).await?;
        if !is_known {
            let message = format!("there is no session {id}; list sessions with `agentwire ls`");
            return Err(GatewayError::new(ErrorCode::SessionNotFound, message));
        }
        self.mark_changed(id);
        self.summary(id).await
    }

    /// The summary with what people call the session. If that cannot be read, the summary as it is.
    pub async fn labelled(&self, mut summary: SessionSummary) -> SessionSummary {
        let id = summary.id.clone();
        match self.read_store(move |store| store.label(&id)).await {
            Ok(labels) => labels.put_on(&mut summary),
            Err(error) => tracing::warn!(error = error.message, "failed to read labels"),
        }
        summary
    }
}

/// What a session must have to be listed.
struct ListFilter {
    live: bool,
    query: ListQuery,
    /// In lower case.
    words: Vec<String>,
}

impl ListFilter {
    fn new(query: &ListQuery) -> Self {
        let words = query.q.as_deref().unwrap_or_default().to_lowercase();
        let words = words.split_whitespace().map(str::to_owned).collect();
        Self { live: query.live, query: query.clone(), words }
    }

    fn fits(&self, brief: &Brief) -> bool {
        let directory = brief.directory.as_deref();
        self.fits_state(brief.state)
            && self.query.agent.is_none_or(|agent| agent == brief.agent)
            && self.query.directory.as_deref().is_none_or(|wanted| {
                directory.is_some_and(|directory| Path::new(directory).starts_with(wanted))
            })
            && self.has_words(brief)
    }

    fn fits_state(&self, state: SessionState) -> bool {
        self.query.state.is_none_or(|wanted| wanted == state)
            && (!self.live || state != SessionState::Ended)
    }

    fn has_words(&self, brief: &Brief) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let title = brief.labels.title.as_deref().or(brief.title.as_deref());
        let texts = [title, brief.first_prompt.as_deref(), brief.directory.as_deref()];
        let tags = brief.labels.tags.iter().map(String::as_str);
        let texts: Vec<String> =
            texts.into_iter().flatten().chain(tags).map(str::to_lowercase).collect();
        self.words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
    }
}

impl Brief {
    fn place(&self, sort: SessionSort) -> Place {
        let is_first = sort == SessionSort::Pinned && self.labels.pinned;
        let time = match sort {
            SessionSort::Created => &self.created_at,
            SessionSort::Activity | SessionSort::Pinned => &self.updated_at,
        };
        Place { is_first, time: time.clone(), id: self.id.clone() }
    }
}

impl Place {
    /// The place that the text names: one that a page ended with, or that of a session.
    fn read(text: &str, sort: SessionSort, briefs: &[Brief]) -> Option<Self> {
        let mut parts = text.splitn(3, APART);
        if let (Some(pinned @ ("0" | "1")), Some(time), Some(id)) =
            (parts.next(), parts.next(), parts.next())
        {
            let (time, id) = (time.to_owned(), SessionId::from(id));
            return Some(Self { is_first: pinned == "1", time, id });
        }
        let named = briefs.iter().find(|brief| brief.id.as_str() == text);
        named.map(|brief| brief.place(sort))
    }

    fn text(&self) -> String {
        let Self { is_first, time, id } = self;
        format!("{}{APART}{time}{APART}{id}", u8::from(*is_first))
    }
}
