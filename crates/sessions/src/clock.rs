//! The time that events carry.

use jiff::{SignedDuration, Timestamp};

/// Now, as RFC 3339 in UTC with milliseconds.
pub fn now() -> String {
    format(Timestamp::now())
}

/// That long ago, in the same form; as early as can be said if that is too long ago.
pub fn ago(past: std::time::Duration) -> String {
    let past = SignedDuration::try_from(past).unwrap_or(SignedDuration::MAX);
    format(Timestamp::now().checked_sub(past).unwrap_or(Timestamp::MIN))
}

/// Nanoseconds since 1970 of a time in that form; none of what is no time, or before then.
pub fn nanoseconds(time: &str) -> Option<u64> {
    u64::try_from(time.parse::<Timestamp>().ok()?.as_nanosecond()).ok()
}

fn format(time: Timestamp) -> String {
    format!("{time:.3}")
}
