//! Ends what a killed keeper leaves behind.
//!
//! If this process is a subreaper, the processes below the keeper become our children. Their session
//! distinguishes them from our other children: a keeper starts its own session, no process can return to
//! ours, and our own children are in ours.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};
use tokio::process::{Child, Command};

use super::keeper::Patience;
use super::tree;

/// All keepers of this process, no matter who started them.
static KEEPERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Protects a keeper from being taken for a stray.
#[derive(Debug)]
pub(super) struct RegisteredKeeper(i32);

impl Drop for RegisteredKeeper {
    fn drop(&mut self) {
        keepers().remove(&self.0);
    }
}

/// Starts a keeper. No sweep can run between its start and its registration.
pub(super) fn start(command: &mut Command) -> std::io::Result<(Child, RegisteredKeeper)> {
    let mut keepers = keepers();
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    keepers.insert(pid);
    Ok((child, RegisteredKeeper(pid)))
}

pub(super) fn count() -> usize {
    keepers().len()
}

/// Kills and reaps what we inherited from a lost keeper. Blocks for a few seconds at most.
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

/// Kills the strays among our children with everything below them, and returns these children.
fn kill() -> Vec<Pid> {
    let Some(own) = tree::own() else { return Vec::new() };
    let ours = |entry: &tree::ProcessEntry| entry.parent == own.pid.as_raw_pid();
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
