//! Who runs: agent processes, session actors, the durable log and its stores.
//!
//! Knows no listener and no front. An agent's bytes come in, events become durable, cursors read
//! them; commands go the other way.

pub mod process;
pub mod store;
