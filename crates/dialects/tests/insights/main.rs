//! The insights front: what pages say and are told.
#![expect(
    clippy::needless_pass_by_value,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
mod fixtures;
mod lives;
mod modes;
mod page;
mod reconnect;
mod usage;
mod words;
