//! Follows a path step by step, and takes no step onto a file system that does not answer, such as one of
//! an unreachable server. The kernel's mount table, which can be read without touching any mount, says
//! which file system a step is on. So a thread that hangs is known to hang there, whatever path or links
//! led to it, and the number of threads that one file system can block is bounded.

mod mounts;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::mounts::{Device, Mounts};

/// How many links are followed, as in Linux.
const LINKS: usize = 40;

/// How many threads may be on one file system at once. More of them wait.
const MOST: usize = 16;

/// How long they wait while no thread there makes progress. It is short because waiting threads take up the
/// places of others.
const SLOW: Duration = Duration::from_secs(2);

static VISITS: Visits = Visits::new(MOST, SLOW);

struct Visits {
    most: usize,
    slow: Duration,
    under_way: Mutex<UnderWay>,
    left: Condvar,
}

#[derive(Default)]
struct UnderWay {
    next: u64,
    visits: Vec<Step>,
}

/// The last step of a visit.
struct Step {
    id: u64,
    device: Device,
    begun: Instant,
}

/// A thread on its way. Until dropped, it counts as being on the file system of its last step.
struct Visit {
    visits: &'static Visits,
    id: Option<u64>,
}

/// The end of a path. Until dropped, its thread counts as being on that file system.
pub(crate) struct ReachedPath {
    /// The path with all links followed, whether or not its end exists; the root, if there are too many
    /// links.
    pub(crate) path: PathBuf,
    _visit: Visit,
}

/// Follows a path to its end. Returns `None` if the path leads to a file system where another thread has
/// been waiting for `patience`. The first thread there hangs.
pub(crate) fn reach(path: &Path, patience: Duration) -> Option<ReachedPath> {
    let target = |at: &Path| {
        let is_link = fs::symlink_metadata(at).is_ok_and(|found| found.is_symlink());
        if is_link { fs::read_link(at).ok() } else { None }
    };
    VISITS.reach(path, patience, mounts::now().as_deref(), target)
}

/// The path without `.` and `..`, resolved by name only.
pub(crate) fn by_name(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Whether a file system is mounted at this path, which must not contain links.
pub(crate) fn is_mount(path: &Path) -> bool {
    mounts::now().is_some_and(|mounts| mounts.has(path))
}

impl Visits {
    const fn new(most: usize, slow: Duration) -> Self {
        let under_way = Mutex::new(UnderWay { next: 0, visits: Vec::new() });
        Self { most, slow, under_way, left: Condvar::new() }
    }

    /// `target` returns where a link leads, and is the only thing that touches the disk.
    fn reach(
        &'static self,
        path: &Path,
        patience: Duration,
        mounts: Option<&Mounts>,
        target: impl Fn(&Path) -> Option<PathBuf>,
    ) -> Option<ReachedPath> {
        let device = |at: &Path| mounts.and_then(|mounts| mounts.device(at));
        let mut visit = Visit { visits: self, id: None };
        let mut at = PathBuf::from("/");
        let mut rest = Vec::new();
        put(&mut rest, &std::path::absolute(path).ok()?);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            at.push(part);
            visit.step(device(&at), patience)?;
            let Some(target) = target(&at) else { continue };
            links += 1;
            if links > LINKS {
                at = PathBuf::from("/");
                break;
            }
            at.pop();
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            put(&mut rest, &target);
        }
        visit.step(device(&at), patience)?;
        Some(ReachedPath { path: at, _visit: visit })
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, under_way: &mut UnderWay, id: u64) {
        let is_waited_for = under_way.visits.len() >= self.most;
        under_way.visits.retain(|step| step.id != id);
        if is_waited_for {
            self.left.notify_all();
        }
    }
}

impl Visit {
    /// Steps onto this file system. Returns `None` if it does not answer.
    fn step(&mut self, device: Option<Device>, patience: Duration) -> Option<()> {
        let mut under_way = self.visits.under_way();
        if let Some(id) = self.id {
            let own = under_way.visits.iter_mut().find(|step| step.id == id);
            if let Some(own) = own.filter(|own| Some(own.device) == device) {
                own.begun = Instant::now();
                return Some(());
            }
            self.visits.leave(&mut under_way, id);
            self.id = None;
        }
        // The file system is unknown.
        let Some(device) = device else { return Some(()) };
        loop {
            let there = under_way.visits.iter().filter(|step| step.device == device);
            let times: Vec<Duration> = there.map(|step| step.begun.elapsed()).collect();
            let is_full = times.len() >= self.visits.most;
            let slow = if is_full { self.visits.slow.min(patience) } else { patience };
            let longest = times.into_iter().max();
            if longest.is_some_and(|longest| longest >= slow) {
                return None;
            }
            if !is_full {
                let id = under_way.next;
                under_way.next += 1;
                under_way.visits.push(Step { id, device, begun: Instant::now() });
                self.id = Some(id);
                return Some(());
            }
            let rest = slow.saturating_sub(longest.unwrap_or_default());
            let waited = self.visits.left.wait_timeout(under_way, rest);
            (under_way, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let mut under_way = self.visits.under_way();
            self.visits.leave(&mut under_way, id);
        }
    }
}

/// Pushes the parts of a path onto `rest`, the first part last.
fn put(rest: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    rest.extend(parts);
}
