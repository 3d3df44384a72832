//! Options with which programs that supposedly only read write files or run other programs. A rule that
//! ends in `*` does not cover them. docs/policy.md shows the table; a test compares the two.

mod git;
mod programs;
pub(super) mod sed;
mod table;

use super::shell::{base, is_interpreter, unversioned};

pub use git::CONFIG_KEYS;
pub use table::{EVERYWHERE, FORMATS, OUTSIDE, UNCOVERED_OPTIONS, UncoveredOptions, WRAPPERS};

/// A word of a command, and whether the rule names it.
type Word<'a> = (&'a str, bool);

/// Whether one of the words after the first `covered` lets the program, or one that it starts, write a file
/// or run another program.
pub(super) fn has_side_effect(words: &[String], covered: usize) -> bool {
    let named = words.iter().enumerate().map(|(at, word)| (word.as_str(), at < covered));
    let Some(program) = words.first() else { return false };
    if !is_wrapper(base(program)) {
        return program_has_side_effect(&named.collect::<Vec<_>>());
    }
    // A wrapper gets the program's words separately, or all in one.
    let split: Vec<Word<'_>> = named
        .flat_map(|(word, covered)| word.split_ascii_whitespace().map(move |word| (word, covered)))
        .collect();
    let programs = split.iter().enumerate().filter_map(|(at, (word, covered))| {
        let name = wrapped(word)?;
        let mut command = vec![(name, *covered)];
        command.extend(split.get(at + 1..).unwrap_or_default());
        Some(command)
    });
    let programs = programs.take(PROGRAM_LIMIT + 1).collect::<Vec<_>>();
    programs.len() > PROGRAM_LIMIT
        || programs.iter().any(|command| program_has_side_effect(command))
        || (!runs_own(&split) && writes_anywhere(&given(&split)))
}

/// Options that are not abbreviations of one in the table.
const WHOLE: &[&str] = &[
    "cc",
    "checkpoint",
    "cookie",
    "file",
    "format",
    "global",
    "list",
    "output",
    "rule",
    "ssl",
    "testdox",
    "to",
];

/// More programs after one wrapper are not examined: the command then counts as having a side effect.
const PROGRAM_LIMIT: usize = 16;

/// Whether a program runs the program that its arguments name.
pub(super) fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program) || WRAPPERS.contains(&unversioned(program))
}

/// The program that a word after a wrapper may name, even glued to an option: `env -Sfind`.
fn wrapped(word: &str) -> Option<&str> {
    let is_known = |word: &str| has_row(canonical(base(word)));
    // Also `--split-string=find`.
    let value = word.split_once('=').map(|(_, value)| value);
    if let Some(name) = [Some(word), value].into_iter().flatten().find(|name| is_known(name)) {
        return Some(name);
    }
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    letters
        .char_indices()
        .skip(1)
        .find_map(|(at, _)| letters.get(at..).filter(|rest| is_known(rest)))
}

fn has_row(name: &str) -> bool {
    matches!(name, "git" | "sed") || UNCOVERED_OPTIONS.iter().any(|escape| escape.program == name)
}

/// The table's name for a program that is installed under another name, perhaps with its version.
fn canonical(name: &str) -> &str {
    let known = renamed(name);
    match has_row(known) {
        true => known,
        false => renamed(unversioned(name)),
    }
}

fn renamed(name: &str) -> &str {
    match name {
        "fdfind" => "fd",
        "batcat" => "bat",
        "gfind" => "find",
        "gsed" => "sed",
        "gsort" => "sort",
        "gtar" | "bsdtar" => "tar",
        "gdate" => "date",
        "gshuf" => "shuf",
        "guniq" => "uniq",
        "gsplit" => "split",
        "gradlew" => "gradle",
        "mvnw" | "mvnd" => "mvn",
        "bazelisk" => "bazel",
        "tofu" | "terragrunt" => "terraform",
        // Another `sg` runs a command as a group, so it also counts as a wrapper.
        "sg" => "ast-grep",
        "opengrep" => "semgrep",
        "py.test" => "pytest",
        "vitest" | "mocha" | "vite" | "webpack" | "playwright" => "jest",
        "glab" => "gh",
        "mariadb" => "mysql",
        "mariadb-dump" => "mysqldump",
        "pg_dumpall" => "pg_dump",
        "troff" | "nroff" | "pic" | "gpic" => "groff",
        "neato" | "circo" | "twopi" | "fdp" | "sfdp" => "dot",
        "ncat" | "netcat" => "nc",
        "https" | "xh" | "xhs" => "http",
        "apt-get" | "apt-cache" => "apt",
        "gpg2" => "gpg",
        "ug" | "ugrep+" | "ug+" => "ugrep",
        "gawk" | "mawk" | "nawk" | "original-awk" => "awk",
        "zless" | "more" | "zmore" | "most" => "less",
        "mandoc" | "gman" => "man",
        "pnpm" | "yarn" => "npm",
        "gmake" => "make",
        "pip3" => "pip",
        _ => name,
    }
}

fn given<'w>(words: &[Word<'w>]) -> Vec<&'w str> {
    words.iter().filter(|(_, covered)| !covered).map(|(word, _)| *word).collect()
}

fn program_has_side_effect(words: &[Word<'_>]) -> bool {
    let Some(((program, _), rest)) = words.split_first() else { return false };
    let name = canonical(base(program));
    if let Some(module) = module(name, rest) {
        return program_has_side_effect(&module);
    }
    match name {
        "git" => return git::has_side_effect(rest),
        "sed" => return sed::has_side_effect(rest),
        _ => {}
    }
    let mut given = given(rest);
    if programs::has_side_effect(name, rest, &given) {
        return true;
    }
    let behind = match name {
        // What follows is for another program.
        "npm" | "cargo" | "just" | "task" => given.iter().position(|word| *word == "--"),
        // After the host and more options comes the command that runs there.
        "ssh" => programs::ssh_command(rest).map(|at| uncovered(rest, at)),
        _ => None,
    };
    given.truncate(behind.unwrap_or(given.len()));
    if has_option(name, &given) {
        return true;
    }
    let end = given.iter().position(|word| *word == "--").unwrap_or(given.len());
    given.truncate(end);
    !runs_own(words) && writes_anywhere(&given)
}

/// How many of the first `at` words the rule does not name.
fn uncovered(words: &[Word<'_>], at: usize) -> usize {
    words.iter().take(at).filter(|(_, covered)| !covered).count()
}

/// The module that `python -m` runs as a program, and its words. Letters may come before the `m`, and `W`,
/// `X` and one long option take the next word if theirs ends there.
pub(super) fn module<'w>(program: &str, words: &[Word<'w>]) -> Option<Vec<Word<'w>>> {
    if !program.starts_with("python") && !program.starts_with("pypy") {
        return None;
    }
    let mut rest = words.iter();
    while let Some((word, covered)) = rest.next() {
        let letters = word.strip_prefix('-')?;
        if letters.starts_with('-') {
            if letters == "-check-hash-based-pycs" {
                rest.next();
            }
            continue;
        }
        let Some(at) = letters.find(['c', 'm', 'W', 'X']) else { continue };
        let (letter, glued) = letters.split_at(at).1.split_at(1);
        let more = rest.clone().copied();
        match (letter, glued) {
            ("m", "") => return Some(more.collect()),
            ("m", glued) => return Some([(glued, *covered)].into_iter().chain(more).collect()),
            ("c", _) => return None,
            (_, "") => drop(rest.next()),
            (_, _) => {}
        }
    }
    None
}

/// Programs that build or run what their arguments name. A rule for one grants that to the agent.
const BUILDERS: &[&str] = &["docker", "dotnet", "go", "java", "podman", "webpack"];

/// Whether the words after it are for a script, or say where to write what is built.
fn runs_own(words: &[Word<'_>]) -> bool {
    let is_wrapping = |word: &str| {
        is_wrapper(word) && !BUILDERS.contains(&word)
            || matches!(word, "run" | "exec")
            || word.starts_with('-')
            || word.bytes().all(|b| b.is_ascii_digit() || b".smhd".contains(&b))
    };
    let mut names = words.iter().map(|(word, _)| base(word));
    names
        .find(|name| !is_wrapping(name))
        .is_some_and(|name| is_interpreter(name) || BUILDERS.contains(&name))
}

/// Whether a word is an option that writes a file or runs a program, in any program.
fn writes_anywhere(words: &[&str]) -> bool {
    let plain = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
    let is_known = |name: &str, known: &[&str]| {
        known.iter().any(|known| match known.strip_prefix("--*") {
            // `--no-log-file` switches it off; `-command` alone is a different option.
            Some(end) => {
                let rest = name.strip_suffix(plain(end).as_str());
                let is_complete = !end.starts_with('-');
                rest.is_some_and(|rest| {
                    (is_complete || !rest.is_empty()) && !rest.starts_with("no")
                })
            }
            None => plain(known) == name,
        })
    };
    words.iter().enumerate().any(|(at, word)| {
        // Some programs take long options after one dash, where others read letters.
        let Some(option) = word.strip_prefix('-') else { return false };
        let shortest = if option.starts_with('-') { 3 } else { 6 };
        let name = plain(option.split('=').next().unwrap_or_default());
        let is_output = name.len() >= shortest && "outputfile".starts_with(&name);
        let value = value(word, "--", words.get(at + 1));
        let is_format = FORMATS.contains(&value)
            || ["jsonpath=", "custom-columns="].iter().any(|it| value.starts_with(it));
        (is_output && !is_format)
            || is_known(&name, EVERYWHERE)
            || (is_known(&name, OUTSIDE) && value != "/dev/null" && leads_out(value))
    })
}

/// Whether a word is an option in the table's row for this program.
fn has_option(program: &str, words: &[&str]) -> bool {
    let Some(row) = UNCOVERED_OPTIONS.iter().find(|row| row.program == program) else {
        return false;
    };
    words.iter().enumerate().any(|(at, word)| {
        row.options.split(' ').any(|option| {
            let (option, test) = option.split_once('=').unwrap_or((option, ""));
            let value = || value(word, option, words.get(at + 1));
            is(word, option, row.valued)
                && match test {
                    ".." => leads_out(value()),
                    "/" => value().contains('/'),
                    // Such options name a file to write.
                    _ => !(option.contains('*') && matches!(value(), "stdout" | "stderr")),
                }
        })
    })
}

fn leads_out(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.contains("..")
}

/// The value of an option: in its word, or the next word.
fn value<'w>(word: &'w str, option: &str, next: Option<&&'w str>) -> &'w str {
    let next = next.copied().unwrap_or_default();
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1 && *letter != "-");
    let glued = match letter {
        Some(letter) => word.split_once(letter).map(|(_, value)| value),
        None => word.split_once('=').map(|(_, value)| value).or(Some("")),
    };
    match glued {
        Some("") | None if !word.contains('=') => next,
        glued => glued.unwrap_or_default().trim_start_matches('='),
    }
}

/// Long options may be abbreviated. Short ones may be bundled, or joined with their value: no letter after
/// one that takes a value is an option.
fn is(word: &str, option: &str, valued: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        let name = word.strip_prefix("--").and_then(|word| word.split('=').next());
        if let Some((head, tail)) = long.split_once('*') {
            let rest = name.and_then(|name| name.strip_prefix(head));
            return rest.is_some_and(|rest| rest.ends_with(tail));
        }
        // An option with that exact name is not an abbreviation: tar has `--file` and `--files-from`.
        let is_own = |name: &str| WHOLE.contains(&name) && long != name;
        return name
            .is_some_and(|name| !name.is_empty() && long.starts_with(name) && !is_own(name));
    }
    let Some(letters) = word.strip_prefix('-') else { return word == option };
    let Some(own) = option.strip_prefix('-') else { return false };
    if own.len() > 1 || valued == "*" {
        // Go programs also accept two dashes and a value.
        let name = letters.strip_prefix('-').unwrap_or(letters).split('=').next();
        return name == Some(own);
    }
    if letters.starts_with('-') {
        return false;
    }
    let ends = letters.find(|c| valued.contains(c)).unwrap_or(letters.len());
    letters.get(..ends).is_some_and(|letters| letters.contains(own))
}

#[cfg(test)]
mod tests;
