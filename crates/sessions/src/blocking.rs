//! Runs long or blocking work without holding up the tasks that share its thread.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Work on more bytes than this counts as long.
pub const LONG: usize = 256 << 10;

/// Runs work that blocks or takes long. Meanwhile another thread takes over the tasks of this one. Without
/// another thread, as in verbs that serve nobody else, the work runs here.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match has_others() {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

/// The same for work on this many bytes: short work runs directly.
pub fn blocking_if_long<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LONG { blocking(work) } else { work() }
}

/// The same for work that waits for the disk once, and may wait long only if the disk hangs. Handing over all
/// tasks of this thread would cost more than the disk itself takes.
///
/// Instead, another thread of the runtime takes over what is ready: the first task spawned here goes to the
/// slot that no other thread can take a task from, and so moves a task that waits there to the queue. The
/// second does the same with the first, and a task in the queue wakes another thread, unless one is awake.
/// That thread takes the tasks, and when it has none left, it waits for the network and the timers.
pub(crate) fn briefly_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current() {
        Ok(runtime) if runtime.metrics().num_workers() > 1 => {
            runtime.spawn(async {});
            runtime.spawn(async {});
            work()
        }
        Ok(_) | Err(_) => blocking(work),
    }
}

/// Whether this thread belongs to a runtime with several threads.
fn has_others() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

/// Whether this thread may wait for the disk: not if it is the only one of its runtime.
pub(crate) fn may_wait() -> bool {
    has_others() || Handle::try_current().is_err()
}
