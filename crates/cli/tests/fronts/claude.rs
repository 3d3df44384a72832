//! `agentwire claude` over its real wire, without an SDK.

mod client;
mod documents;
mod endings;
pub(crate) mod trust;
