//! What is known of Claude Code's program, and of the demo agent's.

use serde::Deserialize;

use super::{CLAUDE, DEMO};
use crate::program::{Login, LoginMethod, LoginQuestion, Program, Source};

/// Claude Code.
pub const PROGRAM: Program = Program {
    source: Source::Npm("@anthropic-ai/claude-code"),
    drivers: &[("stream-json", &CLAUDE)],
    tested: &["2.1.197", "2.1.325"],
    // Without `--json`, 2.1.29 takes these words for a prompt and asks the model.
    login: LoginQuestion::Ask { args: &["auth", "status", "--json"], read: login },
    sign_in: "run `claude` once and sign in, or set ANTHROPIC_API_KEY",
    problems: &[],
};

/// The demo agent, which is agentwire itself.
pub const DEMO_PROGRAM: Program = Program {
    source: Source::Other("reinstall agentwire"),
    drivers: &[("stream-json", &DEMO)],
    tested: &[env!("CARGO_PKG_VERSION")],
    login: LoginQuestion::Needless,
    sign_in: "",
    problems: &[],
};

/// The part of its answer that is read; the rest names the account.
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
