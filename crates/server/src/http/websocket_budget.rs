//! Limits how much memory the WebSocket messages of a connection take.
//!
//! The WebSocket library holds a message until it is complete. So messages are counted one layer below,
//! where bytes arrive. A message that announces a large length is read no further until it has a budget
//! share, and must then arrive without stopping. If a message does not announce its length, the share grows
//! with what has arrived.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use agentwire_sessions::budget::{Pool, Share, WORK};
use tokio::time::{Instant, Sleep};

/// The longest message that needs no share, in bytes.
pub(super) const SHARE_FREE_BYTES: usize = 64 << 10;

/// How long a large message may stall while others wait for its share, and how long in any case.
pub(super) const STALL_LIMITS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(10));

/// How long it may take in total while others wait.
pub(super) const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);

/// The first share of a message of unknown length, in bytes.
const FIRST_SHARE: usize = 256 << 10;

/// The least that must arrive of a large message per second while others wait for its share: this many
/// bytes, and its share divided by this, so that nobody waits for long.
const MIN_RATE: (usize, usize) = (64 << 10, 8);

/// The share for a message of which `received` bytes have arrived and that may grow to `longest` bytes.
pub(super) fn share_size(received: usize, longest: usize) -> usize {
    received.max(FIRST_SHARE).checked_next_power_of_two().unwrap_or(longest).min(longest)
}

pub(super) struct Pace {
    since: Instant,
    received: usize,
}

impl Pace {
    pub(super) fn new(now: Instant, received: usize) -> Self {
        Self { since: now, received }
    }

    /// Whether too little has arrived since the last check, for a message with a share of `held` bytes. A
    /// byte now and then is not enough.
    pub(super) fn is_too_slow(&mut self, now: Instant, received: usize, held: usize) -> bool {
        let passed = now - self.since;
        if passed < STALL_LIMITS.0 {
            return false;
        }
        let least = MIN_RATE.0.max(held / MIN_RATE.1) as f64 * passed.as_secs_f64();
        let is_too_slow = ((received - self.received) as f64) < least;
        *self = Self::new(now, received);
        is_too_slow
    }
}

/// The budget of one connection; clones share their state.
#[derive(Clone)]
pub(super) struct WebSocketBudget {
    pool: Pool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The last bytes that were read before the WebSocket started.
    last: [u8; 4],
    /// From here on, the client sends frames.
    frames: Option<FrameParser>,
    sharing: Option<Pin<Box<dyn Future<Output = Share> + Send>>>,
    /// The share of the message that is arriving.
    share: Option<ArrivingMessage>,
    /// The shares of complete messages, until they are taken.
    complete_shares: VecDeque<Share>,
}

struct ArrivingMessage {
    share: Share,
    /// The size of the share, in bytes of the message.
    held: usize,
    /// How many bytes have arrived since the message got its share.
    received: usize,
    pace: Pace,
    since: Instant,
    last_progress: Instant,
    next_check: Pin<Box<Sleep>>,
}

impl WebSocketBudget {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, state: Arc::default() }
    }

    /// From here on, the client sends frames, with messages of at most `longest` bytes. A client that sent
    /// bytes before the upgrade is not a valid WebSocket client.
    pub(super) fn start_frames(&self, longest: usize) {
        let mut state = self.state();
        let is_early = state.last != *b"\r\n\r\n";
        state.frames = Some(FrameParser { longest, is_broken: is_early, ..FrameParser::default() });
    }

    /// The share of a message of this size that was read.
    pub(super) fn take_share(&self, bytes: usize) -> Option<Share> {
        if bytes > SHARE_FREE_BYTES { self.state().complete_shares.pop_front() } else { None }
    }

    /// Waits until more may be read.
    pub(super) fn poll_room(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state();
        let State { frames: Some(frames), sharing, share, .. } = &mut *state else {
            return Poll::Ready(Ok(()));
        };
        if frames.is_broken {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let wanted = frames.wanted();
        if let Some(arriving) = share {
            let is_enough =
                wanted <= arriving.held || arriving.share.grow(wanted.saturating_mul(WORK));
            arriving.held = arriving.held.max(wanted);
            // There is no room to grow, and others may wait for what this message has: it is abandoned.
            return match is_enough {
                true => Poll::Ready(Ok(())),
                false => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            };
        }
        if wanted == 0 {
            return Poll::Ready(Ok(()));
        }
        let waits = sharing.get_or_insert_with(|| {
            let (pool, bytes) = (self.pool.clone(), wanted.saturating_mul(WORK));
            Box::pin(async move { pool.take(bytes).await })
        });
        let given = std::task::ready!(waits.as_mut().poll(context));
        *sharing = None;
        let now = Instant::now();
        let next_check = Box::pin(tokio::time::sleep(STALL_LIMITS.0));
        let (held, pace) = (wanted, Pace::new(now, 0));
        *share = Some(ArrivingMessage {
            share: given,
            held,
            received: 0,
            pace,
            since: now,
            last_progress: now,
            next_check,
        });
        Poll::Ready(Ok(()))
    }

    pub(super) fn read(&self, mut bytes: &[u8]) {
        let mut state = self.state();
        if bytes.is_empty() {
            return;
        }
        if state.frames.is_none() {
            for byte in bytes.iter().skip(bytes.len().saturating_sub(4)) {
                state.last.rotate_left(1);
                state.last[3] = *byte;
            }
            return;
        }
        if let Some(arriving) = &mut state.share {
            arriving.last_progress = Instant::now();
            arriving.received += bytes.len();
        }
        while let Some(frames) = &mut state.frames
            && !bytes.is_empty()
            && !frames.is_broken
        {
            let is_complete;
            (bytes, is_complete) = frames.advance(bytes);
            if is_complete {
                // A large message that arrived in one read has no share; it is not larger than that read.
                let share = state.share.take().map(|arriving| arriving.share);
                let is_large = state.frames.as_mut().is_some_and(FrameParser::finish);
                match share {
                    Some(share) => state.complete_shares.push_back(share),
                    None if is_large => state.complete_shares.extend(self.pool.take_now(0)),
                    None => {}
                }
            }
        }
    }

    /// Called when nothing arrived. Ready if the client has stalled in a large message, or if it is slow
    /// while others wait.
    pub(super) fn poll_stalled(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        let Some(arriving) = &mut state.share else { return Poll::Pending };
        while arriving.next_check.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let is_too_slow = arriving.pace.is_too_slow(now, arriving.received, arriving.held);
            let is_late = is_too_slow || now - arriving.since >= ARRIVAL_LIMIT;
            if now - arriving.last_progress >= STALL_LIMITS.1
                || (is_late && self.pool.waiting() > 0)
            {
                return Poll::Ready(());
            }
            arriving.next_check.as_mut().reset(now + STALL_LIMITS.0);
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The position of the client's bytes within its frames.
#[derive(Default)]
struct FrameParser {
    longest: usize,
    head: Vec<u8>,
    /// How many bytes of the frame are missing, once its head is complete.
    left: Option<u64>,
    /// The length of the message, as announced by its frames so far.
    length: u64,
    /// More frames of the message follow.
    has_more: bool,
    /// The frame is the last of a message.
    ends: bool,
    /// The bytes are not valid frames of a client.
    is_broken: bool,
}

impl FrameParser {
    /// The size of the share that the message needs.
    fn wanted(&self) -> usize {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        match length > SHARE_FREE_BYTES {
            // The reader refuses a message that is too long.
            true if length > self.longest => 0,
            // The final length is not known.
            true if self.has_more => share_size(length, self.longest),
            true => length,
            false => 0,
        }
    }

    /// Advances to the end of a head or of a frame. Returns whether a message is complete.
    fn advance<'b>(&mut self, bytes: &'b [u8]) -> (&'b [u8], bool) {
        let Some(left) = self.left else {
            let (byte, rest) =
                bytes.split_first().map_or((None, bytes), |(b, rest)| (Some(*b), rest));
            self.head.extend(byte);
            self.read_head();
            return (rest, self.left == Some(0) && self.end_frame());
        };
        let count = left.min(bytes.len() as u64);
        self.left = Some(left - count);
        let rest = bytes.get(usize::try_from(count).unwrap_or(bytes.len())..).unwrap_or_default();
        (rest, left == count && self.end_frame())
    }

    fn read_head(&mut self) {
        let [first, second, rest @ ..] = self.head.as_slice() else { return };
        let (more, length) = match second & 0x7F {
            126 => (2, rest.first_chunk::<2>().map(|length| u16::from_be_bytes(*length).into())),
            127 => (8, rest.first_chunk::<8>().map(|length| u64::from_be_bytes(*length))),
            short => (0, Some(u64::from(short))),
        };
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        let (Some(length), true) = (length, rest.len() >= more + mask) else { return };
        let (is_last, kind) = (first & 0x80 != 0, first & 0x0F);
        let is_control = kind >= 8;
        self.is_broken = is_control && length > 125;
        if !is_control {
            self.length = self.length.saturating_add(length);
            self.has_more = !is_last;
        }
        self.ends = is_last && !is_control;
        self.left = Some(length);
        self.head.clear();
    }

    fn end_frame(&mut self) -> bool {
        self.left = None;
        self.ends
    }

    /// Ends the message. Returns whether it was large.
    fn finish(&mut self) -> bool {
        let length = std::mem::take(&mut self.length);
        length > SHARE_FREE_BYTES as u64
    }
}
