//! Pages that show what agents do: one message for each thing that happens, over a WebSocket.
//!
//! Whose: the insights specification's. Served at `/insights` and on a port of its own. A client sees
//! the sessions that it created. docs/protocols/insights.md is its whole description.

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
