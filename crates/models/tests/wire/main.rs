//! The APIs over real sockets: what a program reads when it plays a script.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads what it expects and fails by panicking"
)]

mod anthropic;
mod client;
mod documents;
mod gemini;
mod openai;
mod server;
