//! The keeper: a small process between the gateway and one agent, which no descendant of the agent escapes.
//! It is this same program, started again without a runtime, and forked from there for each agent.
//!
//! The main thread starts the agent and reaps; the other one listens to the gateway. If each agent has a
//! pid namespace, the namespace's first process does this. An outer keeper, which the agent can neither see
//! nor signal, ends that process with the gateway.

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use agentwire_dialects::agent::Exit;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, sockopt::socket_domain};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    pidfd_open, set_parent_process_death_signal, wait, waitpid,
};

use super::keeper_protocol::{self, Kind, Report, Request, Step};
use super::{TreeSignal, become_subreaper, descriptors, fork_server, hide_memory, namespace, tree};

/// The first argument that makes this program a keeper.
pub const VERB: &str = "keeper";

/// The exit code of a keeper without a gateway.
pub const NO_GATEWAY: u8 = 2;

/// Enough to read `/proc`; only touched pages cost memory.
const STACK: usize = 128 * 1024;

/// The program was started as a keeper without a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoGateway;

impl fmt::Display for NoGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "keeper is started by agentwire itself, once per agent, to end everything the agent \
             started; do not start it yourself",
        )
    }
}

impl std::error::Error for NoGateway {}

/// Runs the fork server of the gateway on stdin, and each keeper that it forks. Returns when the gateway, or
/// the keeper's agent with all its processes, is gone.
pub fn run() -> Result<(), NoGateway> {
    let gateway = rustix::stdio::stdin();
    if socket_domain(gateway) != Ok(AddressFamily::UNIX) {
        return Err(NoGateway);
    }
    // Descriptors that the gateway inherited without close-on-exec must not reach an agent.
    close_fds::set_fds_cloexec(3, &[]);
    heed_signals();
    let _ = settle();
    let _ = rustix::thread::set_name(c"agentwire-fork");
    let Some(kind) = fork_server::serve(gateway)? else { return Ok(()) };
    // This process is a keeper now, and its gateway's socket is on stdin.
    match kind {
        Kind::Namespace => outer(gateway),
        Kind::Keeper => keep(gateway, false),
    }
}

/// A gateway that a script started in the background ignores interrupts, and programs inherit that. A signal
/// with a handler has its default effect again in the agent, so that an interrupt reaches it.
fn heed_signals() {
    for signal in [Signal::INT, Signal::QUIT] {
        let _ = signal_hook::flag::register(signal.as_raw(), Arc::default());
    }
}

/// Starts the agent and waits for its end, either as the first process of its namespace, or as the process
/// that ends everything below it itself.
fn keep(gateway: BorrowedFd<'static>, is_first: bool) -> Result<(), NoGateway> {
    if is_first {
        // Without the outer keeper, nobody could end us. The agent can neither see nor harm it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let (request, descriptors) = keeper_protocol::receive(gateway).ok_or(NoGateway)?;
    let begun = begin(gateway, &request, is_first).map_err(|error| (Step::Keeper, error));
    match begun.and_then(|()| {
        let agent = start(&request, descriptors);
        drop(request);
        agent
    }) {
        Ok(agent) => {
            let report = Report::Started(agent.as_raw_pid());
            keeper_protocol::send_with_handle(gateway, report, agent);
            Report::Exited(watch(agent)).send(gateway);
            // When the first process ends, the kernel ends everything that is left.
            if !is_first {
                end();
                Report::Empty.send(gateway);
            }
        }
        Err((step, error)) => keeper_protocol::failed(step, &error).send(gateway),
    }
    Ok(())
}

/// The keeper outside the namespace: creates it, forks its first process, which receives the gateway's
/// request, and kills that process when the gateway is gone.
fn outer(gateway: BorrowedFd<'static>) -> Result<(), NoGateway> {
    let first = namespace::create().and_then(|()| {
        settle()?;
        let Some(first) = fork_server::fork()? else { return Ok(None) };
        Ok(Some((first, pidfd_open(first, PidfdFlags::empty())?)))
    });
    let (first, handle) = match first {
        Ok(Some(first)) => first,
        Ok(None) => return keep(gateway, true),
        Err(error) => {
            keeper_protocol::failed(Step::Keeper, &error).send(gateway);
            return Ok(());
        }
    };
    loop {
        // The first process reads what the gateway sends; we only watch for its end.
        let mut fds = [
            PollFd::from_borrowed_fd(gateway, PollFlags::RDHUP),
            PollFd::new(&handle, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Ok(_) | Err(_) => break,
        }
    }
    let _ = kill_process(first, Signal::KILL);
    let _ = waitpid(Some(first), WaitOptions::empty());
    Report::Empty.send(gateway);
    Ok(())
}

/// What every keeper sets up for itself.
fn settle() -> io::Result<()> {
    hide_memory()?;
    rustix::process::setsid()?;
    let _ = rustix::thread::set_name(c"agentwire-keep");
    // Without a namespace, the agent can stop us; then the gateway's death must wake us. If the signal
    // comes early because the gateway's thread ends first, it does no harm.
    Ok(set_parent_process_death_signal(Some(Signal::CONT))?)
}

fn begin(gateway: BorrowedFd<'static>, request: &Request, is_first: bool) -> io::Result<()> {
    descriptors::limit(request.descriptors);
    if is_first {
        hide_memory()?;
        rustix::process::setsid()?;
        let _ = rustix::thread::set_name(c"agentwire-keep");
        namespace::furnish(&request.veil)?;
    } else {
        settle()?;
        become_subreaper()?;
    }
    thread::Builder::new().stack_size(STACK).spawn(move || obey(gateway, is_first))?;
    Ok(())
}

fn start(request: &Request, descriptors: [OwnedFd; 3]) -> Result<Pid, (Step, io::Error)> {
    // Entering the directory ourselves distinguishes a bad directory from a bad program.
    std::env::set_current_dir(&request.directory).map_err(|error| (Step::Directory, error))?;
    let [stdin, stdout, stderr] = descriptors;
    let agent = Command::new(&request.program)
        .args(&request.args)
        .env_clear()
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()
        .map_err(|error| (Step::Program, error))?;
    i32::try_from(agent.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| (Step::Program, Errno::SRCH.into()))
}

/// Reaps whatever ends below us until the agent itself has ended.
fn watch(agent: Pid) -> Exit {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => return exit(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Exit::Unknown,
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// Ends everything that is left below us. Only the kernel's answer that we have no child counts: every
/// descendant, whatever its parents did, becomes our child in the end.
fn end() {
    let mut patience = Patience::new();
    while let Some(reaped) = reap() {
        if reaped {
            patience = Patience::new();
        }
        let left = tree::below(getpid());
        tree::kill(&left);
        match left.iter().find(|entry| entry.parent == getpid().as_raw_pid()) {
            Some(child) => tree::wait_for_end(child, patience.next()),
            None => tree::rest(patience.next()),
        }
    }
}

/// Reaps what has ended. Returns whether anything had; `None` if no child is left.
fn reap() -> Option<bool> {
    let mut reaped = false;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => reaped = true,
            Err(Errno::INTR) => {}
            Ok(None) => return Some(reaped),
            Err(_) => return None,
        }
    }
}

/// Ends the first process of a namespace, and with it all others there. The main thread may be anywhere.
#[expect(clippy::disallowed_methods, reason = "no destructor has anything left to do")]
fn leave() -> ! {
    std::process::exit(0)
}

/// Obeys the gateway. When the gateway is gone, kills until the main thread ends the process. This also
/// covers an agent that is just being started.
fn obey(gateway: BorrowedFd<'static>, is_first: bool) {
    let keeper = getpid();
    while let Some(command) = keeper_protocol::next_command(gateway) {
        match command {
            // Everything in the namespace except ourselves, whatever the agent did to its `/proc`.
            command if is_first => {
                let _ = kill_process_group(Pid::INIT, command.number());
            }
            TreeSignal::Kill => tree::kill(&tree::below(keeper)),
            TreeSignal::Pause => tree::pause(keeper),
            TreeSignal::Interrupt | TreeSignal::Terminate | TreeSignal::Continue => {
                for entry in tree::below(keeper) {
                    entry.signal(command.number());
                }
            }
        }
    }
    if is_first {
        leave();
    }
    let mut patience = Patience::new();
    loop {
        tree::kill(&tree::below(keeper));
        tree::rest(patience.next());
    }
}

/// Milliseconds to wait between attempts: short at first, because most trees are gone at once. Later never
/// so long that something that cannot be killed is forgotten, nor so short that it uses up a CPU.
pub(super) struct Patience(u32);

impl Patience {
    pub(super) fn new() -> Self {
        Self(1)
    }

    pub(super) fn next(&mut self) -> u32 {
        let now = self.0;
        self.0 = (now * 2).min(200);
        now
    }
}
