//! A pid namespace for one agent. Its first process is agentwire's own: when that process ends, for
//! whatever reason, the kernel kills every process in the namespace. None of them can signal, trace or see
//! a process outside. A mount namespace goes with it, for a `/proc` that shows these processes and for
//! hiding agentwire's own files.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities};

/// What a process cannot see of the file system, if it has a mount namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Veil {
    /// Directories and files that appear empty; what does not exist is ignored.
    pub hidden: Vec<PathBuf>,
    /// Directories inside these that stay visible.
    pub shown: Vec<PathBuf>,
    /// What must be at these paths. If anything else is there, or nothing, the process does not start.
    pub identities: Vec<FileIdentity>,
}

impl Veil {
    fn identity(&self, path: &Path) -> Option<&FileIdentity> {
        self.identities.iter().find(|known| known.path == *path)
    }

    /// Holds open what is at the path now, if that is what must be there.
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let held = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let is_known = |known: &FileIdentity| {
            fs::metadata(descriptor(&held)).is_ok_and(|found| known.is(&found))
        };
        if self.identity(path).is_some_and(|known| !is_known(known)) {
            return Err(Errno::STALE);
        }
        Ok(held)
    }
}

/// The identity of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

impl FileIdentity {
    /// The identity of an open file, with the path where it should be.
    pub fn of(path: PathBuf, held: &fs::Metadata) -> Self {
        Self { path, device: held.dev(), inode: held.ino() }
    }

    fn is(&self, found: &fs::Metadata) -> bool {
        (self.device, self.inode) == (found.dev(), found.ino())
    }
}

/// Creates the namespaces. The children of this process are in them from now on; the process itself stays
/// outside the pid namespace. For a process with one thread.
pub(super) fn create() -> io::Result<()> {
    let namespaces = UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    if geteuid().is_root() {
        return unshare(namespaces);
    }
    // Without root, this works as the owner of a user namespace, in which the user stays the same.
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // A process that hides its memory does not own its own `/proc`.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    unshare(namespaces | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

#[expect(deprecated, reason = "the replacement is unsafe only because of UnshareFlags::FILES")]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// Sets up the mounts, as the first process of the namespaces, and then drops the privilege to do so.
pub(super) fn furnish(veil: &Veil) -> io::Result<()> {
    // Later mounts outside are visible here, but not the other way round.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    mount("proc", "/proc", "proc", sealed(), None)?;
    draw(veil)?;
    if !geteuid().is_root() {
        let none = CapabilitySet::empty();
        set_capabilities(
            None,
            CapabilitySets { effective: none, permitted: none, inheritable: none },
        )?;
    }
    Ok(())
}

fn sealed() -> MountFlags {
    MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC
}

fn draw(veil: &Veil) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    if !veil
        .identities
        .iter()
        .all(|known| fs::metadata(&known.path).is_ok_and(|found| known.is(&found)))
    {
        return Err(Errno::STALE.into());
    }
    let mut shown: Vec<(&Path, OwnedFd)> = Vec::new();
    for path in veil.shown.iter().filter(|path| path.is_dir()) {
        let held = veil.open(path)?;
        shown.push((path, open_tree(&held, "", flags)?));
    }
    let mut emptied = Vec::new();
    for Hidden { path, held, is_directory } in outermost(veil)? {
        // Mount on the open descriptor, whatever its path leads to by now.
        let target = descriptor(&held);
        if is_directory {
            mount("tmpfs", target.as_path(), "tmpfs", sealed(), c"mode=0755,size=64k")?;
            emptied.push(path);
        } else {
            mount_bind("/dev/null", target.as_path())?;
        }
    }
    for (path, tree) in shown {
        fs::create_dir_all(path)?;
        move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    }
    for path in emptied {
        mount_remount(path.as_path(), sealed() | MountFlags::RDONLY, "")?;
    }
    let is_seen =
        |known: &FileIdentity| fs::metadata(&known.path).is_ok_and(|found| known.is(&found));
    let hidden = veil.identities.iter().filter(|known| veil.hidden.contains(&known.path));
    match hidden.into_iter().any(is_seen) {
        true => Err(Errno::STALE.into()),
        false => Ok(()),
    }
}

struct Hidden {
    /// The path without links.
    path: PathBuf,
    held: OwnedFd,
    is_directory: bool,
}

/// Those that exist, without those that lie inside another.
fn outermost(veil: &Veil) -> io::Result<Vec<Hidden>> {
    let mut found = Vec::new();
    for path in &veil.hidden {
        let held = match veil.open(path) {
            Ok(held) => held,
            Err(Errno::NOENT) if veil.identity(path).is_none() => continue,
            Err(error) => return Err(error.into()),
        };
        let seen = fs::metadata(descriptor(&held))?;
        let path = fs::read_link(descriptor(&held))?;
        found.push(Hidden { path, held, is_directory: seen.is_dir() });
    }
    // What lies in a directory sorts right after it.
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|one, before| one.path.starts_with(&before.path));
    Ok(found)
}

/// The path that leads to a descriptor of this process.
fn descriptor(held: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(held.as_raw_fd().to_string())
}
