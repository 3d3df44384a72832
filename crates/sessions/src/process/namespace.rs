//! A namespace of processes for one agent. Its first process is agentwire's own: when that ends, for
//! whatever reason, the kernel kills every process in the namespace, and none of them can signal, trace
//! or see a process outside. A namespace of mounts goes with it, for a `/proc` that shows these processes
//! and for hiding agentwire's own files.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, mount_remount, move_mount, open_tree,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, set_capabilities,
};

/// What a process does not see of the file system, where it has a namespace of mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Veil {
    /// Directories that it sees empty, and files that it sees empty; what does not exist is left out.
    pub hidden: Vec<PathBuf>,
    /// Directories in these that it sees all the same.
    pub shown: Vec<PathBuf>,
}

/// Makes the namespaces. The children of this process are in them from now on; it stays outside that of
/// processes. For a process with one thread.
pub(super) fn create() -> io::Result<()> {
    let namespaces = UnshareFlags::NEWPID | UnshareFlags::NEWNS;
    if geteuid().is_root() {
        return unshare(namespaces);
    }
    // Who is not root may do so as the owner of a namespace of users, in which they stay who they are.
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(namespaces | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    // The first process mounts, and only such a set survives its start.
    let own = capabilities(None)?;
    let inheritable = own.inheritable | CapabilitySet::SYS_ADMIN;
    set_capabilities(None, CapabilitySets { inheritable, ..own })?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

#[expect(deprecated, reason = "the new one is unsafe for UnshareFlags::FILES alone")]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// Sets up the mounts, as the first process of the namespaces, and gives up the power to do so.
pub(super) fn furnish(veil: &Veil) -> io::Result<()> {
    // What is mounted outside later is seen here, and not the other way round.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    mount("proc", "/proc", "proc", sealed(), None)?;
    draw(veil)?;
    if !geteuid().is_root() {
        clear_ambient_capability_set()?;
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
        | OpenTreeFlags::AT_RECURSIVE;
    let shown: Vec<(&Path, OwnedFd)> = veil
        .shown
        .iter()
        .filter(|path| path.is_dir())
        .map(|path| Ok((path.as_path(), open_tree(CWD, path.as_path(), flags)?)))
        .collect::<io::Result<_>>()?;
    let mut emptied = Vec::new();
    for path in outermost(&veil.hidden)? {
        if fs::metadata(&path)?.is_dir() {
            mount("tmpfs", path.as_path(), "tmpfs", sealed(), c"mode=0755,size=64k")?;
            emptied.push(path);
        } else {
            mount_bind("/dev/null", path.as_path())?;
        }
    }
    for (path, tree) in shown {
        fs::create_dir_all(path)?;
        move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    }
    for path in emptied {
        mount_remount(path.as_path(), sealed() | MountFlags::RDONLY, "")?;
    }
    Ok(())
}

/// Those that exist, without links, and without those that lie in another.
fn outermost(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        match fs::canonicalize(path) {
            Ok(path) => found.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    // What lies in a directory comes right after it.
    found.sort();
    found.dedup_by(|path, before| path.starts_with(before));
    Ok(found)
}
