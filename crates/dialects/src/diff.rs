//! Builds unified diffs from what an agent reports about a change.

use similar::TextDiff;

/// The largest text that is diffed; for larger ones only `before` and `after` are reported.
const LIMIT: usize = 256 << 10;

pub(crate) fn of_texts(before: &str, after: &str) -> Option<String> {
    if before.len() > LIMIT || after.len() > LIMIT {
        return None;
    }
    Some(TextDiff::from_lines(before, after).unified_diff().context_radius(3).to_string())
}

/// The diff of a passage whose place in the file is not known: a hunk without line numbers.
pub(crate) fn of_passage(before: &str, after: &str) -> String {
    let mut hunk = String::from("@@\n");
    for (sign, text) in [('-', before), ('+', after)] {
        for line in text.lines() {
            hunk.push(sign);
            hunk.push_str(line);
            hunk.push('\n');
        }
    }
    hunk
}
