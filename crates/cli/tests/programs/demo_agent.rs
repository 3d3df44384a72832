//! The demo agent, driven over its pipes as a client drives Claude.

mod directives;
mod harness;
mod hooks;
mod interrupts;
mod permissions;
mod servers;
mod sessions;
mod tour;
