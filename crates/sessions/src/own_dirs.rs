//! agentwire's own directories: no agent may work at, in or above one of them.

mod pinned;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agentwire_protocol::{ErrorCode, GatewayError};
use serde::{Deserialize, Serialize};

pub use self::pinned::PinnedDirs;
use crate::Settings;
use crate::path_walk::by_name;
use crate::settings::aside;

/// The file in a data directory that says where the operator's token is.
pub const SECRET: &str = "operator.json";

/// What a data directory stores about the operator's token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// The file that holds the token.
    pub file: PathBuf,
}

/// What this data directory stores about the operator's token, if there is one.
pub fn secret(data_dir: &Path) -> io::Result<Option<Secret>> {
    let path = data_dir.join(SECRET);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let (from, to) = aside(&path, "old");
        let message = format!(
            "failed to read {}: {error}; move it away to get a new token: mv {from} {to}",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnDir {
    pub what: &'static str,
    pub path: PathBuf,
}

/// agentwire's own directories at this moment: of data, settings, and the operator's token.
pub fn all(settings: &Settings) -> Vec<OwnDir> {
    all_of(settings, Some(&settings.data_dir))
}

/// The same, with the path to read the data directory by.
fn all_of(settings: &Settings, data_dir: Option<&Path>) -> Vec<OwnDir> {
    // A file that cannot be read names nothing; the data directory is in the list anyway.
    let secret = data_dir.and_then(|data_dir| secret(data_dir).ok().flatten());
    let secret = secret.and_then(|secret| secret.file.parent().map(Path::to_owned));
    let dirs = [
        ("data", Some(settings.data_dir.clone())),
        ("settings", settings.config_dir.clone()),
        ("operator's token", secret),
    ];
    let dirs = dirs.into_iter();
    dirs.filter_map(|(what, path)| Some(OwnDir { what, path: path? })).collect()
}

/// The files and directories that an agent always has to ask about, whatever is allowed.
pub fn files(settings: &Settings) -> Vec<PathBuf> {
    let dirs = all(settings).into_iter().map(|dir| dir.path);
    let files = dirs.chain(settings.private.iter().cloned());
    files.map(|path| std::path::absolute(&path).unwrap_or(path)).collect()
}

/// File systems that show processes and devices, by name and by Linux's number. Through them, an agent
/// could reach what other processes have open, and so all of agentwire's files.
const SYSTEM: [(&str, u64); 2] = [("proc", 0x9fa0), ("sysfs", 0x6265_6572)];

/// Refuses a directory at, in or above one of these directories, or on one of the kernel's own file systems.
/// Directories are compared by identity, not by name: links, `..`, mounts and letter case make no
/// difference. For a directory that does not exist yet, the one that would contain it counts. If its name
/// contains `..`, so does the directory that an agent finds by resolving the name alone.
pub fn check(directory: &Path, dirs: &[OwnDir]) -> Result<(), GatewayError> {
    let (found, above) = nearest(directory);
    let rest = directory.strip_prefix(above).unwrap_or(Path::new(""));
    let mut readings = vec![directory.to_owned(), by_name(directory), by_name(&found.join(rest))];
    readings.dedup();
    readings.iter().try_for_each(|reading| check_reading(reading, directory, dirs))
}

fn check_reading(reading: &Path, directory: &Path, dirs: &[OwnDir]) -> Result<(), GatewayError> {
    let (there, above) = nearest(reading);
    let is_there = above == reading;
    if let Some(name) = there.ancestors().chain(reading.ancestors()).find_map(system) {
        let shown = directory.display();
        let message = format!(
            "no agent may work in {shown}: it is on the file system {name}, which shows the files and \
             secrets of other processes; choose a project directory on a disk"
        );
        return Err(GatewayError::new(ErrorCode::Forbidden, message));
    }
    for OwnDir { what, path } in dirs {
        let Some(dir) = identity(path) else { continue };
        let is_within = there.ancestors().any(|above| identity(above) == Some(dir));
        let own = identity(&there);
        let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_above = is_there && canonical.ancestors().any(|above| identity(above) == own);
        if is_within || is_above {
            let (shown, path) = (directory.display(), path.display());
            let message = format!(
                "no agent may work in {shown}: agentwire stores its {what} in {path}; choose a project \
                 directory outside of it and not above it, or move agentwire's files \
                 (AGENTWIRE_DATA_DIR, XDG_CONFIG_HOME)"
            );
            return Err(GatewayError::new(ErrorCode::Forbidden, message));
        }
    }
    Ok(())
}

/// The directory with its links resolved, or its nearest existing ancestor; and the name of that one.
fn nearest(directory: &Path) -> (PathBuf, &Path) {
    for above in directory.ancestors() {
        if let Ok(found) = above.canonicalize() {
            return (found, above);
        }
    }
    (PathBuf::from("/"), Path::new("/"))
}

/// The name of the kernel's own file system that a directory is on, if any.
fn system(path: &Path) -> Option<&'static str> {
    if !cfg!(target_os = "linux") || path.as_os_str().is_empty() {
        return None;
    }
    let found = rustix::fs::statfs(path).ok()?;
    let kind = u64::try_from(found.f_type).ok()?;
    SYSTEM.iter().find(|(_, number)| *number == kind).map(|(name, _)| *name)
}

/// What identifies a directory: device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_in_and_above_are_refused_by_any_name() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        for name in ["home/data/inner", "home/work", "home/database", "other"] {
            fs::create_dir_all(path(name)).expect("a directory");
        }
        std::os::unix::fs::symlink(path("home/data/inner"), path("link")).expect("a link");
        std::os::unix::fs::symlink(path("home"), path("up")).expect("a link");
        std::os::unix::fs::symlink(path("home/data"), path("place")).expect("a link");
        for data in ["home/data", "place"] {
            let dirs = [OwnDir { what: "data", path: path(data) }];
            for refused in [
                "home/data",
                "home/data/",
                "home/data/inner",
                "home/data/not/yet",
                "home/work/../data",
                "home",
                "up",
                "up/data/.",
                "link",
                "place",
                "",
            ] {
                assert!(check(&path(refused), &dirs).is_err(), "{refused}");
            }
            assert!(check(Path::new("/"), &dirs).is_err());
            for fine in ["home/work", "home/work/not/yet", "home/database", "other", "up/work"] {
                assert!(check(&path(fine), &dirs).is_ok(), "{fine}");
            }
        }
        // A directory that does not exist has nothing to protect.
        let dirs = [OwnDir { what: "data", path: path("nowhere") }];
        assert!(check(root.path(), &dirs).is_ok());
    }

    #[test]
    fn a_name_with_dots_is_read_in_every_way() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        for name in ["home/data", "home/work/deep", "other"] {
            fs::create_dir_all(path(name)).expect("a directory");
        }
        std::os::unix::fs::symlink(path("home/work/deep"), path("other/link")).expect("a link");
        let dirs = [OwnDir { what: "data", path: path("home/data") }];
        for refused in [
            "home/missing/..",
            "home/work/missing/../..",
            "home/work/missing/../../data",
            "home/work/missing/../../data/new",
            "other/missing/../../home/data",
            // Through the link, and by its name.
            "other/link/missing/../../..",
            "home/data/../missing/..",
        ] {
            assert!(check(&path(refused), &dirs).is_err(), "{refused}");
        }
        for fine in ["home/work/missing/..", "other/missing/../new", "other/link/missing/.."] {
            assert!(check(&path(fine), &dirs).is_ok(), "{fine}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_directory_of_the_kernels_own_file_systems_is_fine() {
        let root = tempfile::tempdir().expect("a directory");
        let link = root.path().join("link");
        std::os::unix::fs::symlink("/proc/self", &link).expect("a link");
        let own = format!("/proc/{}/root/usr", std::process::id());
        for refused in [
            "/proc",
            "/proc/",
            "/proc/self/fd",
            "/proc/self/cwd",
            "/proc/not/yet",
            "/usr/../proc/1",
            "/usr/missing/../../proc",
            "/dev/fd",
            &own,
            link.to_str().expect("UTF-8"),
        ] {
            let error = check(Path::new(refused), &[]).expect_err(refused);
            assert!(error.message.contains("choose a project directory"), "{error:?}");
        }
        if system(Path::new("/sys")).is_some() {
            assert!(check(Path::new("/sys/kernel"), &[]).is_err());
        }
        for fine in [root.path(), Path::new("/usr"), Path::new("/")] {
            assert!(check(fine, &[]).is_ok(), "{fine:?}");
        }
    }

    #[test]
    fn the_places_are_those_of_now() {
        let root = tempfile::tempdir().expect("a directory");
        let settings = Settings {
            data_dir: root.path().to_owned(),
            config_dir: Some(root.path().join("config")),
            ..Settings::default()
        };
        let what = || all(&settings).into_iter().map(|it| it.what).collect::<Vec<_>>();
        assert_eq!(what(), ["data", "settings"]);
        let text = r#"{"digest":"d","file":"/run/x/token"}"#;
        fs::write(root.path().join(SECRET), text).expect("a file");
        assert_eq!(all(&settings).pop().map(|it| it.path), Some(PathBuf::from("/run/x")));
        fs::write(root.path().join(SECRET), "{").expect("a file");
        assert_eq!(what(), ["data", "settings"]);
        assert!(secret(root.path()).is_err_and(|error| error.to_string().contains("mv '")));
    }
}
