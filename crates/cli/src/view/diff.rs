//! Diffs with line numbers and colours.

use std::time::Duration;

use similar::TextDiff;

use super::layout::{Ink, Page};
use super::numbers;

/// How long to search for a minimal diff.
const SEARCH: Duration = Duration::from_millis(200);

/// Longer lines are cut.
const LINE_LIMIT: usize = 500;

/// A unified diff of two texts. For a passage, the line numbers in its file are unknown.
pub(crate) fn of_texts(before: &str, after: &str, is_passage: bool) -> String {
    let diff = TextDiff::configure().timeout(SEARCH).diff_lines(before, after);
    let text = diff.unified_diff().context_radius(3).missing_newline_hint(false).to_string();
    if !is_passage {
        return text;
    }
    let without_place = |line: &str| match line.starts_with("@@") {
        true => "@@\n".to_owned(),
        false => line.to_owned(),
    };
    text.split_inclusive('\n').map(without_place).collect()
}

/// How many lines a diff adds and removes.
pub(crate) fn size(diff: &str) -> (usize, usize) {
    let rows = rows(diff);
    let count = |sign| rows.iter().filter(|row| row.sign == sign).count();
    (count('+'), count('-'))
}

/// Shows at most `limit` lines of a diff.
pub(crate) fn show(page: &mut Page, diff: &str, limit: usize) {
    let rows = rows(diff);
    let width =
        rows.iter().filter_map(|row| row.number).max().map_or(0, |most| most.to_string().len());
    for row in rows.iter().take(limit) {
        let number = match (row.number, width) {
            (_, 0) => String::new(),
            (Some(number), _) => format!("{number:>width$} "),
            (None, _) => " ".repeat(width + 1),
        };
        let ink = match row.sign {
            '+' => Ink::Green,
            '-' => Ink::Red,
            _ => Ink::Dim,
        };
        let text = format!("{} {}", row.sign, numbers::cut(row.text, LINE_LIMIT));
        page.line(&[(Ink::Dim, &number), (ink, text.trim_end())]);
    }
    if let Some(more) = rows.len().checked_sub(limit).filter(|more| *more > 0) {
        page.line(&[(Ink::Dim, &numbers::more(more))]);
    }
}

struct Row<'d> {
    sign: char,
    number: Option<usize>,
    text: &'d str,
}

/// The lines of the hunks, without the file names before them.
fn rows(diff: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let (mut old, mut new) = (None, None);
    let mut in_hunk = false;
    for line in diff.lines() {
        if let Some(place) = line.strip_prefix("@@") {
            if !rows.is_empty() {
                rows.push(Row { sign: '⋮', number: None, text: "" });
            }
            in_hunk = true;
            (old, new) = (start(place, '-'), start(place, '+'));
            continue;
        }
        if line.starts_with("diff --git ") {
            in_hunk = false;
        }
        if !in_hunk {
            continue;
        }
        let mut chars = line.chars();
        let sign = chars.next().unwrap_or(' ');
        let number = match sign {
            '+' => step(&mut new),
            '-' => step(&mut old),
            ' ' => {
                step(&mut old);
                step(&mut new)
            }
            _ => continue,
        };
        rows.push(Row { sign, number, text: chars.as_str() });
    }
    rows
}

/// The number after the sign in ` -1,3 +1,4 @@`.
fn start(place: &str, sign: char) -> Option<usize> {
    let (_, after) = place.split_once(sign)?;
    let digits = after.split(|char: char| !char.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn step(number: &mut Option<usize>) -> Option<usize> {
    let now = *number;
    *number = now.map(|number| number + 1);
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::layout::Style;

    fn shown(diff: &str, limit: usize) -> String {
        let mut page = Page::new(Style::default());
        show(&mut page, diff, limit);
        page.take()
    }

    #[test]
    fn lines_have_their_numbers() {
        let after = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\neleven\n";
        let diff = of_texts("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", after, false);
        assert_eq!(
            shown(&diff, 100),
            " 1   1\n 2   2\n 3 - 3\n 3 + three\n 4   4\n 5   5\n 6   6\n   ⋮\n 8   8\n 9   9\n10   10\n11 - 11\n11 + eleven\n"
        );
        assert_eq!(size(&diff), (2, 2));
    }

    #[test]
    fn a_passage_has_none() {
        assert_eq!(shown(&of_texts("a\n", "b", true), 9), "- a\n+ b\n");
    }

    #[test]
    fn what_is_long_is_cut() {
        let text: String = (0..9).map(|line| format!("{line}\n")).collect();
        assert_eq!(shown(&of_texts("", &text, false), 2), "1 + 0\n2 + 1\n… 7 more lines\n");
    }

    #[test]
    fn a_line_that_looks_like_a_header_is_a_line() {
        assert_eq!(shown("--- a\n+++ b\n@@ -1 +1 @@\n--- x\n+++ y\n", 9), "1 - -- x\n1 + ++ y\n");
    }
}
