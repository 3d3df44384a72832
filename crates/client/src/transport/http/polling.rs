//! Long polling: one page at a time, for networks that close open connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentwire_protocol::{Profile, SessionId};
use futures_util::stream;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::http_client::{HttpRequest, encode, unexpected};
use crate::error::AgentError;
use crate::event_lines::EventLines;
use crate::transport::{Connection, Followed};

/// The size of the first page, and the largest size. Pages shrink if events are large, or if a page does
/// not arrive.
pub(super) const FIRST: usize = 64;
const PAGE: usize = 500;

/// A page of this many bytes is large, so the next one has fewer events.
const LARGE: usize = 1 << 20;

/// How many bytes to pass on at once.
const BATCH: usize = 128 << 10;

/// How many seconds the server waits for the first event.
const WAIT: u64 = 25;

/// How much longer the client waits for the answer.
const GRACE: Duration = Duration::from_secs(30);

struct Pages {
    shared: Arc<Shared>,
    session: SessionId,
    profile: Profile,
    position: u64,
    /// The part of the last page that was not passed on yet.
    rest: EventLines,
    is_over: bool,
}

#[derive(Deserialize)]
struct Page<'p> {
    #[serde(borrow)]
    events: Vec<&'p RawValue>,
    next: u64,
    ended: bool,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

pub(super) fn open(
    shared: Arc<Shared>,
    session: &SessionId,
    after: u64,
    profile: Profile,
) -> Connection {
    let session = session.clone();
    let rest = EventLines::default();
    let pages = Pages { shared, session, profile, position: after, rest, is_over: false };
    Box::pin(stream::unfold(pages, |mut pages| async {
        if pages.is_over {
            return None;
        }
        let next = pages.next().await;
        pages.is_over = !matches!(next, Ok(Followed::Events(_)));
        Some((next, pages))
    }))
}

impl Pages {
    async fn next(&mut self) -> Result<Followed, AgentError> {
        if self.rest.is_empty() && self.fetch().await? {
            return Ok(Followed::End);
        }
        Ok(Followed::Events(self.rest.take_front(BATCH)))
    }

    /// Fetches the next page; returns whether the session has ended.
    async fn fetch(&mut self) -> Result<bool, AgentError> {
        let server = self.shared.location.server()?;
        let limit = self.shared.page.load(Ordering::Relaxed);
        let path = format!(
            "/v1/sessions/{}/events?after={}&limit={limit}&wait={WAIT}&profile={}",
            encode(self.session.as_str()),
            self.position,
            self.profile.as_str()
        );
        let request = HttpRequest::get(&path, Duration::from_secs(WAIT) + GRACE);
        let answer = self.shared.client.call(&server, request).await;
        let fits = answer.as_ref().is_ok_and(|page| page.len() < LARGE);
        let fitting = if fits { limit * 2 } else { limit / 2 };
        self.shared.page.store(fitting.clamp(1, PAGE), Ordering::Relaxed);
        let answer = answer?;
        let unreadable =
            |error| unexpected(&server, format_args!("its answer cannot be read: {error}"));
        let page: Page<'_> = serde_json::from_slice(&answer).map_err(unreadable)?;
        let numbered = page.events.iter().map(|event| {
            let number: Numbered = serde_json::from_str(event.get())?;
            Ok((number.seq, event.get()))
        });
        let events = numbered.collect::<Result<Vec<_>, serde_json::Error>>().map_err(unreadable)?;
        self.position = page.next;
        self.rest = EventLines::of(events);
        Ok(self.rest.is_empty() && page.ended)
    }
}
