//! A separate network with only loopback, and a record of attempts to reach anything else.

use std::cell::Cell;
use std::fs;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};

/// The command that starts another in its own network; `None` if the machine does not allow it.
pub(crate) fn launcher() -> Option<Vec<&'static str>> {
    [&["--net"][..], &["--user", "--map-root-user", "--net"]].into_iter().find_map(|flags| {
        let works = Command::new("unshare")
            .args(flags)
            .arg("true")
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        works.then(|| [&["unshare"], flags].concat())
    })
}

/// Records attempts to leave loopback, from inside the separate network.
pub(crate) struct Watch {
    before: Cell<u64>,
    /// The machine's name servers, if they are on loopback.
    names: Vec<UdpSocket>,
}

impl Watch {
    /// Enables loopback and starts recording.
    pub(crate) fn start() -> io::Result<Self> {
        raise_loopback()?;
        let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let servers =
            text.lines().filter_map(|line| line.strip_prefix("nameserver")?.trim().parse().ok());
        let local = servers.filter(IpAddr::is_loopback);
        let names =
            local.map(|address| UdpSocket::bind((address, 53))).collect::<Result<_, _>>()?;
        Ok(Self { before: Cell::new(unroutable()), names })
    }

    /// Describes the attempts since the last call; `None` if there were none.
    pub(crate) fn tried(&self) -> Option<String> {
        let mut tried = Vec::new();
        let now = unroutable();
        let packets = now - self.before.replace(now);
        if packets > 0 {
            tried.push(format!("{packets} attempts to reach another machine"));
        }
        for socket in &self.names {
            let mut asked = [0; 512];
            socket.set_nonblocking(true).expect("a socket");
            while let Ok(count) = socket.recv(&mut asked) {
                let name = String::from_utf8_lossy(&asked[12.min(count)..count]).into_owned();
                tried.push(format!("the name {name:?} was looked up"));
            }
        }
        (!tried.is_empty()).then(|| tried.join(", "))
    }
}

/// How often there was no route since this network was created.
fn unroutable() -> u64 {
    let old = table("/proc/net/snmp", "OutNoRoutes");
    let new = fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    let new = new.lines().find_map(|line| line.strip_prefix("Ip6OutNoRoutes")?.trim().parse().ok());
    old.expect("a count") + new.unwrap_or(0)
}

/// A value from a file in which a line of names precedes a line of values.
fn table(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(Path::new(path)).ok()?;
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let mut pairs = names.split(' ').zip(values.split(' '));
        if let Some((_, value)) = pairs.find(|(found, _)| *found == name) {
            return value.parse().ok();
        }
    }
    None
}

/// `ip link set lo up` by netlink, because `ip` may not be installed.
fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST: u16 = 1;
    const UP: u32 = 1;
    const LOOPBACK: i32 = 1;
    let mut message = Vec::new();
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Sequence number and port: none.
    message.extend([0; 8]);
    // Family and type: unspecified.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    // The default protocol is `NETLINK_ROUTE`.
    let kind = SocketType::RAW;
    let socket = socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // The kernel is done when `sendto` returns; the bind shows whether it succeeded.
    std::net::TcpListener::bind("127.0.0.1:0").map(drop)
}
