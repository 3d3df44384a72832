//! Pauses between attempts to reconnect: they double, and each client waits a different time.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

pub(super) struct Backoff {
    next: Duration,
    since: Instant,
    patience: Duration,
}

impl Backoff {
    pub(super) fn new(patience: Duration) -> Self {
        Self { next: FIRST, since: Instant::now(), patience }
    }

    pub(super) fn is_over(&self) -> bool {
        self.since.elapsed() >= self.patience
    }

    /// Returns the next pause: a random time between half and all of a value that doubles. So the clients
    /// of a restarted server do not all reconnect at the same moment.
    pub(super) fn next(&mut self) -> Duration {
        let time = self.next;
        self.next = (time * 2).min(LONGEST);
        let random = RandomState::new().hash_one(()) % 512;
        let share = u32::try_from(random).unwrap_or(0);
        time * (512 + share) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        let all: Vec<Vec<Duration>> = (0..32)
            .map(|_| {
                let mut backoff = Backoff::new(Duration::ZERO);
                (0..10).map(|_| backoff.next()).collect()
            })
            .collect();
        let longest = (0..10).map(|times| (FIRST * (1 << times)).min(LONGEST));
        for (at, longest) in longest.enumerate() {
            for pauses in &all {
                assert!(longest / 2 <= pauses[at] && pauses[at] <= longest, "{at}: {pauses:?}");
            }
        }
        assert!(all.iter().any(|pauses| *pauses != all[0]));
    }
}
