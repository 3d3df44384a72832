//! How much of a client's WebSocket messages a connection may have in memory.
//!
//! The library that reads WebSockets holds a message until it is whole. So it is counted below it, where
//! bytes come from the wire: a message that says it is large is read no further until there is a share of
//! the budget for it, and must then come without stopping. Of a message that does not say how long it gets,
//! the share grows with what has come.

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

/// The longest message of a client that needs no share.
pub(super) const FREE: usize = 64 << 10;

/// How long a large message may stop on its way while others wait for its share, and how long anyway.
pub(super) const STOPS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// How long it may take in all while others wait.
pub(super) const COMES: Duration = Duration::from_secs(30);

/// How much of a message of unknown length has a share at first.
const STEP: usize = 256 << 10;

/// The least that must come of a large message in a second while others wait for its share, and the part
/// of what the share is for, so that nobody waits for long.
const LEAST: (usize, usize) = (64 << 10, 8);

/// For how many bytes a message has a share of which so many have come, and that may get this long.
pub(super) fn step(come: usize, longest: usize) -> usize {
    come.max(STEP).checked_next_power_of_two().unwrap_or(longest).min(longest)
}

/// How fast a large message comes.
pub(super) struct Pace {
    since: Instant,
    come: usize,
}

impl Pace {
    pub(super) fn new(now: Instant, come: usize) -> Self {
        Self { since: now, come }
    }

    /// Whether too little has come since it was last looked, of a message with a share for so many bytes.
    /// A byte now and then is not enough.
    pub(super) fn is_slow(&mut self, now: Instant, come: usize, held: usize) -> bool {
        let passed = now - self.since;
        if passed < STOPS.0 {
            return false;
        }
        let least = LEAST.0.max(held / LEAST.1) as f64 * passed.as_secs_f64();
        let is_slow = ((come - self.come) as f64) < least;
        *self = Self::new(now, come);
        is_slow
    }
}

/// The count of one connection; clones are the same.
#[derive(Clone)]
pub(super) struct Meter {
    pool: Pool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The last bytes of what was read before there were frames.
    last: [u8; 4],
    /// What the client says is frames from here on.
    frames: Option<Frames>,
    sharing: Option<Pin<Box<dyn Future<Output = Share> + Send>>>,
    /// The share of the message that is coming.
    share: Option<Coming>,
    /// The shares of messages that are whole, until somebody takes them.
    whole: VecDeque<Share>,
}

struct Coming {
    share: Share,
    /// For how many bytes the share is.
    held: usize,
    /// How many have come since it has it.
    come: usize,
    pace: Pace,
    since: Instant,
    moved: Instant,
    look: Pin<Box<Sleep>>,
}

impl Meter {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, state: Arc::default() }
    }

    /// From here on the client says frames, and messages of so many bytes at most. One that has said some
    /// before it was asked to speaks no WebSocket.
    pub(super) fn begin(&self, longest: usize) {
        let mut state = self.state();
        let is_early = state.last != *b"\r\n\r\n";
        state.frames = Some(Frames { longest, is_broken: is_early, ..Frames::default() });
    }

    /// The share of a message of so many bytes that was read.
    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        if bytes > FREE { self.state().whole.pop_front() } else { None }
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
        if let Some(coming) = share {
            let is_enough = wanted <= coming.held || coming.share.grow(wanted.saturating_mul(WORK));
            coming.held = coming.held.max(wanted);
            // There is no more, and others may wait for what it has: it is given up.
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
        let look = Box::pin(tokio::time::sleep(STOPS.0));
        let (held, pace) = (wanted, Pace::new(now, 0));
        *share = Some(Coming { share: given, held, come: 0, pace, since: now, moved: now, look });
        Poll::Ready(Ok(()))
    }

    /// Takes note of what was read.
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
        if let Some(coming) = &mut state.share {
            coming.moved = Instant::now();
            coming.come += bytes.len();
        }
        while let Some(frames) = &mut state.frames
            && !bytes.is_empty()
            && !frames.is_broken
        {
            let is_whole;
            (bytes, is_whole) = frames.advance(bytes);
            if is_whole {
                // What is large and came with one read has no share; it is not larger than that read.
                let share = state.share.take().map(|coming| coming.share);
                let is_large = state.frames.as_mut().is_some_and(Frames::finish);
                match share {
                    Some(share) => state.whole.push_back(share),
                    None if is_large => state.whole.extend(self.pool.take_now(0)),
                    None => {}
                }
            }
        }
    }

    /// Nothing came: tells whether the client has stopped in a message that others wait for, or is slow.
    pub(super) fn poll_stopped(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        let Some(coming) = &mut state.share else { return Poll::Pending };
        while coming.look.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let is_slow = coming.pace.is_slow(now, coming.come, coming.held);
            let is_late = is_slow || now - coming.since >= COMES;
            if now - coming.moved >= STOPS.1 || (is_late && self.pool.waiting() > 0) {
                return Poll::Ready(());
            }
            coming.look.as_mut().reset(now + STOPS.0);
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the bytes of a client stand in its frames.
#[derive(Default)]
struct Frames {
    longest: usize,
    head: Vec<u8>,
    /// How much of the frame is still to come, once its head is there.
    left: Option<u64>,
    /// How long the message is, as far as its frames have said.
    length: u64,
    /// More frames of it come.
    goes_on: bool,
    /// The frame is the last of a message.
    ends: bool,
    /// This is not how a client speaks.
    is_broken: bool,
}

impl Frames {
    /// How large a share the message needs.
    fn wanted(&self) -> usize {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        match length > FREE {
            // What is too long is refused by the reader.
            true if length > self.longest => 0,
            // How long it gets is not known.
            true if self.goes_on => step(length, self.longest),
            true => length,
            false => 0,
        }
    }

    /// Goes on to the end of a head or of a frame, and says whether a message is whole.
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
            self.goes_on = !is_last;
        }
        self.ends = is_last && !is_control;
        self.left = Some(length);
        self.head.clear();
    }

    fn end_frame(&mut self) -> bool {
        self.left = None;
        self.ends
    }

    /// The message is over. Says whether it was large.
    fn finish(&mut self) -> bool {
        let length = std::mem::take(&mut self.length);
        length > FREE as u64
    }
}
