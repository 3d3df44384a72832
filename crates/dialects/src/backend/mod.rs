//! The NDJSON backend: Claude's SDK behind a pipe, for programs that cannot load it.
//!
//! Whose: the specification's, unchanged, over any agent. Over stdio as `agentwire backend`.
//! `docs/protocols/backend.md` says what the specification leaves open.
//!
//! Quirks: the envelope and what is ours in a payload are in snake case, while Claude reads only camel
//! case; what belongs to a tool or to Claude's messages keeps its names.

mod front;
mod wire;

pub use front::Backend;
