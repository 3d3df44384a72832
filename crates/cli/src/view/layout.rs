//! Layout: lines with indentation, colours and wrapping. Agents' text is escaped first.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) color: bool,
}

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
    /// The text in this colour, if colours are wanted.
    pub(crate) fn on(self, text: &str, is_wanted: bool) -> Cow<'_, str> {
        match self.code().filter(|_| is_wanted) {
            Some(code) => Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m")),
            None => Cow::Borrowed(text),
        }
    }

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

/// Lines of one section have no blank line between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Head,
    Text,
    Thinking,
    Work,
    End,
}

/// Output that has not been written yet.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    style: Style,
    /// Columns before each line.
    pub(crate) indent: usize,
    /// Columns of the terminal; longer lines wrap at words.
    width: Option<usize>,
    /// Columns used on the current line.
    column: usize,
    /// The start of a continuation line.
    hang: String,
    /// Blanks and the word after them. The word is placed when its end is known.
    gap: String,
    word: Vec<(Ink, String)>,
    /// The current colour.
    ink: Ink,
    is_mid_line: bool,
    section: Option<Section>,
}

/// Narrower terminals are treated as if they had this many columns.
const NARROWEST: usize = 20;

impl Page {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            text: String::new(),
            style,
            indent: 0,
            width: None,
            column: 0,
            hang: String::new(),
            gap: String::new(),
            word: Vec::new(),
            ink: Ink::Plain,
            is_mid_line: false,
            section: None,
        }
    }

    /// Sets the columns of the terminal; without a terminal nothing wraps.
    pub(crate) fn set_width(&mut self, width: Option<usize>) {
        if width.is_none() {
            self.place_word();
        }
        self.width = width.map(|width| width.max(NARROWEST));
    }

    /// Takes the output.
    pub(crate) fn take(&mut self) -> String {
        self.switch(Ink::Plain);
        std::mem::take(&mut self.text)
    }

    /// Whether the last line is open.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.is_mid_line
    }

    /// Starts a section, unless it is the current one.
    pub(crate) fn section(&mut self, section: Section) {
        self.end_line();
        if self.section.is_some_and(|last| last != section) {
            self.text.push('\n');
        }
        self.section = Some(section);
    }

    /// Starts a new paragraph, even in the same section.
    pub(crate) fn paragraph(&mut self, section: Section) {
        self.end_line();
        if self.section.is_some() {
            self.text.push('\n');
        }
        self.section = Some(section);
    }

    pub(crate) fn end_line(&mut self) {
        if self.is_mid_line {
            self.break_line();
        }
    }

    /// Adds text of any number of lines, with a mark before each; the last line may stay open.
    pub(crate) fn marked(&mut self, ink: Ink, text: &str, mark: Option<&str>) {
        for piece in text.split_inclusive('\n') {
            let (piece, ends) = match piece.strip_suffix('\n') {
                Some(piece) => (piece.strip_suffix('\r').unwrap_or(piece), true),
                None => (piece, false),
            };
            if !piece.is_empty() {
                if !self.is_mid_line {
                    self.begin_line(mark.unwrap_or_default());
                }
                self.piece(ink, &clean(piece));
            }
            if ends {
                self.break_line();
            }
        }
    }

    /// Adds a whole line.
    pub(crate) fn line(&mut self, pieces: &[(Ink, &str)]) {
        self.end_line();
        let mut pieces = pieces.iter().filter(|(_, text)| !text.is_empty()).peekable();
        if let Some((_, first)) = pieces.peek() {
            self.begin_line("");
            let blanks = first.len() - first.trim_start_matches(' ').len();
            self.hang = " ".repeat(blanks + 2);
        }
        for (ink, text) in pieces {
            self.piece(*ink, &on_one_line(text));
        }
        self.break_line();
    }

    fn begin_line(&mut self, mark: &str) {
        self.text.extend(std::iter::repeat_n(' ', self.indent));
        self.column = self.indent;
        self.is_mid_line = true;
        mark.clone_into(&mut self.hang);
        self.write(Ink::Dim, mark);
    }

    fn break_line(&mut self) {
        self.place_word();
        let gap = std::mem::take(&mut self.gap);
        if self.width.is_none_or(|width| after(self.column, &gap) <= width) {
            self.write(Ink::Plain, &gap);
        }
        self.switch(Ink::Plain);
        self.is_mid_line = false;
        self.text.push('\n');
    }

    fn piece(&mut self, ink: Ink, text: &str) {
        if self.width.is_none() {
            return self.write(ink, text);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let blanks = rest.len() - rest.trim_start_matches(BLANKS).len();
            let (gap, after) = rest.split_at(blanks);
            if !gap.is_empty() {
                self.place_word();
                self.gap.push_str(gap);
            }
            let end = after.find(BLANKS).unwrap_or(after.len());
            let (word, after) = after.split_at(end);
            match self.word.last_mut() {
                Some((last, text)) if *last == ink => text.push_str(word),
                _ if word.is_empty() => {}
                _ => self.word.push((ink, word.to_owned())),
            }
            rest = after;
        }
    }

    /// Puts the word on the line, or on the next one if it does not fit.
    fn place_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let gap = std::mem::take(&mut self.gap);
        let size: usize = word.iter().map(|(_, text)| text.width()).sum();
        let start = self.indent + self.hang.width();
        let end = after(self.column, &gap) + size;
        if self.column > start && self.width.is_some_and(|width| end > width) {
            self.switch(Ink::Plain);
            self.text.push('\n');
            let hang = self.hang.clone();
            self.begin_line(&hang);
        } else {
            self.write(Ink::Plain, &gap);
        }
        for (ink, text) in word {
            self.write(ink, &text);
        }
    }

    fn write(&mut self, ink: Ink, text: &str) {
        self.column = after(self.column, text);
        // Blanks have no colour, so the colour stays on between words.
        if !text.trim_matches(BLANKS).is_empty() {
            self.switch(ink);
        }
        self.text.push_str(text);
    }

    fn switch(&mut self, ink: Ink) {
        if !self.style.color || self.ink == ink {
            return;
        }
        if self.ink != Ink::Plain {
            self.text.push_str("\x1b[0m");
        }
        if let Some(code) = ink.code() {
            let _ = write!(self.text, "\x1b[{code}m");
        }
        self.ink = ink;
    }
}

/// What separates words.
const BLANKS: [char; 2] = [' ', '\t'];

/// The column after the text. Tab stops are eight columns apart.
fn after(column: usize, text: &str) -> usize {
    text.split_inclusive('\t').fold(column, |column, piece| match piece.strip_suffix('\t') {
        Some(piece) => (column + piece.width()) / 8 * 8 + 8,
        None => column + piece.width(),
    })
}

/// Escapes control characters and invisible characters. Tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    escape(text, |char| char != '\t' && is_hidden(char))
}

/// The same; line breaks and tabs too.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// The same with JSON escapes: JSON stays JSON with the same meaning. Line breaks stay.
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

/// Control characters, characters that reorder text, and invisible characters that can hide text.
/// The emoji joiner is not one of them.
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

    fn wrapped(width: usize, indent: usize, pieces: &[&str], mark: Option<&str>) -> String {
        let mut page = Page::new(Style::default());
        page.set_width(Some(width));
        page.indent = indent;
        for piece in pieces {
            page.marked(Ink::Plain, piece, mark);
        }
        page.end_line();
        page.take()
    }

    #[test]
    fn text_wraps_at_words_however_it_is_cut() {
        let text = "The quick brown fox jumps over the lazy dog.\n\n    let x = 1;\nend";
        let expected =
            "  The quick brown\n  fox jumps over the\n  lazy dog.\n\n      let x = 1;\n  end\n";
        assert_eq!(wrapped(20, 2, &[text], None), expected);
        for size in 1..9 {
            let chars: Vec<char> = text.chars().collect();
            let cut: Vec<String> = chars.chunks(size).map(|part| part.iter().collect()).collect();
            let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
            assert_eq!(wrapped(20, 2, &cut, None), expected, "pieces of {size}");
        }
    }

    #[test]
    fn marks_stand_before_wrapped_lines_and_wide_characters_count_twice() {
        let thought = wrapped(20, 0, &["one two three four five six"], Some("┊ "));
        assert_eq!(thought, "┊ one two three four\n┊ five six\n");
        assert_eq!(wrapped(20, 0, &["漢字漢字 漢字漢字 漢字"], None), "漢字漢字 漢字漢字\n漢字\n");
        assert_eq!(wrapped(20, 0, &["1\t2\t3\t4"], None), "1\t2\t3\n4\n");
        let long = "x".repeat(50);
        assert_eq!(wrapped(20, 0, &[&format!("a {long} b")], None), format!("a\n{long}\nb\n"));
    }

    #[test]
    fn whole_lines_wrap_with_a_hanging_indent_and_follow_a_resize() {
        let mut page = Page::new(Style { color: true });
        page.set_width(Some(24));
        let pieces = [(Ink::Yellow, "  "), (Ink::Yellow, "[y] allow  [n] deny  [i] stop")];
        page.line(&pieces);
        page.set_width(Some(60));
        page.line(&pieces);
        let (on, off) = ("\x1b[33m", "\x1b[0m");
        let narrow = format!("  {on}[y] allow  [n] deny{off}\n    {on}[i] stop{off}\n");
        let whole = format!("  {on}[y] allow  [n] deny  [i] stop{off}\n");
        assert_eq!(page.take(), narrow + &whole);
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
