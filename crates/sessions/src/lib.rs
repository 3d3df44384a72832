//! The engine: agent processes, session actors, the durable log and its stores.
//!
//! It knows no listener and no front. Bytes from an agent become durable events that cursors read; commands
//! go the other way.

mod backlog;
pub mod blocking;
pub mod bridge;
pub mod budget;
pub mod clock;
pub mod held_dir;
pub mod hub;
pub mod index;
mod lanes;
pub mod log;
pub mod managed_files;
pub mod metrics;
mod orphans;
pub mod own_dirs;
pub mod owner;
mod path_walk;
pub mod private_dir;
pub mod process;
pub mod session;
pub mod settings;
mod slow_fs;
pub mod store;
pub mod trust;

pub use agentwire_protocol::NewSession;
pub use hub::Hub;
pub use session::SessionHandle;
pub use settings::Settings;
