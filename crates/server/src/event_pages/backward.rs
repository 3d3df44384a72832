//! A page of the newest events before a number. It is filled from its end, and reads only what it needs.

use agentwire_protocol::{GatewayError, Profile, Resume, SessionId, SessionState};
use agentwire_sessions::Hub;
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::budget::Budget;
use agentwire_sessions::store::{Batch, StoreError};

use super::{FilledPage, PAGE_BYTES, PageBuilder, in_profile};
use crate::read_budget::ReadShares;

/// How many bytes of events are read at once.
const CHUNK: u64 = 1 << 20;

/// Which events a page may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// The event after the last one.
    pub(crate) before: u64,
    /// The event before the first one.
    pub(crate) after: u64,
    pub(crate) limit: usize,
}

/// The events of a page, from the last to the first.
struct Collected {
    events: Vec<String>,
    bytes: usize,
    limit: usize,
    is_full: bool,
    shares: ReadShares,
    budget: Budget,
}

impl Collected {
    /// Adds the event before all others, if there is room for it.
    fn push(&mut self, event: &str) -> bool {
        let bytes = self.bytes + event.len() + 1;
        let has_room = self.events.is_empty()
            || bytes <= PAGE_BYTES && self.shares.may_grow(bytes, PAGE_BYTES, &self.budget);
        if self.is_full || !has_room {
            self.is_full = true;
            return false;
        }
        self.events.push(event.to_owned());
        self.bytes = bytes;
        self.is_full = self.events.len() == self.limit || bytes >= PAGE_BYTES;
        true
    }
}

/// Reads the newest events of a session before a number, as many as there is room for. Never waits for
/// events.
pub(crate) async fn read_before(
    hub: &Hub,
    id: &SessionId,
    Before { before, after, limit }: Before,
    text: &str,
    profile: Profile,
) -> Result<FilledPage, GatewayError> {
    let summary = hub.summary(id).await?;
    let last = summary.last_seq;
    let (resume, after) = Resume::of(after, last);
    // Where the page starts so far; the event itself is on the page.
    let mut first = before.clamp(1, last.saturating_add(1));
    let next = (first - 1).max(after);
    let mut page = Collected {
        events: Vec::new(),
        bytes: 0,
        limit,
        is_full: false,
        shares: ReadShares::default(),
        budget: hub.log().budget().clone(),
    };
    while first > after + 1 && !page.is_full {
        let count = (limit - page.events.len()) as u64;
        let from = hub.start_before(id, first, count, CHUNK).await?.max(after);
        let batches = match chunk(hub, id, (from, first), page.events.is_empty()).await {
            Ok(batches) if batches.is_empty() => break,
            Ok(batches) => batches,
            // The events so far make a page.
            Err(StoreError::Busy(_)) if !page.events.is_empty() => break,
            Err(error) => return Err(Hub::storage_error(&error)),
        };
        for batch in batches.iter().rev() {
            let wanted = batch.events().filter(|(seq, _)| *seq > from && *seq < first);
            let wanted: Vec<_> = wanted.collect();
            let size = wanted.iter().map(|(_, line)| line.len()).sum();
            let count = page.events.len();
            first = blocking_if_long(size, || add(&mut page, &wanted, first, profile));
            if page.events.len() > count {
                page.shares.add(batch);
            }
            if page.is_full {
                break;
            }
        }
    }
    let Collected { events, bytes, shares, .. } = page;
    let mut page = PageBuilder::new(hub, text, limit);
    page.text.reserve_exact(bytes + text.len() + 256);
    Ok(FilledPage {
        page: page.with_events(events.into_iter().rev(), shares),
        next,
        previous: (first > 1).then_some(first),
        last,
        is_ended: summary.state == SessionState::Ended && next >= last,
        resume,
    })
}

/// Adds events from the last to the first, while there is room. Returns where the page starts then.
fn add(page: &mut Collected, events: &[(u64, &[u8])], start: u64, profile: Profile) -> u64 {
    let mut first = start;
    for (seq, line) in events.iter().rev() {
        let is_added = in_profile(profile, line).is_none_or(|event| page.push(&event));
        if !is_added {
            break;
        }
        first = *seq;
        if page.is_full {
            break;
        }
    }
    first
}

/// The events after the first number and before the second.
async fn chunk(
    hub: &Hub,
    id: &SessionId,
    (after, before): (u64, u64),
    may_wait: bool,
) -> Result<Vec<Batch>, StoreError> {
    let mut events = hub.follow(id, after);
    events.wait_for_share(if may_wait { super::PATIENCE } else { std::time::Duration::ZERO });
    let mut batches = Vec::new();
    while events.position() + 1 < before
        && let Some(batch) = events.next().await?
    {
        batches.push(batch);
    }
    Ok(batches)
}
