//! Shell text: parsed exactly or not at all, and searched for words, however they are quoted.

mod hidden;

use hidden::HiddenPrograms;
pub(super) use hidden::{is_interpreter, unversioned};

/// A longer text is not judged: nothing allows it, and a deny rule may fit. A shell cannot be started with
/// more than twice as much.
pub(super) const TEXT_LIMIT: usize = 64 * 1024;

/// These characters ask wherever they occur, even in quotes: a shell acts on them, and so do programs that
/// pass their arguments to another shell (make, ssh, npm).
const HARD: &str = ";&|<>(){}$`\\!";

/// Besides letters and digits, characters that are literal without quotes in sh, bash and zsh.
const PLAIN: &str = "_-./:,@%+=~";

/// Words that make a first word something other than a program.
const RESERVED: &[&str] = &[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "do",
    "done",
    "case",
    "esac",
    "while",
    "until",
    "for",
    "foreach",
    "end",
    "select",
    "repeat",
    "in",
    "function",
    "time",
    "coproc",
    "nocorrect",
    "noglob",
    "exec",
    "command",
    "builtin",
    "eval",
    "source",
    ".",
    "-",
    "always",
];

/// The words of one simple command, exactly as sh, bash and zsh with their default options read them;
/// `None` if the text is anything else or in any doubt.
pub(super) fn words(text: &str) -> Option<Vec<String>> {
    if text.len() > TEXT_LIMIT {
        return None;
    }
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut before = ' ';
    for character in text.chars() {
        if HARD.contains(character) || is_hidden(character) {
            return None;
        }
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            // Nobody quotes a program's name except to hide it.
            (None, '\'' | '"') if words.is_empty() => return None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(character);
            }
            (None, ' ') => words.extend(word.take()),
            (None, _) => {
                let starts = word.is_none();
                let is_plain = character.is_ascii_alphanumeric() || PLAIN.contains(character);
                let expands = match character {
                    '=' => starts || words.is_empty(),
                    '~' => !before.is_ascii_alphanumeric(),
                    _ => false,
                };
                if !is_plain || expands {
                    return None;
                }
                word.get_or_insert_default().push(character);
            }
        }
        before = if quote.is_some() { ' ' } else { character };
    }
    words.extend(word);
    let program = words.first()?;
    let is_program = !RESERVED.contains(&program.as_str()) && !program.starts_with('-');
    (quote.is_none() && is_program).then_some(words)
}

/// The command that a shell is started for: exactly `bash -lc X` and similar forms.
pub(super) fn unwrapped(words: &[String]) -> Option<&str> {
    let [shell, option, text] = words else { return None };
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|place| shell.strip_prefix(place));
    let is_shell = matches!(name.unwrap_or(shell), "bash" | "sh" | "zsh");
    (is_shell && matches!(option.as_str(), "-lc" | "-c")).then_some(text)
}

/// Joins words into a text that parses into the same words again.
pub(super) fn quoted(words: &[String]) -> String {
    let quote = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+".contains(c);
        match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r#"'"'"'"#)),
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// Its words occur one after the other.
    Plain,
    /// It may be the same command, written differently.
    Possible,
    None,
}

/// A command's text, split once for all rules.
#[derive(Debug)]
pub(super) struct CommandText {
    /// `None` if the text is too long to judge.
    tokens: Option<Vec<String>>,
    /// `None` if the command is not parsed exactly.
    hidden_programs: Option<HiddenPrograms>,
}

impl CommandText {
    /// Splits a command. `words` are its words, if it is parsed exactly.
    pub(super) fn new(text: &str, words: Option<&[String]>) -> Self {
        let tokens = (text.len() <= TEXT_LIMIT).then(|| tokens(text));
        Self { tokens, hidden_programs: words.map(HiddenPrograms::of) }
    }

    /// Looks for a denied command anywhere in the text, whatever quotes and separators it has.
    pub(super) fn mentions(&self, denied: &[String]) -> Mention {
        let Some(text_tokens) = &self.tokens else { return Mention::Possible };
        let Some(program) = denied.first().and_then(|word| tokens(word).into_iter().next()) else {
            return Mention::None;
        };
        let program = base(&program);
        let is_program = |token: &str| base(token).eq_ignore_ascii_case(program);
        let resembles = |token: &String| {
            let hidden_programs = self.hidden_programs.as_ref();
            is_program(token)
                || hidden_programs
                    .is_some_and(|hidden_programs| hidden_programs.resembles(token, program))
        };
        let is_hiding =
            self.hidden_programs.as_ref().is_none_or(|hidden_programs| hidden_programs.runs_code);
        let doubt = if is_hiding { Mention::Possible } else { Mention::None };
        let denied = tokens(&denied.join(" "));
        let rest = denied.get(1..).unwrap_or_default();
        let after = |at: usize| text_tokens.get(at + 1..).unwrap_or_default();
        let starts = text_tokens.iter().enumerate().filter(|(_, token)| is_program(token));
        if starts.map(|(at, _)| after(at)).any(|after| after.starts_with(rest)) {
            return Mention::Plain;
        }
        // `git-push` is `git push`.
        let joined = rest.first().map(|word| format!("{program}-{word}"));
        if joined.is_some_and(|joined| text_tokens.iter().any(|token| base(token) == joined)) {
            return Mention::Possible;
        }
        // What follows a later mention also follows the first one.
        let Some(first) = text_tokens.iter().position(resembles) else { return doubt };
        let mut later = after(first).iter();
        let mut wanted = rest.iter().filter(|word| !word.starts_with('-'));
        match wanted.all(|word| later.any(|token| token == word)) {
            true => Mention::Possible,
            false => doubt,
        }
    }
}

/// What changes the directory in which git runs, or names its repository.
const LEADS: &[&str] = &["cd", "chdir", "pushd", "-C", "--git-dir", "--work-tree"];

/// Where a command may lead git, in this order; `None` if that is not clear.
pub(super) fn targets(text: &str) -> Option<Vec<String>> {
    if text.len() > TEXT_LIMIT {
        return None;
    }
    let pieces = pieces(text);
    let mut targets = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let (lead, value) = match piece.split_once('=') {
            Some((lead, value)) => (lead, Some(value)),
            None => (piece.as_str(), None),
        };
        if LEADS.contains(&lead) {
            let rest = pieces.get(at + 1..).unwrap_or_default().iter().map(String::as_str);
            let mut rest = rest.filter(|piece| piece.len() < 2 || !piece.starts_with('-'));
            // `cd` alone goes home.
            let target = value.or_else(|| rest.next()).unwrap_or("~");
            if target == "-" || target.contains(['$', '`', '\\', '*', '?', '[', '{']) {
                return None;
            }
            targets.push(target.to_owned());
        } else if piece.contains(' ') {
            // It may be a command for another shell.
            targets.extend(self::targets(piece)?);
        }
    }
    Some(targets)
}

/// The words of all commands in a text, as far as quotes tell.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => {
                piece.get_or_insert_default();
                quote = Some(character);
            }
            (None, _) if character.is_whitespace() || ";&|<>()".contains(character) => {
                pieces.extend(piece.take());
            }
            _ => piece.get_or_insert_default().push(character),
        }
    }
    pieces.extend(piece);
    pieces
}

pub(super) fn base(token: &str) -> &str {
    token.rsplit('/').next().unwrap_or(token)
}

/// A text without quotes, split wherever a shell or a program may split it.
pub(super) fn tokens(text: &str) -> Vec<String> {
    #[cfg(test)]
    tests::SPLIT.with(|bytes| bytes.set(bytes.get() + text.len()));
    let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let splits = |c: char| c == '=' || HARD.contains(c) || c.is_whitespace() || is_hidden(c);
    bare.split(splits).filter(|token| !token.is_empty()).map(str::to_owned).collect()
}

/// Control characters, whitespace other than the space, and invisible characters.
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control()
        || (character.is_whitespace() && character != ' ')
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffd}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
