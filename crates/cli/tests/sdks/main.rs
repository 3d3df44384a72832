//! Third-party programs drive agentwire: the official Agent SDKs use it as the `claude` program, a crawler
//! tries everything in the server's OpenAPI description, and a TypeScript program is checked against the
//! declarations generated from it. The TypeScript client runs in everything that it is for.
//!
//! Each test runs one scenario of `scenarios.py` or `scenarios.mjs`. The first test that needs the SDKs
//! installs them (`install.rs`).
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod child;
mod crawl;
mod harness;
mod install;
mod recording;
#[path = "../shared/scenarios/mod.rs"]
mod scenarios;
#[expect(dead_code, unused_imports, reason = "each test program uses a part of it")]
#[path = "../shared/mod.rs"]
mod shared;
mod types;
mod typescript_client;

use crate::harness::{Agent, SdkHome};
use crate::install::Sdk;
use crate::shared::SDKS;

async fn play(sdk: Sdk, agent: Agent, scenario: &str) {
    if !SDKS.is_on() {
        return;
    }
    let home = SdkHome::new(agent);
    let command = sdk.command(home.path(), "scenarios").await;
    home.play(command, scenario).await;
}

macro_rules! scenarios {
    ($($module:ident $sdk:ident { $($agent:expr => $($name:ident)+;)+ })+) => {
        $(mod $module {
            use crate::install::Sdk;
            use crate::harness::Agent::*;

            pub(super) const NAMES: &[&str] = &[$($(stringify!($name)),+),+];

            $($(#[tokio::test]
            async fn $name() {
                crate::play(Sdk::$sdk, $agent, stringify!($name)).await;
            })+)+
        })+
    };
}

scenarios! {
    python Python {
        Demo => simple streamed_input client permissions unasked allowed question hooks mcp interrupt models
            partial errors large separators resume structured suggestions deny_and_stop context_usage
            refused_control queued agent_dies subagent todo image system_prompt left_in_turn start_fails
            old_style one_shot no_raw_separators;
        Codex("real-app-text") => codex_text;
        Codex("real-app-command-approval-accept") => codex_allow codex_once;
        Codex("real-app-error-500") => codex_fails;
        Acp("real-shell-allow-once") => acp_allow;
        Gemini("real-shell-reject") => gemini_deny;
    }
    typescript TypeScript {
        Demo => simple client permissions hooks mcp interrupt models partial errors large separators resume
            structured commands_first suggestions queued abort agent_dies subagent todo image
            system_prompt;
        Codex("real-app-text") => codex_text;
        Codex("real-app-command-approval-accept") => codex_allow;
        Acp("real-shell-allow-once") => acp_allow;
    }
}

/// Node 24 and later treat U+2028 as the end of a line.
#[tokio::test]
async fn separators_where_lines_end_at_them() {
    play(Sdk::TypeScriptOnNode24, Agent::Demo, "separators").await;
}

#[test]
fn no_scenario_is_left_out() {
    let names = |source: &str, before: &str, after: &str| -> Vec<String> {
        let names =
            source.lines().filter_map(|line| line.strip_prefix(before)?.strip_suffix(after));
        names.filter(|name| !name.contains(' ')).map(str::to_owned).collect()
    };
    let python =
        [include_str!("scenarios.py"), include_str!("program.py"), include_str!("agents.py")];
    let python = names(&python.join("\n"), "async def ", "():");
    let typescript = names(include_str!("scenarios.mjs"), "  async ", "() {");
    for (mut written, run) in [(python, python::NAMES), (typescript, typescript::NAMES)] {
        let mut run: Vec<_> = run.iter().map(|&name| name.to_owned()).collect();
        written.sort();
        run.sort();
        assert_eq!(written, run);
    }
}
