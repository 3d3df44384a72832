//! Tells systemd how the server stands (`sd_notify`), where it started us and wants to know.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// It listens.
pub(super) const READY: &str = "READY=1";

/// It ends.
pub(super) const STOPPING: &str = "STOPPING=1";

/// Nobody need listen, and that somebody does not is no failure.
pub(super) fn notify(state: &str) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    // A name that begins so stands for no file.
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    let told = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = told {
        tracing::debug!(%error, "failed to notify systemd");
    }
}
