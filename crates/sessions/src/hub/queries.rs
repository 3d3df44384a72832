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
use crate::store::{Brief, Filter, ListOrder, Place, Store, StoreError};

/// Separates the parts of a position in a list.
const APART: char = '~';

/// How many sessions are read at once where not all of them fit.
const LOOK: usize = 500;

/// A position in a list: a session's place, and whether the session comes first because it is pinned.
struct Position {
    is_first: bool,
    place: Place,
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
            let after = match query.after.as_deref() {
                None => Some(Position { is_first: true, place: Place::START }),
                Some(after) => Position::read(after, sort, store)?,
            };
            let Some(after) = after else { return Ok(None) };
            let found = found(store, &filter, sort, &after, limit + 1)?;
            let next = found.get(limit).and(found.get(limit - 1));
            let next = next.map(|last| last.position(sort).text());
            let mut sessions = Vec::with_capacity(limit.min(found.len()));
            let mut may_write = true;
            for brief in found.into_iter().take(limit) {
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

    /// Whether there is no condition.
    fn fits_all(&self) -> bool {
        let ListQuery { live, after: _, limit: _, state, agent, directory, q: _, sort: _ } =
            &self.query;
        !live && state.is_none() && agent.is_none() && directory.is_none() && self.words.is_empty()
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

/// The sessions after a position that fit, at most `limit`.
fn found(
    store: &dyn Store,
    filter: &ListFilter,
    sort: SessionSort,
    after: &Position,
    limit: usize,
) -> Result<Vec<Brief>, StoreError> {
    let order = order(sort);
    let mut found = Vec::new();
    if sort == SessionSort::Pinned && after.is_first {
        for (id, labels) in store.labels()? {
            let brief = if labels.pinned { store.brief(&id)? } else { None };
            found
                .extend(brief.filter(|brief| {
                    brief.place.is_after(after.place, order) && filter.fits(brief)
                }));
        }
        found.sort_by_key(|brief| Reverse(brief.place));
    }
    let is_start = sort == SessionSort::Pinned && after.is_first;
    let mut at = if is_start { Place::START } else { after.place };
    let look = if filter.fits_all() { limit } else { LOOK };
    while found.len() < limit {
        let briefs = store.briefs(order, at, look)?;
        let is_last = briefs.len() < look;
        at = briefs.last().map_or(at, |brief| brief.place);
        found.extend(briefs.into_iter().filter(|brief| {
            filter.fits(brief) && !(sort == SessionSort::Pinned && brief.labels.pinned)
        }));
        if is_last {
            break;
        }
    }
    found.truncate(limit);
    Ok(found)
}

fn order(sort: SessionSort) -> ListOrder {
    match sort {
        SessionSort::Created => ListOrder::Created,
        SessionSort::Activity | SessionSort::Pinned => ListOrder::Activity,
    }
}

impl Brief {
    fn position(&self, sort: SessionSort) -> Position {
        let is_first = sort == SessionSort::Pinned && self.labels.pinned;
        Position { is_first, place: self.place }
    }
}

impl Position {
    /// The position that the text names: one that a page ended with, or that of a session.
    fn read(text: &str, sort: SessionSort, store: &dyn Store) -> Result<Option<Self>, StoreError> {
        let mut parts = text.split(APART);
        if let (Some(first @ ("0" | "1")), Some(at), Some(number), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
            && let (Ok(at), Ok(number)) = (at.parse(), number.parse())
        {
            return Ok(Some(Self { is_first: first == "1", place: Place { at, number } }));
        }
        let named = store.brief(&SessionId::from(text))?;
        Ok(named.map(|brief| brief.position(sort)))
    }

    fn text(&self) -> String {
        let Self { is_first, place: Place { at, number } } = self;
        format!("{}{APART}{at}{APART}{number}", u8::from(*is_first))
    }
}
