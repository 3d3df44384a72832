//! The verbs that talk to a server: the program itself, over real sockets, on the server's machine and
//! on another that knows only its address.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod attach;
mod commands;
mod harness;
mod lines;
mod permit;
#[path = "../run/pty.rs"]
mod pty;
mod reading;
mod restart;
mod servers;
