//! The unified protocol itself: command frames in, bare events and replies out.
//!
//! Our own design, on stdio as `agentwire unified`. An event has a `type`; a reply has none.

mod front;

pub use front::Unified;
