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

/// All keepers of this process, no matter who started them, and their fork servers.
static KNOWN: Mutex<Known> =
    Mutex::new(Known { keepers: BTreeSet::new(), servers: BTreeSet::new() });

struct Known {
    keepers: BTreeSet<i32>,
    servers: BTreeSet<i32>,
}

/// Protects a keeper or a fork server from being taken for a stray.
#[derive(Debug)]
pub(super) struct Registered(i32);

impl Drop for Registered {
    fn drop(&mut self) {
        let mut known = known();
        known.keepers.remove(&self.0);
        known.servers.remove(&self.0);
    }
}

/// Starts a fork server. No sweep can run between its start and its registration.
pub(super) fn start(command: &mut Command) -> std::io::Result<(Child, Registered)> {
    let mut known = known();
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    known.servers.insert(pid);
    Ok((child, Registered(pid)))
}

/// Registers a keeper, which becomes our child if its fork server is killed.
pub(super) fn register(keeper: i32) -> Registered {
    known().keepers.insert(keeper);
    Registered(keeper)
}

pub(super) fn count() -> usize {
    known().keepers.len()
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
    let known = known();
    let left = tree::descendants(tree::processes(), |entry| {
        ours(entry) && entry.session != own.session && !known.contains(entry.pid.as_raw_pid())
    });
    tree::kill(&left);
    left.iter().filter(|entry| ours(entry)).map(|entry| entry.pid).collect()
}

impl Known {
    fn contains(&self, pid: i32) -> bool {
        self.keepers.contains(&pid) || self.servers.contains(&pid)
    }
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}
