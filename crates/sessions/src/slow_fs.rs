//! Accesses directories that may never answer, such as those on an unreachable network file system. Each
//! access has its own thread and a time limit, so a caller that waits for it does not hold up others. The
//! number of accesses in progress is bounded. A directory that does not answer is accessed only once, and
//! an access that nobody waits for any more takes no place from others.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agentwire_protocol::{ErrorCode, GatewayError};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

use crate::path_walk::{ReachedPath, reach};

/// How long an access may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How many accesses may be in progress at once.
const MOST: usize = 64;

/// How many abandoned threads may hang in addition. One file system blocks only a [few](crate::path_walk),
/// so this covers many file systems.
const LEFT: usize = 256;

static ACCESSES: DirectoryAccesses = DirectoryAccesses::new(MOST, LEFT);

struct DirectoryAccesses {
    room: Semaphore,
    /// Room for accesses that nobody waits for.
    left: Semaphore,
    under_way: Mutex<Vec<(PathBuf, Instant)>>,
}

/// The permit of an access; `None` once it is done.
type PermitSlot = Arc<Mutex<Option<SemaphorePermit<'static>>>>;

/// An access in progress, until it is dropped.
struct DirectoryAccess {
    accesses: &'static DirectoryAccesses,
    directory: PathBuf,
    begun: Instant,
    permit: PermitSlot,
}

/// The caller that waits for an access. When dropped, the access gives its permit back, done or not.
struct Waiter {
    accesses: &'static DirectoryAccesses,
    permit: PermitSlot,
}

impl Drop for DirectoryAccess {
    fn drop(&mut self) {
        let mut under_way = self.accesses.under_way();
        let own = |(at, begun): &(PathBuf, Instant)| *at == self.directory && *begun == self.begun;
        if let Some(found) = under_way.iter().position(own) {
            under_way.swap_remove(found);
        }
        drop(locked(&self.permit).take());
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut permit = locked(&self.permit);
        if permit.is_some()
            && let Ok(left) = self.accesses.left.try_acquire()
        {
            *permit = Some(left);
        }
    }
}

/// Runs `call` on this directory, if it answers in time. `call` should drop its argument before it looks
/// elsewhere: until then, its thread counts as being on the directory's file system.
pub(crate) async fn access<T: Send + 'static>(
    directory: &Path,
    call: impl FnOnce(ReachedPath) -> T + Send + 'static,
) -> Result<T, GatewayError> {
    ACCESSES.access(directory, LIMIT, call).await
}

impl DirectoryAccesses {
    const fn new(most: usize, left: usize) -> Self {
        let (room, left) = (Semaphore::const_new(most), Semaphore::const_new(left));
        Self { room, left, under_way: Mutex::new(Vec::new()) }
    }

    fn under_way(&self) -> MutexGuard<'_, Vec<(PathBuf, Instant)>> {
        locked(&self.under_way)
    }

    async fn access<T: Send + 'static>(
        &'static self,
        directory: &Path,
        limit: Duration,
        call: impl FnOnce(ReachedPath) -> T + Send + 'static,
    ) -> Result<T, GatewayError> {
        let known = || unanswered(directory, "an earlier check has not finished");
        let hangs = |(at, begun): &(PathBuf, Instant)| {
            directory.starts_with(at) && begun.elapsed() >= limit
        };
        if self.under_way().iter().any(hangs) {
            return Err(known());
        }
        let Ok(Ok(permit)) = timeout(limit, self.room.acquire()).await else {
            let message = "too many directories do not answer; try again later";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        };
        let begun = Instant::now();
        self.under_way().push((directory.to_owned(), begun));
        let permit: PermitSlot = Arc::new(Mutex::new(Some(permit)));
        let _waiting = Waiter { accesses: self, permit: Arc::clone(&permit) };
        let access =
            DirectoryAccess { accesses: self, directory: directory.to_owned(), begun, permit };
        let (sender, answer) = oneshot::channel();
        let work = move || {
            let found = reach(&access.directory, limit).map(call);
            drop(access);
            // The caller may be gone.
            let _ = sender.send(found);
        };
        thread::Builder::new().name("session-disk".to_owned()).spawn(work).map_err(|error| {
            let message = format!("failed to start a thread: {error}; try again later");
            GatewayError::new(ErrorCode::Overloaded, message)
        })?;
        match timeout(limit, answer).await {
            Ok(Ok(Some(found))) => Ok(found),
            Ok(Ok(None)) => Err(known()),
            Ok(Err(_)) => {
                Err(GatewayError::new(ErrorCode::Internal, "failed to check a directory"))
            }
            Err(_) => Err(unanswered(directory, &format!("no answer in {} s", limit.as_secs()))),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn unanswered(directory: &Path, why: &str) -> GatewayError {
    let directory = directory.display();
    let message = format!(
        "the directory {directory} does not answer: {why}; is it on an unreachable network file system?"
    );
    GatewayError::new(ErrorCode::Timeout, message)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(10);

    /// An access that hangs until it is released.
    async fn hang(accesses: &'static DirectoryAccesses, at: &str) -> mpsc::SyncSender<()> {
        let (release, hangs) = mpsc::sync_channel::<()>(1);
        let call = move |here| {
            drop(here);
            hangs.recv().is_ok()
        };
        let held = accesses.access(Path::new(at), SHORT, call).await;
        assert_eq!(held.unwrap_err().code, ErrorCode::Timeout);
        release
    }

    #[tokio::test]
    async fn a_directory_that_hangs_holds_up_no_other() {
        static ACCESSES: DirectoryAccesses = DirectoryAccesses::new(2, 2);
        let release = hang(&ACCESSES, "/net/dead").await;
        // Nobody waits there or below again, and other directories work as usual.
        for at in ["/net/dead", "/net/dead/below"] {
            let again = ACCESSES.access(Path::new(at), SHORT, |_| ()).await.unwrap_err();
            assert_eq!(again.code, ErrorCode::Timeout);
        }
        for at in ["/net", "/net/deadly", "/home"] {
            assert_eq!(ACCESSES.access(Path::new(at), LONG, |_| 7).await.unwrap(), 7);
        }
        release.send(()).unwrap();
        while !ACCESSES.under_way().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(ACCESSES.access(Path::new("/net/dead"), LONG, |_| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn those_that_hang_take_no_place_and_are_bounded() {
        static ACCESSES: DirectoryAccesses = DirectoryAccesses::new(1, 2);
        let mut held = Vec::new();
        for at in ["/a", "/b"] {
            held.push(hang(&ACCESSES, at).await);
            assert_eq!(ACCESSES.access(Path::new("/well"), LONG, |_| 7).await.unwrap(), 7);
        }
        held.push(hang(&ACCESSES, "/c").await);
        let full = ACCESSES.access(Path::new("/well"), SHORT, |_| ()).await.unwrap_err();
        assert_eq!(full.code, ErrorCode::Overloaded);
        drop(held);
        assert_eq!(ACCESSES.access(Path::new("/well"), LONG, |_| 7).await.unwrap(), 7);
        while ACCESSES.left.available_permits() < 2 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_caller_that_goes_leaves_its_place_to_others() {
        static ACCESSES: DirectoryAccesses = DirectoryAccesses::new(1, 1);
        let (release, hangs) = mpsc::sync_channel::<()>(1);
        let (inside, is_inside) = oneshot::channel();
        let call = move |here| {
            drop(here);
            inside.send(()).unwrap();
            hangs.recv().is_ok()
        };
        let caller = tokio::spawn(ACCESSES.access(Path::new("/a"), LONG, call));
        is_inside.await.unwrap();
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(ACCESSES.access(Path::new("/well"), LONG, |_| 7).await.unwrap(), 7);
        drop(release);
    }
}
