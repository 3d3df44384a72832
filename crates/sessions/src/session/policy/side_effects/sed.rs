//! Decides which sed scripts only change the text that passes through.

use super::Word;

/// Long options that take no script and touch no file.
const HARMLESS: &[&str] = &[
    "quiet",
    "silent",
    "regexp-extended",
    "separate",
    "unbuffered",
    "null-data",
    "zero-terminated",
    "posix",
    "debug",
    "sandbox",
    "line-length",
    "follow-symlinks",
    "binary",
    "help",
    "version",
];

/// What a script or an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// Changes what is printed.
    Prints,
    /// Reads or writes a file, or reads its script from one.
    Touches,
    /// Runs a command, or is not understood.
    Runs,
}

/// Whether sed's words read or write another file or run a command, beyond what the rule names.
pub(super) fn has_side_effect(words: &[Word<'_>]) -> bool {
    effects(words.iter().copied()).any(|(effect, covered)| !covered && effect != Effect::Prints)
}

/// Whether a script among sed's words may run a command.
pub(in super::super) fn runs(words: &[String]) -> bool {
    let words = words.iter().map(|word| (word.as_str(), false));
    effects(words).any(|(effect, _)| effect == Effect::Runs)
}

/// The effect of each option and each script, and whether the rule names it.
fn effects<'w>(words: impl Iterator<Item = Word<'w>>) -> impl Iterator<Item = (Effect, bool)> {
    let words: Vec<Word<'w>> = words.collect();
    let mut effects = Vec::new();
    let mut operand = None;
    // Some versions stop reading options at the first operand, so it is the script.
    let mut is_first = false;
    let mut has_script = false;
    let mut rest = words.into_iter().peekable();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    while let Some((word, covered)) = rest.next() {
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
            is_first |= operand.is_none() && !has_script;
            operand = operand.or(Some((word, covered)));
            continue;
        };
        if let Some(long) = option.strip_prefix('-') {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if name.is_empty() {
                continue;
            }
            if "expression".starts_with(name) {
                has_script = true;
                let given = value.map(|value| (value, covered)).or_else(|| rest.next());
                effects.extend(given.map(|(text, covered)| (script(text), covered)));
            } else if ["in-place", "file"].iter().any(|long| long.starts_with(name)) {
                has_script |= "file".starts_with(name);
                effects.push((Effect::Touches, covered));
            } else if "line-length".starts_with(name) && value.is_none() {
                rest.next();
            } else if !HARMLESS.iter().any(|long| long.starts_with(name)) {
                effects.push((Effect::Runs, covered));
            }
            continue;
        }
        for (at, letter) in option.char_indices() {
            let after = option.get(at + letter.len_utf8()..).filter(|after| !after.is_empty());
            match letter {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' | 'b' | 'a' => continue,
                'e' => {
                    has_script = true;
                    let given = after.map(|text| (text, covered)).or_else(|| rest.next());
                    effects.extend(given.map(|(text, covered)| (script(text), covered)));
                }
                // GNU sed's takes a number, BSD sed's takes nothing.
                'l' if after.is_none() => drop(rest.next_if(|(word, _)| is_number(word))),
                'l' if after.is_some_and(is_number) => {}
                'i' | 'I' => effects.push((Effect::Touches, covered)),
                'f' => {
                    has_script = true;
                    effects.push((Effect::Touches, covered));
                }
                _ => effects.push((Effect::Runs, covered)),
            }
            break;
        }
    }
    // Without an option for it, the script is the first operand.
    if !has_script || is_first {
        effects.extend(operand.map(|(text, covered)| (script(text), covered)));
    }
    effects.into_iter()
}

/// The effect of a script with one command. The characters that join commands never reach this point.
fn script(text: &str) -> Effect {
    let Some(command) = address(text.trim_start()) else { return Effect::Runs };
    let command = match command.strip_prefix(',') {
        None => Some(command),
        Some(end) => match end.strip_prefix(['+', '~']) {
            Some(count) => Some(count.trim_start_matches(|c: char| c.is_ascii_digit())),
            None => address(end),
        },
    };
    let Some(command) = command.map(str::trim_start) else { return Effect::Runs };
    let mut rest = command.chars();
    let Some(letter) = rest.next() else { return Effect::Prints };
    let rest = rest.as_str();
    let alone = |is_alone: bool| if is_alone { Effect::Prints } else { Effect::Runs };
    match letter {
        'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'z' | '=' | 'F' => {
            alone(rest.trim().is_empty())
        }
        'q' | 'Q' | 'l' | 'L' => alone(rest.trim().bytes().all(|b| b.is_ascii_digit())),
        'b' | 't' | 'T' | ':' => {
            alone(rest.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        }
        // Text to print.
        'a' | 'i' | 'c' => Effect::Prints,
        's' => substitution(rest, |flags| flags.chars().all(|c| "gpiImM0123456789".contains(c))),
        'y' => substitution(rest, str::is_empty),
        'r' | 'R' | 'w' | 'W' => Effect::Touches,
        _ => Effect::Runs,
    }
}

/// What follows an address, if there is one.
fn address(text: &str) -> Option<&str> {
    if let Some(pattern) = text.strip_prefix('/') {
        let end = pattern.find('/')?;
        // Some versions treat the slash literally in brackets, and they differ on where brackets end.
        if [false, true].iter().any(|has_classes| end_of(pattern, *has_classes) != Some(end)) {
            return None;
        }
        let rest = pattern.get(end + 1..)?;
        return Some(rest.trim_start_matches(['I', 'M']).trim_start());
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match rest.strip_prefix('~') {
        Some(step) if rest.len() < text.len() => {
            step.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        _ => rest,
    };
    Some(rest.trim_start())
}

/// Where a pattern ends, if a slash in brackets is literal. `has_classes`: brackets may contain `[:alpha:]`.
fn end_of(pattern: &str, has_classes: bool) -> Option<usize> {
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'/' => return Some(at),
            b'[' => {
                // The first character in brackets is literal.
                let first = at + 1 + usize::from(bytes.get(at + 1) == Some(&b'^'));
                at = first;
                while *bytes.get(at)? != b']' || at == first {
                    let class =
                        bytes.get(at + 1).filter(|_| has_classes && bytes.get(at) == Some(&b'['));
                    at += match class {
                        Some(mark @ (b':' | b'.' | b'=')) => {
                            let inside = bytes.get(at + 2..)?;
                            inside.windows(2).position(|two| two == [*mark, b']'])? + 4
                        }
                        _ => 1,
                    };
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    None
}

/// Three parts between the same character, which occurs nowhere else.
fn substitution(text: &str, are_flags: impl Fn(&str) -> bool) -> Effect {
    let Some(mark) = text.chars().next() else { return Effect::Runs };
    let parts: Vec<&str> = text.split(mark).collect();
    match parts.as_slice() {
        ["", _, _, flags] if are_flags(flags.trim_end()) => Effect::Prints,
        ["", _, _, flags] if !flags.contains('e') && flags.contains('w') => Effect::Touches,
        _ => Effect::Runs,
    }
}
