//! A page of events: bounded in number and bytes, with the budget shares it holds.

mod backward;

use std::borrow::Cow;
use std::time::Duration;

use agentwire_protocol::{GatewayError, Profile, Resume, SessionId, SessionState};
use agentwire_sessions::Hub;
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::budget::Budget;
use agentwire_sessions::hub::Events;
use agentwire_sessions::store::{Batch, StoreError};
use futures_util::future::FutureExt as _;

pub(crate) use self::backward::{Before, read_before};
use crate::read_budget::ReadShares;

/// The most bytes of events on a page; one event always fits.
const PAGE_BYTES: usize = 8 << 20;

/// How long the first events of a page may wait for a budget share.
const PATIENCE: Duration = Duration::from_secs(10);

/// A page that is being filled: the items of a JSON array.
pub(crate) struct PageBuilder {
    text: String,
    count: usize,
    limit: usize,
    is_full: bool,
    shares: ReadShares,
    budget: Budget,
}

impl PageBuilder {
    /// An empty page for up to `limit` events; `text` is what comes before them.
    pub(crate) fn new(hub: &Hub, text: &str, limit: usize) -> Self {
        Self {
            text: text.to_owned(),
            count: 0,
            limit,
            is_full: false,
            shares: ReadShares::default(),
            budget: hub.log().budget().clone(),
        }
    }

    /// The same page with these events, which already fit.
    fn with_events(mut self, events: impl IntoIterator<Item = String>, shares: ReadShares) -> Self {
        for event in events {
            self.text.push_str(if self.count > 0 { "," } else { "" });
            self.text.push_str(&event);
            self.count += 1;
        }
        self.shares = shares;
        self
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Adds an event, if there is room for it.
    pub(crate) fn push(&mut self, event: &str) -> bool {
        let long = self.text.len() + event.len();
        let has_room = self.count == 0
            || long <= PAGE_BYTES && self.shares.may_grow(long, PAGE_BYTES, &self.budget);
        if self.is_full || !has_room {
            self.is_full = true;
            return false;
        }
        self.text.reserve_exact(if event.len() > PAGE_BYTES { event.len() + 256 } else { 0 });
        self.text.push_str(if self.count > 0 { "," } else { "" });
        self.text.push_str(event);
        self.count += 1;
        self.is_full = self.count == self.limit || self.text.len() >= PAGE_BYTES;
        true
    }

    /// The next events for the page. If it is empty, large events wait for a share, but not forever. Once
    /// the page has events, it does not wait.
    pub(crate) async fn next(&self, events: &mut Events) -> Result<Option<Batch>, StoreError> {
        let has_some = self.count > 0 && !self.is_full;
        events.wait_for_share(if has_some { Duration::ZERO } else { PATIENCE });
        events.next().await
    }

    /// Holds the share of these events as long as the page.
    pub(crate) fn hold_shares(&mut self, batch: &Batch) {
        self.shares.add(batch);
    }

    /// Accepts no more events, and releases their shares.
    pub(crate) fn close(&mut self) {
        self.is_full = true;
        self.shares.release_events();
    }

    /// The text, and the shares to hold until it is sent.
    pub(crate) fn into_parts(self) -> (String, ReadShares) {
        (self.text, self.shares)
    }
}

pub(crate) struct FilledPage {
    pub(crate) page: PageBuilder,
    /// The last event that was read.
    pub(crate) next: u64,
    /// The first event that was read, if there are events before it.
    pub(crate) previous: Option<u64>,
    /// The last event in the log.
    pub(crate) last: u64,
    /// There are no more events, and there never will be.
    pub(crate) is_ended: bool,
    pub(crate) resume: Resume,
}

/// One event, or nothing if the session has no event with this number or the profile omits it.
pub(crate) async fn read_one(
    hub: &Hub,
    id: &SessionId,
    seq: u64,
    profile: Profile,
) -> Result<Option<PageBuilder>, GatewayError> {
    let last = hub.summary(id).await?.last_seq;
    let mut page = PageBuilder::new(hub, "", 1);
    let Some(before) = seq.checked_sub(1).filter(|_| seq <= last) else { return Ok(None) };
    let mut events = hub.follow(id, before);
    let batch = page.next(&mut events).await.map_err(|error| Hub::storage_error(&error))?;
    let Some(batch) = batch else { return Ok(None) };
    let Some((_, line)) = batch.events().find(|(number, _)| *number == seq) else {
        return Ok(None);
    };
    let is_shown = blocking_if_long(line.len(), || {
        in_profile(profile, line).is_some_and(|event| page.push(&event))
    });
    page.hold_shares(&batch);
    Ok(is_shown.then_some(page))
}

/// Reads the events of a session after `after`, as many as there is room for. Does not wait for more if
/// there are some; waits for the first event until `patience` ends.
pub(crate) async fn read(
    hub: &Hub,
    id: &SessionId,
    after: u64,
    mut page: PageBuilder,
    profile: Profile,
    patience: impl Future<Output = ()>,
) -> Result<FilledPage, GatewayError> {
    let summary = hub.summary(id).await?;
    let (resume, after) = Resume::of(after, summary.last_seq);
    let mut events = hub.follow(id, after);
    let (mut next, mut is_ended) = (after, false);
    tokio::pin!(patience);
    'page: while !page.is_full() {
        let batch = match events.position() < summary.last_seq {
            true => page.next(&mut events).await,
            false if page.count() == 0 => tokio::select! {
                biased;
                batch = page.next(&mut events) => batch,
                () = &mut patience => break,
            },
            false => match page.next(&mut events).now_or_never() {
                Some(batch) => batch,
                None => break,
            },
        };
        let batch = match batch {
            Ok(Some(batch)) => batch,
            Ok(None) => {
                is_ended = true;
                break;
            }
            // The events so far make a page.
            Err(StoreError::Busy(_)) if page.count() > 0 => break,
            Err(error) => return Err(Hub::storage_error(&error)),
        };
        let mut is_held = false;
        for (seq, line) in batch.events() {
            let before = page.count();
            let has_room = blocking_if_long(line.len(), || {
                in_profile(profile, line).is_none_or(|event| page.push(&event))
            });
            if !has_room {
                break 'page;
            }
            next = seq;
            // Events that are not shown must hold no share, because the page may have to wait for the next
            // ones.
            if page.count() > before && !is_held {
                page.hold_shares(&batch);
                is_held = true;
            }
            if page.is_full() {
                break;
            }
        }
    }
    let last = summary.last_seq.max(next);
    is_ended |= summary.state == SessionState::Ended && next >= summary.last_seq;
    let previous = (after > 0).then_some(after + 1);
    Ok(FilledPage { page, next, previous, last, is_ended, resume })
}

/// The event in this profile, or nothing if the profile omits it.
pub(crate) fn in_profile(profile: Profile, line: &[u8]) -> Option<Cow<'_, str>> {
    profile.show_line(std::str::from_utf8(line).ok()?)
}
