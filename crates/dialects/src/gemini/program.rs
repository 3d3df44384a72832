//! What is known of Gemini CLI's program.

use super::Gemini;
use crate::acp;
use crate::program::{LoginQuestion, Problem, Program, Source};

/// Gemini CLI.
pub const PROGRAM: Program = Program {
    source: Source::Npm("@google/gemini-cli"),
    drivers: &[("acp", &acp::GEMINI), ("stream-json", &Gemini)],
    tested: &["0.61.0"],
    login: LoginQuestion::None { key: Some("GEMINI_API_KEY") },
    sign_in: "run `gemini` once and sign in, or set GEMINI_API_KEY",
    problems: &[
        Problem {
            from: None,
            before: Some("0.39.1"),
            what: "it ends at once, for it does not know `--skip-trust`",
            remedy: UPGRADE,
            fatal: true,
        },
        Problem {
            from: None,
            before: Some("0.41.0"),
            what: "with the driver stream-json it ends at once, for it does not know `--session-id`",
            remedy: UPGRADE,
            fatal: false,
        },
    ],
};

const UPGRADE: &str = "upgrade it: npm install -g @google/gemini-cli";
