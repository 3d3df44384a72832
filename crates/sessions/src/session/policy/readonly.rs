//! The closed list of read-only commands, with the options they may have. docs/policy.md shows it; a test
//! compares the two.

#[derive(Clone, Copy, Debug)]
pub struct Reader {
    pub words: &'static [&'static str],
    /// One-letter options, which may be bundled.
    pub letters: &'static str,
    /// Other options without a value.
    pub options: &'static [&'static str],
    /// Options with a number.
    pub numbers: &'static [&'static str],
    /// Options with a text that does not name a file.
    pub texts: &'static [&'static str],
    /// Those of both whose value can only be in the same word. A word after them is an operand.
    pub glued: &'static [&'static str],
    /// Those of both whose value can only be the next word. What follows them in their word is more letters.
    pub apart: &'static [&'static str],
    /// What else may follow.
    pub operands: Operands,
    /// Whether `--` ends the options. It does not for a program that parses an expression after it.
    pub dashes: Dashes,
}

/// What `--` means to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dashes {
    /// Nothing that follows is an option.
    EndOptions,
    /// Nothing: options may follow.
    Nothing,
    /// It depends on the version.
    Unclear,
}

/// What may follow a command besides its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    Nothing,
    /// Any words, options or not.
    Anything,
    /// Words that do not name files.
    Texts,
    /// Paths in the session's directories, or revisions.
    Paths,
    /// The same, but no directories, because the program would follow the links in them.
    Files,
    PatternAndPaths,
    /// A format that starts with `+`.
    Format,
}

impl Operands {
    /// As docs/policy.md shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Anything => "anything",
            Self::Texts => "words",
            Self::Paths => "paths",
            Self::Files => "files",
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
    glued: &[],
    apart: &[],
    operands: Operands::Nothing,
    dashes: Dashes::EndOptions,
};

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
        ..reader(&["diff"], "uqwbBi", Operands::Files)
    },
    Reader { numbers: &["-d", "--max-depth"], ..reader(&["du"], "achkmsx", Operands::Paths) },
    reader(&["df"], "hk", Operands::Paths),
    Reader {
        numbers: &["-L"],
        texts: &["-I", "-P"],
        apart: &["-I", "-P"],
        dashes: Dashes::Unclear,
        ..reader(&["tree"], "adfgipstuDFh", Operands::Paths)
    },
    Reader { texts: &["-d", "-f", "-c"], ..reader(&["cut"], "s", Operands::Paths) },
    Reader {
        options: &[
            "--debug",
            "--human-numeric-sort",
            "--ignore-case",
            "--numeric-sort",
            "--reverse",
            "--stable",
            "--unique",
            "--version-sort",
        ],
        numbers: &["--parallel"],
        texts: &["-k", "-t", "--key", "--field-separator"],
        dashes: Dashes::Unclear,
        ..reader(&["sort"], "bcCdfghimMnrRsuVz", Operands::Paths)
    },
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
    // Without a pattern, every operand is a path.
    Reader {
        options: &["--hidden", "--null"],
        texts: &["-g", "-t", "-T", "--glob", "--type"],
        ..reader(&["rg", "--files"], "0", Operands::Paths)
    },
    Reader {
        options: &[
            "-print", "-print0", "-empty", "-not", "-o", "-or", "-a", "-and", "-prune", "-xdev",
        ],
        numbers: &["-maxdepth", "-mindepth", "-mtime", "-mmin"],
        texts: &["-name", "-iname", "-path", "-ipath", "-type", "-size"],
        dashes: Dashes::Nothing,
        ..reader(&["find"], "", Operands::Paths)
    },
    Reader {
        options: &[
            "--short",
            "--branch",
            "--porcelain",
            "--long",
            "--ignored",
            "-uno",
            "-unormal",
            "-uall",
            "--untracked-files",
            "--untracked-files=no",
            "--untracked-files=normal",
            "--untracked-files=all",
        ],
        ..reader(&["git", "status"], "sbvu", Operands::Paths)
    },
    Reader {
        options: DIFF_OPTIONS,
        numbers: &["-U", "--unified"],
        glued: &["-U", "--unified"],
        ..reader(&["git", "diff"], "pswbR", Operands::Paths)
    },
    Reader {
        options: LOG_OPTIONS,
        numbers: &["-", "-n", "--max-count", "--skip", "-U"],
        texts: &[
            "--since", "--until", "--after", "--before", "--author", "--grep", "--date",
            "--format", "--pretty",
        ],
        glued: &["-U", "--format", "--pretty"],
        ..reader(&["git", "log"], "pswb", Operands::Paths)
    },
    Reader {
        options: LOG_OPTIONS,
        numbers: &["-U"],
        texts: &["--date", "--format", "--pretty"],
        glued: &["-U", "--format", "--pretty"],
        ..reader(&["git", "show"], "pswb", Operands::Paths)
    },
    Reader {
        options: &["--list", "--all", "--remotes", "--show-current", "--no-color"],
        ..reader(&["git", "branch"], "arv", Operands::Nothing)
    },
    Reader { options: &["--verbose"], ..reader(&["git", "remote"], "v", Operands::Nothing) },
    Reader {
        options: &["--show-email", "--show-name", "--show-number"],
        texts: &["-L"],
        ..reader(&["git", "blame"], "bceflnpstw", Operands::Paths)
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

#[derive(Debug)]
pub(super) struct Reads<'w> {
    /// The paths, or what may be one.
    pub(super) paths: Vec<&'w str>,
    /// Whether none of them may be a directory.
    pub(super) files_only: bool,
    pub(super) git: Option<&'static str>,
}

/// What a command reads, if it is on the list with all its words.
pub(super) fn reads(words: &[String]) -> Option<Reads<'_>> {
    READERS.iter().find_map(|reader| {
        let starts = words.iter().zip(reader.words).all(|(word, own)| word == own);
        let rest = words.get(reader.words.len()..).filter(|_| starts)?;
        let git = match reader.words {
            ["git", command] => Some(*command),
            _ => None,
        };
        let files_only = reader.operands == Operands::Files;
        Some(Reads { paths: reader.paths(rest)?, files_only, git })
    })
}

/// Whether the command's program is on the list, with any words.
pub(super) fn has_program(words: &[String]) -> bool {
    words.first().is_some_and(|program| {
        READERS.iter().any(|reader| reader.words.first() == Some(&program.as_str()))
    })
}

/// Whether a program on the list has no option at all that runs another program.
pub(super) fn never_runs(program: &str) -> bool {
    !matches!(program, "git" | "find" | "rg" | "tree" | "diff" | "sort")
        && READERS.iter().any(|reader| reader.words.first() == Some(&program))
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
                match self.dashes {
                    Dashes::Nothing => continue,
                    Dashes::Unclear if rest.clone().any(|word| word.starts_with('-')) => {
                        return None;
                    }
                    Dashes::Unclear => continue,
                    Dashes::EndOptions => {
                        operands.extend(rest);
                        break;
                    }
                }
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
            Operands::Paths | Operands::Files => Some(operands),
            Operands::PatternAndPaths => {
                operands.first()?;
                Some(operands.into_iter().skip(1).collect())
            }
        }
    }

    /// Whether that option is known. Its value is taken from the words that follow.
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
                Some("") if self.glued.contains(&option) => None,
                Some("") => rest.next(),
                Some(_) if self.apart.contains(&option) => None,
                Some(value) if option.starts_with("--") => value.strip_prefix('='),
                Some(value) if option.len() == 2 => Some(value),
                _ => None,
            };
            if let Some(value) = value {
                let is_format = matches!(option, "--format" | "--pretty");
                return if is_number { number(value) } else { !is_format || is_quiet(value) };
            }
        }
        false
    }
}

/// Whether a format of git runs nothing: `%G?` and its like run gpg.
fn is_quiet(format: &str) -> bool {
    !(format.contains('%') && format.contains('G'))
}
