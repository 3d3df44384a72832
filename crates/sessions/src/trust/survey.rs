//! Looks for a project's files that make an agent run something. Anyone may have written them: reading is
//! bounded, and never waits for a pipe or a device.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentwire_dialects::programs;
use agentwire_dialects::project::{FileFormat, ParentSearch, ProjectFile, Reading};
use rustix::fs::OFlags;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{Snapshot, covers, nested};
use crate::path_walk::{by_name, reach};

/// How much of a file is read to show its content.
const SHOWN_LIMIT: u64 = 1 << 20;

/// How much of a file is read for its digest.
const DIGEST_LIMIT: u64 = 64 << 20;

/// How much of all files is read for their digests.
const TOTAL_LIMIT: u64 = 256 << 20;

/// How many files of a project count.
const FILES: usize = 512;

/// How many directory entries are looked at.
const ENTRIES: usize = 20_000;

/// How many bytes of all files are shown.
const SHOWN_TOTAL: usize = 256 << 10;

/// How many words of commands are looked up.
const WORDS: usize = 4096;

/// How deep directories are searched.
const DEPTH: usize = 32;

/// How long another thread may already have been waiting for a file system that a link leads to.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// The files that count, by path.
    pub(crate) files: Vec<SurveyedFile>,
    /// What was left out, if anything. Then the rest does not cover it.
    pub(crate) left_out: Option<&'static str>,
}

/// Whether a file alone is reason enough to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Enough,
    /// It matters only together with others that may name it.
    Beside,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct SurveyedFile {
    /// Relative to the directory, if it is inside.
    pub(crate) path: String,
    /// SHA-256 of its content, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    /// What it would run or set.
    pub(crate) runs: Vec<String>,
    /// The target, if the file is a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// Why it has no digest, or is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

impl Survey {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.left_out.is_none()
    }

    /// The files and their digests, if all of them have one: only then can they be remembered.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        if self.left_out.is_some() {
            return None;
        }
        let digest = |file: &SurveyedFile| Some((file.path.clone(), file.digest.clone()?));
        self.files.iter().map(digest).collect()
    }

    /// Whether everything found is part of this earlier state.
    pub(crate) fn is_within(&self, state: &Snapshot) -> bool {
        self.snapshot().is_some_and(|found| covers(state, &found))
    }
}

/// Looks for the files in a directory, in further ones, above the first and below all. The user's home
/// directory is not a project: its files are the user's own.
pub(crate) fn survey(
    files: &[ProjectFile],
    directory: &Path,
    further: &[PathBuf],
    home: Option<&Path>,
) -> Survey {
    survey_within(files, directory, further, home, nested::Limits::default())
}

pub(super) fn survey_within(
    files: &[ProjectFile],
    directory: &Path,
    further: &[PathBuf],
    home: Option<&Path>,
    limits: nested::Limits,
) -> Survey {
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    let mut search = Search { home, ..Search::new(directory) };
    // A link with this name may lead nowhere, and not every agent takes it for a repository.
    let is_git = |found: fs::Metadata| found.is_dir() || found.is_file();
    let repository =
        directory.ancestors().find(|at| at.join(".git").symlink_metadata().is_ok_and(is_git));
    let home = search.home.clone();
    for file in files {
        let top = top(file.above, directory, repository, home.as_deref());
        for at in directory.ancestors() {
            search.search(at, file);
            if Some(at) == top {
                break;
            }
        }
        further.iter().for_each(|at| search.search(at, file));
    }
    let nested: Vec<ProjectFile> = files.iter().filter(|file| file.below).copied().collect();
    if !nested.is_empty() {
        let tops = std::iter::once(directory).chain(further.iter().map(PathBuf::as_path));
        let names: BTreeSet<&str> =
            nested.iter().filter_map(|file| file.path.split('/').next()).collect();
        let left_out = nested::walk(tops, &names, limits, |at| {
            nested.iter().for_each(|file| search.search(at, file));
        });
        search.left_out = search.left_out.or(left_out);
    }
    search.done()
}

/// The last directory on the way up that is looked at. `None` if that is the root.
pub(super) fn top<'p>(
    above: ParentSearch,
    directory: &'p Path,
    repository: Option<&'p Path>,
    home: Option<&'p Path>,
) -> Option<&'p Path> {
    match above {
        ParentSearch::Nowhere => Some(directory),
        ParentSearch::Repository => repository.or(home),
        ParentSearch::Everywhere => None,
    }
}

struct Search<'s> {
    root: &'s Path,
    home: Option<PathBuf>,
    found: BTreeMap<PathBuf, (SurveyedFile, Weight)>,
    /// Words of commands, with the directory of the file that contains them.
    words: BTreeSet<(PathBuf, String)>,
    entries: usize,
    bytes: u64,
    /// How many bytes are shown so far.
    shown: usize,
    left_out: Option<&'static str>,
}

impl<'s> Search<'s> {
    fn new(root: &'s Path) -> Self {
        Self {
            root,
            home: None,
            found: BTreeMap::new(),
            words: BTreeSet::new(),
            entries: 0,
            bytes: 0,
            shown: 0,
            left_out: None,
        }
    }

    fn search(&mut self, at: &Path, file: &ProjectFile) {
        if self.home.as_deref() == Some(at) {
            return;
        }
        let path = at.join(file.path);
        match file.endings {
            None => self.add_file(at, &path, file),
            Some(endings) => self.tree(at, &path, file, endings, DEPTH),
        }
    }

    fn tree(&mut self, at: &Path, path: &Path, file: &ProjectFile, endings: &[&str], depth: usize) {
        if reach(path, PATIENCE).is_none() {
            self.left_out = Some("a directory does not answer");
            return;
        }
        let Ok(entries) = fs::read_dir(path) else { return };
        let Some(depth) = depth.checked_sub(1) else {
            self.left_out = Some("directories are too deep");
            return;
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES {
                self.left_out = Some("there are too many files");
                return;
            }
            let path = entry.path();
            if is_directory(&entry) {
                self.tree(at, &path, file, endings, depth);
            } else if endings.iter().any(|ending| has_ending(&path, ending)) {
                self.add_file(at, &path, file);
            }
        }
    }

    fn add_file(&mut self, at: &Path, path: &Path, file: &ProjectFile) {
        if self.found.contains_key(path) {
            return;
        }
        let Some((mut found, text)) = self.open(path) else { return };
        let reading = match &text {
            Some(text) => file.read(text),
            // Its content is unknown, so it counts.
            None => Reading { counts: true, ..Reading::default() },
        };
        let weight = match (file.form, reading.counts) {
            (FileFormat::Script, _) => Weight::Beside,
            (_, true) => Weight::Enough,
            (_, false) => return,
        };
        let room = (WORDS + 1).saturating_sub(self.words.len());
        let words = reading.words.into_iter().take(room);
        self.words.extend(words.map(|word| (at.to_owned(), word)));
        if self.words.len() > WORDS {
            self.words.pop_last();
            self.left_out = Some("there are too many commands");
        }
        self.shown += reading.runs.iter().map(String::len).sum::<usize>();
        found.runs = match self.shown <= SHOWN_TOTAL {
            true => reading.runs,
            false => vec!["is not shown because there is too much; read the file".to_owned()],
        };
        self.insert(path, found, weight);
    }

    fn insert(&mut self, path: &Path, found: SurveyedFile, weight: Weight) {
        if self.found.len() >= FILES {
            self.left_out = Some("there are too many files");
            return;
        }
        self.found.insert(path.to_owned(), (found, weight));
    }

    /// A file with its digest, and its text if that can be shown. `None` if there is no such file.
    fn open(&mut self, path: &Path) -> Option<(SurveyedFile, Option<String>)> {
        let mut found = SurveyedFile {
            path: self.near(path),
            digest: None,
            runs: Vec::new(),
            link: None,
            note: None,
        };
        if reach(path, PATIENCE).is_none() {
            found.note = Some("cannot be read: its file system does not answer".to_owned());
            return Some((found, None));
        }
        // A link that leads nowhere is not a file for the agent either.
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => return None,
            Err(error) => {
                found.note = Some(format!("cannot be read: {error}"));
                return Some((found, None));
            }
        };
        if metadata.is_dir() {
            return None;
        }
        if let Ok(real) = path.canonicalize()
            && real != path
        {
            found.link = Some(real.display().to_string());
        }
        match self.read(path) {
            // Another file may be shown by the same name.
            Ok(_) if path.to_str().is_none() => {
                found.note = Some("has a name that is not UTF-8".to_owned());
                Some((found, None))
            }
            Ok((digest, text)) => {
                if text.is_none() {
                    let size = metadata.len();
                    found.note =
                        Some(format!("is not shown: it has {size} bytes, or is not UTF-8"));
                }
                found.digest = Some(digest);
                Some((found, text))
            }
            Err(error) => {
                found.note = Some(format!("cannot be read: {error}"));
                Some((found, None))
            }
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<(String, Option<String>)> {
        let unfit = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        // Opening a pipe that nobody writes to must not block.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        if !fs::metadata(path)?.is_file() {
            return Err(unfit("it is not a regular file"));
        }
        let mut file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(unfit("it is not a regular file"));
        }
        if metadata.len() > DIGEST_LIMIT {
            return Err(unfit("it is too large"));
        }
        let (mut hash, mut text, mut size) = (Sha256::new(), Vec::new(), 0);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let part = buffer.get(..count).unwrap_or_default();
            size += count as u64;
            self.bytes += count as u64;
            if size > DIGEST_LIMIT || self.bytes > TOTAL_LIMIT {
                return Err(unfit("it is too large"));
            }
            hash.update(part);
            if size <= SHOWN_LIMIT {
                text.extend_from_slice(part);
            }
        }
        let text = (size <= SHOWN_LIMIT).then(|| String::from_utf8(text).ok()).flatten();
        Ok((hex(&hash.finalize()), text))
    }

    /// Scripts of the project that commands name would run: they count too.
    fn named(&mut self) {
        for (at, word) in std::mem::take(&mut self.words) {
            let Some(word) = placed(&word) else { continue };
            for base in [at.as_path(), self.root] {
                let path = by_name(&base.join(word));
                // A project cannot change what lies outside, such as the system's programs.
                let is_inside = path.starts_with(base) && path != base;
                if is_inside
                    && !self.found.contains_key(&path)
                    && let Some((found, _)) = self.open(&path)
                {
                    self.insert(&path, found, Weight::Beside);
                }
            }
        }
    }

    fn done(mut self) -> Survey {
        let is_enough = self.found.values().any(|(_, weight)| *weight == Weight::Enough);
        if !is_enough && self.left_out.is_none() {
            return Survey::default();
        }
        self.named();
        let files = self.found.into_values().map(|(found, _)| found).collect();
        Survey { files, left_out: self.left_out }
    }

    fn near(&self, path: &Path) -> String {
        let near = path.strip_prefix(self.root).unwrap_or(path);
        near.display().to_string()
    }
}

/// A word of a command as a path in the project, if it can be one.
fn placed(word: &str) -> Option<&str> {
    let mut here = programs().iter().flat_map(|program| program.project_prefixes).chain(&["$PWD/"]);
    let word = here.find_map(|here| word.strip_prefix(here)).unwrap_or(word);
    (!word.is_empty() && word.len() < 1024 && !word.contains(['\0', '$', '*'])).then_some(word)
}

/// Whether a path has this ending. Some file systems ignore case.
fn has_ending(path: &Path, ending: &str) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let start = path.len().checked_sub(ending.len());
    let end = start.and_then(|start| path.get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(ending.as_bytes()))
}

/// Whether it is a directory or leads to one, as far as can be determined.
fn is_directory(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => {
            let path = entry.path();
            let answers = reach(&path, PATIENCE).is_some();
            // A link that does not answer is reported as a directory.
            !answers || fs::metadata(&path).is_ok_and(|found| found.is_dir())
        }
        kind => kind.is_ok_and(|kind| kind.is_dir()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
