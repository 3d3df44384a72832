//! The demo agent, which is agentwire itself: no key, no network, and Claude's wire.
//!
//! It calls every hook, has no sandbox, reads no settings, and can say which mode it was told to run in.

mod program;

pub use program::PROGRAM;

use agentwire_protocol::AgentType;

use crate::agent::OwnHooks;
use crate::claude::Claude;

/// The demo agent.
pub const DEMO: Claude = Claude {
    agent: AgentType::Demo,
    hooks: OwnHooks::AllBut(&[]),
    has_sandbox: false,
    reads_settings: false,
    keeps_shell: false,
    tells_mode: true,
};
