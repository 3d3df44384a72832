//! Whose files those are by which a server is found. What another user put there would be sent a token.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use agentwire_protocol::shell::quoted;
use rustix::fs::OFlags;

use crate::error::AgentError;

/// Refuses a data directory that another user owns, or that others can write.
pub(super) fn check_data_dir(data_dir: &Path) -> Result<(), AgentError> {
    let Ok(found) = data_dir.metadata() else { return Ok(()) };
    let (shown, own) = (data_dir.display(), rustix::process::geteuid().as_raw());
    let quoted = quoted(&shown.to_string());
    let link = data_dir.symlink_metadata().ok().filter(Metadata::is_symlink);
    let message = if link.is_some_and(|link| is_foreign(&link)) {
        format!(
            "the link {shown} belongs to another user, who chooses where it leads; name the data \
             directory itself with AGENTWIRE_DATA_DIR"
        )
    } else if is_foreign(&found) {
        format!(
            "the data directory {shown} belongs to another user; take it over: chown {own} {quoted}, or \
             choose another with AGENTWIRE_DATA_DIR"
        )
    } else if found.mode() & 0o022 != 0 {
        format!(
            "others can write the data directory {shown}; keep it to yourself: chmod 700 {quoted}"
        )
    } else {
        return Ok(());
    };
    Err(AgentError::invalid(message))
}

/// Opens a file that a server wrote in its data directory: its own file, not a link. What another user
/// owns, or others can write, is refused.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => {
            return Err(planted(path, "is a link, and agentwire makes none"));
        }
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    match found.mode() & 0o022 == 0 {
        _ if is_foreign(&found) => Err(planted(path, "belongs to another user")),
        true => Ok(file),
        false => Err(planted(path, "can be written by others")),
    }
}

fn planted(path: &Path, why: &str) -> io::Error {
    let path = path.display();
    let (from, to) = (quoted(&path.to_string()), quoted(&format!("{path}.foreign")));
    let message = format!("it {why}; move it away, and start the server again: mv {from} {to}");
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// Refuses the file of a token that agentwire made if it, or its directory, is not this user's alone.
pub(super) fn check_token(file: &Path) -> Result<(), AgentError> {
    for path in [Some(file), file.parent()].into_iter().flatten() {
        let Ok(found) = fs::symlink_metadata(path) else { continue };
        if found.is_symlink() || is_foreign(&found) || found.mode() & 0o022 != 0 {
            let (file, path) = (file.display(), path.display());
            return Err(AgentError::invalid(format!(
                "the token in {file} is not to be trusted: {path} is a link, belongs to another user or \
                 can be written by others; `agentwire token show` says what to do"
            )));
        }
    }
    Ok(())
}

/// Neither this user's nor root's.
fn is_foreign(found: &Metadata) -> bool {
    found.uid() != rustix::process::geteuid().as_raw() && found.uid() != 0
}
