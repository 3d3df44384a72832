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

/// How many seconds are left of the minute of the clock in which that time is, and some more may be; none
/// if it is over, or that is no time.
pub fn left_of_minute(time: &str, more: i64) -> Option<i64> {
    let time = time.parse::<Timestamp>().ok()?.as_second() + more;
    let left = (time.div_euclid(60) + 1) * 60 - Timestamp::now().as_second();
    (left > 0).then_some(left)
}

fn format(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_the_clock_is_over_or_has_seconds_left() {
        assert_eq!(left_of_minute("2020-01-01T00:00:59Z", 0), None);
        assert_eq!(left_of_minute("no time", 0), None);
        let left = left_of_minute(&now(), 0).expect("this minute runs");
        assert!((1..=60).contains(&left), "{left}");
        // What may begin a minute later keeps the next minute too.
        assert!(
            left_of_minute(&now(), 60).expect("so does the next")
                > left_of_minute(&now(), 0).unwrap_or(0)
        );
    }
}
