//! `agentwire claude`: what the official SDKs take for the `claude` program.

pub(crate) mod argv;
pub(crate) mod output;
