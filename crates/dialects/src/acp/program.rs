//! What is known of a program that speaks ACP: little, for it is the user's choice.

use super::ACP;
use crate::program::{LoginQuestion, Program, Source};

/// Any agent that speaks ACP.
pub const PROGRAM: Program = Program {
    source: Source::Other("name an agent that speaks ACP in [agents.acp] command"),
    drivers: &[("acp", &ACP)],
    tested: &[],
    login: LoginQuestion::None { key: None },
    sign_in: "sign in with the agent's own program, or set the key that it reads",
    problems: &[],
};
