//! Containment without a keeper: the agent leads a process group, and the group is killed. A descendant
//! that leaves the group escapes, and all of them do if the gateway is killed.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

use agentwire_dialects::agent::Exit;
use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::{Spawn, SpawnError, State, descriptors};

/// Starts the process. A task of the runtime waits for its end.
pub(super) fn start(
    spawn: Spawn,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    state: watch::Sender<State>,
) -> Result<Pid, SpawnError> {
    // The system does not distinguish a bad directory from a bad program.
    if let Err(error) = access(spawn.directory.join("."), Access::EXEC_OK) {
        return Err(SpawnError::Directory { directory: spawn.directory, error: error.into() });
    }
    let child = Command::new(&spawn.program)
        .args(&spawn.args)
        .env_clear()
        .envs(spawn.env)
        .current_dir(&spawn.directory)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr))
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| SpawnError::Program { program: spawn.program, error })?;
    descriptors::give_back(child.id());
    let group = child
        .id()
        .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .ok_or_else(|| SpawnError::Gateway(io::ErrorKind::NotFound.into()))?;
    tokio::spawn(follow(child, group, state));
    Ok(group)
}

async fn follow(mut child: Child, group: Pid, state: watch::Sender<State>) {
    let exit = child.wait().await.map_or(Exit::Unknown, exit);
    // While the group has a member, its number is not reused.
    signal(group, Signal::KILL);
    state.send_replace(State { exit: Some(exit), silent: true, gone: true });
}

pub(super) fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}
