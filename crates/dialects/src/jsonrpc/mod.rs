//! JSON-RPC 2.0 with Claude's messages in it.
//!
//! Whose: ours, after the specification's "What we support". Over stdio as `agentwire rpc`. A message is
//! one line; docs/protocols/jsonrpc.md is its whole description.

mod front;
mod wire;

pub use front::JsonRpc;
