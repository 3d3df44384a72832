//! What is known about the program of an ACP agent: little, because the user chooses it.

use agentwire_protocol::AgentType;

use super::ACP;
use crate::program::{
    CacheCount, ClaudeFlags, DefaultCommand, LoginQuestion, Program, Source, Wire,
};

pub const PROGRAM: Program = Program {
    agent: AgentType::Acp,
    about: "Any agent that speaks the Agent Client Protocol; set AGENTWIRE_ACP_BIN to it",
    provider: "acp",
    source: Source::Other("set command in [agents.acp] to an agent that speaks ACP"),
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
