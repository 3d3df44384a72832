//! agentwire's own directories as they were when they were first seen.
//!
//! Directories are hidden from agents by path. An agent that can rename a directory above one of them would
//! expose it to the next agent under its new name. So each is held open, and no agent starts while a path
//! leads elsewhere.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agentwire_dialects::program;
use agentwire_dialects::program::DefaultCommand;
use agentwire_protocol::{AgentType, ErrorCode, GatewayError};
use rustix::fs::{Mode, OFlags};

use super::{OwnDir, all_of};
use crate::Settings;
use crate::held_dir::{HELD, HeldDir};
use crate::process::{FileIdentity, Veil};

/// The directories, each held open: while it is, no other directory can get its inode number.
#[derive(Debug, Default)]
pub struct PinnedDirs(Mutex<Vec<PinnedDir>>);

#[derive(Debug)]
struct PinnedDir {
    what: &'static str,
    directory: HeldDir,
    /// Whether agents cannot see it. If not, it holds a secret file that they cannot see.
    is_hidden: bool,
}

impl PinnedDirs {
    pub fn new(settings: &Settings) -> Self {
        let pinned = Self::default();
        pinned.note(settings);
        pinned
    }

    /// The data directory, once it exists.
    pub fn data_dir(&self, settings: &Settings) -> Option<HeldDir> {
        let find = || {
            let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            pinned.iter().find(|own| own.what == DATA).map(|own| own.directory.clone())
        };
        find().or_else(|| {
            self.note(settings);
            find()
        })
    }

    /// Refuses if one of the directories was moved. Adds those that were created since.
    pub fn check(&self, settings: &Settings) -> Result<(), GatewayError> {
        self.note(settings);
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = pinned.iter().find(|own| !own.directory.is_at_its_name());
        let Some(PinnedDir { what, directory, .. }) = moved else { return Ok(()) };
        let path = directory.name().display();
        let message = format!(
            "failed to start the agent: agentwire stores its {what} in {path}, but that directory or one \
             above it was moved or replaced, so agents could see it; move it back"
        );
        Err(GatewayError::new(ErrorCode::Forbidden, message))
    }

    /// What an agent cannot see: agentwire's own directories and secrets. In the data directory, it can see
    /// the files that it is started with, and a built-in agent can also see its own state.
    ///
    /// The directories are those that are held open, whatever their names lead to now.
    pub fn veil(&self, settings: &Settings, agent: AgentType, files: Option<&Path>) -> Veil {
        let data_dir = self.data_dir(settings);
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = pinned.iter().filter(|own| own.is_hidden);
        let own = own.map(|own| own.directory.name().to_path_buf());
        let named = all_of(settings, None).into_iter().map(|dir| dir.path);
        let hidden = own.chain(named.chain(settings.secrets.iter().cloned()).map(absolute));
        let mut shown: Vec<PathBuf> = files.map(Path::to_path_buf).into_iter().collect();
        if let DefaultCommand::BuiltIn { state, .. } = program(agent).command {
            let data_dir = data_dir.as_ref().map_or(settings.data_dir.as_path(), HeldDir::path);
            // It must exist to be shown. If it cannot be created, the agent reports that when it writes.
            let mut builder = DirBuilder::new();
            let _ = builder.recursive(true).mode(0o700).create(data_dir.join(state));
            shown.push(settings.data_dir.join(state));
        }
        let mut hidden: Vec<PathBuf> = hidden.collect();
        hidden.sort();
        hidden.dedup();
        Veil { hidden, shown: shown.into_iter().map(absolute).collect(), identities: Vec::new() }
    }

    /// The identities of the directories, and of what is hidden or shown inside one. They are taken from
    /// the open handles, not from what the paths lead to now; the code that hides the paths compares them.
    pub fn identities(&self, veil: &Veil) -> Vec<FileIdentity> {
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = pinned.iter().filter_map(|PinnedDir { directory, .. }| {
            Some(FileIdentity::of(directory.name().to_path_buf(), &directory.metadata().ok()?))
        });
        let mut known: Vec<FileIdentity> = own.collect();
        for path in veil.hidden.iter().chain(&veil.shown) {
            if known.iter().any(|known| known.path == *path) {
                continue;
            }
            let inside = pinned.iter().find_map(|PinnedDir { directory, .. }| {
                let rest = path.strip_prefix(directory.name()).ok()?;
                let flags = HELD | OFlags::CLOEXEC;
                let file = rustix::fs::openat(directory, rest, flags, Mode::empty()).ok()?;
                Some(FileIdentity::of(path.clone(), &File::from(file).metadata().ok()?))
            });
            known.extend(inside);
        }
        known
    }

    fn note(&self, settings: &Settings) {
        let mut pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A deleted directory has nothing left to hide; another may take its place.
        pinned.retain(|own| !own.directory.is_deleted());
        let add = |pinned: &mut Vec<PinnedDir>, OwnDir { what, path }: OwnDir, is_hidden| {
            let path = absolute(path);
            if !pinned.iter().any(|own| own.directory.name() == path)
                && let Ok(directory) = HeldDir::open(&path)
            {
                pinned.push(PinnedDir { what, directory, is_hidden });
            }
        };
        add(&mut pinned, OwnDir { what: DATA, path: settings.data_dir.clone() }, true);
        // The data directory says where the token is: its name could lead to another that says nothing.
        let data_dir = pinned.iter().find(|own| own.what == DATA).map(|own| own.directory.clone());
        for dir in all_of(settings, data_dir.as_ref().map(HeldDir::path)) {
            add(&mut pinned, dir, true);
        }
        for file in &settings.secrets {
            if let Some(path) = file.parent() {
                add(&mut pinned, OwnDir { what: "secrets", path: path.to_owned() }, false);
            }
        }
    }
}

const DATA: &str = "data";

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let veil = Veil {
            hidden: vec![path("data/key"), path("data")],
            shown: vec![path("data/run/files")],
            identities: Vec::new(),
        };
        fs::create_dir_all(path("data/run/files")).expect("a directory");
        fs::write(path("data/key"), "k").expect("a file");
        let known = |path: PathBuf| {
            FileIdentity::of(path.clone(), &fs::metadata(path).expect("it is there"))
        };
        let names = ["data", "run/agentwire", "data/key", "data/run/files"];
        let all = names.map(|name| known(path(name)));
        assert_eq!(pinned.identities(&veil), all);
        let veils = || pinned.veil(&settings, AgentType::Claude, None).hidden;
        assert_eq!(veils(), [path("data"), path("run/agentwire")]);
        fs::rename(path("run"), path("away")).expect("it moves");
        // Identities do not depend on what the paths lead to.
        assert_eq!(pinned.identities(&veil), all);
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
        // What says where the token is cannot be taken away: its directory stays hidden.
        assert_eq!(veils(), [path("data"), path("run/agentwire")]);
        fs::create_dir_all(path("data")).expect("a directory");
        assert_eq!(veils(), [path("data"), path("run/agentwire")]);
        assert!(pinned.check(&settings).is_err());
    }
}
