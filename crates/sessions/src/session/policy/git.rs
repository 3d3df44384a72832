//! Decides whether a read-only git command can run a program: by the repository's own configuration, hooks
//! and submodules. The user's own configuration (`~/.gitconfig`) is the user's business.

use std::path::{Path, PathBuf};

use super::disk::{Kind, Lookups};

/// A larger configuration file is not read.
const CONFIG_LIMIT: usize = 64 * 1024;

/// A larger index is not read.
const INDEX_LIMIT: usize = 16 * 1024 * 1024;

/// The hook that read-only commands run, because they refresh the index.
const HOOK: &str = "post-index-change";

/// Configuration sections that do not affect a read-only command.
const SECTIONS: &[&str] = &[
    "advice",
    "author",
    "branch",
    "color",
    "commit",
    "committer",
    "fetch",
    "pull",
    "push",
    "tag",
    "user",
];

/// Further keys that make nothing run.
const KEYS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "checkstat",
            "compression",
            "eol",
            "filemode",
            "fscache",
            "hidedotfiles",
            "hookspath",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "precomposeunicode",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "symlinks",
            "trustctime",
            "untrackedcache",
        ],
    ),
    ("extensions", &["worktreeconfig"]),
    ("gc", &["auto", "autodetach", "autopacklimit", "pruneexpire"]),
    ("lfs", &["repositoryformatversion"]),
    (
        "remote",
        &[
            "fetch",
            "gh-resolved",
            "mirror",
            "prune",
            "push",
            "pushdefault",
            "pushurl",
            "tagopt",
            "url",
        ],
    ),
];

/// Whether the commands of the closed list run no program that a repository at or above `start` names. git
/// takes the first repository that it considers valid; here all of them must be harmless.
pub(super) fn runs_nothing(
    start: &Path,
    command: &str,
    home: Option<&Path>,
    disk: &Lookups<'_>,
) -> bool {
    // These look into submodules, which have their own configuration.
    let enters = matches!(command, "status" | "diff");
    start.ancestors().all(|directory| {
        let inside = directory.join(".git");
        let is_quiet = match disk.kind(&inside) {
            Kind::Missing => true,
            Kind::Directory => Repository::new(inside, directory, home, disk).is_quiet(enters),
            Kind::File => linked(&inside, disk).is_some_and(|found| {
                Repository::new(found, directory, home, disk).is_quiet(enters)
            }),
            Kind::Other => false,
        };
        is_quiet && is_quiet_bare(directory, home, disk)
    })
}

/// Checks a directory that may be a repository itself.
fn is_quiet_bare(directory: &Path, home: Option<&Path>, disk: &Lookups<'_>) -> bool {
    let has = |name: &str| disk.kind(&directory.join(name)) != Kind::Missing;
    let is_repository = has("HEAD") && (has("objects") || has("commondir"));
    !is_repository || Repository::new(directory.to_path_buf(), directory, home, disk).is_quiet(true)
}

/// The directory that a `.git` file names.
fn linked(file: &Path, disk: &Lookups<'_>) -> Option<PathBuf> {
    let said = text(file, disk)?;
    Some(file.parent()?.join(target(said.strip_prefix("gitdir: ")?)?))
}

/// The path in a file that names a directory. git cuts off line ends and nothing else: `x ` is not `x`.
fn target(said: &str) -> Option<&str> {
    let target = said.trim_end_matches(['\n', '\r']);
    let is_plain = target.trim() == target && !target.contains(char::is_control);
    (is_plain && !target.is_empty()).then_some(target)
}

fn text(file: &Path, disk: &Lookups<'_>) -> Option<String> {
    String::from_utf8(disk.read(file, CONFIG_LIMIT)?).ok()
}

struct Repository<'a> {
    directory: PathBuf,
    root: &'a Path,
    home: Option<&'a Path>,
    disk: &'a Lookups<'a>,
}

impl<'a> Repository<'a> {
    fn new(
        directory: PathBuf,
        root: &'a Path,
        home: Option<&'a Path>,
        disk: &'a Lookups<'a>,
    ) -> Self {
        Self { directory, root, home, disk }
    }

    fn is_missing(&self, path: &Path) -> bool {
        self.disk.kind(path) == Kind::Missing
    }

    /// Whether nothing in it names a program that a command of the list would run.
    fn is_quiet(&self, enters_submodules: bool) -> bool {
        let Some(common) = self.common() else { return false };
        let mut hooks = vec![common.join("hooks"), self.directory.join("hooks")];
        for file in [
            common.join("config"),
            common.join("config.worktree"),
            self.directory.join("config"),
            self.directory.join("config.worktree"),
        ] {
            if self.is_missing(&file) {
                continue;
            }
            let Some(paths) = text(&file, self.disk).and_then(|text| harmless(&text)) else {
                return false;
            };
            for path in paths {
                let Some(path) = self.hooks(&path) else { return false };
                hooks.push(path);
            }
        }
        hooks.iter().all(|hooks| self.is_missing(&hooks.join(HOOK)))
            && (!enters_submodules || self.has_no_submodules(&common))
    }

    /// A linked worktree shares the configuration of the repository it belongs to.
    fn common(&self) -> Option<PathBuf> {
        let file = self.directory.join("commondir");
        match self.is_missing(&file) {
            true => Some(self.directory.clone()),
            false => Some(self.directory.join(target(&text(&file, self.disk)?)?)),
        }
    }

    fn hooks(&self, value: &str) -> Option<PathBuf> {
        match value.strip_prefix('~') {
            Some(rest) => Some(self.home?.join(rest.strip_prefix('/')?)),
            None => Some(self.root.join(value)),
        }
    }

    fn has_no_submodules(&self, common: &Path) -> bool {
        let index = self.directory.join("index");
        self.is_missing(&self.root.join(".gitmodules"))
            && self.is_missing(&common.join("modules"))
            && (self.is_missing(&index)
                || self
                    .disk
                    .read(&index, INDEX_LIMIT)
                    .is_some_and(|index| holds_submodule(&index) == Some(false)))
    }
}

/// The hook directories that a configuration names; `None` if it has a key that is not known to be
/// harmless, or uses a syntax that this parser does not read.
fn harmless(config: &str) -> Option<Vec<String>> {
    let mut hooks = Vec::new();
    let mut section: Option<String> = None;
    // An escape may join lines.
    if config.contains('\\') {
        return None;
    }
    // Only these are spaces to git.
    let is_space = [' ', '\t'];
    for line in config.lines().map(|line| line.trim_matches(is_space)) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            section = Some(header(rest)?.to_ascii_lowercase());
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (section, key) = (section.as_deref()?, key.trim().to_ascii_lowercase());
        if !is_harmless(section, &key) {
            return None;
        }
        if (section, key.as_str()) == ("core", "hookspath") {
            let value = value.trim_matches(is_space);
            // These characters start something that only git expands, or hide a part of the value.
            let is_odd = value.starts_with(['%', ':']) || value.contains(['"', '#', ';']);
            if value.is_empty() || is_odd || value.contains(char::is_control) {
                return None;
            }
            hooks.push(value.to_owned());
        }
    }
    Some(hooks)
}

/// The name of a section, from what follows its `[`.
fn header(rest: &str) -> Option<&str> {
    let (inside, after) = match rest.split_once('"') {
        None => rest.split_once(']')?,
        Some((name, rest)) => {
            let (_, after) = rest.split_once('"')?;
            (name.trim_end(), after.strip_prefix(']')?)
        }
    };
    let is_plain =
        !inside.is_empty() && inside.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (is_plain && after.trim().is_empty()).then_some(inside)
}

/// Whether a configuration key makes no command run a program. Both arguments are in lower case.
pub(super) fn is_harmless(section: &str, key: &str) -> bool {
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let listed = || KEYS.iter().any(|(own, keys)| *own == section && keys.contains(&key));
    is_key && (SECTIONS.contains(&section) || listed())
}

/// Whether an index contains a submodule; `None` if its format is not supported here.
fn holds_submodule(index: &[u8]) -> Option<bool> {
    let version = number(index, 4)?;
    if !index.starts_with(b"DIRC") || !matches!(version, 2 | 3) {
        return None;
    }
    let mut at: usize = 12;
    for _ in 0..number(index, 8)? {
        let mode = number(index, at.checked_add(24)?)?;
        if mode & 0o170_000 == 0o160_000 {
            return Some(true);
        }
        let flags = number(index, at.checked_add(60)?)? >> 16;
        let more = if version == 3 && flags & 0x4000 != 0 { 2 } else { 0 };
        let name = at.checked_add(62 + more)?;
        let length = index.get(name..)?.iter().position(|byte| *byte == 0)?;
        // Entries are padded with zeroes to a multiple of eight, at least one.
        at = at.checked_add((62 + more + length + 8) & !7)?;
    }
    // Extensions follow, then a hash. One of the extensions moves entries to another file.
    while let Some(name) = index.get(at..at.checked_add(4)?) {
        if index.len().checked_sub(at)? <= 20 {
            return Some(false);
        }
        if name == b"link" {
            return None;
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(number(index, at + 4)?).ok()?)?;
    }
    None
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests;
