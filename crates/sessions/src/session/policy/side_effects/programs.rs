//! What single programs do with more than an option: operands that are written, scripts and statements that
//! run something.

use super::{Word, has_option};

/// Whether the words of that program write a file or run a program. `given` are the words that the rule
/// does not name.
pub(super) fn has_side_effect(program: &str, rest: &[Word<'_>], given: &[&str]) -> bool {
    match program {
        // A second operand is the file to write.
        "uniq" => !given.is_empty() && operands(rest, "fsw") > 1,
        "xxd" => !given.is_empty() && operands(rest, "cglnosR") > 1,
        // Anything other than a format sets the clock.
        "date" => given
            .iter()
            .any(|word| word.len() >= 8 && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')),
        // A program text that loads an extension.
        "awk" => given.iter().any(|word| word.contains('@')),
        // A command for the pager, other than a line number, a pattern or the end.
        "less" => given.iter().any(|word| {
            word.strip_prefix('+').is_some_and(|command| {
                !command.bytes().all(|b| b.is_ascii_digit())
                    && !command.starts_with('/')
                    && !matches!(command, "G" | "F")
            })
        }),
        // These read more options from a file.
        "addr2line" | "ar" | "c++filt" | "gprof" | "nm" | "objcopy" | "objdump" | "ranlib"
        | "readelf" | "size" | "strings" | "strip" => {
            given.iter().any(|word| word.starts_with('@'))
        }
        // ldd runs the loader that a file names.
        "ldd" => given.iter().any(|word| !word.starts_with('-') && !is_installed(word)),
        // A reader or writer in Lua.
        "pandoc" => given.iter().any(|word| word.ends_with(".lua")),
        "sqlite3" => {
            given.iter().any(|word| sqlite_writes(word) || statements(word).any(sql_leaves))
        }
        "psql" => given.iter().any(|word| statements(word).any(sql_leaves)),
        "mysql" => given
            .iter()
            .any(|word| statements(word).any(|it| sql_leaves(it) || is_mysql_command(it))),
        "gh" => extends(rest),
        // A setting that names a file to write.
        "pytest" => given.iter().enumerate().any(|(at, word)| {
            let reports = word.strip_prefix("--cov-report").and_then(|value| match value {
                "" => given.get(at + 1).copied(),
                value => Some(value),
            });
            word.contains("log_file=")
                || word.contains("cache_dir=")
                || reports.is_some_and(|value| value.contains(':'))
        }),
        // A tag with a value is written into the file. Names are case-insensitive.
        "exiftool" => given.iter().filter(|word| word.starts_with('-')).any(|word| {
            let name = word.to_ascii_lowercase();
            let runs = |word: &str| {
                let number = name.strip_prefix(word);
                number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
            };
            let after = name.strip_prefix("-w");
            let writes = after.is_some_and(|rest| !rest.contains(|c: char| c.is_alphabetic()));
            word.contains(['=', '<']) || runs("-if") || runs("-execute") || writes
        }),
        // `FORMAT=FILE` writes the file.
        "syft" | "grype" => given.iter().any(|word| {
            let value = word.strip_prefix("--output=").or_else(|| word.strip_prefix("-o"));
            let value = value.unwrap_or(word).trim_start_matches('=');
            !value.starts_with('-') && value.contains('=')
        }),
        "kubectl" => given.iter().any(|word| word.starts_with("users.")),
        "mvn" | "gradle" => given.iter().any(|word| {
            word.starts_with("-D") && JAVA_RUNS.iter().any(|property| word.contains(property))
        }),
        // What follows is for make or ninja.
        "cmake" => rest.iter().position(|(word, _)| *word == "--").is_some_and(|at| {
            let words = rest.get(at + 1..).unwrap_or_default();
            has_side_effect("make", words, &super::given(words))
                || has_option("make", &super::given(words))
        }),
        "tar" => tar(rest),
        "make" => given.iter().any(|word| {
            let variable = word
                .split_once('=')
                .map(|(variable, _)| variable.trim_end_matches([':', '+', '?']));
            variable
                .is_some_and(|variable| variable.contains("SHELL") || variable.starts_with("MAKE"))
        }),
        "go" => go(rest),
        _ => false,
    }
}

/// Commands of sqlite3 itself that only show something.
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

/// Commands of mysql itself that run a program or write a file.
const MYSQL_COMMANDS: &[&str] = &["system", "source", "tee", "pager", "edit", "delimiter"];

fn is_mysql_command(statement: &str) -> bool {
    let first = statement.split(' ').next().unwrap_or_default().to_ascii_lowercase();
    MYSQL_COMMANDS.contains(&first.as_str())
}

/// Parts of Java properties that make a build run something else.
const JAVA_RUNS: &[&str] = &[
    "ext.class.path",
    "jvm=",
    "jvmargs",
    "java.home",
    "javaagent",
    "agentpath",
    "agentlib",
    "exec.",
    "XX:On",
];

/// What may be the statement in a word: all of it, or what is glued to an option (`-Atcselect`).
fn statements(word: &str) -> impl Iterator<Item = &str> {
    let long = word.strip_prefix("--").and_then(|option| Some(option.split_once('=')?.1));
    let is_short = word.starts_with('-') && !word.starts_with("--");
    let letters = word.match_indices(['c', 'e']).filter(move |_| is_short);
    let glued = letters.filter_map(|(at, _)| word.get(at + 1..));
    [word].into_iter().chain(long).chain(glued).map(str::trim_start)
}

/// Whether it is a command of sqlite3 itself that may run a program or write a file.
fn sqlite_writes(word: &str) -> bool {
    let command = word.split(' ').next().unwrap_or_default();
    word.starts_with('.') && !word.contains('/') && !SQLITE_SHOWS.contains(&command)
}

/// Whether an SQL statement leaves the database, for a file or a program.
fn sql_leaves(statement: &str) -> bool {
    let text = statement.to_ascii_lowercase();
    let first = text.split([' ', '\'', '"']).next().unwrap_or_default();
    match first {
        "copy" => text.contains('\''),
        "vacuum" => text.contains("into"),
        "attach" | "do" | "export" | "import" | "install" | "load" => text.contains([' ', '\'']),
        _ => {
            text.starts_with("/*")
                || (text.starts_with("-- ") && text.len() > 3)
                || text.contains("outfile")
                || text.contains("dumpfile")
        }
    }
}

/// Aliases and extensions are programs, and what follows `--` is for git or ssh.
fn extends(words: &[Word<'_>]) -> bool {
    const COMMANDS: &[&str] = &["alias", "config", "ext", "extension", "extensions"];
    let Some(first) = words.iter().position(|(word, _)| !word.starts_with('-')) else {
        return false;
    };
    // After an option comes its value or the command.
    let named = words.iter().skip(first).take(if first > 0 { 2 } else { 1 });
    let mut named = named.filter(|(_, covered)| !covered);
    named.any(|(word, _)| COMMANDS.contains(word))
        || words.iter().any(|(word, covered)| !covered && *word == "--")
}

/// Whether a path lies where programs and libraries are installed.
fn is_installed(path: &str) -> bool {
    let places = ["/bin/", "/sbin/", "/lib/", "/lib64/", "/usr/"];
    places.iter().any(|place| path.starts_with(place)) && !path.contains("..")
}

/// `go env -w` sets variables, flags may name a linker, and a test run may write files. Building a program
/// means writing it.
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

/// How many words are neither options nor values of these letters.
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

/// tar's first word may be letters without a dash. A name with a colon is on another machine, and a program
/// reads it.
fn tar(words: &[Word<'_>]) -> bool {
    let old = words.first().filter(|(word, covered)| !covered && !word.starts_with('-'));
    old.is_some_and(|(letters, _)| letters.contains(['I', 'F', 'T', 'g']))
        || words.iter().any(|(word, covered)| {
            let name = word.strip_prefix("--file=").unwrap_or(word);
            let host = name.split_once(':').map(|(host, _)| host);
            !covered && host.is_some_and(|host| !host.contains('/') && !host.starts_with("--"))
        })
}
