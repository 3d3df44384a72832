//! The demo agent, driven over its pipes as clients drive Claude.

mod directives;
mod harness;
mod hooks;
mod interrupts;
mod permissions;
mod servers;
mod sessions;
mod tour;
