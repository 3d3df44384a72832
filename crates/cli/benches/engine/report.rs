//! Statistics over measurements, and their format in tables.

use std::time::Duration;

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * part) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub fn per_second(count: f64) -> String {
    match count {
        count if count >= 1e6 => format!("{:.2} M/s", count / 1e6),
        count if count >= 1e4 => format!("{:.0} k/s", count / 1e3),
        count => format!("{:.1} k/s", count / 1e3),
    }
}

/// Formats microseconds in a suitable unit.
pub fn time(micros: f64) -> String {
    match micros {
        micros if micros < 0.0 => format!("-{}", time(-micros)),
        micros if micros >= 1e6 => format!("{:.2} s", micros / 1e6),
        micros if micros >= 1e4 => format!("{:.1} ms", micros / 1e3),
        micros if micros >= 1e3 => format!("{:.2} ms", micros / 1e3),
        micros if micros >= 10.0 => format!("{micros:.0} µs"),
        micros => format!("{micros:.2} µs"),
    }
}

pub fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{ratio:.0} ×"),
        ratio if ratio >= 10.0 => format!("{ratio:.1} ×"),
        ratio => format!("{ratio:.2} ×"),
    }
}
