//! What is known of a program that speaks ACP: little, for it is the user's choice.

use agentwire_protocol::AgentType;

use super::ACP;
use crate::program::{
    CacheCount, ClaudeFlags, DefaultCommand, LoginQuestion, Program, Source, Wire,
};

/// Any agent that speaks ACP.
pub const PROGRAM: Program = Program {
    agent: AgentType::Acp,
    about: "Any agent that speaks the Agent Client Protocol; name it in AGENTWIRE_ACP_BIN",
    provider: "acp",
    source: Source::Other("name an agent that speaks ACP in [agents.acp] command"),
    command: DefaultCommand::None,
    is_candidate: false,
    default_prompt: None,
    drivers: &[("acp", &ACP)],
    wires: &[Wire { dialect: &ACP, about: "Agent Client Protocol, such as `gemini --acp`" }],
    claude_flags: ClaudeFlags::None,
    cache: CacheCount::Unknown,
    acp: None,
    protected: &[".agents", ".cursor"],
    own_variables: &[],
    project_prefixes: &[],
    tested: &[],
    login: LoginQuestion::None { key: None },
    sign_in: "sign in with the agent's own program, or set the key that it reads",
    problems: &[],
};
