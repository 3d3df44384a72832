//! Pages that show what agents do: one message for each event, over a WebSocket.
//!
//! Implements the insights specification, at `/insights` and on a separate port. A client sees the sessions
//! that it created. docs/protocols/insights.md describes it in full.

mod agents;
mod front;
mod messages;
mod modes;
mod render;
mod requests;
mod usage;
mod wire;

pub use front::Insights;
pub use render::Renderer;
