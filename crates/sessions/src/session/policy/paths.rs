//! Paths: where one may lead, in every way it can be read, and what lies in the session's directories.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use agentwire_dialects::describe::own_files;

use super::shell::is_hidden;
use crate::path_walk::by_name;

/// Names in a path that no mode lets an agent change without asking: through these files, the user's
/// programs run other programs, or agents change their own permissions. A name that ends in `*` is a
/// prefix.
pub static PROTECTED: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let of_repositories = OF_REPOSITORIES.iter().copied();
    of_repositories.chain(own_files()).chain(OF_THE_USER.iter().copied()).collect()
});

const OF_REPOSITORIES: &[&str] =
    &[".git", ".hg", ".svn", ".jj", "HEAD", ".gitconfig", ".gitmodules", ".gitattributes"];

const OF_THE_USER: &[&str] = &[
    ".agentwire",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".husky",
    ".cargo",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    ".pre-commit-config.yaml",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config",
    ".local",
    ".env*",
    ".netrc",
    ".npmrc",
    ".yarnrc*",
    ".pnpmfile.cjs",
    ".pypirc",
    ".tool-versions",
    "mise.toml",
    ".mise*",
    ".profile",
    ".login",
    ".logout",
    ".inputrc",
    ".bash*",
    ".zsh*",
    ".zprofile",
    ".zlog*",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".tmux.conf",
    ".ripgreprc",
    ".gdbinit",
    ".lldbinit",
];

/// Follows symbolic links like the system does; see [`super::Disk`].
pub(super) type Resolve<'a> = &'a dyn Fn(&Path) -> PathBuf;

/// The directories that a session may work in.
#[derive(Clone, Debug)]
pub(super) struct SessionDirs {
    pub(super) working: Option<PathBuf>,
    pub(super) additional: Vec<PathBuf>,
    pub(super) home: Option<PathBuf>,
}

/// Every file that a path may mean: as written, and with links followed. An allow must hold for all of
/// them, a denial for one.
#[derive(Debug)]
pub(super) struct Readings(Vec<PathBuf>);

impl Readings {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }
}

impl SessionDirs {
    /// `None` if it is not certain where the path leads.
    pub(super) fn read(&self, path: &str, resolve: Resolve<'_>) -> Option<Readings> {
        if path.is_empty() || path.chars().any(is_hidden) {
            return None;
        }
        // Some tools expand `~`; for others it is a name.
        let written = match path.strip_prefix('~') {
            None => vec![self.absolute(Path::new(path))?],
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.home.as_ref()?.join(rest.trim_start_matches('/'));
                vec![home, self.absolute(Path::new(path))?]
            }
            Some(_) => return None,
        };
        let mut readings = Vec::new();
        for path in written {
            let plain = by_name(&path);
            readings.push(by_name(&resolve(&plain)));
            if plain != path {
                // For the system, `link/..` starts from where the link leads. Most tools just drop both
                // parts.
                readings.push(by_name(&resolve(&path)));
            }
            readings.push(plain);
        }
        Some(Readings(readings))
    }

    /// Whether it lies in the session's directories, however it is read.
    pub(super) fn hold(&self, readings: &Readings, resolve: Resolve<'_>) -> bool {
        readings.iter().all(|path| !self.within(path, resolve).is_empty())
    }

    /// Whether it lies there and is not protected.
    pub(super) fn may_change(&self, readings: &Readings, resolve: Resolve<'_>) -> bool {
        readings.iter().all(|path| {
            let below = self.within(path, resolve);
            below.iter().any(|below| !below.iter().any(is_protected))
        })
    }

    /// Whether it is one of the directories itself.
    pub(super) fn are(&self, readings: &Readings, resolve: Resolve<'_>) -> bool {
        let is_one = |path: &Path| {
            self.within(path, resolve).iter().any(|below| below.as_os_str().is_empty())
        };
        readings.iter().all(is_one)
    }

    /// The path relative to each directory that contains it.
    pub(super) fn within(&self, path: &Path, resolve: Resolve<'_>) -> Vec<PathBuf> {
        let directories = self.working.iter().chain(&self.additional);
        directories.flat_map(|directory| below(path, directory, resolve)).collect()
    }

    /// The path as written, made absolute.
    pub(super) fn written(&self, path: &str) -> Option<PathBuf> {
        let is_plain = !path.starts_with('~') && !path.chars().any(is_hidden);
        self.absolute(Path::new(path)).filter(|_| is_plain).map(|path| by_name(&path))
    }

    fn absolute(&self, path: &Path) -> Option<PathBuf> {
        match path.is_absolute() {
            true => Some(path.to_path_buf()),
            false => Some(self.working.as_ref()?.join(path)),
        }
    }
}

/// The path relative to that directory, as the directory is written or with its links followed.
pub(super) fn below(path: &Path, directory: &Path, resolve: Resolve<'_>) -> Option<PathBuf> {
    let real = || path.strip_prefix(by_name(&resolve(directory))).ok().map(Path::to_path_buf);
    path.strip_prefix(directory).ok().map(Path::to_path_buf).or_else(real)
}

/// File systems may ignore case.
fn is_protected(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return true };
    let starts =
        |start: &str| name.get(..start.len()).is_some_and(|n| n.eq_ignore_ascii_case(start));
    PROTECTED.iter().any(|protected| match protected.strip_suffix('*') {
        Some(start) => starts(start),
        None => name.eq_ignore_ascii_case(protected),
    })
}

/// A path pattern, as in `.gitignore`: `*` and `?` within a name, `**` for any number of names. What it
/// matches includes everything below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Where it starts. `None` for a pattern of one name, which matches at any depth.
    base: Option<PathBuf>,
    names: Vec<String>,
}

impl Pattern {
    /// Parses the text in the parentheses of a rule.
    pub(super) fn parse(text: &str, dirs: &SessionDirs) -> Result<Self, String> {
        if let Some(odd) = text.chars().find(|c| "[]{}!\\".contains(*c) || is_hidden(*c)) {
            return Err(format!("{odd:?} has no meaning in a path; use *, ? and **"));
        }
        let (start, rest) = if let Some(rest) = text.strip_prefix("//") {
            (Some(PathBuf::from("/")), rest)
        } else if text.starts_with('/') {
            return Err("write // before an absolute path, or leave the / out".to_owned());
        } else if text == "~" || text.starts_with("~/") {
            let home = dirs.home.clone().ok_or("no home directory is known for ~")?;
            (Some(home), text.trim_start_matches(['~', '/']))
        } else if text.starts_with('~') {
            return Err("only ~/ means a home directory".to_owned());
        } else {
            (dirs.working.clone(), text.strip_prefix("./").unwrap_or(text))
        };
        let rest = rest.trim_end_matches('/');
        let is_name = !text.trim_end_matches('/').contains('/') && !rest.is_empty();
        let mut base = start.ok_or("it is relative, and the session has no working directory")?;
        let mut names: Vec<String> = Vec::new();
        for name in rest.split('/').filter(|name| !name.is_empty() && *name != ".") {
            match (name, names.is_empty() && !name.contains(['*', '?'])) {
                ("..", false) => return Err(".. must not follow a wildcard".to_owned()),
                (_, true) if !is_name => base.push(name),
                (_, _) if name.contains("**") && name != "**" => {
                    return Err("** must stand alone between slashes".to_owned());
                }
                (_, _) => names.push(name.to_owned()),
            }
        }
        if is_name && names.first().is_none_or(|name| name == "..") {
            return Err("it does not name a file".to_owned());
        }
        let base =
            (!is_name || names.first().is_some_and(|name| name == "**")).then(|| by_name(&base));
        Ok(Self { base, names })
    }

    /// Exactly this file, or what is below this directory.
    pub(super) fn exactly(path: PathBuf) -> Self {
        Self { base: Some(path), names: Vec::new() }
    }

    pub(super) fn allows(
        &self,
        readings: &Readings,
        dirs: &SessionDirs,
        resolve: Resolve<'_>,
    ) -> bool {
        readings.iter().all(|path| match (&self.base, self.names.first()) {
            (Some(base), _) => self.matches_below(path, base, resolve),
            (None, Some(name)) => {
                let is_wild = name.contains(['*', '?']);
                dirs.within(path, resolve).iter().any(|below| match is_wild {
                    // `*.md` allows files, not the contents of a directory with such a name.
                    true => below.file_name().is_some_and(|own| fits(name, own)),
                    false => below.iter().any(|own| fits(name, own)),
                })
            }
            (None, None) => false,
        })
    }

    pub(super) fn denies(
        &self,
        readings: &Readings,
        dirs: &SessionDirs,
        resolve: Resolve<'_>,
    ) -> bool {
        readings.iter().any(|path| match (&self.base, self.names.first()) {
            (Some(base), _) => self.matches_below(path, base, resolve),
            (None, Some(name)) => {
                let has = |path: &Path| path.iter().any(|own| fits(name, own));
                let below = dirs.within(path, resolve);
                below.iter().any(|below| has(below)) || (below.is_empty() && has(path))
            }
            (None, None) => false,
        })
    }

    fn matches_below(&self, path: &Path, base: &Path, resolve: Resolve<'_>) -> bool {
        let Some(below) = below(path, base, resolve) else { return false };
        let own: Vec<&OsStr> = below.iter().collect();
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        names.push("**");
        wild(&names, &own, |name| *name == "**", |name, own| fits(name, own))
    }
}

pub(super) fn fits(pattern: &str, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    wild(&pattern, &name, |c| *c == '*', |c, own| *c == '?' || c == own)
}

/// A pattern in which each set of characters is replaced by `?`.
pub(super) fn without_sets(pattern: &str) -> String {
    let mut simple = String::new();
    let mut rest = pattern;
    while let Some((before, set)) = rest.split_once('[') {
        simple.push_str(before);
        simple.push('?');
        rest = set.split_once(']').map_or("", |(_, after)| after);
    }
    simple + rest
}

/// Whether the items fit the pattern, in which some parts match any number of items. Only the last of these
/// is ever retried, so the time is bounded by the product of the lengths.
fn wild<P, I>(
    pattern: &[P],
    items: &[I],
    is_many: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &I) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(own) = items.get(item) {
        match pattern.get(at) {
            Some(part) if is_many(part) => {
                at += 1;
                retry = Some((at, item));
            }
            Some(part) if fits(part, own) => {
                at += 1;
                item += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                at = after;
                item = from + 1;
                retry = Some((after, item));
            }
        }
    }
    pattern.iter().skip(at).all(is_many)
}
