//! The closed list of commands that only read, with the options they may have; and the options by
//! which some programs write files or run others. docs/policy.md shows the lists; a test compares
//! them.

/// A command that only reads.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Its first words.
    pub words: &'static [&'static str],
    /// Options of one letter, which may stand together.
    pub letters: &'static str,
    /// Other options without a value.
    pub options: &'static [&'static str],
    /// Options with a number.
    pub numbers: &'static [&'static str],
    /// Options with a text that names no file.
    pub texts: &'static [&'static str],
    /// What else may follow.
    pub operands: Operands,
}

/// What may follow a command beside its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Nothing.
    Nothing,
    /// Any words, options or not.
    Anything,
    /// Words that name no file.
    Texts,
    /// Paths in the session's directories, or revisions.
    Paths,
    /// A pattern, then paths.
    PatternAndPaths,
    /// A format that begins with `+`.
    Format,
}

impl Operands {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Anything => "anything",
            Self::Texts => "words",
            Self::Paths => "paths",
            Self::PatternAndPaths => "a pattern, paths",
            Self::Format => "+format",
        }
    }
}

const PLAIN: Reader = Reader {
    words: &[],
    letters: "",
    options: &[],
    numbers: &[],
    texts: &[],
    operands: Operands::Nothing,
};

/// A command of these letters and operands.
const fn reader(
    words: &'static [&'static str],
    letters: &'static str,
    operands: Operands,
) -> Reader {
    Reader { words, letters, operands, ..PLAIN }
}

const DIFF_OPTIONS: &[&str] = &[
    "--cached",
    "--staged",
    "--stat",
    "--shortstat",
    "--numstat",
    "--name-only",
    "--name-status",
    "--patch",
    "--no-patch",
    "--no-color",
    "--no-ext-diff",
    "--word-diff",
    "--ignore-all-space",
    "--summary",
];
const LOG_OPTIONS: &[&str] = &[
    "--oneline",
    "--graph",
    "--all",
    "--decorate",
    "--stat",
    "--shortstat",
    "--name-only",
    "--name-status",
    "--patch",
    "--no-patch",
    "--no-color",
    "--no-merges",
    "--merges",
    "--reverse",
    "--follow",
    "--first-parent",
    "--abbrev-commit",
    "--no-ext-diff",
];

/// All of them.
pub const READERS: &[Reader] = &[
    reader(&["pwd"], "LP", Operands::Nothing),
    reader(&["true"], "", Operands::Nothing),
    reader(&["false"], "", Operands::Nothing),
    reader(&["whoami"], "", Operands::Nothing),
    reader(&["uname"], "asrmnpio", Operands::Nothing),
    reader(&["date"], "u", Operands::Format),
    reader(&["echo"], "", Operands::Anything),
    reader(&["which"], "a", Operands::Texts),
    reader(&["basename"], "", Operands::Texts),
    reader(&["dirname"], "", Operands::Texts),
    Reader {
        options: &[
            "--all",
            "--almost-all",
            "--color=never",
            "--human-readable",
            "--recursive",
            "--reverse",
        ],
        ..reader(&["ls"], "1aAcCdfFghilmnopqrRsStuUx", Operands::Paths)
    },
    reader(&["cat"], "AbeEnstTuv", Operands::Paths),
    Reader {
        numbers: &["-", "-n", "-c", "--lines", "--bytes"],
        ..reader(&["head"], "qv", Operands::Paths)
    },
    Reader {
        numbers: &["-", "-n", "-c", "--lines", "--bytes"],
        ..reader(&["tail"], "qvfF", Operands::Paths)
    },
    reader(&["wc"], "clmwL", Operands::Paths),
    reader(&["nl"], "", Operands::Paths),
    reader(&["stat"], "", Operands::Paths),
    reader(&["realpath"], "", Operands::Paths),
    reader(&["cmp"], "s", Operands::Paths),
    Reader {
        options: &["--brief", "--unified"],
        numbers: &["-U"],
        ..reader(&["diff"], "uqwbBi", Operands::Paths)
    },
    Reader { numbers: &["-d", "--max-depth"], ..reader(&["du"], "achkmsx", Operands::Paths) },
    reader(&["df"], "hk", Operands::Paths),
    Reader {
        numbers: &["-L"],
        texts: &["-I", "-P"],
        ..reader(&["tree"], "adfgipstuDFh", Operands::Paths)
    },
    Reader { texts: &["-d", "-f", "-c"], ..reader(&["cut"], "s", Operands::Paths) },
    Reader {
        options: &[
            "--color=never",
            "--line-number",
            "--ignore-case",
            "--recursive",
            "--count",
            "--files-with-matches",
        ],
        numbers: &["-A", "-B", "-C", "-m", "--max-count"],
        texts: &["--include", "--exclude", "--exclude-dir"],
        ..reader(&["grep"], "rinlLcowxvEFGsHhIqa", Operands::PatternAndPaths)
    },
    Reader {
        options: &[
            "--color=never",
            "--line-number",
            "--ignore-case",
            "--count",
            "--files-with-matches",
            "--fixed-strings",
            "--word-regexp",
            "--no-heading",
            "--hidden",
        ],
        numbers: &["-A", "-B", "-C", "-m", "--max-count"],
        texts: &["-g", "-t", "-T", "--glob", "--type"],
        ..reader(&["rg"], "inlcwvFSsoxHN", Operands::PatternAndPaths)
    },
    Reader {
        options: &[
            "-print", "-print0", "-empty", "-not", "-o", "-or", "-a", "-and", "-prune", "-xdev",
        ],
        numbers: &["-maxdepth", "-mindepth", "-mtime", "-mmin"],
        texts: &["-name", "-iname", "-path", "-ipath", "-type", "-size"],
        ..reader(&["find"], "", Operands::Paths)
    },
    Reader {
        options: &["--short", "--branch", "--porcelain", "--long", "--ignored"],
        ..reader(&["git", "status"], "sbvu", Operands::Paths)
    },
    Reader {
        options: DIFF_OPTIONS,
        numbers: &["-U", "--unified"],
        ..reader(&["git", "diff"], "pswbR", Operands::Paths)
    },
    Reader {
        options: LOG_OPTIONS,
        numbers: &["-", "-n", "--max-count", "--skip", "-U"],
        texts: &["--since", "--until", "--after", "--before", "--author", "--grep", "--date"],
        ..reader(&["git", "log"], "pswb", Operands::Paths)
    },
    Reader {
        options: LOG_OPTIONS,
        numbers: &["-U"],
        texts: &["--date"],
        ..reader(&["git", "show"], "pswb", Operands::Paths)
    },
    Reader {
        options: &["--list", "--all", "--remotes", "--show-current", "--no-color"],
        ..reader(&["git", "branch"], "arv", Operands::Nothing)
    },
    Reader {
        options: &[
            "--show-toplevel",
            "--abbrev-ref",
            "--short",
            "--verify",
            "--is-inside-work-tree",
            "--show-prefix",
            "--git-dir",
        ],
        ..reader(&["git", "rev-parse"], "q", Operands::Paths)
    },
    Reader {
        options: &[
            "--cached",
            "--deleted",
            "--modified",
            "--others",
            "--exclude-standard",
            "--stage",
        ],
        ..reader(&["git", "ls-files"], "cdmosz", Operands::Paths)
    },
];

/// By these a program that is thought to read writes a file or runs another: a rule that ends in `*`
/// does not cover them.
pub const ESCAPES: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "--output",
            "--ext-diff",
            "--exec",
            "--exec-path",
            "--config-env",
            "--extcmd",
            "--upload-pack",
            "--receive-pack",
            "--open-files-in-pager",
            "--show-signature",
            "--no-index",
            "--git-dir",
            "--work-tree",
            "-O",
            "-x",
        ],
    ),
    (
        "find",
        &[
            "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf",
            "-fls",
        ],
    ),
    ("fd", &["--exec", "--exec-batch", "-x", "-X"]),
    ("rg", &["--pre", "--hostname-bin", "--search-zip", "-z"]),
    ("ag", &["--pager"]),
    ("sort", &["--output", "--compress-program", "--files0-from", "-o"]),
    ("sed", &["--in-place", "--file", "-i", "-f"]),
    ("tree", &["-o"]),
    ("date", &["--set", "-s"]),
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-I",
            "-F",
        ],
    ),
    ("man", &["--pager", "--html", "-P", "-H"]),
];

/// The paths that a command reads, if it is on the list with all its words.
pub(super) fn paths(words: &[String]) -> Option<Vec<&str>> {
    READERS.iter().find_map(|reader| {
        let starts = words.iter().zip(reader.words).all(|(word, own)| word == own);
        let rest = words.get(reader.words.len()..).filter(|_| starts)?;
        reader.paths(rest)
    })
}

/// Whether one of the words after the first `covered` is an option of [`ESCAPES`].
pub(super) fn escapes(words: &[String], covered: usize) -> bool {
    let Some(program) = words.first() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let options = ESCAPES.iter().filter(|(name, _)| *name == program).flat_map(|(_, list)| *list);
    // What stands before the subcommand can be configuration, and that can be a program to run.
    let configures = program == "git" && covered == 1 && words.iter().any(|word| word == "-c");
    configures || options.clone().any(|option| words.iter().skip(covered).any(|w| is(w, option)))
}

/// Long options may be shortened, short ones may stand together or with their value.
fn is(word: &str, option: &str) -> bool {
    match (option.strip_prefix("--"), option.len()) {
        (Some(long), _) => {
            let name = word.strip_prefix("--").and_then(|word| word.split('=').next());
            name.is_some_and(|name| long == name || (name.len() >= 2 && long.starts_with(name)))
        }
        (None, 2) => {
            let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
            let letter = option.trim_start_matches('-');
            letters.is_some_and(|letters| letters.contains(letter))
        }
        (None, _) => word == option,
    }
}

impl Reader {
    fn paths<'w>(&self, words: &'w [String]) -> Option<Vec<&'w str>> {
        if self.operands == Operands::Anything {
            return Some(Vec::new());
        }
        let mut operands = Vec::new();
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            if word == "--" {
                operands.extend(rest);
                break;
            }
            if !word.starts_with('-') || word == "-" {
                operands.push(word);
            } else if !self.takes(word, &mut rest) {
                return None;
            }
        }
        match self.operands {
            Operands::Nothing => operands.is_empty().then_some(operands),
            Operands::Texts | Operands::Anything => Some(Vec::new()),
            Operands::Format => operands.iter().all(|word| word.starts_with('+')).then(Vec::new),
            Operands::Paths => Some(operands),
            Operands::PatternAndPaths => {
                operands.first()?;
                Some(operands.into_iter().skip(1).collect())
            }
        }
    }

    /// Whether that option is known; its value is taken from the words that follow.
    fn takes<'w>(&self, word: &str, rest: &mut impl Iterator<Item = &'w str>) -> bool {
        let letters = word.strip_prefix('-').unwrap_or_default();
        if self.options.contains(&word) || letters.chars().all(|c| self.letters.contains(c)) {
            return true;
        }
        if self.numbers.contains(&"-") && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return true;
        }
        let number = |value: &str| {
            let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let with_number = self.numbers.iter().filter(|option| option.len() > 1);
        for (option, is_number) in
            with_number.map(|o| (*o, true)).chain(self.texts.iter().map(|o| (*o, false)))
        {
            let value = match word.strip_prefix(option) {
                Some("") => rest.next(),
                Some(value) if option.starts_with("--") => value.strip_prefix('='),
                Some(value) if option.len() == 2 => Some(value),
                _ => None,
            };
            if let Some(value) = value {
                return !is_number || number(value);
            }
        }
        false
    }
}
