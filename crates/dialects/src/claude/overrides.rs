//! Arguments and variables of `claude` that the gateway cannot allow. Commander parses the arguments and
//! accepts no abbreviations.
//!
//! Of the flags that its help does not show (2.1.325), this lists those that let somebody else speak in the
//! session, answer its requests or set its mode, and those that make it work or read settings elsewhere.
//! `--continue`, `--resume`, `--print` and similar flags remove no protection. `--safe-mode` leaves the
//! gateway's hook in place: it affects hooks as `allowManagedHooksOnly` does.
//!
//! Settings that turn hooks off (`disableAllHooks`, `allowManagedHooksOnly`), wherever they come from, do
//! not affect the gateway's hook, which is registered over the wire (2.1.325, scenario "arguments that
//! unguard").

use agentwire_protocol::{GatewayError, SessionConfig};

use super::modes;
use crate::overrides::{ArgumentParser, RefusedOption, RefusedOptions};

/// An MCP tool that answers Claude's permission requests instead of the gateway.
const PROMPT_TOOL: &str = "--permission-prompt-tool";

/// Refuses such a tool if the gateway itself has to answer, by rules or by a mode.
pub(super) fn check_prompt_tool(agent: &str, config: &SessionConfig) -> Result<(), GatewayError> {
    let is_it = |arg: &String| arg.split('=').next() == Some(PROMPT_TOOL);
    let has_rules = config.blocked_tools.as_ref().is_some_and(|rules| !rules.is_empty());
    let is_applied_by_gateway =
        config.permission_mode.as_deref().is_some_and(modes::is_applied_by_gateway);
    let held = has_rules || is_applied_by_gateway || config.approval_mode.is_some();
    if !held || !config.native_args.iter().flatten().any(is_it) {
        return Ok(());
    }
    let what = format!(
        "{PROMPT_TOOL} in nativeArgs together with rules or a mode: agentwire then answers \
         permission requests itself"
    );
    Err(GatewayError::unsupported(agent, what))
}

const HOOKS: &str = "Claude would run calls without showing them to agentwire first";
const WIRE: &str = "agentwire speaks with the program itself";
const PLACE: &str = "give the option workingDirectory";

pub(super) const REFUSED_OPTIONS: RefusedOptions = RefusedOptions {
    agent: "claude",
    parser: ArgumentParser::Exact,
    arguments: &[
        RefusedOption::any(
            &["--permission-mode", "--inherit-permission-mode"],
            "give the option permissionMode",
        ),
        RefusedOption::any(
            &["--dangerously-skip-permissions"],
            "give the option permissionMode bypassPermissions",
        ),
        RefusedOption::any(&["--allowedTools", "--allowed-tools"], "give the option allowedTools"),
        RefusedOption::any(
            &[
                "--input-format",
                "--output-format",
                // Sends the session to an address.
                "--sdk-url",
                // Sessions that run elsewhere, or are driven from elsewhere.
                "--cloud",
                "--remote",
                "--environment",
                "--pool",
                "--teleport",
                "--remote-control",
                "--rc",
                "--attach-serve",
                "--await-claim",
                "--bg",
                "--background",
                "--desktop",
                "--tmux",
                // Messages and answers from MCP servers.
                "--channels",
                "--dangerously-load-development-channels",
                // Messages and modes from another session.
                "--team-name",
                "--agent-id",
                "--lead-verify-key",
            ],
            WIRE,
        ),
        // The second starts a turn before it knows the hook.
        RefusedOption::any(&["--bare", "--reply-on-resume"], HOOKS),
        // The trust answer for the project's files decides this.
        RefusedOption::any(&["--setting-sources"], "give the option settingSources"),
        // Nobody has checked what these point to.
        RefusedOption::any(&["--project-config-root", "--deep-link-cwd-b64"], PLACE),
    ],
    variables: &[
        RefusedOption::any(
            &[
                // Set by `--bare`.
                "CLAUDE_CODE_SIMPLE",
                "CLAUDE_CODE_EVEN_MORE_DANGEROUSLY_SKIP_PERMISSIONS",
            ],
            HOOKS,
        ),
        // Set by `--sdk-url`.
        RefusedOption::any(&["CLAUDE_CODE_REMOTE_SDK_URL"], WIRE),
    ],
};
