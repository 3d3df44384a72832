//! Which arguments and variables of `claude` the gateway cannot allow. Commander reads the arguments: it takes
//! no abbreviations.
//!
//! Settings that switch hooks off (`disableAllHooks`, `allowManagedHooksOnly`), of whatever origin, do not
//! reach the gateway's hook, which is registered over the wire (2.1.325, scenario "arguments that unguard").

use agentwire_protocol::{GatewayError, SessionConfig};

use super::modes;
use crate::guarded::{Guarded, Parser, Unguards};

/// An MCP tool that answers Claude's questions in the gateway's place.
const PROMPT_TOOL: &str = "--permission-prompt-tool";

/// Refuses such a tool where the gateway itself has to answer: by rules, or by a mode.
pub(super) fn check_prompt_tool(agent: &str, config: &SessionConfig) -> Result<(), GatewayError> {
    let is_it = |arg: &String| arg.split('=').next() == Some(PROMPT_TOOL);
    let has_rules = config.blocked_tools.as_ref().is_some_and(|rules| !rules.is_empty());
    let is_kept = config.permission_mode.as_deref().is_some_and(modes::is_kept);
    let held = has_rules || is_kept || config.approval_mode.is_some();
    if !held || !config.native_args.iter().flatten().any(is_it) {
        return Ok(());
    }
    let what = format!(
        "{PROMPT_TOOL} in nativeArgs together with rules or a mode: agentwire answers permission \
         requests then"
    );
    Err(GatewayError::unsupported(agent, &what))
}

const HOOKS: &str = "Claude would run calls without showing them to agentwire first";
const WIRE: &str = "agentwire speaks with the program itself";

pub(super) const GUARDED: Guarded = Guarded {
    agent: "claude",
    parser: Parser::Exact,
    arguments: &[
        Unguards {
            names: &["--permission-mode"],
            settings: &[],
            instead: "give the option permissionMode",
        },
        Unguards {
            names: &["--dangerously-skip-permissions"],
            settings: &[],
            instead: "give the option permissionMode bypassPermissions",
        },
        Unguards {
            names: &["--allowedTools", "--allowed-tools"],
            settings: &[],
            instead: "give the option allowedTools",
        },
        Unguards { names: &["--input-format", "--output-format"], settings: &[], instead: WIRE },
        Unguards { names: &["--bare"], settings: &[], instead: HOOKS },
    ],
    variables: &[Unguards {
        names: &[
            // What `--bare` sets.
            "CLAUDE_CODE_SIMPLE",
            "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS",
        ],
        settings: &[],
        instead: HOOKS,
    }],
};
