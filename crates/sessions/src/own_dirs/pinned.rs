//! agentwire's own directories as they were when they were first seen.
//!
//! Directories are hidden from agents by path. An agent that can rename a directory above one of them would
//! expose it to the next agent under its new name. So each is held open, and no agent starts while a path
//! leads elsewhere.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agentwire_protocol::{ErrorCode, GatewayError};
use rustix::fs::{Mode, OFlags};

use super::{OwnDir, all, identity};
use crate::Settings;
use crate::process::FileIdentity;

/// The directories, each held open: while it is, no other directory can get its inode number.
#[derive(Debug, Default)]
pub struct PinnedDirs(Mutex<Vec<(OwnDir, File)>>);

impl PinnedDirs {
    pub fn new(settings: &Settings) -> Self {
        let pinned = Self::default();
        pinned.note(settings);
        pinned
    }

    /// Refuses if one of the directories was moved. Adds those that were created since.
    pub fn check(&self, settings: &Settings) -> Result<(), GatewayError> {
        self.note(settings);
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = pinned.iter().find(|(dir, held)| {
            let held = held.metadata().ok().map(|held| (held.dev(), held.ino()));
            identity(&dir.path) != held
        });
        let Some((OwnDir { what, path }, _)) = moved else { return Ok(()) };
        let path = path.display();
        let message = format!(
            "failed to start the agent: agentwire stores its {what} in {path}, but that directory or one \
             above it was moved or replaced, so agents could see it; move it back"
        );
        Err(GatewayError::new(ErrorCode::Forbidden, message))
    }

    /// The identities of the directories, and of those `hidden` paths that lie directly in one. They are
    /// taken from the open handles, not from what the paths lead to now; the code that hides the paths
    /// compares them.
    pub fn identities(&self, hidden: &[PathBuf]) -> Vec<FileIdentity> {
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = pinned.iter().filter_map(|(dir, held)| {
            Some(FileIdentity::of(dir.path.clone(), &held.metadata().ok()?))
        });
        let files = hidden.iter().filter_map(|path| {
            let (above, name) = (path.parent()?, path.file_name()?);
            let (_, directory) = pinned.iter().find(|(dir, _)| dir.path == above)?;
            let flags = HELD | OFlags::CLOEXEC;
            let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
            Some(FileIdentity::of(path.clone(), &File::from(file).metadata().ok()?))
        });
        let own: Vec<FileIdentity> = own.collect();
        let is_new = |file: &FileIdentity| own.iter().all(|known| known.path != file.path);
        let files: Vec<FileIdentity> = files.filter(is_new).collect();
        own.into_iter().chain(files).collect()
    }

    fn note(&self, settings: &Settings) {
        let secrets = settings.secrets.iter().filter_map(|file| file.parent());
        let secrets = secrets.map(|path| OwnDir { what: "secrets", path: path.to_owned() });
        let mut pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A deleted directory has nothing left to hide; another may take its place.
        pinned.retain(|(_, held)| held.metadata().is_ok_and(|held| held.nlink() > 0));
        for dir in all(settings).into_iter().chain(secrets) {
            let path = std::path::absolute(&dir.path).unwrap_or_else(|_| dir.path.clone());
            if !pinned.iter().any(|(known, _)| known.path == path)
                && let Some(held) = open_dir(&path)
            {
                pinned.push((OwnDir { path, ..dir }, held));
            }
        }
    }
}

/// Flags to hold a file open without reading or writing it.
#[cfg(target_os = "linux")]
const HELD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HELD: OFlags = OFlags::RDONLY;

fn open_dir(path: &Path) -> Option<File> {
    fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    let flags = HELD | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok().map(File::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_moved_is_missed_and_one_that_was_deleted_is_not() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        for name in ["data", "run/agentwire"] {
            fs::create_dir_all(path(name)).expect("a directory");
        }
        let settings = Settings { data_dir: path("data"), ..Settings::default() };
        let pinned = PinnedDirs::new(&settings);
        // The token's directory is added later.
        let text = serde_json::json!({ "digest": "d", "file": path("run/agentwire/token") });
        fs::write(path("data").join(super::super::SECRET), text.to_string()).expect("a file");
        assert_eq!(pinned.check(&settings), Ok(()));
        let hidden = [path("data/key"), path("data")];
        fs::write(path("data/key"), "k").expect("a file");
        let known = |path: PathBuf| {
            FileIdentity::of(path.clone(), &fs::metadata(path).expect("it is there"))
        };
        let all = [path("data"), path("run/agentwire"), path("data/key")].map(known);
        assert_eq!(pinned.identities(&hidden), all);
        fs::rename(path("run"), path("away")).expect("it moves");
        // Identities do not depend on what the paths lead to.
        assert_eq!(pinned.identities(&hidden), all);
        let refused = pinned.check(&settings).expect_err("it was moved").message;
        assert!(
            refused.contains("operator's token") && refused.contains("run/agentwire"),
            "{refused}"
        );
        // Another directory in its place is not the same.
        fs::create_dir_all(path("run/agentwire")).expect("a directory");
        assert!(pinned.check(&settings).is_err());
        fs::remove_dir_all(path("run")).expect("it goes");
        fs::rename(path("away"), path("run")).expect("it moves back");
        assert_eq!(pinned.check(&settings), Ok(()));
        fs::remove_dir_all(path("run")).expect("it goes");
        assert_eq!(pinned.check(&settings), Ok(()));
        fs::create_dir_all(path("run/agentwire")).expect("a directory");
        assert_eq!(pinned.check(&settings), Ok(()));
        // A moved data directory is refused too: its file would say where the token is.
        fs::rename(path("data"), path("elsewhere")).expect("it moves");
        assert!(pinned.check(&settings).is_err());
    }
}
