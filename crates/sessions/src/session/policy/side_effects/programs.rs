//! What single programs do with more than an option: operands that are written, scripts and statements that
//! run something.

use super::{UNCOVERED_OPTIONS, Word, has_option, is, leads_out};

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
        "less" => given.iter().any(|word| less(word)),
        "curl" => curl(given),
        "tsc" => given.iter().zip(next_words(given)).any(|(word, next)| tsc(word, next)),
        // They read `_` for `-`, and ignore a prefix.
        "mysqldump" | "mysqlbinlog" => mysql_option(program, given),
        // These read more options from a file.
        "addr2line" | "ar" | "c++filt" | "gprof" | "nm" | "objcopy" | "objdump" | "ranlib"
        | "readelf" | "size" | "strings" | "strip" => {
            given.iter().any(|word| word.starts_with('@'))
        }
        // ldd runs the loader that a file names.
        "ldd" => given.iter().any(|word| !word.starts_with('-') && !is_installed(word)),
        // A reader or writer in Lua.
        "pandoc" => given.iter().any(|word| word.ends_with(".lua")),
        "sqlite3" | "duckdb" => {
            given.iter().any(|word| sqlite_writes(word) || statements(word).any(sql_leaves))
        }
        "psql" => given.iter().any(|word| statements(word).any(sql_leaves)),
        "mysql" => {
            let leaves = |it: &str| sql_leaves(it) || is_mysql_command(it);
            mysql_option(program, given) || given.iter().any(|word| statements(word).any(leaves))
        }
        "gh" => extends(rest),
        "pytest" => given.iter().zip(next_words(given)).any(|(word, next)| pytest(word, next)),
        "exiftool" => given.iter().any(|word| word.starts_with('-') && exiftool(word)),
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
            word.split_once('=').is_some_and(|(variable, value)| {
                makes_run(variable.trim_end_matches([':', '+', '?', ' ']).trim_start(), value)
            })
        }),
        "go" => go(rest),
        _ => false,
    }
}

/// For each word, the one after it.
fn next_words<'w>(given: &[&'w str]) -> impl Iterator<Item = &'w str> {
    given.iter().skip(1).copied().chain([""])
}

/// A command for the pager, other than a line number, a pattern or the end. Long options may have any case.
fn less(word: &str) -> bool {
    let is_long = word.starts_with("--");
    (is_long && has_option("less", &[word.to_ascii_lowercase().as_str()]))
        || word.strip_prefix('+').is_some_and(|command| {
            !command.bytes().all(|b| b.is_ascii_digit())
                && !command.starts_with('/')
                && !matches!(command, "G" | "F")
        })
}

/// Options may have any case, and more of them are read from a file.
fn tsc(word: &str, next: &str) -> bool {
    let is_named = |option: &str| {
        let name = word.strip_prefix('-').unwrap_or_default().split('=').next();
        let name = name.unwrap_or_default().trim_start_matches('-');
        name.eq_ignore_ascii_case(option.trim_start_matches('-'))
    };
    let row = UNCOVERED_OPTIONS.iter().filter(|row| row.program == "tsc");
    let mut options = row.flat_map(|row| row.options.split(' '));
    word.starts_with('@')
        || (word.starts_with('-')
            && options.any(|option| match option.strip_suffix("=..") {
                Some(option) => is_named(option) && leads_out(next),
                None => is_named(option),
            }))
}

/// A setting that names a file to write.
fn pytest(word: &str, next: &str) -> bool {
    let reports = word.strip_prefix("--cov-report");
    let reports = reports.map(|value| if value.is_empty() { next } else { value });
    word.contains("log_file=")
        || word.contains("cache_dir=")
        || reports.is_some_and(|value| value.contains(':'))
}

/// A tag with a value is written into the file. Names are case-insensitive.
fn exiftool(word: &str) -> bool {
    let name = word.to_ascii_lowercase();
    let runs = |word: &str| {
        let number = name.strip_prefix(word);
        number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    };
    let after = name.strip_prefix("-w");
    let writes = after.is_some_and(|rest| !rest.contains(|c: char| c.is_alphabetic()));
    word.contains(['=', '<']) || runs("-if") || runs("-execute") || writes
}

/// Variables that make any program run others, or load code. `*` is any ending.
const RUNNING: &[&str] = &[
    "BASH_ENV",
    "CDPATH",
    "CLASSPATH",
    "DYLD_*",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GIT_*",
    "GNUMAKEFLAGS",
    "GOFLAGS",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LD_*",
    "LUA_*",
    "MAKE*",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PERL5*",
    "PERLLIB",
    "PROMPT_COMMAND",
    "PYTHON*PATH",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC*",
    "SHELLOPTS",
    "VISUAL",
    "VPATH",
    "_JAVA_OPTIONS",
];

/// Variables of makefiles that usually name a program.
const PROGRAMS: &[&str] = &[
    "AR",
    "AS",
    "AWK",
    "BASH",
    "CARGO",
    "CC",
    "CHMOD",
    "CLANG",
    "CMAKE",
    "CP",
    "CPP",
    "CURL",
    "CXX",
    "DOCKER",
    "FC",
    "FIND",
    "GCC",
    "GIT",
    "GO",
    "GREP",
    "GXX",
    "HOSTCC",
    "HOSTCXX",
    "INSTALL",
    "JAVA",
    "JAVAC",
    "LD",
    "LEX",
    "LN",
    "MKDIR",
    "MV",
    "NM",
    "NODE",
    "NPM",
    "NPX",
    "OBJCOPY",
    "PERL",
    "PHP",
    "PIP",
    "PKG_CONFIG",
    "PNPM",
    "PYTEST",
    "PYTHON",
    "PYTHON3",
    "RANLIB",
    "RM",
    "RUBY",
    "RUSTC",
    "SED",
    "SH",
    "STRIP",
    "SUDO",
    "TAR",
    "UV",
    "WGET",
    "YACC",
    "YARN",
];

/// Whether a variable of make lets its user run another program: any value of some, and a path as the value
/// of one that names a program.
fn makes_run(variable: &str, value: &str) -> bool {
    let fits = |known: &&str| match known.split_once('*') {
        Some((start, end)) => variable.starts_with(start) && variable.ends_with(end),
        None => variable == *known,
    };
    let names_program = PROGRAMS.contains(&variable) || variable.ends_with("_CMD");
    let is_path = |word: &str| word.contains('/') && !is_installed(word);
    variable.contains("SHELL")
        || RUNNING.iter().any(fits)
        || (names_program && value.split(' ').any(is_path))
}

/// `--expand-X` is `--X`, and a format in a file may name a file to write.
fn curl(given: &[&str]) -> bool {
    let valued =
        UNCOVERED_OPTIONS.iter().find(|row| row.program == "curl").map_or("", |row| row.valued);
    given.iter().enumerate().any(|(at, word)| {
        let next = given.get(at + 1).copied().unwrap_or_default();
        if let Some(long) = word.strip_prefix("--") {
            let long = long.strip_prefix("expand-").unwrap_or(long);
            let long = format!("--{long}");
            let is_format = is(&long, "--write-out", valued);
            let value = long.split_once('=').map_or(next, |(_, value)| value);
            return has_option("curl", &[&long]) || (is_format && value.starts_with('@'));
        }
        let Some(letters) = word.strip_prefix('-') else { return false };
        let first = letters.find(|c| valued.contains(c));
        let value = first.and_then(|at| letters.get(at..)?.strip_prefix('w'));
        let value = value.map(|glued| if glued.is_empty() { next } else { glued });
        value.is_some_and(|value| value.starts_with('@'))
    })
}

fn mysql_option(program: &str, given: &[&str]) -> bool {
    given.iter().filter_map(|word| word.strip_prefix("--")).any(|long| {
        let (name, value) = long.split_once('=').unwrap_or((long, ""));
        let name = name.replace('_', "-");
        let name = name.strip_prefix("loose-").unwrap_or(&name);
        has_option(program, &[format!("--{name}={value}").as_str()])
    })
}

/// Where the command begins that ssh runs on the other machine: after the host and the options around it.
pub(super) fn ssh_command(words: &[Word<'_>]) -> Option<usize> {
    const VALUED: &str = "BDEFIJLOPQRSWbceilmopw";
    let mut operands = 0;
    let mut is_value = false;
    words.iter().position(|(word, _)| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            Some(letters) => {
                let at = letters.find(|c| VALUED.contains(c));
                is_value = at.is_some_and(|at| at + 1 == letters.len());
            }
            None => operands += 1,
        }
        operands > 1
    })
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

/// Whether it is a command of sqlite3 itself that may run a program or write a file. A path has a slash in
/// its first word.
fn sqlite_writes(word: &str) -> bool {
    let word = word.trim_start();
    let command = word.split(' ').next().unwrap_or_default();
    let is_path = command.contains('/') && !command.contains(['\'', '"']);
    word.starts_with('.') && !is_path && !SQLITE_SHOWS.contains(&command)
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
    // After an option comes its value or the command.
    let mut may_be_value = false;
    for (word, covered) in words {
        if word.starts_with('-') {
            may_be_value = true;
            continue;
        }
        if !covered && COMMANDS.contains(word) {
            return true;
        }
        if !std::mem::take(&mut may_be_value) {
            break;
        }
    }
    words.iter().any(|(word, covered)| !covered && *word == "--")
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
