//! Starts processes so that the whole tree can be ended.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::Exit;
use agentwire_protocol::{ErrorCode, GatewayError};
use rustix::process::{Pid, Signal, geteuid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, pipe};
use tokio::sync::watch;
use tokio::time::timeout;

use super::fork_server::ForkServer;
use super::keeper_protocol::{self, Kind, REPORT, Report, Step};
use super::strays::{self, Registered};
use super::{
    Control, Handle, Output, Process, Reach, Spawn, SpawnError, State, StdinPlan, Veil,
    descriptors, group, keeper,
};

/// How long a keeper may take to kill what its agent left before the agent's pipes are no longer waited
/// for.
const SILENCE: Duration = Duration::from_secs(2);

/// How long a keeper may take to show that it works.
const PROBE: Duration = Duration::from_secs(10);

const AS_ROOT: &str = "agentwire and its agents run as root: an agent that runs as root can leave its \
                       namespace and see the hidden files; run agentwire as another user";

/// Starts processes with the containment that works here.
#[derive(Clone, Debug)]
pub struct Contain {
    containment: Containment,
    server: Option<Arc<ForkServer>>,
}

/// What holds a process tree together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Containment {
    /// A pid namespace for each agent: nothing escapes, whatever it tries.
    Namespace { executable: PathBuf },
    /// A keeper for each agent: nothing escapes, unless it attacks its keeper and the gateway is killed.
    Keeper {
        executable: PathBuf,
        /// Why there is no namespace.
        reason: String,
    },
    /// A process group: what leaves the group escapes, and a killed gateway leaves its agents running.
    ProcessGroup {
        /// Why there is no keeper.
        reason: String,
    },
}

/// Which containment is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainmentChoice {
    /// The best that works here.
    #[default]
    Auto,
    /// A pid namespace, or nothing starts.
    Namespace,
    /// A keeper, or nothing starts.
    Keeper,
}

impl Containment {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Namespace { .. } => "namespace",
            Self::Keeper { .. } => "keeper",
            Self::ProcessGroup { .. } => "processGroup",
        }
    }

    /// What an agent could still undo if agentwire runs as root.
    pub fn caveat(&self) -> Option<&'static str> {
        match self {
            Self::Namespace { .. } if geteuid().is_root() => Some(AS_ROOT),
            Self::Namespace { .. } | Self::Keeper { .. } | Self::ProcessGroup { .. } => None,
        }
    }

    /// Why there is no better containment.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Namespace { .. } => None,
            Self::Keeper { reason, .. } | Self::ProcessGroup { reason } => Some(reason),
        }
    }
}

impl Contain {
    /// Finds out what works here, by trying it. The executable must pass `keeper` on to
    /// [`keeper::run`](super::keeper::run). For `agentwire` itself, use
    /// [`own_program`](super::own_program), which stays the same when its file is replaced. Fails if the
    /// requested containment does not work.
    pub async fn probe(
        executable: Option<PathBuf>,
        choice: ContainmentChoice,
    ) -> Result<Self, GatewayError> {
        let Some(executable) = executable else {
            let reason = "no keeper executable is set".to_owned();
            return match choice {
                ContainmentChoice::Auto => Ok(Self::process_group(reason)),
                ContainmentChoice::Namespace | ContainmentChoice::Keeper => {
                    Err(refused(choice, &reason))
                }
            };
        };
        let server = Arc::new(ForkServer::new(&executable));
        let reason = match choice {
            ContainmentChoice::Keeper => "the settings ask for a keeper".to_owned(),
            ContainmentChoice::Auto | ContainmentChoice::Namespace => {
                let namespace = Containment::Namespace { executable: executable.clone() };
                match Self::tried(namespace, &server).await {
                    Ok(namespace) => return Ok(namespace),
                    Err(reason) if choice == ContainmentChoice::Namespace => {
                        return Err(refused(choice, &reason));
                    }
                    Err(reason) => reason,
                }
            }
        };
        let keeper = Containment::Keeper { executable: executable.clone(), reason };
        match Self::tried(keeper, &server).await {
            Ok(keeper) => Ok(keeper),
            Err(reason) if choice == ContainmentChoice::Auto => {
                let executable = executable.display();
                Ok(Self::process_group(format!("failed to use {executable} as a keeper: {reason}")))
            }
            Err(reason) => Err(refused(choice, &reason)),
        }
    }

    /// Returns this containment if it works.
    async fn tried(containment: Containment, server: &Arc<ForkServer>) -> Result<Self, String> {
        let contain = Self { containment, server: Some(Arc::clone(server)) };
        let (Containment::Namespace { executable } | Containment::Keeper { executable, .. }) =
            &contain.containment
        else {
            return Ok(contain);
        };
        // A keeper that runs a keeper without a gateway: it is known to end, and with which code.
        let check = Spawn {
            program: executable.clone(),
            args: vec![keeper::VERB.into()],
            env: Vec::new(),
            directory: PathBuf::from("/"),
            stdin: StdinPlan::Null,
            // Any directory that exists and is not needed, to check that hiding works too.
            veil: Veil { hidden: vec![PathBuf::from("/sys")], ..Veil::default() },
        };
        let outcome = timeout(PROBE, async {
            let mut process = contain.spawn(check).await.map_err(|error| error.to_string())?;
            let exit = process.control.exited().await;
            process.control.gone().await;
            if exit == Exit::Code(i32::from(keeper::NO_GATEWAY)) {
                Ok(())
            } else {
                Err(format!("its check ended with {exit:?}"))
            }
        });
        match outcome.await {
            Ok(Ok(())) => Ok(contain),
            Ok(Err(reason)) => Err(reason),
            Err(_) => Err(format!("no answer in {} s", PROBE.as_secs())),
        }
    }

    fn process_group(reason: String) -> Self {
        Self { containment: Containment::ProcessGroup { reason }, server: None }
    }

    pub fn containment(&self) -> &Containment {
        &self.containment
    }

    /// Starts a process. Dropping the future ends whatever it had started.
    pub async fn spawn(&self, spawn: Spawn) -> Result<Process, SpawnError> {
        let pipes = Pipes::new(spawn.stdin).map_err(SpawnError::Gateway)?;
        let (sender, state) = watch::channel(State::default());
        let kind = match &self.containment {
            Containment::Namespace { .. } => Kind::Namespace,
            Containment::Keeper { .. } | Containment::ProcessGroup { .. } => Kind::Keeper,
        };
        let (pid, reach) = match &self.server {
            Some(server) => keep(server, kind, spawn, pipes.theirs, sender).await?,
            None => {
                let group = group::start(spawn, pipes.theirs, sender)?;
                (Some(group), Reach::Group(group))
            }
        };
        Ok(Process {
            stdin: pipes.stdin,
            stdout: Output::new(pipes.stdout, state.clone()),
            stderr: Output::new(pipes.stderr, state.clone()),
            control: Control { pid: pid.map(|pid| pid.as_raw_pid().unsigned_abs()), reach, state },
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

fn refused(choice: ContainmentChoice, reason: &str) -> GatewayError {
    let (name, instead) = match choice {
        ContainmentChoice::Auto => ("auto", "run agentwire on Linux, from its own file"),
        ContainmentChoice::Namespace => (
            "namespace",
            "allow user namespaces on this machine, run agentwire as root, or set `containment` to \
             `auto` or `keeper`",
        ),
        ContainmentChoice::Keeper => ("keeper", "set `containment` to `auto`"),
    };
    let message =
        format!("[process] containment = \"{name}\" does not work here: {reason}; {instead}");
    GatewayError::new(ErrorCode::Unsupported, message)
}

/// Starts a keeper, which starts the agent.
async fn keep(
    server: &Arc<ForkServer>,
    kind: Kind,
    spawn: Spawn,
    descriptors: [OwnedFd; 3],
    state: watch::Sender<State>,
) -> Result<(Option<Pid>, Reach), SpawnError> {
    let request = match keeper_protocol::encode(&spawn, descriptors::given()) {
        Ok(request) => request,
        Err(error) => return Err(SpawnError::Program { program: spawn.program, error }),
    };
    let (keeper, socket) =
        begin(server, kind, &request, descriptors).await.map_err(SpawnError::Gateway)?;
    let first = keeper.handle.due(report(&socket)).await.map_err(SpawnError::Gateway)?;
    match first {
        Some((Report::Started(pid), agent)) => {
            let (pid, group) = match kind {
                // A process that has already ended has no pid any more.
                Kind::Namespace => (agent.as_ref().and_then(pid_of), None),
                Kind::Keeper => (Pid::from_raw(pid), Pid::from_raw(pid)),
            };
            let handle = keeper.handle.clone();
            let (reports, commands) = socket.into_split();
            tokio::spawn(follow(reports, keeper, Agent { handle: agent, group }, state));
            Ok((pid, Reach::Keeper { commands, keeper: handle }))
        }
        Some((Report::Failed(step, errno), _)) => {
            let error = io::Error::from_raw_os_error(errno);
            Err(match step {
                Step::Keeper => SpawnError::Gateway(error),
                Step::Directory => SpawnError::Directory { directory: spawn.directory, error },
                Step::Program => SpawnError::Program { program: spawn.program, error },
            })
        }
        Some((Report::Ready(_) | Report::Exited(_) | Report::Empty, _)) | None => {
            Err(SpawnError::Gateway(silent_keeper()))
        }
    }
}

/// The next report, and the handle that it may carry.
async fn report(socket: &UnixStream) -> io::Result<Option<(Report, Option<OwnedFd>)>> {
    socket.async_io(Interest::READABLE, || keeper_protocol::try_report(socket)).await
}

/// The pid of this handle's process in our namespace.
fn pid_of(handle: &OwnedFd) -> Option<Pid> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd())).ok()?;
    let pid = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    Pid::from_raw(pid.trim().parse().ok().filter(|pid| *pid > 0)?)
}

/// What the gateway knows of an agent.
struct Agent {
    handle: Option<OwnedFd>,
    /// Its process group, if the kernel does not end the group with the keeper.
    group: Option<Pid>,
}

struct Keeper {
    /// Reaps it.
    _server: Arc<ForkServer>,
    registered: Registered,
    handle: Handle,
}

async fn begin(
    server: &Arc<ForkServer>,
    kind: Kind,
    request: &[u8],
    descriptors: [OwnedFd; 3],
) -> io::Result<(Keeper, UnixStream)> {
    let mut attempts = 0;
    let (mut socket, pid, handle) = loop {
        attempts += 1;
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        keeper_protocol::send_head(&socket, request.len(), &descriptors)?;
        let forking = server.ask(kind, OwnedFd::from(theirs)).await?;
        match forking.due(report(&socket)).await {
            Ok(Some((Report::Ready(pid), Some(handle)))) => break (socket, pid, handle),
            Ok(Some((Report::Failed(_, errno), _))) => {
                return Err(io::Error::from_raw_os_error(errno));
            }
            // The fork server was killed before it read this.
            Ok(None) | Err(_) if attempts == 1 => {}
            Ok(_) | Err(_) => return Err(silent_keeper()),
        }
    };
    drop(descriptors);
    let registered = strays::register(pid);
    let handle = Handle::new(Some(handle));
    // A keeper that cannot accept it reports why.
    let _ = handle.due(socket.write_all(request)).await;
    Ok((Keeper { _server: Arc::clone(server), registered, handle }, socket))
}

fn silent_keeper() -> io::Error {
    io::Error::other("the keeper ended without a report; run `agentwire doctor`")
}

/// Turns the keeper's reports into the state of the process, until the end.
async fn follow(
    mut reports: OwnedReadHalf,
    keeper: Keeper,
    agent: Agent,
    state: watch::Sender<State>,
) {
    let report = {
        let mut report = pin!(next(&mut reports));
        tokio::select! {
            report = report.as_mut() => report,
            // The keeper must notice it too; if it reports nothing, the agent has stopped it.
            () = end_of(agent.handle) => keeper.handle.due(report.as_mut()).await,
        }
    };
    let mut empty = report == Some(Report::Empty);
    if let Some(Report::Exited(exit)) = report {
        state.send_modify(|state| state.exit = Some(exit));
        let mut report = pin!(keeper.handle.due(next(&mut reports)));
        let report = match timeout(SILENCE, report.as_mut()).await {
            Ok(report) => report,
            Err(_) => {
                state.send_modify(|state| state.silent = true);
                report.await
            }
        };
        empty = report == Some(Report::Empty);
    }
    keeper.handle.due(keeper.handle.ended()).await;
    drop(keeper.registered);
    if !empty {
        if let Some(group) = agent.group.filter(|_| state.borrow().exit.is_none()) {
            group::signal(group, Signal::KILL);
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

/// Returns when this handle's process has ended, if there is one.
async fn end_of(handle: Option<OwnedFd>) {
    // It is not a pipe, and nothing is read: this is the runtime's safe way to wait for a descriptor.
    match handle.map(pipe::Receiver::from_owned_fd_unchecked) {
        Some(Ok(ended)) => {
            let _ = ended.readable().await;
        }
        Some(Err(_)) | None => std::future::pending().await,
    }
}
