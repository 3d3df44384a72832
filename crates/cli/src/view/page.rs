//! The page: lines with their indentation and ink. What agents say is made harmless before it stands
//! on one.

use std::borrow::Cow;
use std::fmt::Write as _;

/// How a page looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether escape sequences may be used.
    pub(crate) color: bool,
}

/// The colour of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Ink {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Dim => Some("2"),
            Self::Bold => Some("1"),
            Self::Red => Some("31"),
            Self::Green => Some("32"),
            Self::Yellow => Some("33"),
            Self::Cyan => Some("36"),
        }
    }
}

/// What stands together without a blank line between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Head,
    Text,
    Thinking,
    Work,
    End,
}

/// Lines on their way to a reader.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    style: Style,
    /// Columns before each line.
    pub(crate) indent: usize,
    is_mid_line: bool,
    section: Option<Section>,
}

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self { text: String::new(), style, indent: 0, is_mid_line: false, section: None }
    }

    /// What has gathered.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Whether the last line is not ended.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.is_mid_line
    }

    /// Begins another section, unless it is the same.
    pub(crate) fn section(&mut self, section: Section) {
        self.end_line();
        if self.section.is_some_and(|last| last != section) {
            self.text.push('\n');
        }
        self.section = Some(section);
    }

    /// Begins another section, or the same anew.
    pub(crate) fn paragraph(&mut self, section: Section) {
        self.end_line();
        if self.section.is_some() {
            self.text.push('\n');
        }
        self.section = Some(section);
    }

    pub(crate) fn end_line(&mut self) {
        if std::mem::take(&mut self.is_mid_line) {
            self.text.push('\n');
        }
    }

    /// Text that may have several lines and end within one, with a mark before each line.
    pub(crate) fn marked(&mut self, ink: Ink, text: &str, mark: Option<&str>) {
        for piece in text.split_inclusive('\n') {
            let (piece, ends) = match piece.strip_suffix('\n') {
                Some(piece) => (piece.strip_suffix('\r').unwrap_or(piece), true),
                None => (piece, false),
            };
            if let Some(mark) = mark.filter(|_| !self.is_mid_line && !piece.is_empty()) {
                self.piece(Ink::Dim, mark);
            }
            if !piece.is_empty() {
                self.piece(ink, &clean(piece));
            }
            if ends {
                self.is_mid_line = false;
                self.text.push('\n');
            }
        }
    }

    /// One whole line.
    pub(crate) fn line(&mut self, pieces: &[(Ink, &str)]) {
        self.end_line();
        for (ink, text) in pieces {
            if !text.is_empty() {
                self.piece(*ink, &on_one_line(text));
            }
        }
        self.is_mid_line = false;
        self.text.push('\n');
    }

    fn piece(&mut self, ink: Ink, text: &str) {
        if !self.is_mid_line {
            self.text.extend(std::iter::repeat_n(' ', self.indent));
            self.is_mid_line = true;
        }
        match ink.code().filter(|_| self.style.color) {
            Some(code) => {
                let _ = write!(self.text, "\x1b[{code}m{text}\x1b[0m");
            }
            None => self.text.push_str(text),
        }
    }
}

/// The text with everything shown escaped that drives a terminal, or that the eye does not see.
/// Tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    escape(text, |char| char != '\t' && is_hidden(char))
}

/// The same, for what must stay on its line.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// The same by the escapes of JSON: what was JSON still is, and says the same. Line breaks stay.
pub(crate) fn as_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |char: char| !matches!(char, '\t' | '\n') && is_hidden(char);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match is_escaped(char) {
            false => shown.push(char),
            true => char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(shown, "\\u{unit:04x}");
            }),
        }
    }
    Cow::Owned(shown)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            _ if !is_escaped(char) => shown.push(char),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push(' '),
            '\r' => shown.push_str("\\r"),
            '\0'..='\u{ff}' => {
                let _ = write!(shown, "\\x{:02x}", u32::from(char));
            }
            _ => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(char));
            }
        }
    }
    Cow::Owned(shown)
}

/// Control characters; marks that reorder text; characters without a shape, behind which text can be
/// hidden. The joiner of emoji is none of these.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_drives_the_terminal() {
        let hostile = "a\x1b[31mb\x07\u{9b}0m\u{202e}c\u{2066}d\re\tf\u{200b}";
        assert_eq!(
            clean(hostile),
            r"a\x1b[31mb\x07\x9b0m\u{202e}c\u{2066}d\re".to_owned() + "\tf\\u{200b}"
        );
        assert_eq!(on_one_line("a\nb\tc"), "a\\nb c");
        let plain = "héllo 👩‍👩‍👧 שלום";
        assert!(matches!(clean(plain), Cow::Borrowed(_)));
    }

    #[test]
    fn json_that_is_shown_is_still_json() {
        let hostile = "{\"a\":\"\u{202e}x\u{7f}\u{9b}31m\u{e0041}\"}\n";
        let shown = as_json(hostile);
        assert_eq!(shown, "{\"a\":\"\\u202ex\\u007f\\u009b31m\\udb40\\udc41\"}\n");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        assert_eq!(read(&shown), read(hostile));
        assert!(matches!(as_json("{\"a\":\"é\"}"), Cow::Borrowed(_)));
    }

    #[test]
    fn indentation_stands_before_every_line_but_blank_ones() {
        let mut page = Page::new(Style::default());
        page.indent = 2;
        page.marked(Ink::Plain, "a\r\n\nb", None);
        page.marked(Ink::Plain, "c", Some("> "));
        page.end_line();
        assert_eq!(page.take(), "  a\n\n  bc\n");
    }
}
