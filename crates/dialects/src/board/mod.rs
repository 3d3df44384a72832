//! The board: a session as a list of plain events, read in pages or live.
//!
//! Implements the unified specification, §2.2 and §3, at `/api/sessions` and `/ws/sessions`.
//! docs/protocols/board.md describes it in full.

mod front;
mod render;
mod state;
mod wire;

pub use front::Watcher;
pub use render::Board;
pub use state::BoardState;
