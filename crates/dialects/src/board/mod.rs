//! The board: a session as a list of plain events, read by pages or as it grows.
//!
//! Whose: the unified specification's, §2.2 and §3. Served at `/api/sessions` and `/ws/sessions`.
//! docs/protocols/board.md is its whole description.

mod front;
mod render;
mod state;
mod wire;

pub use front::Watcher;
pub use render::Board;
pub use state::State;
