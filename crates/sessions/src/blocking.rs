//! Work that takes long, kept away from the tasks that share a thread with it.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Work on more bytes than this takes long.
pub const LONG: usize = 256 << 10;

/// Does work that waits, or that takes long. Another thread takes over the tasks of this one meanwhile,
/// however long it takes. Where there is no other thread, as in verbs that serve nobody else, it is done here.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match has_others() {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

/// The same for work on so many bytes: little is done at once.
pub fn blocking_if_long<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LONG { blocking(work) } else { work() }
}

/// Whether this thread is one of several of a runtime.
fn has_others() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

/// Whether this thread can wait for the disk: not if it is the only one of its runtime.
pub(crate) fn may_wait() -> bool {
    has_others() || Handle::try_current().is_err()
}
