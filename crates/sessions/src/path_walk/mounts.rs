//! The kernel's mount table. Reading it touches none of the mounts.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

const TABLE: &str = "/proc/self/mountinfo";

/// A file system, by its device number.
pub(super) type Device = (u32, u32);

#[derive(Debug, Default)]
pub(super) struct Mounts(HashMap<PathBuf, Device>);

/// The table as it was last read, and the file that reports changes.
static LAST: Mutex<Option<(File, Arc<Mounts>)>> = Mutex::new(None);

/// The current mounts. `None` if the system has no such table.
pub(super) fn now() -> Option<Arc<Mounts>> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((file, mounts)) = &*last
        && !has_changed(file)
    {
        return Some(Arc::clone(mounts));
    }
    let mut file = File::open(TABLE).ok()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    let mounts = Arc::new(Mounts::read(&text));
    *last = Some((file, Arc::clone(&mounts)));
    Some(mounts)
}

/// Whether something was mounted or unmounted since the file was opened.
fn has_changed(file: &File) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::PRI)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)) != Ok(0)
}

impl Mounts {
    /// Parses lines such as `36 35 98:0 / /mnt/data rw - ext4 /dev/sdb rw`. Of two mounts at the same
    /// place, the later one is visible.
    pub(super) fn read(text: &[u8]) -> Self {
        let mounts = text.split(|byte| *byte == b'\n').filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let device = std::str::from_utf8(fields.nth(2)?).ok()?;
            let (major, minor) = device.split_once(':')?;
            let at = PathBuf::from(OsString::from_vec(unescaped(fields.nth(1)?)));
            Some((at, (major.parse().ok()?, minor.parse().ok()?)))
        });
        Self(mounts.collect())
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    /// The file system that a path without links is on.
    pub(super) fn device(&self, path: &Path) -> Option<Device> {
        path.ancestors().find_map(|at| self.0.get(at)).copied()
    }
}

/// A space is `\040` in the table, and so on.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut rest = field;
    let mut plain = Vec::with_capacity(field.len());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let (byte, after) = match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => (byte, after.get(3..).unwrap_or_default()),
            None => (*first, after),
        };
        plain.push(byte);
        rest = after;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_counts_and_of_two_the_later() {
        let table = b"27 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      30 27 0:40 / /mnt/two\\040words rw,relatime shared:1 - nfs4 far:/x rw\n\
                      31 27 0:41 / /mnt/twice rw - tmpfs a rw\n\
                      32 31 0:42 / /mnt/twice rw - tmpfs b rw\n\
                      broken\n";
        let mounts = Mounts::read(table);
        for (path, device) in [
            ("/", (254, 0)),
            ("/mnt/two", (254, 0)),
            ("/mnt/two words", (0, 40)),
            ("/mnt/two words/deep/er", (0, 40)),
            ("/mnt/two wordsandmore", (254, 0)),
            ("/mnt/twice/x", (0, 42)),
        ] {
            assert_eq!(mounts.device(Path::new(path)), Some(device), "{path}");
        }
        assert_eq!(Mounts::default().device(Path::new("/x")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_table_of_this_system_is_read_once_while_nothing_changes() {
        let first = now().expect("a table");
        assert!(first.device(Path::new("/proc/self")).is_some());
        assert_ne!(first.device(Path::new("/proc/self")), first.device(Path::new("/")));
    }
}
