//! Facts about the Claude Code program.

use agentwire_protocol::AgentType;
use serde::Deserialize;

use super::CLAUDE;
use crate::program::{
    CacheCount, ClaudeFlags, DefaultCommand, Login, LoginMethod, LoginQuestion, Program, Source,
    Wire,
};

pub const PROGRAM: Program = Program {
    agent: AgentType::Claude,
    about: "Claude Code",
    provider: "anthropic",
    source: Source::Npm("@anthropic-ai/claude-code"),
    command: DefaultCommand::Named("claude"),
    is_candidate: true,
    default_prompt: None,
    drivers: &[("stream-json", &CLAUDE)],
    wires: &[Wire { dialect: &CLAUDE, about: "Claude Code's stream-json" }],
    claude_flags: ClaudeFlags::All,
    cache: CacheCount::BesideInput,
    acp: None,
    protected: &[".claude", ".claude.json"],
    // Claude's Python SDK removes it too.
    own_variables: &["CLAUDECODE"],
    project_prefixes: &["${CLAUDE_PROJECT_DIR}/", "$CLAUDE_PROJECT_DIR/"],
    tested: &["2.1.197", "2.1.325"],
    // Without `--json`, 2.1.29 treats these words as a prompt and calls the model.
    login: LoginQuestion::Ask { args: &["auth", "status", "--json"], read: login },
    sign_in: "run `claude` once and sign in, or set ANTHROPIC_API_KEY",
    problems: &[],
};

/// The part of the answer that is read. The rest names the account.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    logged_in: bool,
    auth_method: Option<String>,
}

fn login(stdout: &str, _: &str) -> Login {
    let Ok(status) = serde_json::from_str::<Status>(stdout) else { return Login::NotTold };
    if !status.logged_in {
        return Login::NotSignedIn;
    }
    Login::SignedIn(match status.auth_method.as_deref() {
        Some("api_key" | "api_key_helper") => Some(LoginMethod::ApiKey),
        Some("oauth_token") => Some(LoginMethod::Token),
        Some("claude.ai") => Some(LoginMethod::Account),
        Some("third_party") => Some(LoginMethod::Cloud),
        Some(_) | None => None,
    })
}
