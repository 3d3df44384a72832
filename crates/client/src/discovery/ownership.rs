//! Checks who owns the files that lead to a server. The client would send a token to wherever another
//! user's file points.

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
            "the link {shown} belongs to another user, who can redirect it; set AGENTWIRE_DATA_DIR to \
             the data directory itself"
        )
    } else if is_foreign(&found) {
        format!(
            "the data directory {shown} belongs to another user; take ownership with chown {own} {quoted}, \
             or set AGENTWIRE_DATA_DIR to another directory"
        )
    } else if found.mode() & 0o022 != 0 {
        format!(
            "the data directory {shown} is writable by others; restrict it with chmod 700 {quoted}"
        )
    } else {
        return Ok(());
    };
    Err(AgentError::invalid(message))
}

/// Opens a file that a server wrote to its data directory. Refuses links, files of another user, and files
/// that others can write.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) => {
            return Err(planted(path, "is a link, and agentwire creates none"));
        }
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    match found.mode() & 0o022 == 0 {
        _ if is_foreign(&found) => Err(planted(path, "belongs to another user")),
        true => Ok(file),
        false => Err(planted(path, "is writable by others")),
    }
}

fn planted(path: &Path, why: &str) -> io::Error {
    let path = path.display();
    let (from, to) = (quoted(&path.to_string()), quoted(&format!("{path}.foreign")));
    let message = format!("it {why}; move it away and restart the server: mv {from} {to}");
    io::Error::new(io::ErrorKind::PermissionDenied, message)
}

/// Refuses a token file that agentwire created if others own it or can write it, or its directory.
pub(super) fn check_token(file: &Path) -> Result<(), AgentError> {
    for path in [Some(file), file.parent()].into_iter().flatten() {
        let Ok(found) = fs::symlink_metadata(path) else { continue };
        if found.is_symlink() || is_foreign(&found) || found.mode() & 0o022 != 0 {
            let (file, path) = (file.display(), path.display());
            return Err(AgentError::invalid(format!(
                "the token in {file} cannot be trusted: {path} is a link, belongs to another user or is \
                 writable by others; run `agentwire token show` to see what to do"
            )));
        }
    }
    Ok(())
}

/// Owned by neither this user nor root.
fn is_foreign(found: &Metadata) -> bool {
    found.uid() != rustix::process::geteuid().as_raw() && found.uid() != 0
}
