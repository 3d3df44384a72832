//! agentwire's own files: a call that reads or writes them always asks the user.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use agentwire_dialects::describe::{INPUT_LIMIT, ShellCommand, Touches, is_text};
use serde_json::Value;

use super::call::Call;
use super::paths::{Resolve, SessionDirs, fits, without_sets};
use super::shell::{TEXT_LIMIT, base, tokens};
use crate::path_walk::by_name;

/// How many paths of one command are examined. A command with more asks.
const PATH_LIMIT: usize = 512;

/// Name prefixes of the directories that agentwire creates for sockets and for the operator's token. They
/// count wherever they are: a token may be created again while a session runs.
const MADE: [&str; 2] = ["agentwire-mcp-", "agentwire-operator-"];

/// Prefixes of variables that say where the files are.
const VARIABLES: [&str; 2] = ["$agentwire_", "${agentwire_"];

/// Commands after which a relative path leads elsewhere.
const MOVES: &[&str] = &["cd", "chdir", "popd", "pushd"];

/// Programs that process everything below a directory: always, or with one of the letters after them.
const RECURSIVE: &[(&str, &str)] = &[
    (
        "7z ack ag bsdtar borg cpio ditto du fd fdfind find gfind git gtar mksquashfs mv pax rclone \
         restic rg rsync tar tree ug zip",
        "",
    ),
    ("bzgrep egrep fgrep ggrep grep rm ugrep xzgrep zgrep", "Rr"),
    ("chgrp chmod chown ls", "R"),
    ("colordiff diff pcregrep pcre2grep scp", "r"),
    ("cp", "Rar"),
    ("eza", "RT"),
];

/// Where agentwire keeps its data, its settings and its secrets.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnFiles(Vec<PathBuf>);

impl OwnFiles {
    pub(super) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let is_place = |path: &PathBuf| path.is_absolute() && path.parent().is_some();
        Self(paths.into_iter().filter(is_place).map(|path| by_name(&path)).collect())
    }

    /// Whether a call may read or write one of them.
    pub(super) fn may_be_touched(
        &self,
        call: &Call<'_>,
        dirs: &SessionDirs,
        resolve: Resolve<'_>,
    ) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let matcher = OwnFileMatcher { own: &self.0, dirs, resolve };
        let reaches = call.reaches_below();
        let names = |is_all: bool| {
            call.input.as_ref().is_some_and(|input| {
                input.get().len() > INPUT_LIMIT
                    || input.read().map_or(true, |value| matcher.is_named_in(&value, is_all))
            })
        };
        call.blocked_path.as_deref().is_some_and(|path| matcher.is_reached(path, false))
            || match &call.touches {
                Touches::Files { paths, are_all } => {
                    paths.iter().any(|path| {
                        matcher.is_reached(path, reaches)
                            || (call.is_adrift(path) && matcher.may_lead_to(path, reaches))
                    }) || (call.moved && reaches && matcher.is_searched(call))
                        || names(!are_all)
                }
                Touches::Command(command) => matcher.is_named_by(call, command) || names(false),
                Touches::Nothing => names(false),
                Touches::Host(_) => false,
                // Its input is the only thing known about it.
                Touches::Unclear => names(true),
            }
    }
}

struct OwnFileMatcher<'a> {
    own: &'a [PathBuf],
    dirs: &'a SessionDirs,
    resolve: Resolve<'a>,
}

impl OwnFileMatcher<'_> {
    /// Whether a path lies in one of them; or, if `reaches`, above one.
    fn is_reached(&self, path: &str, reaches: bool) -> bool {
        let Some(readings) = self.dirs.read(path, self.resolve) else {
            return self.is_spelled_in(path);
        };
        readings.iter().any(|path| self.holds(path) || (reaches && self.is_below(path)))
    }

    fn holds(&self, path: &Path) -> bool {
        let path = lower(path);
        let is_made = path.iter().any(|name| is_made(&name.to_string_lossy()));
        let is_in = |own: &PathBuf| {
            path.starts_with(lower(own)) || path.starts_with(lower(&(self.resolve)(own)))
        };
        is_made || self.own.iter().any(is_in)
    }

    fn is_below(&self, path: &Path) -> bool {
        let path = lower(path);
        self.own.iter().any(|own| {
            lower(own).starts_with(&path) || lower(&(self.resolve)(own)).starts_with(&path)
        })
    }

    /// Whether a value names one of them. Unless `is_all`, text that the call writes or shows does not
    /// count.
    fn is_named_in(&self, value: &Value, is_all: bool) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => self.is_spelled_in(text),
            Value::Array(items) => items.iter().any(|item| self.is_named_in(item, is_all)),
            Value::Object(fields) => fields.iter().any(|(name, item)| {
                let is_shown = !is_all && item.is_string() && (is_text(name) || name == "diff");
                !is_shown && (self.is_spelled_in(name) || self.is_named_in(item, is_all))
            }),
        }
    }

    /// Whether a relative path may lead to one of them from an unknown directory: it has the last name of
    /// their path, or a pattern for it. A pattern at the end counts if `whole`.
    fn may_lead_to(&self, path: &str, whole: bool) -> bool {
        if path.starts_with(['/', '~']) {
            return false;
        }
        let (option, path) = (path.starts_with('-'), path.to_lowercase());
        let names: Vec<String> = path.split(['/', ',', ':', '@']).map(without_sets).collect();
        let is_inner =
            |own: &&PathBuf| self.own.iter().any(|other| other != *own && own.starts_with(other));
        let outer = self.own.iter().filter(|own| !is_inner(own)).map(|own| lower(own));
        let own: Vec<_> = outer.filter_map(|own| own.file_name().map(OsStr::to_owned)).collect();
        names.iter().enumerate().any(|(at, name)| {
            let counts = whole || at + 1 < names.len() || !name.contains(['*', '?']);
            own.iter().any(|own| {
                let is_glued = option && at == 0 && name.ends_with(&*own.to_string_lossy());
                counts && (fits(name, own) || is_glued)
            })
        })
    }

    /// Whether the pattern of a search names one of them.
    fn is_searched(&self, call: &Call<'_>) -> bool {
        let pattern = call.pattern.as_deref().unwrap_or_default();
        let mut names = pattern.split('/').filter(|name| !name.trim_matches('*').is_empty());
        names.any(|name| self.may_lead_to(name, true))
    }

    /// Whether a command may reach one of them from an unknown directory.
    fn is_drifted_to(&self, tokens: &[&str], recurses: bool) -> bool {
        let after = tokens.iter().scan(false, |moves, token| {
            let follows = *moves;
            *moves = MOVES.contains(token) || (*moves && token.starts_with('-'));
            Some((follows, token))
        });
        let mut after = after.take(PATH_LIMIT);
        after.any(|(moves, token)| {
            let whole = moves || recurses;
            (whole || token.contains('/')) && self.may_lead_to(token, whole)
        })
    }

    fn is_named_by(&self, call: &Call<'_>, command: &ShellCommand) -> bool {
        if command.text.len() > TEXT_LIMIT {
            return true;
        }
        let text = self.expanded(&command.text);
        if self.is_spelled_in(&text) {
            return true;
        }
        let tokens = tokens(&text);
        let mut tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        tokens.extend(call.words.iter().flatten().map(String::as_str));
        let recurses = is_recursive(&tokens);
        let here = command.directory.as_deref().unwrap_or(".");
        if recurses && self.is_reached(here, true) {
            return true;
        }
        let drifts = call.moved || tokens.iter().any(|token| MOVES.contains(token));
        if drifts && self.is_drifted_to(&tokens, recurses) {
            return true;
        }
        let paths: Vec<&str> = tokens.iter().filter_map(|token| path_in(token)).collect();
        // A link may have any name.
        let names = tokens.iter().filter(|token| !token.starts_with('-')).take(PATH_LIMIT);
        // Moving or copying into a directory above them touches none of them.
        let target = match call.words.as_deref() {
            Some([program, .., last]) if matches!(base(program), "cp" | "mv") => Some(last),
            _ => None,
        };
        let reaches = |path: &str| recurses && target.is_none_or(|target| target != path);
        paths.len() > PATH_LIMIT
            || names.chain(&paths).any(|path| self.is_reached(path, reaches(path)))
            || paths.iter().any(|path| self.is_matched(path))
            || (call.words.is_none() && self.is_hinted_at(&text, &tokens))
    }

    /// The text with the home directory in place of its variable.
    fn expanded(&self, text: &str) -> String {
        match self.dirs.home.as_deref().and_then(Path::to_str) {
            Some(home) => text.replace("${HOME}", home).replace("$HOME", home),
            None => text.to_owned(),
        }
    }

    /// Whether a text contains the whole path of one of them.
    fn is_spelled_in(&self, text: &str) -> bool {
        let bare: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let mut bare = bare.to_lowercase();
        for other in ["//", "/./"] {
            while bare.contains(other) {
                bare = bare.replace(other, "/");
            }
        }
        let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let spelled = |path: &Path| {
            let path = lower(path).to_string_lossy().into_owned();
            bare.match_indices(&path).any(|(at, found)| {
                let before = bare.get(..at).and_then(|before| before.chars().next_back());
                let after = bare.get(at + found.len()..).and_then(|after| after.chars().next());
                !before.is_some_and(|c| is_name(c) || c == '/') && !after.is_some_and(is_name)
            })
        };
        let is_named = |own: &PathBuf| {
            let below_home = self.dirs.home.as_ref().and_then(|home| own.strip_prefix(home).ok());
            let short = below_home.map(|rest| Path::new("~").join(rest));
            spelled(own)
                || spelled(&(self.resolve)(own))
                || short.is_some_and(|path| spelled(&path))
        };
        MADE.iter().any(|start| bare.contains(start))
            || VARIABLES.iter().any(|start| bare.contains(start))
            || self.own.iter().any(is_named)
    }

    /// Whether a path with wildcards may match one of them, or something in it.
    fn is_matched(&self, path: &str) -> bool {
        if !path.contains(['*', '?', '[']) {
            return false;
        }
        let whole = match (path.strip_prefix("~/"), &self.dirs.home, &self.dirs.working) {
            (Some(rest), Some(home), _) => home.join(rest),
            (_, _, Some(working)) => working.join(path),
            _ => PathBuf::from(path),
        };
        let whole = lower(&by_name(&whole));
        let names: Vec<String> =
            whole.iter().map(|name| without_sets(&name.to_string_lossy())).collect();
        // A directory that is created again has another name in the same place.
        let may_be_made = |name: &str, own: &str| is_made(own) && name.contains(['*', '?']);
        self.own.iter().map(|own| lower(own)).any(|own| {
            let own: Vec<_> = own.iter().map(|name| name.to_string_lossy()).collect();
            names.len() >= own.len()
                && names.iter().zip(own).all(|(name, own)| {
                    name == "**" || fits(name, OsStr::new(&*own)) || may_be_made(name, &own)
                })
        })
    }

    /// Whether a text that is not parsed exactly has the last two names of one of them, or the last one in
    /// a path that may lead anywhere.
    fn is_hinted_at(&self, text: &str, tokens: &[&str]) -> bool {
        let names: Vec<String> = tokens
            .iter()
            .flat_map(|token| token.split(['/', ',']))
            .map(str::to_lowercase)
            .collect();
        let moves = text.contains('$') || tokens.iter().any(|token| MOVES.contains(token));
        self.own.iter().any(|own| {
            let own = lower(own);
            let name =
                |path: Option<&Path>| Some(path?.file_name()?.to_string_lossy().into_owned());
            let (Some(last), Some(above)) = (name(Some(&own)), name(own.parent())) else {
                return false;
            };
            let in_path = || {
                tokens.iter().any(|token| {
                    let is_relative = !token.starts_with(['/', '~']);
                    let token = token.to_lowercase();
                    is_relative && token.contains('/') && token.split('/').any(|name| name == last)
                })
            };
            (names.contains(&last) && names.contains(&above)) || (moves && in_path())
        })
    }
}

fn is_made(name: &str) -> bool {
    MADE.iter().any(|start| name.starts_with(start))
}

/// The part of a token that may be a path.
fn path_in(token: &str) -> Option<&str> {
    let start =
        token.find(['/', '~']).filter(|_| token.starts_with('-') || token.contains([':', '@']));
    let path = start.and_then(|start| token.get(start..)).unwrap_or(token);
    let is_path = path.contains('/') || path.starts_with(['~', '.']);
    (is_path && !path.starts_with('-')).then_some(path)
}

fn is_recursive(tokens: &[&str]) -> bool {
    let has_letter = |letters: &str| {
        let is_short = |token: &&&str| token.starts_with('-') && !token.starts_with("--");
        tokens.iter().filter(is_short).any(|token| token.contains(|c| letters.contains(c)))
            || tokens.iter().any(|token| {
                // As in `grep -d rec` and `--dereference-recursive`.
                let is_word = token.len() > 2 && "recurse".starts_with(token);
                let is_long = token.starts_with("--rec") || token.contains("-recurs");
                is_word || is_long || *token == "--archive"
            })
    };
    let known = RECURSIVE
        .iter()
        .flat_map(|(programs, letters)| programs.split(' ').map(move |program| (program, letters)));
    let mut called =
        known.filter(|(program, _)| tokens.iter().any(|token| base(token) == *program));
    called.any(|(program, letters)| match program {
        "git" => tokens.iter().any(|token| matches!(*token, "--no-index" | "--work-tree")),
        _ => letters.is_empty() || has_letter(letters),
    })
}

/// File systems may ignore case.
fn lower(path: &Path) -> PathBuf {
    PathBuf::from(path.to_string_lossy().to_lowercase())
}
