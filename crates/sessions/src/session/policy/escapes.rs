//! The options by which programs that are thought to read write files or run others: a rule that ends
//! in `*` does not cover them. docs/policy.md shows the table; a test compares it.

mod git;
pub(super) mod sed;
mod table;

use super::shell::base;

pub use git::CONFIG_KEYS;
pub use table::{ESCAPES, Escape, WRAPPERS};

/// A word of a command, and whether the rule names it.
type Word<'a> = (&'a str, bool);

/// Whether one of the words after the first `covered` lets the program, or one that it starts, write
/// a file or run another program.
pub(super) fn escapes(words: &[String], covered: usize) -> bool {
    let named = words.iter().enumerate().map(|(at, word)| (word.as_str(), at < covered));
    let Some(program) = words.first() else { return false };
    if !is_wrapper(base(program)) {
        return program_escapes(&named.collect::<Vec<_>>());
    }
    // A wrapper takes the program's words as they are, or all in one.
    let split: Vec<Word<'_>> = named
        .flat_map(|(word, covered)| word.split_ascii_whitespace().map(move |word| (word, covered)))
        .collect();
    let programs = split.iter().enumerate().filter_map(|(at, (word, covered))| {
        let name = wrapped(word)?;
        let mut command = vec![(name, *covered)];
        command.extend(split.get(at + 1..).unwrap_or_default());
        Some(command)
    });
    let mut programs = programs.take(PROGRAM_LIMIT + 1).collect::<Vec<_>>();
    programs.len() > PROGRAM_LIMIT || programs.iter_mut().any(|command| program_escapes(command))
}

/// Options that are no short form of one of the table.
const WHOLE: &[&str] = &["cc", "checkpoint", "cookie", "file", "global", "list", "ssl", "to"];

/// More programs behind one wrapper are not looked at.
const PROGRAM_LIMIT: usize = 16;

/// Whether a program runs the program that its arguments name.
pub(super) fn is_wrapper(program: &str) -> bool {
    WRAPPERS.contains(&program)
}

/// The program that a word behind a wrapper may name, even glued to an option: `env -Sfind`.
fn wrapped(word: &str) -> Option<&str> {
    let is_known = |word: &str| {
        let name = canonical(base(word));
        matches!(name, "git" | "sed") || ESCAPES.iter().any(|escape| escape.program == name)
    };
    // `--split-string=find`, too.
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

/// The name that the table has for a program that is installed under another.
fn canonical(name: &str) -> &str {
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

fn program_escapes(words: &[Word<'_>]) -> bool {
    let Some(((program, _), rest)) = words.split_first() else { return false };
    let name = canonical(base(program));
    let given = || rest.iter().filter(|(_, covered)| !covered).map(|(word, _)| *word);
    let by_form = match name {
        "git" => return git::escapes(rest),
        "sed" => return sed::escapes(rest),
        // A second operand is the file to write.
        "uniq" => given().next().is_some() && operands(rest, "fsw") > 1,
        "xxd" => given().next().is_some() && operands(rest, "cglnosR") > 1,
        // Anything but a format sets the clock.
        "date" => given()
            .any(|word| word.len() >= 8 && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')),
        // A program text that loads an extension.
        "awk" => given().any(|word| word.contains('@')),
        // A command for the pager; a line, a pattern and the end are none.
        "less" => given().any(|word| {
            word.strip_prefix('+').is_some_and(|command| {
                !command.bytes().all(|b| b.is_ascii_digit())
                    && !command.starts_with('/')
                    && !matches!(command, "G" | "F")
            })
        }),
        // These read more options from a file.
        "addr2line" | "ar" | "c++filt" | "gprof" | "nm" | "objcopy" | "objdump" | "ranlib"
        | "readelf" | "size" | "strings" | "strip" => given().any(|word| word.starts_with('@')),
        // The loader that a file names is run.
        "ldd" => given().any(|word| !word.starts_with('-') && !is_installed(word)),
        // A reader or a writer in Lua.
        "pandoc" => given().any(|word| word.ends_with(".lua")),
        // Its own commands run programs and write files; these only show.
        "sqlite3" => given().any(|word| {
            let command = word.split(' ').next().unwrap_or_default();
            word.starts_with('.') && !word.contains('/') && !SQLITE_SHOWS.contains(&command)
        }),
        // An alias and an extension are programs.
        "gh" => rest.first().is_some_and(|(word, covered)| {
            !covered && matches!(*word, "alias" | "config" | "ext" | "extension" | "extensions")
        }),
        "tar" => tar(rest),
        // What follows is for another program.
        "cargo" if leads_out(rest, "--manifest-path") => true,
        "npm" | "cargo" => return has_option(name, given().take_while(|word| *word != "--")),
        // Behind the host stands what runs there.
        "ssh" => return has_option(name, given().take_while(|word| word.starts_with('-'))),
        "make" => given().any(|word| {
            let variable = word
                .split_once('=')
                .map(|(variable, _)| variable.trim_end_matches([':', '+', '?']));
            variable
                .is_some_and(|variable| variable.contains("SHELL") || variable.starts_with("MAKE"))
        }),
        "go" => go(rest),
        _ => false,
    };
    by_form || has_option(name, given())
}

/// Commands of sqlite3's own that only show something.
const SQLITE_SHOWS: &[&str] = &[
    ".databases",
    ".dump",
    ".fullschema",
    ".headers",
    ".help",
    ".indexes",
    ".mode",
    ".schema",
    ".show",
    ".tables",
];

/// Whether a path lies where programs and libraries are installed.
fn is_installed(path: &str) -> bool {
    let places = ["/bin/", "/sbin/", "/lib/", "/lib64/", "/usr/"];
    places.iter().any(|place| path.starts_with(place)) && !path.contains("..")
}

/// Variables that `go env -w` sets, a linker in the flags for one, and what a test run writes. To build a
/// program is to write it.
fn go(words: &[Word<'_>]) -> bool {
    let is_command = |name: &str| words.iter().any(|(word, _)| *word == name);
    let (sets, builds) = (is_command("env"), is_command("build"));
    words.iter().filter(|(_, covered)| !covered).any(|(word, _)| {
        let flag = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        let is_flag = word.starts_with('-');
        let writes = ["profile", "trace", "dir"].iter().any(|end| flag.ends_with(end));
        (sets && *word == "-w")
            || word.contains("-extld")
            || (is_flag && flag == "o" && !builds)
            || (is_flag && flag.starts_with("test.") && writes)
    })
}

/// Whether a word is an option of the table's row for this program.
fn has_option<'w>(program: &str, mut words: impl Iterator<Item = &'w str>) -> bool {
    let Some(escape) = ESCAPES.iter().find(|escape| escape.program == program) else {
        return false;
    };
    words.any(|word| escape.options.iter().any(|option| is(word, option, escape.valued)))
}

/// Whether the value of that option is a path that leads out of the current directory.
fn leads_out(words: &[Word<'_>], option: &str) -> bool {
    words.iter().enumerate().any(|(at, (word, covered))| {
        let value = match word.strip_prefix(option) {
            Some("") => words.get(at + 1).map(|(value, _)| *value),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        !covered && value.is_some_and(|path| path.starts_with(['/', '~']) || path.contains(".."))
    })
}

/// How many words are neither options nor the values of these letters.
fn operands(words: &[Word<'_>], valued: &str) -> usize {
    let mut count = 0;
    let mut is_value = false;
    for (word, _) in words {
        match word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            Some(letters) => is_value = letters.len() == 1 && valued.contains(letters),
            None if is_value => is_value = false,
            None => count += 1,
        }
    }
    count
}

/// The first word of tar may be letters without a dash; a name with a colon is on another machine, and
/// read by a program.
fn tar(words: &[Word<'_>]) -> bool {
    let old = words.first().filter(|(word, covered)| !covered && !word.starts_with('-'));
    old.is_some_and(|(letters, _)| letters.contains(['I', 'F', 'T', 'g']))
        || words.iter().any(|(word, covered)| {
            let name = word.strip_prefix("--file=").unwrap_or(word);
            let host = name.split_once(':').map(|(host, _)| host);
            !covered && host.is_some_and(|host| !host.contains('/') && !host.starts_with("--"))
        })
}

/// Long options may be shortened; short ones may stand together, or with their value: no letter
/// behind one that takes a value is an option.
fn is(word: &str, option: &str, valued: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        let name = word.strip_prefix("--").and_then(|word| word.split('=').next());
        // A name of its own is no short form: tar has `--file` and `--files-from`.
        let is_own = |name: &str| WHOLE.contains(&name) && long != name;
        return name
            .is_some_and(|name| !name.is_empty() && long.starts_with(name) && !is_own(name));
    }
    let Some(letters) = word.strip_prefix('-') else { return word == option };
    let Some(own) = option.strip_prefix('-') else { return false };
    if own.len() > 1 {
        // Go takes two dashes and a value too.
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
