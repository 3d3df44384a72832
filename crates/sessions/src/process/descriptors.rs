//! The limit on file descriptors: this process raises it as far as it can. Agents get the original limit,
//! because a program that uses `select` fails with more.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use agentwire_protocol::{ErrorCode, GatewayError};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// Nobody needs more than this.
const MOST: u64 = 1 << 18;

/// How many must be free to start an agent: for its pipes, its keeper, and what the store needs meanwhile.
const FOR_ONE: usize = 32;

/// The limit that this process was started with.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit on descriptors as far as the system allows. For a program, not for a library.
pub fn raise_descriptors() {
    let given = getrlimit(Resource::Nofile);
    let _ = GIVEN.set(given);
    let wanted = given.maximum.unwrap_or(MOST).min(MOST);
    if given.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: given.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::debug!(%error, "failed to raise the limit on file descriptors");
        }
    }
}

/// The original limit, if we have raised it: a keeper applies it to its agent.
pub(super) fn given() -> Option<u64> {
    GIVEN.get().and_then(|given| given.current)
}

/// Applies this limit to this process and what it starts.
pub(super) fn limit(given: Option<u64>) {
    let now = getrlimit(Resource::Nofile);
    if given.is_some() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: given, maximum: now.maximum });
    }
}

/// Applies the original limit to a process that we started.
pub(super) fn give_back(process: Option<u32>) {
    let process = process.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let (Some(process), Some(given)) = (process, GIVEN.get()) {
        let _ = prlimit(Some(process), Resource::Nofile, *given);
    }
}

/// Refuses to start an agent if there are not enough descriptors for it: running sessions need some too.
pub(crate) fn check_descriptors() -> Result<(), GatewayError> {
    let tried: io::Result<Vec<OwnedFd>> =
        (0..FOR_ONE).map(|_| Ok(rustix::io::dup(rustix::stdio::stderr())?)).collect();
    tried.map(drop).map_err(|error| {
        let message = format!(
            "not enough file descriptors for another agent ({error}); stop a session, or \
             start agentwire with a higher `ulimit -n`"
        );
        GatewayError::new(ErrorCode::Overloaded, message)
    })
}
