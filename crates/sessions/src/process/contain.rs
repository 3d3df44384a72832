//! Starts processes so that they can be ended whole.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use agentwire_dialects::agent::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, pipe};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::strays::{self, Known};
use super::wire::{self, REPORT, Report, Step};
use super::{
    Control, Handle, Output, Process, Reach, Spawn, SpawnError, State, StdinPlan, descriptors,
    group, keeper,
};

/// How long a keeper may take to kill what its agent left before its pipes are no longer waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// How long a keeper may owe a report before it is woken.
const WAKE: Duration = Duration::from_millis(200);

/// How long a keeper may take to show that it works.
const PROBE: Duration = Duration::from_secs(10);

/// Starts processes, in the way that is in force here.
#[derive(Clone, Debug)]
pub struct Contain {
    containment: Containment,
}

/// What holds a process tree together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A keeper for each agent: nothing gets away.
    Keeper {
        /// The program that is started as the keeper.
        executable: PathBuf,
    },
    /// A process group: what leaves the group gets away, and a killed gateway leaves its agents.
    ProcessGroup {
        /// Why there is no keeper.
        reason: String,
    },
}

impl Contain {
    /// Finds out what works here. The executable is one that hands `keeper` to
    /// [`keeper::run`](super::keeper::run): for `agentwire` itself `/proc/self/exe`, which stays the
    /// same program when its file is replaced.
    pub async fn probe(executable: Option<PathBuf>) -> Self {
        let Some(executable) = executable else {
            return Self::process_group("no keeper executable is set".to_owned());
        };
        let keeper = Self { containment: Containment::Keeper { executable: executable.clone() } };
        // A keeper that keeps a keeper without a gateway: known to end, and with what code.
        let check = Spawn {
            program: executable.clone(),
            args: vec![keeper::VERB.into()],
            env: Vec::new(),
            directory: PathBuf::from("/"),
            stdin: StdinPlan::Null,
        };
        let outcome = timeout(PROBE, async {
            let mut process = keeper.spawn(check).await.map_err(|error| error.to_string())?;
            let exit = process.control.exited().await;
            process.control.gone().await;
            if exit == Exit::Code(i32::from(keeper::NO_GATEWAY)) {
                Ok(())
            } else {
                Err(format!("its check ended with {exit:?}"))
            }
        });
        match outcome.await {
            Ok(Ok(())) => keeper,
            Ok(Err(reason)) => Self::process_group(format!(
                "failed to use {} as a keeper: {reason}",
                executable.display()
            )),
            Err(_) => Self::process_group(format!(
                "failed to use {} as a keeper: no answer in {} s",
                executable.display(),
                PROBE.as_secs()
            )),
        }
    }

    fn process_group(reason: String) -> Self {
        Self { containment: Containment::ProcessGroup { reason } }
    }

    /// What is in force.
    pub fn containment(&self) -> &Containment {
        &self.containment
    }

    /// Starts a process. Dropping the future ends whatever it had begun.
    pub async fn spawn(&self, spawn: Spawn) -> Result<Process, SpawnError> {
        let pipes = Pipes::new(spawn.stdin).map_err(SpawnError::Gateway)?;
        let (sender, state) = watch::channel(State::default());
        let (pid, reach) = match &self.containment {
            Containment::Keeper { executable } => {
                keep(executable, spawn, pipes.theirs, sender).await?
            }
            Containment::ProcessGroup { .. } => {
                let group = group::start(spawn, pipes.theirs, sender)?;
                (group, Reach::Group(group))
            }
        };
        Ok(Process {
            stdin: pipes.stdin,
            stdout: Output::new(pipes.stdout, state.clone()),
            stderr: Output::new(pipes.stderr, state.clone()),
            control: Control { pid: pid.as_raw_pid().unsigned_abs(), reach, state },
        })
    }
}

/// Our ends, which never block, and the agent's, which do.
struct Pipes {
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    theirs: [OwnedFd; 3],
}

impl Pipes {
    fn new(plan: StdinPlan) -> io::Result<Self> {
        let (stdin, their_stdin) = match plan {
            StdinPlan::Pipe => {
                let (sender, receiver) = pipe::pipe()?;
                (Some(sender), receiver.into_blocking_fd()?)
            }
            StdinPlan::Null => (None, OwnedFd::from(File::open("/dev/null")?)),
        };
        let (their_stdout, stdout) = pipe::pipe()?;
        let (their_stderr, stderr) = pipe::pipe()?;
        let theirs =
            [their_stdin, their_stdout.into_blocking_fd()?, their_stderr.into_blocking_fd()?];
        Ok(Self { stdin, stdout, stderr, theirs })
    }
}

/// Starts a keeper and has it start the agent.
async fn keep(
    executable: &Path,
    spawn: Spawn,
    descriptors: [OwnedFd; 3],
    state: watch::Sender<State>,
) -> Result<(Pid, Reach), SpawnError> {
    let request = match wire::encode(&spawn) {
        Ok(request) => request,
        Err(error) => return Err(SpawnError::Program { program: spawn.program, error }),
    };
    let (keeper, socket) =
        begin(executable, &request, descriptors).await.map_err(SpawnError::Gateway)?;
    let (mut reports, commands) = socket.into_split();
    match due(next(&mut reports), &keeper.handle).await {
        Some(Report::Started(pid)) => {
            let agent = Pid::from_raw(pid).ok_or_else(|| SpawnError::Gateway(silent_keeper()))?;
            let handle = keeper.handle.clone();
            tokio::spawn(follow(reports, keeper, agent, state));
            Ok((agent, Reach::Keeper { commands, keeper: handle }))
        }
        Some(Report::Failed(step, errno)) => {
            let error = io::Error::from_raw_os_error(errno);
            Err(match step {
                Step::Keeper => SpawnError::Gateway(error),
                Step::Directory => SpawnError::Directory { directory: spawn.directory, error },
                Step::Program => SpawnError::Program { program: spawn.program, error },
            })
        }
        Some(Report::Exited(_) | Report::Empty) | None => Err(SpawnError::Gateway(silent_keeper())),
    }
}

struct Keeper {
    child: Child,
    known: Known,
    handle: Handle,
}

async fn begin(
    executable: &Path,
    request: &[u8],
    descriptors: [OwnedFd; 3],
) -> io::Result<(Keeper, UnixStream)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut socket = UnixStream::from_std(ours)?;
    wire::send_head(&socket, request.len(), &descriptors)?;
    drop(descriptors);
    let mut command = Command::new(executable);
    command
        .arg0("agentwire")
        .arg(keeper::VERB)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (child, known) = strays::start(&mut command)?;
    // It holds the keeper's end of the socket, which is to end with the keeper.
    drop(command);
    let handle = Handle::of(&child);
    // It starts the agent once it knows which.
    descriptors::give_back(child.id());
    socket.write_all(request).await?;
    Ok((Keeper { child, known, handle }, socket))
}

fn silent_keeper() -> io::Error {
    io::Error::other("the keeper ended without a word; see `agentwire doctor`")
}

/// Turns the keeper's reports into the state of the process, to the end.
async fn follow(
    mut reports: OwnedReadHalf,
    mut keeper: Keeper,
    agent: Pid,
    state: watch::Sender<State>,
) {
    let report = {
        let mut report = pin!(next(&mut reports));
        tokio::select! {
            report = report.as_mut() => report,
            // The keeper must know it too; if it says nothing, the agent has stopped it.
            () = end_of(agent) => due(report.as_mut(), &keeper.handle).await,
        }
    };
    let mut empty = false;
    if let Some(Report::Exited(exit)) = report {
        state.send_modify(|state| state.exit = Some(exit));
        let mut report = pin!(due(next(&mut reports), &keeper.handle));
        let report = match timeout(SILENCE, report.as_mut()).await {
            Ok(report) => report,
            Err(_) => {
                state.send_modify(|state| state.silent = true);
                report.await
            }
        };
        empty = report == Some(Report::Empty);
    }
    let _ = keeper.child.wait().await;
    drop(keeper.known);
    if !empty {
        if state.borrow().exit.is_none() {
            group::signal(agent, Signal::KILL);
        }
        let _ = tokio::task::spawn_blocking(strays::sweep).await;
    }
    state.send_modify(|state| {
        state.exit.get_or_insert(Exit::Unknown);
        state.silent = true;
        state.gone = true;
    });
}

async fn next(reports: &mut OwnedReadHalf) -> Option<Report> {
    let mut report = [0; REPORT];
    reports.read_exact(&mut report).await.ok()?;
    Report::read(report)
}

/// Waits for a report that must come, and wakes the keeper as long as it does not.
async fn due(report: impl Future<Output = Option<Report>>, keeper: &Handle) -> Option<Report> {
    let mut report = pin!(report);
    loop {
        match timeout(WAKE, report.as_mut()).await {
            Ok(report) => return report,
            Err(_) => keeper.wake(),
        }
    }
}

/// Returns when this process has ended, if that can be seen.
async fn end_of(process: Pid) {
    let handle = match pidfd_open(process, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return,
        Err(_) => return std::future::pending().await,
    };
    // No pipe, and nothing is read: it is the runtime's safe way to wait for a descriptor.
    match pipe::Receiver::from_owned_fd_unchecked(handle) {
        Ok(ended) => {
            let _ = ended.readable().await;
        }
        Err(_) => std::future::pending().await,
    }
}
