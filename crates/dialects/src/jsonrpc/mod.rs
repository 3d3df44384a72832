//! JSON-RPC 2.0 with Claude's messages in it.
//!
//! Our own design, after the specification's "What we support"; on stdio as `agentwire rpc`. A message is
//! one line. docs/protocols/jsonrpc.md describes it in full.

mod front;
mod wire;

pub use front::JsonRpc;
