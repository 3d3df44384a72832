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

/// Whether this thread belongs to a runtime with several threads.
fn has_others() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

/// Whether this thread may wait for the disk: not if it is the only one of its runtime.
pub(crate) fn may_wait() -> bool {
    has_others() || Handle::try_current().is_err()
}
