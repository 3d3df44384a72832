//! Agent processes: each under a keeper that ends the whole tree with the session or the gateway.
//!
//! What is promised and what is not:
//! - However the agent, its session or the gateway ends, everything the agent started ends too. Where the
//!   system allows it, each agent has a pid namespace ([`Containment::Namespace`]): the kernel kills the
//!   whole tree when the namespace's first process ends, and that process ends with the gateway. No process
//!   of the tree can signal the keeper outside, and none can stop or kill the first process.
//! - Elsewhere the keeper is a child subreaper, so no descendant can leave its tree, and it sees the
//!   gateway's death as the end of a socket. An agent runs as the same user as this keeper and can kill it.
//!   The gateway then ends what is left if it is a subreaper itself ([`become_subreaper`]), and reports
//!   [`Exit::Unknown`]. A keeper that was stopped is woken. An agent that kills both its keeper and the
//!   gateway escapes.
//! - Without a namespace, a descendant that became another user (`sudo`) cannot be killed. Its session ends
//!   anyway; only [`Control::gone`] waits for it.

mod contain;
mod descriptors;
mod error;
mod fork_server;
mod group;
pub mod keeper;
mod keeper_protocol;
mod launch;
mod namespace;
mod output;
mod resolve;
mod self_exe;
mod strays;
mod tree;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::Exit;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open,
    pidfd_send_signal, waitid,
};
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub use contain::{Contain, Containment, ContainmentChoice};
pub(crate) use descriptors::check_descriptors;
pub use descriptors::raise_descriptors;
pub use error::SpawnError;
pub use launch::{ALLOCATOR, ALLOCATOR_SET, LaunchFiles, environment, prepare};
pub use namespace::{FileIdentity, Veil};
pub use output::Output;
pub use resolve::{ResolveError, resolve};
pub use self_exe::{keep_name, own_path, own_program};

/// A process to start.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// An absolute path.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
    pub stdin: StdinPlan,
    /// What the process cannot see, where the system supports that.
    pub veil: Veil,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinPlan {
    /// A pipe that we write to.
    Pipe,
    Null,
}

#[derive(Debug)]
pub struct Process {
    /// The write end of stdin, if it is a pipe. Dropping it ends the input.
    pub stdin: Option<pipe::Sender>,
    pub stdout: Output,
    pub stderr: Output,
    pub control: Control,
}

/// Controls a process and everything it started. Dropping it kills them all.
#[derive(Debug)]
pub struct Control {
    pid: Option<u32>,
    reach: Reach,
    state: watch::Receiver<State>,
}

/// A signal to a whole process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeSignal {
    Interrupt,
    Terminate,
    Kill,
    Pause,
    Continue,
}

#[derive(Debug)]
enum Reach {
    Keeper { commands: OwnedWriteHalf, keeper: Handle },
    Group(Pid),
}

/// The progress of a process. Each step is final.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    exit: Option<Exit>,
    /// Its pipes are not waited for any more.
    silent: bool,
    gone: bool,
}

impl Control {
    /// The agent's process id outside its namespace. In a namespace, an agent that ends at once may have
    /// none.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Signals the whole tree. A paused tree acts on anything except `Kill` only when it continues.
    pub fn signal(&self, signal: TreeSignal) {
        match &self.reach {
            Reach::Keeper { commands, keeper } => {
                keeper.wake();
                keeper_protocol::command(commands.as_ref(), signal);
            }
            Reach::Group(group) => {
                if self.state.borrow().exit.is_none() {
                    group::signal(*group, signal.number());
                }
            }
        }
    }

    /// How the agent's own process ended, as soon as it has, even if others still hold its pipes.
    /// [`Exit::Unknown`] if its keeper was killed. Safe to cancel and to call again.
    pub async fn exited(&mut self) -> Exit {
        match self.state.wait_for(|state| state.exit.is_some()).await {
            Ok(state) => state.exit.unwrap_or(Exit::Unknown),
            Err(_) => Exit::Unknown,
        }
    }

    /// Returns when nothing is left of the whole tree. Safe to cancel and to call again.
    pub async fn gone(&mut self) {
        // An error means that the runtime ends; the keeper sees that as the end of its gateway.
        let _ = self.state.wait_for(|state| state.gone).await;
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        match &self.reach {
            // Closing the socket does the rest.
            Reach::Keeper { keeper, .. } => keeper.wake(),
            Reach::Group(_) => self.signal(TreeSignal::Kill),
        }
    }
}

impl TreeSignal {
    fn number(self) -> Signal {
        match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
            Self::Kill => Signal::KILL,
            Self::Pause => Signal::STOP,
            Self::Continue => Signal::CONT,
        }
    }
}

/// Makes this process the parent of what a killed keeper leaves behind, so that it can be ended too.
///
/// For a program, not for a library. From then on, when a keeper is lost, every child of this process that
/// is in another session (`setsid`) and is not one of our keepers counts as the lost keeper's and is
/// killed.
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Prevents other processes of this user, above all agents, from reading this one's memory and environment.
pub fn hide_memory() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// How many keepers of this process run.
pub fn keepers() -> usize {
    strays::count()
}

/// How long something may be overdue before a keeper or a fork server is woken.
const WAKE: Duration = Duration::from_millis(200);

/// A handle on a keeper or a fork server that stays correct if the pid is reused.
#[derive(Clone, Debug)]
struct Handle(Option<Arc<OwnedFd>>);

impl Handle {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let handle = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self::new(handle)
    }

    fn new(handle: Option<OwnedFd>) -> Self {
        Self(handle.map(Arc::new))
    }

    /// Waits for its end. Reaps it if its fork server was killed, which leaves it to us.
    async fn ended(&self) {
        let Some(handle) = &self.0 else { return };
        // It is not a pipe, and nothing is read: this is the runtime's safe way to wait for a descriptor.
        let watch = || handle.try_clone().and_then(pipe::Receiver::from_owned_fd_unchecked);
        let ended = loop {
            match watch() {
                Ok(ended) => break ended,
                // No descriptor is free.
                Err(_) => sleep(WAKE).await,
            }
        };
        let _ = ended.readable().await;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let _ = waitid(WaitId::PidFd(handle.as_fd()), options);
    }

    /// Wakes it: an agent can stop its keeper, and a stopped keeper receives nothing.
    fn wake(&self) {
        if let Some(handle) = &self.0 {
            let _ = pidfd_send_signal(handle, Signal::CONT);
        }
    }

    /// Waits for what it must do, and wakes it until it does.
    async fn due<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            match timeout(WAKE, work.as_mut()).await {
                Ok(done) => return done,
                Err(_) => self.wake(),
            }
        }
    }
}
