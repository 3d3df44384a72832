//! What is known about Codex CLI's program.

use agentwire_protocol::AgentType;

use super::{CODEX, CODEX_EXEC};
use crate::program::{
    CacheCount, ClaudeFlags, DefaultCommand, Login, LoginMethod, LoginQuestion, Problem, Program,
    Source, Wire,
};

pub const PROGRAM: Program = Program {
    agent: AgentType::Codex,
    about: "Codex CLI",
    provider: "openai",
    source: Source::Npm("@openai/codex"),
    command: DefaultCommand::Named("codex"),
    is_candidate: true,
    default_prompt: None,
    drivers: &[("app-server", &CODEX), ("exec", &CODEX_EXEC)],
    wires: &[
        Wire { dialect: &CODEX, about: "Codex: app-server or exec lines" },
        Wire { dialect: &CODEX_EXEC, about: "Codex: `codex exec --json`" },
    ],
    claude_flags: ClaudeFlags::None,
    cache: CacheCount::WithinInput,
    acp: None,
    protected: &[".codex"],
    own_variables: &[],
    project_prefixes: &[],
    tested: &["0.166.0"],
    login: LoginQuestion::Ask { args: &["login", "status"], read: login },
    sign_in: "run `codex login`, or give `codex login --with-api-key` a key on stdin; your own model \
              provider in its config.toml needs neither",
    problems: &[Problem {
        from: None,
        before: Some("0.72.0"),
        what: "with its default driver no session starts because it does not know the policy `untrusted`",
        remedy: "upgrade it: npm install -g @openai/codex",
        fatal: true,
    }],
};

/// Codex answers on stderr, and parts of the key may follow the first words.
fn login(_: &str, stderr: &str) -> Login {
    stderr
        .lines()
        .find_map(|line| match line.trim() {
            "Not logged in" => Some(Login::NotSignedIn),
            "Logged in using ChatGPT" => Some(Login::SignedIn(Some(LoginMethod::Account))),
            line if line.starts_with("API key configured") => {
                Some(Login::SignedIn(Some(LoginMethod::ApiKey)))
            }
            line if line.starts_with("Logged in using ") => Some(Login::SignedIn(None)),
            _ => None,
        })
        .unwrap_or(Login::NotTold)
}
