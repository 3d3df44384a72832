//! What is known about Gemini CLI's program.

use agentwire_protocol::AgentType;

use super::over_acp::QUIRKS;
use super::{Gemini, OVER_ACP};
use crate::program::{
    CacheCount, ClaudeFlags, DefaultCommand, LoginQuestion, Problem, Program, Source, Wire,
};

pub const PROGRAM: Program = Program {
    agent: AgentType::Gemini,
    about: "Gemini CLI",
    provider: "gcp.gen_ai",
    source: Source::Npm("@google/gemini-cli"),
    command: DefaultCommand::Named("gemini"),
    is_candidate: true,
    default_prompt: None,
    drivers: &[("acp", &OVER_ACP), ("stream-json", &Gemini)],
    wires: &[Wire { dialect: &Gemini, about: "Gemini CLI's stream-json" }],
    claude_flags: ClaudeFlags::None,
    cache: CacheCount::WithinInput,
    acp: Some(&QUIRKS),
    protected: &[".gemini"],
    own_variables: &[],
    project_prefixes: &["${workspacePath}/"],
    tested: &["0.61.0"],
    login: LoginQuestion::None { key: Some("GEMINI_API_KEY") },
    sign_in: "run `gemini` once and sign in, or set GEMINI_API_KEY",
    problems: &[
        Problem {
            from: None,
            before: Some("0.39.1"),
            what: "it exits immediately because it does not know `--skip-trust`",
            remedy: UPGRADE,
            fatal: true,
        },
        Problem {
            from: None,
            before: Some("0.41.0"),
            what: "with the driver stream-json it exits immediately because it does not know `--session-id`",
            remedy: UPGRADE,
            fatal: false,
        },
    ],
};

const UPGRADE: &str = "upgrade it: npm install -g @google/gemini-cli";
