//! Shell text: read exactly or not at all; and which words it mentions, however it is quoted.

/// These ask wherever they stand, in quotes too: a shell acts on them, and so do programs that hand
/// their arguments to another shell (make, ssh, npm).
const HARD: &str = ";&|<>(){}$`\\!";

/// Beside letters and digits, what stands for itself without quotes in sh, bash and zsh.
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

/// The words of one simple command, exactly as sh, bash and zsh with their default options read
/// them; `None` if the text is anything else or in any doubt.
pub(super) fn words(text: &str) -> Option<Vec<String>> {
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
            // The program's name is never quoted but to hide it.
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

/// The command that a shell is started for: `bash -lc X` and its like, exactly.
pub(super) fn unwrapped(words: &[String]) -> Option<&str> {
    let [shell, option, text] = words else { return None };
    let name = ["/bin/", "/usr/bin/"].iter().find_map(|place| shell.strip_prefix(place));
    let is_shell = matches!(name.unwrap_or(shell), "bash" | "sh" | "zsh");
    (is_shell && matches!(option.as_str(), "-lc" | "-c")).then_some(text)
}

/// Words as one text that means these words again.
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

/// Whether a text mentions a denied command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// Its words stand there one after the other.
    Plain,
    /// Its words but the options stand there in their order: it may be the same in other words.
    Possible,
    /// Not at all.
    None,
}

/// Looks for a denied command anywhere in a text, whatever quotes and separators it has.
pub(super) fn mentions(text: &str, denied: &[String]) -> Mention {
    let said = tokens(text);
    let denied = tokens(&denied.join(" "));
    let Some((program, rest)) = denied.split_first() else { return Mention::None };
    let program = base(program);
    let is_program = |token: &String| base(token).eq_ignore_ascii_case(program);
    let starts = || said.iter().enumerate().filter(|(_, token)| is_program(token));
    let after = |at: usize| said.get(at + 1..).unwrap_or_default();
    if starts().any(|(at, _)| after(at).starts_with(rest)) {
        return Mention::Plain;
    }
    let possible = starts().any(|(at, _)| {
        let mut later = after(at).iter();
        let mut wanted = rest.iter().filter(|word| !word.starts_with('-'));
        wanted.all(|word| later.any(|token| token == word))
    });
    if possible { Mention::Possible } else { Mention::None }
}

fn base(token: &str) -> &str {
    token.rsplit('/').next().unwrap_or(token)
}

fn tokens(text: &str) -> Vec<String> {
    let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let splits = |c: char| c == '=' || HARD.contains(c) || c.is_whitespace() || is_hidden(c);
    bare.split(splits).filter(|token| !token.is_empty()).map(str::to_owned).collect()
}

/// Control characters, spaces other than the space, and what is not seen at all.
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
