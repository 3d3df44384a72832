//! The protocol between gateway and keeper on their socket, and how the gateway gets that keeper.
//!
//! To the fork server: one message for each keeper, which carries the keeper's end of their socket.
//!
//! Down: a head that carries the agent's three descriptors, the request, then one byte per command. Up:
//! reports of five bytes; the first comes from the keeper itself with a handle on it, and the report of a
//! start may carry a handle on the agent.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use agentwire_dialects::agent::Exit;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{FileIdentity, Spawn, TreeSignal, Veil};

/// Change it with this file: it stops a gateway and a keeper of different builds from misunderstanding each
/// other.
const MAGIC: [u8; 4] = *b"awk4";

const HEAD: usize = 8;

pub(super) const REPORT: usize = 5;

pub(super) struct Request {
    pub(super) program: OsString,
    pub(super) directory: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) veil: Veil,
    /// How many descriptors the agent may have, if not as many as the gateway.
    pub(super) descriptors: Option<u64>,
}

/// Which keeper the fork server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One that puts its agent into a pid namespace.
    Namespace,
    /// One that ends its agent's processes itself.
    Keeper,
}

/// A message from the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The keeper runs, with this pid.
    Ready(i32),
    /// The agent runs, with this pid.
    Started(i32),
    /// The agent could not be started, with this errno.
    Failed(Step, i32),
    /// The agent's own process has ended.
    Exited(Exit),
    /// Nothing is left below the keeper.
    Empty,
}

/// The step at which a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Keeper,
    Directory,
    Program,
}

/// The request as bytes. No field can contain a NUL, so NUL separates the fields.
pub(super) fn encode(spawn: &Spawn, descriptors: Option<u64>) -> io::Result<Vec<u8>> {
    let descriptors = descriptors.map(|number| number.to_string()).unwrap_or_default();
    let Veil { hidden, shown, identities } = &spawn.veil;
    let counts = [spawn.args.len(), hidden.len(), shown.len(), identities.len()];
    let counts = counts.map(|count| count.to_string());
    let identities: Vec<OsString> = identities.iter().map(identity_field).collect();
    let mut fields = vec![spawn.program.as_os_str(), spawn.directory.as_os_str()];
    fields.push(OsStr::new(&descriptors));
    fields.extend(counts.iter().map(OsStr::new));
    fields.extend(spawn.args.iter().map(OsString::as_os_str));
    fields.extend(hidden.iter().chain(shown).map(|path| path.as_os_str()));
    fields.extend(identities.iter().map(OsString::as_os_str));
    for (name, value) in &spawn.env {
        fields.extend([name.as_os_str(), value.as_os_str()]);
    }
    if fields.iter().any(|field| field.as_bytes().contains(&0)) {
        return Err(Errno::INVAL.into());
    }
    let fields: Vec<&[u8]> = fields.into_iter().map(OsStr::as_bytes).collect();
    Ok(fields.join(&0))
}

/// The numbers, then the path.
fn identity_field(identity: &FileIdentity) -> OsString {
    let mut field = OsString::from(format!("{} {} ", identity.device, identity.inode));
    field.push(&identity.path);
    field
}

fn identity_from(field: &OsStr) -> Option<FileIdentity> {
    let mut parts = field.as_bytes().splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
    let (device, inode) = (number()?, number()?);
    let path = PathBuf::from(OsStr::from_bytes(parts.next()?));
    Some(FileIdentity { path, device, inode })
}

fn decode(bytes: &[u8]) -> Option<Request> {
    let mut fields = bytes.split(|byte| *byte == 0).map(|field| OsString::from_vec(field.to_vec()));
    let program = fields.next()?;
    let directory = fields.next()?;
    let descriptors = fields.next()?.to_str()?.parse().ok();
    let counts: Vec<OsString> = fields.by_ref().take(4).collect();
    let mut lists = Vec::new();
    for count in counts {
        let count: usize = count.to_str()?.parse().ok()?;
        let list: Vec<OsString> = fields.by_ref().take(count).collect();
        lists.push(Some(list).filter(|list| list.len() == count)?);
    }
    let [args, hidden, shown, identities] = lists.try_into().ok()?;
    let paths = |list: Vec<OsString>| list.into_iter().map(PathBuf::from).collect();
    let identities = identities.iter().map(|field| identity_from(field)).collect::<Option<_>>()?;
    let veil = Veil { hidden: paths(hidden), shown: paths(shown), identities };
    let mut env = Vec::new();
    while let Some(name) = fields.next() {
        env.push((name, fields.next()?));
    }
    Some(Request { program, directory, args, env, veil, descriptors })
}

/// Sends the head of a request of `length` bytes. The socket is new, so there is room for it.
pub(super) fn send_head(
    socket: impl AsFd,
    length: usize,
    descriptors: &[OwnedFd; 3],
) -> io::Result<()> {
    let length = u32::try_from(length).map_err(|_| Errno::TOOBIG)?;
    let [a, b, c, d] = MAGIC;
    let [e, f, g, h] = length.to_le_bytes();
    let [stdin, stdout, stderr] = descriptors;
    let rights = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&rights)) {
        return Err(Errno::NOBUFS.into());
    }
    let head = [a, b, c, d, e, f, g, h];
    rustix::net::sendmsg(socket, &[IoSlice::new(&head)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for a request. `None` if none comes: the other end is not our gateway, or is gone.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Option<(Request, [OwnedFd; 3])> {
    let mut head = [0; HEAD];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut head)];
        rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let length = head.strip_prefix(&MAGIC).filter(|_| received.is_ok_and(|r| r.bytes == HEAD))?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    let mut request = vec![0; usize::try_from(length).ok()?];
    let mut rest = request.as_mut_slice();
    while !rest.is_empty() {
        match retry_on_intr(|| rustix::io::read(socket, &mut *rest)) {
            Ok(0) | Err(_) => return None,
            Ok(count) => rest = rest.get_mut(count..)?,
        }
    }
    Some((decode(&request)?, descriptors.try_into().ok()?))
}

/// Sends a command. It is lost only if the keeper receives nothing any more.
pub(super) fn command(socket: impl AsFd, signal: TreeSignal) {
    let byte = match signal {
        TreeSignal::Interrupt => b'i',
        TreeSignal::Terminate => b't',
        TreeSignal::Kill => b'k',
        TreeSignal::Pause => b'p',
        TreeSignal::Continue => b'c',
    };
    let _ = rustix::net::send(socket, &[byte], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// Waits for a command. `None` if the gateway is gone.
pub(super) fn next_command(socket: BorrowedFd<'_>) -> Option<TreeSignal> {
    let mut byte = [0];
    loop {
        let count = retry_on_intr(|| rustix::io::read(socket, &mut byte)).ok()?;
        if count == 0 {
            return None;
        }
        match &byte {
            b"i" => return Some(TreeSignal::Interrupt),
            b"t" => return Some(TreeSignal::Terminate),
            b"k" => return Some(TreeSignal::Kill),
            b"p" => return Some(TreeSignal::Pause),
            b"c" => return Some(TreeSignal::Continue),
            _ => {}
        }
    }
}

/// The report of a start that failed.
pub(super) fn failed(step: Step, error: &io::Error) -> Report {
    Report::Failed(step, error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()))
}

/// Sends a report about a process, with a handle on it: in the gateway's namespace, its pid may mean another
/// process.
pub(super) fn send_with_handle(socket: BorrowedFd<'_>, report: Report, process: Pid) {
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return report.send(socket) };
    let rights = [handle.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&rights));
    let bytes = report.bytes();
    let _ = retry_on_intr(|| {
        rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
    });
}

/// Asks the fork server for a keeper, whose end of the socket this is.
pub(super) fn ask(server: impl AsFd, kind: Kind, keeper: &OwnedFd) -> io::Result<()> {
    let [a, b, c, d] = MAGIC;
    let order = match kind {
        Kind::Namespace => b'n',
        Kind::Keeper => b'k',
    };
    let rights = [keeper.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&rights));
    let bytes = [a, b, c, d, order];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(server, &[IoSlice::new(&bytes)], &mut control, flags)?;
    Ok(())
}

/// What the fork server is asked.
pub(super) enum Order {
    Keeper(Kind, OwnedFd),
    /// The gateway is gone.
    End,
    /// The other end is not our gateway.
    Unknown,
}

/// Waits for an order of the gateway.
pub(super) fn next_order(gateway: BorrowedFd<'_>) -> Order {
    let mut bytes = [0; MAGIC.len() + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(gateway, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    });
    let mut socket = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            socket = rights.into_iter().next();
        }
    }
    if received.is_ok_and(|received| received.bytes == 0) {
        return Order::End;
    }
    match (bytes.strip_prefix(&MAGIC), socket) {
        (Some(b"n"), Some(socket)) => Order::Keeper(Kind::Namespace, socket),
        (Some(b"k"), Some(socket)) => Order::Keeper(Kind::Keeper, socket),
        _ => Order::Unknown,
    }
}

/// Reads a report if there is one, with the handle that it carries. `None` at the end.
pub(super) fn try_report(socket: impl AsFd) -> io::Result<Option<(Report, Option<OwnedFd>)>> {
    let mut report = [0; REPORT];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut report)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut handle = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            handle = rights.into_iter().next();
        }
    }
    // A report is sent whole, and so few bytes arrive whole.
    let report = (received.bytes == REPORT).then(|| Report::read(report)).flatten();
    Ok(report.map(|report| (report, handle)))
}

impl Report {
    pub(super) fn send(self, socket: BorrowedFd<'_>) {
        let report = self.bytes();
        // If the gateway is gone, the end of the socket ends the tree.
        let _ = retry_on_intr(|| rustix::net::send(socket, &report, SendFlags::NOSIGNAL));
    }

    fn bytes(self) -> [u8; REPORT] {
        let (tag, number) = match self {
            Self::Ready(pid) => (b'r', pid),
            Self::Started(pid) => (b's', pid),
            Self::Failed(Step::Keeper, errno) => (b'k', errno),
            Self::Failed(Step::Directory, errno) => (b'd', errno),
            Self::Failed(Step::Program, errno) => (b'p', errno),
            Self::Exited(Exit::Code(code)) => (b'c', code),
            Self::Exited(Exit::Signal(signal)) => (b'g', signal),
            Self::Exited(Exit::Unknown) => (b'u', 0),
            Self::Empty => (b'e', 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(super) fn read([tag, number @ ..]: [u8; REPORT]) -> Option<Self> {
        let number = i32::from_le_bytes(number);
        match tag {
            b'r' => Some(Self::Ready(number)),
            b's' => Some(Self::Started(number)),
            b'k' => Some(Self::Failed(Step::Keeper, number)),
            b'd' => Some(Self::Failed(Step::Directory, number)),
            b'p' => Some(Self::Failed(Step::Program, number)),
            b'c' => Some(Self::Exited(Exit::Code(number))),
            b'g' => Some(Self::Exited(Exit::Signal(number))),
            b'u' => Some(Self::Exited(Exit::Unknown)),
            b'e' => Some(Self::Empty),
            _ => None,
        }
    }
}
