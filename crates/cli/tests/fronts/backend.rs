//! `agentwire backend` with the demo agent, over pipes.

mod bad_input;
mod client;
mod documents;
mod requests;
mod sessions;
mod trust;
