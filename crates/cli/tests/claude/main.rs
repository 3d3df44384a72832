//! `agentwire claude`, the real program over its real wire, without an SDK.
#![expect(clippy::expect_used, reason = "a test that meets what it does not expect shall fail")]

mod client;
mod documents;
mod endings;
#[path = "../shared/examples.rs"]
mod examples;
