//! Reads one line of JSON in one pass, without copying, and knows whether any strict parser would
//! take it.
//!
//! The pass leaves a flat list of spans. Everything after it (finding the type, reading the fields of
//! that type, cutting out arguments and results) walks the list and slices the line; nothing is
//! parsed twice. A value that is read is marked, so that what nobody read can be listed: [`residue`].

mod block;
mod read;
mod repair;
mod residue;
mod scan;

pub use read::{Fields, Items, Read, Value};
pub use repair::{repair, without_lone_surrogates};
pub use residue::residue;
pub use scan::{Document, Fault, Scanner};

pub(crate) use read::wire;

/// How deep a line may nest and still be embedded: with the event around it, the strictest of the
/// common parsers (64 levels) must take it.
pub const MAX_DEPTH: usize = 60;

/// How many values a line may hold and still be looked into; one with more is kept as text.
pub const MAX_VALUES: usize = 1 << 20;
