//! The client library over every way to a gateway, with the program itself at the other end.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod attach;
mod broken;
mod child;
mod conversation;
mod harness;
mod proxy;
