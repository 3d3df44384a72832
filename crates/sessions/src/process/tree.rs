//! Process trees and signals to them. Reads `/proc`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal,
};

/// A process as `/proc` showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessEntry {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) session: i32,
    group: i32,
    state: u8,
    /// The start time distinguishes it from a later process with the same pid.
    started: u64,
}

pub(super) fn processes() -> Vec<ProcessEntry> {
    let Ok(directory) = fs::read_dir("/proc") else { return Vec::new() };
    directory
        .filter_map(|entry| ProcessEntry::read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// This process. In a pid namespace its session and its group can be 0, because their leaders are outside.
/// So they are read here, where 0 is a number like any other.
pub(super) fn own() -> Option<ProcessEntry> {
    ProcessEntry::read(getpid().as_raw_pid())
}

/// The current children of `root` and everything below them.
pub(super) fn below(root: Pid) -> Vec<ProcessEntry> {
    descendants(processes(), |entry| entry.parent == root.as_raw_pid())
}

/// The processes that `first` selects, and everything below them.
pub(super) fn descendants(
    mut all: Vec<ProcessEntry>,
    first: impl Fn(&ProcessEntry) -> bool,
) -> Vec<ProcessEntry> {
    let mut found: BTreeSet<i32> =
        all.iter().filter(|entry| first(entry)).map(|entry| entry.pid.as_raw_pid()).collect();
    // A child's pid can be smaller than its parent's, so one pass is not always enough.
    loop {
        let before = found.len();
        for entry in &all {
            if found.contains(&entry.parent) {
                found.insert(entry.pid.as_raw_pid());
            }
        }
        if found.len() == before {
            break;
        }
    }
    all.retain(|entry| found.contains(&entry.pid.as_raw_pid()));
    all
}

/// Kills them, and every process in a process group with one of them: the kernel kills a group as a whole,
/// however fast it forks. All members of a group are in one session, and our trees start their own session,
/// so no unrelated process is in it.
pub(super) fn kill(victims: &[ProcessEntry]) {
    for victim in victims {
        victim.signal(Signal::KILL);
    }
    let Some(own) = own().map(|own| own.group) else { return };
    let groups: BTreeSet<i32> = victims.iter().map(|victim| victim.group).collect();
    for group in groups.into_iter().filter(|group| *group != own).filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Stops everything below `root`. The next pass finds processes that were forked before the stop took
/// effect.
pub(super) fn pause(root: Pid) {
    const LOOKS: usize = 50;
    for _ in 0..LOOKS {
        let mut running = below(root);
        running.retain(|entry| !matches!(entry.state, b'T' | b't' | b'Z' | b'X'));
        if running.is_empty() {
            return;
        }
        for entry in &running {
            entry.signal(Signal::STOP);
        }
        rest(1);
    }
}

pub(super) fn rest(milliseconds: u32) {
    let _ = poll(&mut [], Some(&timespec(milliseconds)));
}

/// Waits for this process to end, up to a limit.
pub(super) fn wait_for_end(entry: &ProcessEntry, milliseconds: u32) {
    match entry.handle() {
        Ok(Some(handle)) => {
            let mut fds = [PollFd::new(&handle, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&timespec(milliseconds)));
        }
        Ok(None) => {}
        Err(_) => rest(milliseconds),
    }
}

fn timespec(milliseconds: u32) -> Timespec {
    Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    }
}

impl ProcessEntry {
    fn read(pid: i32) -> Option<Self> {
        let mut text = [0; 512];
        let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut text).ok()?;
        Self::parse(text.get(..length)?)
    }

    /// `pid (name) state parent group session …`; the name may contain anything, even `)`.
    fn parse(text: &[u8]) -> Option<Self> {
        let open = text.iter().position(|byte| *byte == b'(')?;
        let close = text.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
        let mut fields = std::str::from_utf8(text.get(close + 1..)?).ok()?.split_ascii_whitespace();
        Some(Self {
            pid: Pid::from_raw(pid)?,
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            started: fields.nth(15)?.parse().ok()?,
        })
    }

    /// Signals exactly this process: if its pid was reused, none.
    pub(super) fn signal(&self, signal: Signal) {
        match self.handle() {
            Ok(Some(handle)) => {
                let _ = pidfd_send_signal(handle, signal);
            }
            Ok(None) => {}
            // Handles are not available: the check just made must do.
            Err(_) => {
                let _ = kill_process(self.pid, signal);
            }
        }
    }

    /// A handle on exactly this process; `None` if it has ended. The check comes after the handle: either
    /// it sees the process that the handle holds, or that process has ended and takes no signal.
    fn handle(&self) -> Result<Option<OwnedFd>, Errno> {
        let handle = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(None),
            handle => handle,
        };
        let same = Self::read(self.pid.as_raw_pid()).is_some_and(|now| now.started == self.started);
        if same { handle.map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_hold_anything() {
        let rest = "S 7 8 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 1";
        for name in ["sh", "a) R 1 1 1", "(((", ") (", "\u{e9} \n"] {
            let entry = ProcessEntry::parse(format!("12 ({name}) {rest}").as_bytes()).unwrap();
            assert_eq!((entry.pid.as_raw_pid(), entry.state, entry.parent), (12, b'S', 7));
            assert_eq!((entry.group, entry.session, entry.started), (8, 9, 4242));
        }
        assert_eq!(ProcessEntry::parse(b"12 (sh"), None);
        assert_eq!(ProcessEntry::parse(b"12 (sh) S 7 8"), None);
    }

    #[test]
    fn descendants_are_found_whatever_the_order_of_pids() {
        let entry = |pid: i32, parent| ProcessEntry {
            pid: Pid::from_raw(pid).unwrap(),
            parent,
            session: 1,
            group: 1,
            state: b'S',
            started: 0,
        };
        // 9 → 5 → 3 → 2 below 10; 4 is unrelated.
        let all = vec![entry(2, 3), entry(3, 5), entry(4, 1), entry(5, 9), entry(9, 10)];
        let found = descendants(all, |entry| entry.parent == 10);
        let pids: Vec<i32> = found.iter().map(|entry| entry.pid.as_raw_pid()).collect();
        assert_eq!(pids, [2, 3, 5, 9]);
    }

    #[test]
    fn a_handle_is_on_the_same_process_only() {
        let mut own = ProcessEntry::read(rustix::process::getpid().as_raw_pid()).unwrap();
        assert!(own.handle().unwrap().is_some());
        own.started += 1;
        assert!(own.handle().unwrap().is_none());
    }
}
