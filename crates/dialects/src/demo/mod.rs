//! The demo agent, which is agentwire itself: no key, no network, and Claude's wire.
//!
//! It calls every hook, has no sandbox, reads no settings, and can report the mode it was told to run in.

mod program;

pub use program::PROGRAM;

use agentwire_protocol::AgentType;

use crate::agent::OwnHooks;
use crate::claude::{self, Claude};
use crate::describe::AgentTools;

/// Its tools are Claude's, but each command starts in the working directory.
const TOOLS: AgentTools = AgentTools { shell_moves: false, ..claude::TOOLS };

pub const DEMO: Claude = Claude {
    agent: AgentType::Demo,
    hooks: OwnHooks::AllBut(&[]),
    tools: &TOOLS,
    has_sandbox: false,
    reads_settings: false,
    tells_mode: true,
};
