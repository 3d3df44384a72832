//! What a killed keeper leaves behind.
//!
//! If this process is a subreaper, what was below the keeper becomes ours. Such a child is told from
//! any other by its session: a keeper begins one, nobody can go back to ours, and our own children
//! are in it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::process::{Child, Command};

use super::keeper::Patience;
use super::tree;

/// The keepers of this process, whoever started them.
static KEEPERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A keeper that is not to be taken for a stray.
#[derive(Debug)]
pub(super) struct Known(i32);

impl Drop for Known {
    fn drop(&mut self) {
        keepers().remove(&self.0);
    }
}

/// Starts a keeper. No sweep comes between its start and its being known.
pub(super) fn start(command: &mut Command) -> std::io::Result<(Child, Known)> {
    let mut keepers = keepers();
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    keepers.insert(pid);
    Ok((child, Known(pid)))
}

/// How many keepers there are.
pub(super) fn count() -> usize {
    keepers().len()
}

/// Kills and reaps what came to us from below a lost keeper. Blocks, for a few seconds at most.
pub(super) fn sweep() {
    const LIMIT: Duration = Duration::from_secs(5);
    let begun = Instant::now();
    let mut patience = Patience::new();
    while begun.elapsed() < LIMIT {
        let strays = kill();
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            let _ = waitpid(Some(stray), WaitOptions::NOHANG);
        }
        tree::rest(patience.next());
    }
}

/// The strays among our children, killed with all that is below them.
fn kill() -> Vec<Pid> {
    let Some(own) = tree::own() else { return Vec::new() };
    let ours = |entry: &tree::Entry| entry.parent == own.pid.as_raw_pid();
    let keepers = keepers();
    let left = tree::descendants(tree::processes(), |entry| {
        ours(entry) && entry.session != own.session && !keepers.contains(&entry.pid.as_raw_pid())
    });
    tree::kill(&left);
    left.iter().filter(|entry| ours(entry)).map(|entry| entry.pid).collect()
}

fn keepers() -> MutexGuard<'static, BTreeSet<i32>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}
