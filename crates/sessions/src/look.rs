//! Looks at directories that may never answer, as those on an unreachable network file system. Each look
//! has a thread of its own and a time limit: the caller that waits for it holds nobody else up. How many may wait
//! at once is bounded, and of a directory that does not answer one look is enough.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agentwire_protocol::{ErrorCode, GatewayError};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;

/// How long a look may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How many may be under way at once.
const MOST: usize = 64;

/// Those that are under way.
static LOOKS: Looks = Looks::new(MOST);

struct Looks {
    room: Semaphore,
    under_way: Mutex<Vec<(PathBuf, Instant)>>,
}

/// One that is under way, until it is dropped.
struct Look {
    looks: &'static Looks,
    directory: PathBuf,
    begun: Instant,
    _place: SemaphorePermit<'static>,
}

impl Drop for Look {
    fn drop(&mut self) {
        let mut under_way = self.looks.under_way();
        let own = |(at, begun): &(PathBuf, Instant)| *at == self.directory && *begun == self.begun;
        if let Some(found) = under_way.iter().position(own) {
            under_way.swap_remove(found);
        }
    }
}

/// What the look at this directory finds, if the directory answers in time.
pub(crate) async fn look<T: Send + 'static>(
    directory: &Path,
    call: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GatewayError> {
    LOOKS.look(directory, LIMIT, call).await
}

impl Looks {
    const fn new(most: usize) -> Self {
        Self { room: Semaphore::const_new(most), under_way: Mutex::new(Vec::new()) }
    }

    fn under_way(&self) -> MutexGuard<'_, Vec<(PathBuf, Instant)>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look<T: Send + 'static>(
        &'static self,
        directory: &Path,
        limit: Duration,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GatewayError> {
        let hangs = |(at, begun): &(PathBuf, Instant)| {
            directory.starts_with(at) && begun.elapsed() >= limit
        };
        if self.under_way().iter().any(hangs) {
            return Err(unanswered(directory, "an earlier check has not finished"));
        }
        let Ok(Ok(place)) = timeout(limit, self.room.acquire()).await else {
            let message = "too many directories do not answer; try again later";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        };
        let begun = Instant::now();
        self.under_way().push((directory.to_owned(), begun));
        let look = Look { looks: self, directory: directory.to_owned(), begun, _place: place };
        let (sender, answer) = oneshot::channel();
        let work = move || {
            let found = call();
            drop(look);
            // Nobody may wait any more.
            let _ = sender.send(found);
        };
        thread::Builder::new().name("session-disk".to_owned()).spawn(work).map_err(|error| {
            let message = format!("failed to start a thread: {error}; try again later");
            GatewayError::new(ErrorCode::Overloaded, message)
        })?;
        match timeout(limit, answer).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) => Err(GatewayError::new(ErrorCode::Internal, "checking a file failed")),
            Err(_) => Err(unanswered(directory, &format!("no answer in {} s", limit.as_secs()))),
        }
    }
}

/// The error that reports a directory that does not answer.
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

    #[tokio::test]
    async fn a_directory_that_hangs_holds_up_no_other() {
        static LOOKS: Looks = Looks::new(2);
        let (release, hangs) = mpsc::sync_channel::<()>(1);
        let dead = Path::new("/net/dead");
        let held = LOOKS.look(dead, Duration::from_millis(10), move || hangs.recv().is_ok()).await;
        assert_eq!(held.unwrap_err().code, ErrorCode::Timeout);
        // There and below nobody waits again, and elsewhere all goes on.
        for at in [dead, Path::new("/net/dead/below")] {
            let again = LOOKS.look(at, Duration::from_millis(10), || ()).await.unwrap_err();
            assert_eq!(again.code, ErrorCode::Timeout);
        }
        for at in ["/net", "/net/deadly", "/home"] {
            assert_eq!(LOOKS.look(Path::new(at), LONG, || 7).await.unwrap(), 7);
        }
        release.send(()).unwrap();
        while !LOOKS.under_way().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(LOOKS.look(dead, LONG, || 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn so_many_hang_and_no_more() {
        static LOOKS: Looks = Looks::new(1);
        let (release, hangs) = mpsc::sync_channel::<()>(1);
        let short = Duration::from_millis(10);
        let held = LOOKS.look(Path::new("/a"), short, move || hangs.recv().is_ok()).await;
        assert_eq!(held.unwrap_err().code, ErrorCode::Timeout);
        let full = LOOKS.look(Path::new("/b"), short, || ()).await.unwrap_err();
        assert_eq!(full.code, ErrorCode::Overloaded);
        drop(release);
        assert_eq!(LOOKS.look(Path::new("/b"), LONG, || 7).await.unwrap(), 7);
    }
}
