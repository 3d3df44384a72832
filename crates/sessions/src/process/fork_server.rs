//! The fork server: a process of one thread that forks a keeper for each agent. It runs this program from its
//! start to just before a keeper's work, so the keepers share the memory that this has filled.
//!
//! It knows no agent. If it is killed, its keepers work on, and the next start of an agent starts another.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fork::ProcessFork;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, set_parent_process_death_signal, wait,
};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::Handle;
use super::keeper::{self, NoGateway};
use super::keeper_protocol::{self, Kind, Order, Report, Step};
use super::strays::{self, Registered};

/// The gateway's side. The server ends when this is dropped.
#[derive(Debug)]
pub(super) struct ForkServer {
    executable: PathBuf,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    socket: UnixStream,
    handle: Handle,
    _child: Child,
    _registered: Registered,
}

impl ForkServer {
    pub(super) fn new(executable: &Path) -> Self {
        Self { executable: executable.to_owned(), running: Mutex::default() }
    }

    /// Asks for a keeper, whose end of the socket this is. Returns a handle on the server.
    pub(super) async fn ask(&self, kind: Kind, keeper: OwnedFd) -> io::Result<Handle> {
        let mut running = self.running.lock().await;
        if let Some(server) = &*running {
            match server.ask(kind, &keeper).await {
                Ok(()) => return Ok(server.handle.clone()),
                Err(error) if is_shortage(&error) => return Err(error),
                // It has ended.
                Err(_) => {}
            }
        }
        let server = running.insert(self.start()?);
        server.ask(kind, &keeper).await?;
        Ok(server.handle.clone())
    }

    fn start(&self) -> io::Result<Running> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let mut command = Command::new(&self.executable);
        command
            .arg0("agentwire")
            .arg(keeper::VERB)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let (child, registered) = strays::start(&mut command)?;
        Ok(Running { socket, handle: Handle::of(&child), _child: child, _registered: registered })
    }
}

impl Running {
    async fn ask(&self, kind: Kind, keeper: &OwnedFd) -> io::Result<()> {
        let ask = || keeper_protocol::ask(&self.socket, kind, keeper);
        self.handle.due(self.socket.async_io(Interest::WRITABLE, ask)).await
    }
}

/// Whether the system lacks memory or descriptors for the message; another server would not help.
fn is_shortage(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM))
}

/// Forks a keeper whenever the gateway asks for one, and reaps those that have ended. Returns in each keeper,
/// with its socket on stdin, and in the server itself when the gateway is gone.
pub(super) fn serve(gateway: BorrowedFd<'static>) -> Result<Option<Kind>, NoGateway> {
    let mut keepers: Vec<OwnedFd> = Vec::new();
    loop {
        let handles = keepers.iter().map(|keeper| PollFd::new(keeper, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = handles.collect();
        fds.push(PollFd::from_borrowed_fd(gateway, PollFlags::IN));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        let is_quiet: Vec<bool> = fds.iter().map(|fd| fd.revents().is_empty()).collect();
        let mut quiet = is_quiet.iter();
        keepers.retain(|_| quiet.next() == Some(&true));
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_)) | Err(Errno::INTR)) {}
        if is_quiet.last() == Some(&true) {
            continue;
        }
        let (kind, socket) = match keeper_protocol::next_order(gateway) {
            Order::Keeper(kind, socket) => (kind, socket),
            Order::End => return Ok(None),
            Order::Unknown => return Err(NoGateway),
        };
        match fork() {
            Ok(Some(keeper)) => {
                // The keeper does not say this itself: an agent may stop it before it can, and only with
                // this handle can the gateway wake it.
                let ready = Report::Ready(keeper.as_raw_pid());
                keeper_protocol::send_with_handle(socket.as_fd(), ready, keeper);
                keepers.extend(pidfd_open(keeper, PidfdFlags::empty()));
            }
            Ok(None) => {
                // The end of this server wakes the keeper as well.
                let _ = set_parent_process_death_signal(Some(Signal::CONT));
                return Ok(rustix::stdio::dup2_stdin(&socket).is_ok().then_some(kind));
            }
            Err(error) => keeper_protocol::failed(Step::Keeper, &error).send(socket.as_fd()),
        }
    }
}

/// Forks this process. `None` in the child. Sound in a process with one thread only, as a fork server and an
/// outer keeper are.
pub(super) fn fork() -> io::Result<Option<Pid>> {
    match fork::fork_process()? {
        ProcessFork::Parent(child) => {
            Pid::from_raw(child.get()).map(Some).ok_or_else(|| Errno::SRCH.into())
        }
        ProcessFork::Child => Ok(None),
    }
}
