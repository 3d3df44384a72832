//! The arguments of `codex` that the gateway cannot allow, and the machine-wide files that override it.
//! Clap parses the arguments.

use crate::overrides::{
    ArgumentParser, FileOverride, MachineFile, OwnRuleFiles, RefusedOption, RefusedOptions,
};

const MODE: &str = "use the options approvalMode and sandboxMode";
const WIRE: &str = "agentwire speaks with the program itself";

pub(super) const REFUSED_OPTIONS: RefusedOptions = RefusedOptions {
    agent: "codex",
    parser: ArgumentParser::Clusters { with_value: "acimopsC" },
    arguments: &[
        RefusedOption::any(
            &[
                "--dangerously-bypass-approvals-and-sandbox",
                "--yolo",
                "--full-auto",
                // A model answers instead of the gateway.
                "--approve-for-me",
                "--not-so-yolo",
                "--ask-for-approval",
                "-a",
                "--sandbox",
                "-s",
            ],
            MODE,
        ),
        RefusedOption {
            names: &["--config", "-c"],
            settings: &[
                "approval_policy",
                "approvals_reviewer",
                "sandbox_mode",
                "sandbox_workspace_write",
                "default_permissions",
                "permissions.",
                "trust_level",
                "profile",
            ],
            instead: MODE,
        },
        RefusedOption::any(
            &["--profile", "-p"],
            "a profile can set other approval policies; put its settings into config.toml",
        ),
        RefusedOption::any(&["--dangerously-bypass-hook-trust"], "use the option trust"),
        RefusedOption::any(&["--cd", "-C"], "use the option workingDirectory"),
        RefusedOption::any(&["--listen", "--remote", "--json", "--experimental-json"], WIRE),
    ],
    variables: &[],
};

/// What these files forbid does no harm. A policy that replaces ours is detected when the thread opens.
pub(super) const MACHINE: &[MachineFile] = &[MachineFile {
    path: "/etc/codex/managed_config.toml",
    ending: ".toml",
    variable: None,
    find_override: |text| {
        let sets = |line: &str| {
            let wanted = [("approval_policy", "untrusted"), ("approvals_reviewer", "user")];
            let others = |(key, value): &(&str, &str)| {
                line.trim_start().starts_with(key) && !line.contains(value)
            };
            wanted.iter().any(others)
        };
        text.lines().any(sets).then_some(FileOverride {
            what: "settings of this machine's administrator decide when Codex asks, and override agentwire",
            remedy: "sessions that would not ask fail when they start; ask the administrator for the \
                     approval policy untrusted",
        })
    },
}];

/// Codex does not ask about commands that these rules allow.
pub(super) const OWN_RULES: OwnRuleFiles = OwnRuleFiles {
    tools: &["Bash", "Monitor", "PowerShell", "command_execution"],
    home: "CODEX_HOME",
    directory: ".codex",
    rules: "rules",
    ending: "rules",
    allows: "allow",
};
