//! Numbers for people.

use agentwire_protocol::TokenUsage;

/// `0.3 s`, `42 s`, `3 min 5 s`.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        ..10_000 => {
            let tenths = (milliseconds + 50) / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        10_000..60_000 => format!("{} s", milliseconds / 1000),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds / 1000 % 60),
    }
}

/// `340`, `1.2k`, `3.4M`.
pub(crate) fn count(tokens: u64) -> String {
    match tokens {
        ..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// `1.2k in (800 cached), 340 out`.
pub(crate) fn tokens(usage: &TokenUsage) -> String {
    let cached = usage.cached_tokens.filter(|cached| *cached > 0);
    let cached = cached.map(|cached| format!(" ({} cached)", count(cached))).unwrap_or_default();
    let (input, output) = (count(usage.input_tokens), count(usage.output_tokens));
    format!("{input} in{cached}, {output} out")
}

/// `$0.0123`, `$4.20`.
pub(crate) fn dollars(amount: f64) -> String {
    if amount < 1.0 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// `… 3 more lines`.
pub(crate) fn more(count: usize) -> String {
    if count == 1 { "… 1 more line".to_owned() } else { format!("… {count} more lines") }
}

/// The first `limit` characters.
pub(crate) fn cut(text: &str, limit: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(duration(0), "0.0 s");
        assert_eq!(duration(349), "0.3 s");
        assert_eq!(duration(59_999), "59 s");
        assert_eq!(duration(185_000), "3 min 5 s");
        assert_eq!(count(999), "999");
        assert_eq!(count(1250), "1.2k");
        assert_eq!(dollars(0.01234), "$0.0123");
        assert_eq!(cut("añb", 2), "añ…");
        assert_eq!(cut("añ", 2), "añ");
    }
}
