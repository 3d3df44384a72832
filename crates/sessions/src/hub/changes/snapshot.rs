//! All sessions, newest first, a page at a time.

use std::collections::VecDeque;

use agentwire_protocol::{GatewayError, SessionId, SessionSummary};

use super::super::Hub;
use crate::store::Filter;

/// How many sessions are read at once.
const PAGE: usize = 50;

/// A walk over all sessions.
#[derive(Default)]
pub(super) struct Snapshot {
    page: VecDeque<SessionSummary>,
    /// The sessions of the last page, the oldest first. The next page continues after the first of them that
    /// still exists.
    last: Vec<SessionId>,
    /// The session that was returned last.
    place: Option<SessionId>,
    is_over: bool,
}

impl Snapshot {
    /// The sessions after this one. If it is gone, all of them.
    pub(super) fn after(place: SessionId) -> Self {
        Self { last: vec![place.clone()], place: Some(place), ..Self::default() }
    }

    /// The session that was returned last.
    pub(super) fn place(&self) -> Option<&SessionId> {
        self.place.as_ref()
    }

    pub(super) async fn next(&mut self, hub: &Hub) -> Result<Option<SessionSummary>, GatewayError> {
        if self.page.is_empty() && !self.is_over {
            self.read(hub).await?;
        }
        let next = self.page.pop_front();
        if let Some(next) = &next {
            self.place = Some(next.id.clone());
        }
        Ok(next)
    }

    async fn read(&mut self, hub: &Hub) -> Result<(), GatewayError> {
        let before = self.last.clone();
        let place = hub.read_store(move |store| {
            for id in before {
                if store.session(&id)?.is_some() {
                    return Ok(Some(id));
                }
            }
            Ok(None)
        });
        let filter = Filter { before: place.await?, limit: Some(PAGE), ..Filter::default() };
        let page = hub.sessions(filter).await?;
        self.is_over = page.len() < PAGE;
        self.last = page.iter().rev().map(|session| session.id.clone()).collect();
        self.page = page.into();
        Ok(())
    }
}
