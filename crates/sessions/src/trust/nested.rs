//! Finds the directories below a project that contain an agent's directory. None is skipped, because an
//! agent can work on files in any of them. If there are too many, that is reported.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::survey::PATIENCE;
use crate::path_walk::{is_mount, reach};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many directory entries are looked at.
    pub(crate) entries: usize,
    /// How long the search may take. Shorter than the limit for the whole survey.
    pub(crate) time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 1_000_000, time: Duration::from_secs(5) }
    }
}

/// Calls `found` with each directory that contains one of `names`. Returns what was left out.
pub(super) fn walk<'t>(
    tops: impl Iterator<Item = &'t Path>,
    names: &BTreeSet<&str>,
    limits: Limits,
    mut found: impl FnMut(&Path),
) -> Option<&'static str> {
    let end = Instant::now() + limits.time;
    let mut directories: VecDeque<PathBuf> = tops.map(Path::to_owned).collect();
    // Files in the project are shown by their own path, so links come last.
    let mut links = VecDeque::new();
    let mut seen = HashSet::new();
    let mut count = 0;
    loop {
        let directory = directories.pop_front();
        let is_link = directory.is_none();
        let at = directory.or_else(|| links.pop_front())?;
        // Only these lead onto another file system.
        if (is_link || is_mount(&at)) && reach(&at, PATIENCE).is_none() {
            return Some("the search is incomplete: a directory does not answer");
        }
        let Ok(metadata) = fs::metadata(&at) else { continue };
        if !metadata.is_dir() || !seen.insert((metadata.dev(), metadata.ino())) {
            continue;
        }
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            // The agent cannot list it either, but may open files in it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                found(&at);
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return Some("the search is incomplete: a directory cannot be read"),
        };
        for entry in entries {
            let Ok(entry) = entry else {
                return Some("the search is incomplete: a directory cannot be read");
            };
            count += 1;
            if count > limits.entries || Instant::now() > end {
                return Some("the search is incomplete: there are too many files");
            }
            let Ok(kind) = entry.file_type() else { continue };
            if !can_lead_on(kind) {
                continue;
            }
            let own = entry.file_name();
            if names.iter().any(|name| own.eq_ignore_ascii_case(name)) {
                found(&at);
            }
            let queue = if kind.is_symlink() { &mut links } else { &mut directories };
            queue.push_back(entry.path());
        }
    }
}

fn can_lead_on(kind: FileType) -> bool {
    kind.is_dir() || kind.is_symlink()
}
