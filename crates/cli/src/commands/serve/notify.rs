//! Reports the server's state to systemd (`sd_notify`), if systemd started it.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

pub(super) const READY: &str = "READY=1";

pub(super) const STOPPING: &str = "STOPPING=1";

/// Does nothing without systemd; a failure is only logged.
pub(super) fn notify(state: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    // A name in the abstract namespace, not a file.
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::debug!(%error, "failed to notify systemd");
    }
}
