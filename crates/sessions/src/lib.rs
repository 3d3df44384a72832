//! Who runs: agent processes, session actors, the durable log and its stores.
//!
//! Knows no listener and no front. An agent's bytes come in, events become durable, cursors read
//! them; commands go the other way.

pub mod apart;
mod backlog;
pub mod bridge;
pub mod budget;
pub mod clock;
pub mod figures;
pub mod hub;
pub mod log;
mod look;
pub mod machine;
pub mod own;
pub mod owner;
pub mod private;
pub mod process;
mod reach;
pub mod session;
pub mod settings;
pub mod store;
mod sweep;
pub mod trust;

pub use agentwire_protocol::NewSession;
pub use hub::Hub;
pub use session::SessionHandle;
pub use settings::Settings;
