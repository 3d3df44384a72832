//! agentwire's own directories: no agent works at, in or above one of them.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agentwire_protocol::{ErrorCode, GatewayError};
use serde::{Deserialize, Serialize};

use crate::Settings;

/// The file of a data directory that says where the operator's token is.
pub const SECRET: &str = "operator.json";

/// What a data directory keeps of the operator's token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// SHA-256 of the token, in hex.
    pub digest: String,
    /// The file that has the token.
    pub file: PathBuf,
}

/// What that data directory keeps of the operator's token, if there is one.
pub fn secret(data_dir: &Path) -> io::Result<Option<Secret>> {
    let path = data_dir.join(SECRET);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let path = path.display();
        let message = format!(
            "failed to read {path}: {error}; remove it, and a new token is made: rm '{path}'"
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// One of agentwire's own directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What it holds.
    pub what: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// agentwire's own directories, as they are now: the data directory, that of the settings, and that of
/// the operator's token.
pub fn places(settings: &Settings) -> Vec<Place> {
    // A file that cannot be read names nothing; the data directory is one of the places all the same.
    let secret = secret(&settings.data_dir).ok().flatten();
    let secret = secret.and_then(|secret| secret.file.parent().map(Path::to_owned));
    let places = [
        ("data", Some(settings.data_dir.clone())),
        ("settings", settings.config_dir.clone()),
        ("operator's token", secret),
    ];
    let places = places.into_iter();
    places.filter_map(|(what, path)| Some(Place { what, path: path? })).collect()
}

/// The files and directories that an agent asks about every time, whatever is allowed.
pub fn files(settings: &Settings) -> Vec<PathBuf> {
    let places = places(settings).into_iter().map(|place| place.path);
    let files = places.chain(settings.private.iter().cloned());
    files.map(|path| std::path::absolute(&path).unwrap_or(path)).collect()
}

/// Refuses a directory at, in or above one of these places. Directories are compared by what they are,
/// not by name: links, `..`, mounts and the case of letters make no difference. Of a directory that does
/// not exist yet, the one that it would be in counts.
pub fn check(directory: &Path, places: &[Place]) -> Result<(), GatewayError> {
    let (there, is_there) = nearest(directory);
    for Place { what, path } in places {
        let Some(place) = identity(path) else { continue };
        let is_within = there.ancestors().any(|above| identity(above) == Some(place));
        let own = identity(&there);
        let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_above = is_there && canonical.ancestors().any(|above| identity(above) == own);
        if is_within || is_above {
            let (shown, path) = (directory.display(), path.display());
            let message = format!(
                "no agent may work in {shown}: agentwire keeps its {what} in {path}. Choose a project \
                 directory outside of it and not above it, or move agentwire's files \
                 (AGENTWIRE_DATA_DIR, XDG_CONFIG_HOME)"
            );
            return Err(GatewayError::new(ErrorCode::Forbidden, message));
        }
    }
    Ok(())
}

/// The directory with its links resolved, or the nearest above it that exists; and whether it exists.
fn nearest(directory: &Path) -> (PathBuf, bool) {
    for above in directory.ancestors() {
        if let Ok(found) = above.canonicalize() {
            return (found, above == directory);
        }
    }
    (PathBuf::from("/"), false)
}

/// What tells a directory from every other.
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
            let places = [Place { what: "data", path: path(data) }];
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
                assert!(check(&path(refused), &places).is_err(), "{refused}");
            }
            assert!(check(Path::new("/"), &places).is_err());
            for fine in ["home/work", "home/work/not/yet", "home/database", "other", "up/work"] {
                assert!(check(&path(fine), &places).is_ok(), "{fine}");
            }
        }
        // One that does not exist has nothing to protect.
        let places = [Place { what: "data", path: path("nowhere") }];
        assert!(check(root.path(), &places).is_ok());
    }

    #[test]
    fn the_places_are_those_of_now() {
        let root = tempfile::tempdir().expect("a directory");
        let settings = Settings {
            data_dir: root.path().to_owned(),
            config_dir: Some(root.path().join("config")),
            ..Settings::default()
        };
        let what = || places(&settings).into_iter().map(|it| it.what).collect::<Vec<_>>();
        assert_eq!(what(), ["data", "settings"]);
        let text = r#"{"digest":"d","file":"/run/x/token"}"#;
        fs::write(root.path().join(SECRET), text).expect("a file");
        assert_eq!(places(&settings).pop().map(|it| it.path), Some(PathBuf::from("/run/x")));
        fs::write(root.path().join(SECRET), "{").expect("a file");
        assert_eq!(what(), ["data", "settings"]);
        assert!(secret(root.path()).is_err_and(|error| error.to_string().contains("rm '")));
    }
}
