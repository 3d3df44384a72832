//! The operator's own token. The secret is in a private directory outside the data directory. The data
//! directory stores its digest and its path (docs/decisions/0010-operator-token.md).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agentwire_protocol::shell::quoted;
use agentwire_sessions::held_dir::HeldDir;
use agentwire_sessions::own_dirs::{self, Secret};
use agentwire_sessions::private_dir::{PrivateDirectory, remove_unused};
use agentwire_sessions::settings::aside;

use super::{digest, new_secret, write_private};

/// The prefix of a secret's directory name.
const PREFIX: &str = "agentwire-operator-";

/// The name of the file in that directory.
const NAME: &str = "token";

/// The shortest token that is accepted: one that was truncated or invented is not random enough.
const SHORTEST: usize = 32;

/// Older versions stored the secret in this file of the data directory. If it exists, it is moved.
const FORMER: &str = "token";

/// The file has a token, but another one.
const FOREIGN: &str = "is not the token of this data directory";

/// The operator's token, as it was when it was opened.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) file: PathBuf,
    /// Held because programs that clean up temporary directories skip locked ones.
    _lock: Option<File>,
}

impl Operator {
    /// Opens the token, and creates one if there is none. The caller must have locked the data directory.
    pub(super) fn open(data_dir: &Path, base: &Path) -> io::Result<Self> {
        let former = data_dir.join(FORMER);
        if let Some(secret) = read(&former)? {
            let operator = make(data_dir, base, &secret)?;
            fs::remove_file(&former)?;
            return Ok(operator);
        }
        let Some(known) = own_dirs::secret(data_dir)? else {
            return make(data_dir, base, &new_secret());
        };
        check_private(data_dir, &known.file)?;
        match read(&known.file)? {
            Some(secret) if digest(&secret) == known.digest => {
                let lock = File::open(known.file.parent().unwrap_or(Path::new("/")))?;
                lock.lock_shared()?;
                Ok(Self { file: known.file, _lock: Some(lock) })
            }
            Some(_) => Err(wrong(&known.file, FOREIGN)),
            None => make(data_dir, base, &new_secret()),
        }
    }
}

pub(super) fn secret(data_dir: &HeldDir) -> io::Result<String> {
    if let Some(known) = own_dirs::secret(data_dir.path())? {
        check_private(data_dir.name(), &known.file)?;
        if let Some(secret) = read(&known.file)? {
            return match digest(&secret) == known.digest {
                true => Ok(secret),
                false => Err(wrong(&known.file, FOREIGN)),
            };
        }
    }
    let message = "the operator's token is missing; `agentwire token show` creates a new one";
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

/// The directory for secrets: one that only this user can enter, or at least one in which only this user
/// can remove them. A restart of the machine clears it.
pub(super) fn base() -> PathBuf {
    let own = rustix::process::geteuid().as_raw();
    let user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let users = [user, Some(PathBuf::from(format!("/run/user/{own}")))];
    let is_private = |path: &PathBuf| {
        let found = fs::metadata(path);
        path.is_absolute()
            && found.is_ok_and(|it| it.is_dir() && it.uid() == own && it.mode() & 0o077 == 0)
    };
    if let Some(path) = users.into_iter().flatten().find(is_private) {
        return path;
    }
    let shared = PathBuf::from("/dev/shm");
    let is_sticky =
        fs::metadata(&shared).is_ok_and(|it| it.is_dir() && it.mode() & 0o1777 == 0o1777);
    if is_sticky { shared } else { std::env::temp_dir() }
}

fn make(data_dir: &Path, base: &Path, secret: &str) -> io::Result<Operator> {
    tidy(base);
    let directory = PrivateDirectory::new(base, PREFIX)?;
    let file = directory.path().join(NAME);
    let before = own_dirs::secret(data_dir)?;
    write_private(&file, &format!("{secret}\n"))?;
    write_private(&directory.path().join("of"), &format!("{}\n", data_dir.display()))?;
    let known = Secret { digest: digest(secret), file: file.clone() };
    let text = serde_json::to_string(&known)?;
    // From here on, the new token is valid and the old one is not.
    write_private(&data_dir.join(own_dirs::SECRET), &format!("{text}\n"))?;
    if let Some(directory) = before.as_ref().and_then(|before| before.file.parent())
        && directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
    {
        let _ = fs::remove_dir_all(directory);
    }
    let lock = directory.keep();
    lock.as_ref().map(File::lock_shared).transpose()?;
    Ok(Operator { file, _lock: lock })
}

/// Removes the secrets of data directories that no longer exist.
fn tidy(base: &Path) {
    remove_unused(base, PREFIX, |directory| {
        let of = fs::read_to_string(directory.join("of")).ok();
        let known =
            of.and_then(|of| own_dirs::secret(Path::new(of.trim_end_matches('\n'))).ok().flatten());
        known.is_none_or(|known| known.file.parent() != Some(directory))
    });
}

/// Refuses a token that others can read, or whose directory others can enter or have created.
fn check_private(data_dir: &Path, file: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let directory = file.parent().map(|directory| (directory, 0o700));
    for (path, mode) in [Some((file, 0o600)), directory].into_iter().flatten() {
        // Do not follow links: agentwire creates none.
        let Ok(found) = fs::symlink_metadata(path) else { continue };
        let (file, shown) = (file.display(), path.display());
        let message = if found.is_symlink() || (found.uid() != own && found.uid() != 0) {
            let (from, to) = aside(&data_dir.join(own_dirs::SECRET), "old");
            format!(
                "{shown} is a link or belongs to another user, so the token in {file} cannot be \
                 trusted; to get a new one: mv {from} {to}"
            )
        } else if found.mode() & 0o077 != 0 {
            format!(
                "other users can access the token in {file}; make it private: chmod {mode:o} {}",
                quoted(&shown.to_string())
            )
        } else {
            continue;
        };
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

/// The token in a file, if the file exists. Refuses content that cannot be a token.
fn read(file: &Path) -> io::Result<Option<String>> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message = format!("failed to read the token in {}: {error}", file.display());
            return Err(io::Error::new(error.kind(), message));
        }
    };
    let text = text.trim_ascii();
    if text.len() < SHORTEST {
        return Err(wrong(file, &format!("is shorter than {SHORTEST} characters")));
    }
    match String::from_utf8(text.to_vec()) {
        Ok(secret) if secret.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(secret)),
        Ok(_) | Err(_) => Err(wrong(file, "has characters that no token may have")),
    }
}

/// The error, with what to do about it. It suggests removing only files in directories that agentwire made.
fn wrong(file: &Path, why: &str) -> io::Error {
    let (shown, quoted) = (file.display(), quoted(&file.to_string_lossy()));
    let message = match is_made(file) {
        true => {
            format!("the token in {shown} {why}; to get a new one, remove it: rm {quoted}")
        }
        false => format!(
            "the token in {shown} {why}: agentwire did not write it like this; to get a new one, move \
             it away: mv {quoted} {}, or choose another data directory with AGENTWIRE_DATA_DIR",
            self::quoted(&format!("{shown}.old"))
        ),
    };
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Whether a file is the token in a private directory that agentwire made.
fn is_made(file: &Path) -> bool {
    let directory = file.parent().and_then(Path::file_name);
    file.file_name().is_some_and(|name| name == NAME)
        && directory.is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
}
