//! The guarantees, each shown by a test that can fail. Test names start with the id of the guarantee.
//! `AGENTWIRE_SOAK=1` runs them longer.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bridge;
mod bytes;
mod changes;
mod gateway;
mod log;
mod policy;
mod printing;
mod process;
mod requests;
mod restart;
mod session_origin;
mod sessions;
#[expect(dead_code, unused_imports, reason = "each test program uses a part of it")]
#[path = "../shared/mod.rs"]
mod shared;
mod trust;

/// The number of rounds: few in a normal run, many in a soak run.
pub(crate) fn rounds(quick: usize, long: usize) -> usize {
    if std::env::var_os("AGENTWIRE_SOAK").is_some() { long } else { quick }
}
