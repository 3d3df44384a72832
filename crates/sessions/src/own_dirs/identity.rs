//! agentwire's own directories as they were when they were first seen.
//!
//! What an agent does not see goes by path. An agent that may rename a directory above one of these would
//! make the next agent see it under its new name. So each is held open, and no agent starts while a path
//! leads elsewhere.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use agentwire_protocol::{ErrorCode, GatewayError};

use super::{Place, identity, places};
use crate::Settings;

/// The directories, each held open: while it is, no other has its number.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Vec<(Place, File)>>);

impl Kept {
    /// Those that are there now.
    pub fn new(settings: &Settings) -> Self {
        let kept = Self::default();
        kept.note(settings);
        kept
    }

    /// Refuses if one of them was moved. Takes note of those that came since.
    pub fn check(&self, settings: &Settings) -> Result<(), GatewayError> {
        self.note(settings);
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = kept.iter().find(|(place, held)| {
            let held = held.metadata().ok().map(|held| (held.dev(), held.ino()));
            identity(&place.path) != held
        });
        let Some((Place { what, path }, _)) = moved else { return Ok(()) };
        let path = path.display();
        let message = format!(
            "no agent starts: agentwire keeps its {what} in {path}, and that directory, or one above it, \
             was moved or replaced, so agents would see it. Move it back"
        );
        Err(GatewayError::new(ErrorCode::Forbidden, message))
    }

    fn note(&self, settings: &Settings) {
        let secrets = settings.secrets.iter().filter_map(|file| file.parent());
        let secrets = secrets.map(|path| Place { what: "secrets", path: path.to_owned() });
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What was deleted has nothing left to hide; another may come in its place.
        kept.retain(|(_, held)| held.metadata().is_ok_and(|held| held.nlink() > 0));
        for place in places(settings).into_iter().chain(secrets) {
            let path = std::path::absolute(&place.path).unwrap_or_else(|_| place.path.clone());
            if !kept.iter().any(|(known, _)| known.path == path)
                && let Some(held) = held(&path)
            {
                kept.push((Place { path, ..place }, held));
            }
        }
    }
}

/// A directory, held open.
fn held(path: &Path) -> Option<File> {
    fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    #[cfg(target_os = "linux")]
    let flags = rustix::fs::OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let flags = rustix::fs::OFlags::RDONLY;
    let flags = flags | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok().map(File::from)
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
        let kept = Kept::new(&settings);
        // The token's directory comes later.
        let text = serde_json::json!({ "digest": "d", "file": path("run/agentwire/token") });
        fs::write(path("data").join(super::super::SECRET), text.to_string()).expect("a file");
        assert_eq!(kept.check(&settings), Ok(()));
        fs::rename(path("run"), path("away")).expect("it moves");
        let refused = kept.check(&settings).expect_err("it was moved").message;
        assert!(
            refused.contains("operator's token") && refused.contains("run/agentwire"),
            "{refused}"
        );
        // Another in its place is not the same.
        fs::create_dir_all(path("run/agentwire")).expect("a directory");
        assert!(kept.check(&settings).is_err());
        fs::remove_dir_all(path("run")).expect("it goes");
        fs::rename(path("away"), path("run")).expect("it moves back");
        assert_eq!(kept.check(&settings), Ok(()));
        fs::remove_dir_all(path("run")).expect("it goes");
        assert_eq!(kept.check(&settings), Ok(()));
        fs::create_dir_all(path("run/agentwire")).expect("a directory");
        assert_eq!(kept.check(&settings), Ok(()));
        // Nor is a data directory whose file would say where the token is.
        fs::rename(path("data"), path("elsewhere")).expect("it moves");
        assert!(kept.check(&settings).is_err());
    }
}
