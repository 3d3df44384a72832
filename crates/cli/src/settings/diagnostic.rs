//! Errors in the settings file: the place, the mistake, and a suggestion.

use std::ops::Range;

/// One line: the place, the mistake, and the nearest valid word.
pub(super) fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = explain(error.message());
    match error.span() {
        Some(span) => format!("{}: {message}", place(text, &span)),
        None => message,
    }
}

fn place(text: &str, span: &Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}")
}

/// Serde says: unknown field `X`, expected one of `A`, `B`. Other messages pass unchanged.
fn explain(message: &str) -> String {
    let unknown = [("unknown field ", "key"), ("unknown variant ", "value")];
    let found = unknown.iter().find_map(|(start, what)| {
        Some((message.strip_prefix(start)?.split_once("expected")?, *what))
    });
    let Some(((given, known), what)) = found else {
        return message.trim_end().replace('\n', "; ");
    };
    let given = quoted(given).next().unwrap_or_default();
    let known: Vec<&str> = quoted(known).collect();
    match nearest(given, &known) {
        Some(meant) => format!("unknown {what} `{given}`; did you mean `{meant}`?"),
        None => format!("unknown {what} `{given}`; known here: {}", known.join(", ")),
    }
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The most similar word, if it is similar enough.
pub(super) fn nearest<'w>(given: &str, known: &[&'w str]) -> Option<&'w str> {
    let given = given.to_lowercase();
    let distance = |word: &str| strsim::damerau_levenshtein(&given, &word.to_lowercase());
    let (found, word) = known.iter().map(|word| (distance(word), *word)).min()?;
    (found <= given.chars().count().max(3) / 3).then_some(word)
}
