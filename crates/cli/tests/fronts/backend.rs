//! `agentwire backend`: the program itself, with the demo agent, over pipes.

mod asking;
mod client;
mod documents;
mod sessions;
mod wrong;
