//! Formats for people: times, money, sizes, and untrusted text.

use std::borrow::Cow;
use std::io;

use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::print;
use crate::view::layout::{self, Ink};
pub(crate) use crate::view::numbers::dollars;

/// Shown length of a session id. Every command accepts such a prefix.
const SHORT_ID: usize = 8;

/// Colours for stdout, if it should have any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn stdout() -> Self {
        Self { on: print::has_colour(&io::stdout()) }
    }

    pub(crate) fn bold(self, text: &str) -> Cow<'_, str> {
        Ink::Bold.on(text, self.on)
    }

    pub(crate) fn dim(self, text: &str) -> Cow<'_, str> {
        Ink::Dim.on(text, self.on)
    }

    pub(crate) fn red(self, text: &str) -> Cow<'_, str> {
        Ink::Red.on(text, self.on)
    }

    pub(crate) fn green(self, text: &str) -> Cow<'_, str> {
        Ink::Green.on(text, self.on)
    }

    pub(crate) fn yellow(self, text: &str) -> Cow<'_, str> {
        Ink::Yellow.on(text, self.on)
    }
}

pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT_ID).unwrap_or(id)
}

/// The age in one unit; empty if the timestamp is invalid.
pub(crate) fn age(timestamp: &str) -> String {
    let Ok(then) = timestamp.parse::<Timestamp>() else { return String::new() };
    let seconds = Timestamp::now().as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub(crate) fn bytes(bytes: u64) -> String {
    let mut unit = "B";
    let mut size = bytes as f64;
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") }
}

/// `1 session`, `2 sessions`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Escapes text of an agent or a user for a terminal. Line breaks stay.
pub(crate) fn harmless(text: &str) -> String {
    let lines = text.split('\n').map(|line| layout::clean(line.strip_suffix('\r').unwrap_or(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The same, on one line.
pub(crate) fn line(text: &str) -> String {
    layout::clean(&text.replace(['\n', '\r'], " ")).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts text to that many columns.
pub(crate) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| match left.checked_sub(c.width().unwrap_or(0)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let mut shown: String = text.chars().take_while(fits).collect();
    if columns > 0 {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// Text wrapped at words, if there is a width. The first line starts at column `start`, further lines
/// at column `hang`. What is in backticks is for copying and stays on one line.
pub(crate) fn wrapped(text: &str, columns: Option<usize>, start: usize, hang: usize) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let mut shown = String::with_capacity(text.len() + 16);
    let mut column = start;
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push('\n');
            column = 0;
        }
        for (number, word) in unbroken(line).into_iter().enumerate() {
            let gap = usize::from(number > 0);
            if gap > 0 && column > hang && column + gap + word.width() > columns {
                shown.push('\n');
                shown.extend(std::iter::repeat_n(' ', hang));
                column = hang;
            } else {
                shown.extend(std::iter::repeat_n(' ', gap));
                column += gap;
            }
            shown.push_str(&word);
            column += word.width();
        }
    }
    shown
}

/// The words of a line; what is in backticks is one word.
fn unbroken(line: &str) -> Vec<Cow<'_, str>> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    let mut is_quoted = false;
    for part in line.split(' ') {
        match words.last_mut().filter(|_| is_quoted) {
            Some(word) => *word = Cow::Owned(format!("{word} {part}")),
            None => words.push(Cow::Borrowed(part)),
        }
        is_quoted ^= part.matches('`').count() % 2 == 1;
    }
    words
}

/// Pads text to that many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// The width of each column of a table.
pub(crate) fn widths<'r, const N: usize>(
    rows: impl IntoIterator<Item = &'r [String; N]>,
) -> [usize; N] {
    rows.into_iter().fold([0; N], |mut widths, row| {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
        widths
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wrap_at_words_and_commands_stay_whole() {
        let text = "no such session; run `agentwire ls --all` to list them";
        assert_eq!(wrapped(text, None, 0, 2), text);
        assert_eq!(
            wrapped(text, Some(24), 0, 2),
            "no such session; run\n  `agentwire ls --all`\n  to list them"
        );
        assert_eq!(wrapped("a b", Some(10), 9, 4), "a\n    b");
        assert_eq!(wrapped("one\n  two", Some(10), 0, 2), "one\n  two");
        let long = "x".repeat(30);
        assert_eq!(wrapped(&format!("a {long}"), Some(10), 0, 2), format!("a {long}"));
    }
}
