//! The NDJSON backend: Claude's SDK over a pipe, for programs that cannot load it.
//!
//! Implements the specification unchanged, over any agent, on stdio as `agentwire backend`.
//! `docs/protocols/backend.md` covers what the specification leaves open.
//!
//! Quirks: the envelope and our own payload fields are in snake case, while Claude reads only camel case.
//! Fields of tools and of Claude's messages keep their names.

mod front;
mod wire;

pub use front::Backend;
