//! Reads one line of JSON in one pass, without copying, and checks whether any strict parser would accept
//! it.
//!
//! The pass produces a flat list of spans. All later steps (finding the type, reading the fields of that
//! type, cutting out arguments and results) walk the list and slice the line; nothing is parsed twice. A
//! value that is read is marked, so that unread values can be listed: [`residue`].

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

/// How deep a line may nest and still be embedded: together with the event around it, the strictest common
/// parsers (64 levels) must accept it.
pub const MAX_DEPTH: usize = 60;

/// How many values a line may have and still be parsed; a line with more is stored as text.
pub const MAX_VALUES: usize = 1 << 20;
