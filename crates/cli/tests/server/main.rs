//! `agentwire serve`, the real program, over real sockets.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads what it expects and fails by panicking"
)]

mod access;
mod board;
mod browser_sign_in;
mod concurrent_clients;
mod damaged_store;
mod dist;
mod documents;
mod guards;
mod idempotency;
mod insights;
mod library;
mod lists;
mod load;
mod locked_store;
mod logs;
mod operations;
mod pages;
mod queue;
mod request_forms;
#[path = "../shared/scenarios/mod.rs"]
mod scenarios;
mod sessions;
#[expect(dead_code, unused_imports, reason = "each test program uses a part of it")]
#[path = "../shared/mod.rs"]
mod shared;
mod slow_directory;
mod sockets;
#[path = "../shared/specified.rs"]
mod specified;
mod traces;
mod trust;
mod unanswered;
mod upgrade;
mod watch;
