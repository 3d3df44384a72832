//! The time format of events.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Now, as RFC 3339 in UTC with milliseconds.
pub fn now() -> String {
    format(Timestamp::now())
}

/// The time `past` ago, in the same form; the earliest time that can be represented if that is too long
/// ago.
pub fn ago(past: Duration) -> String {
    let past = SignedDuration::try_from(past).unwrap_or(SignedDuration::MAX);
    format(Timestamp::now().checked_sub(past).unwrap_or(Timestamp::MIN))
}

/// Nanoseconds since 1970 of a time in that form; `None` if it is not a time, or before 1970.
pub fn nanoseconds(time: &str) -> Option<u64> {
    u64::try_from(time.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
}

/// How long it takes from `now` until the end of the clock minute that contains `time`; `None` if that
/// minute has passed, or one of the two is not a time. If the clock was set back, the result is at most one
/// minute.
pub fn left_of_minute(time: &str, now: &str) -> Option<Duration> {
    let time = time.parse::<Timestamp>().ok()?.as_second();
    let over = Timestamp::from_second((time.div_euclid(60) + 1) * 60).ok()?;
    let left = Duration::try_from(over.duration_since(now.parse().ok()?)).ok()?;
    (!left.is_zero()).then_some(left.min(Duration::from_secs(60)))
}

fn format(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_the_clock_is_over_at_its_end() {
        let left = |time: &str, now: &str| left_of_minute(time, now).map(|left| left.as_millis());
        let at = "2026-01-02T03:04:30.250Z";
        assert_eq!(left(at, "2026-01-02T03:04:30.250Z"), Some(29_750));
        assert_eq!(left(at, "2026-01-02T03:04:59.999Z"), Some(1));
        assert_eq!(left(at, "2026-01-02T03:05:00.000Z"), None);
        assert_eq!(left(at, "2026-01-02T04:04:31Z"), None);
        assert_eq!(left("2026-01-02T03:04:00Z", "2026-01-02T03:04:00Z"), Some(60_000));
        // The clock was set back.
        assert_eq!(left(at, "2026-01-02T03:00:00Z"), Some(60_000));
        assert_eq!(left("no time", at), None);
        assert_eq!(left(at, "no time"), None);
    }
}
