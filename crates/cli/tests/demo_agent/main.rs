//! The demo agent, driven over its pipes as a client drives Claude.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it does not expect shall fail"
)]

mod directives;
mod harness;
mod hooks;
mod interrupts;
mod permissions;
mod servers;
mod sessions;
mod tour;
