//! What is known about the demo agent's program.

use agentwire_protocol::AgentType;

use super::DEMO;
use crate::program::{CacheCount, ClaudeFlags, DefaultCommand, LoginQuestion, Program, Source};

pub const PROGRAM: Program = Program {
    agent: AgentType::Demo,
    about: "The built-in demo agent: no key, no network",
    provider: "agentwire",
    source: Source::Other("reinstall agentwire"),
    command: DefaultCommand::BuiltIn { verb: "demo-agent", state: "demo" },
    is_candidate: false,
    // A prompt without directives plays its tour.
    default_prompt: Some("Show me around."),
    drivers: &[("stream-json", &DEMO)],
    wires: &[],
    claude_flags: ClaudeFlags::Some,
    cache: CacheCount::BesideInput,
    acp: None,
    protected: &[],
    own_variables: &[],
    project_prefixes: &[],
    tested: &[env!("CARGO_PKG_VERSION")],
    login: LoginQuestion::Needless,
    sign_in: "",
    problems: &[],
};
