//! Which arguments of `codex` the gateway cannot allow, and which files of the machine. Clap reads them.

use crate::guarded::{Guarded, MachineFile, OwnRules, Parser, Unguarded, Unguards};

const MODE: &str = "give the options approvalMode and sandboxMode";
const WIRE: &str = "agentwire speaks with the program itself";

pub(super) const GUARDED: Guarded = Guarded {
    agent: "codex",
    parser: Parser::Clusters { with_value: "acimopsC" },
    arguments: &[
        Unguards {
            names: &[
                "--dangerously-bypass-approvals-and-sandbox",
                "--yolo",
                "--full-auto",
                // A model answers in the gateway's place.
                "--approve-for-me",
                "--not-so-yolo",
                "--ask-for-approval",
                "-a",
                "--sandbox",
                "-s",
            ],
            settings: &[],
            instead: MODE,
        },
        Unguards {
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
        Unguards {
            names: &["--profile", "-p"],
            settings: &[],
            instead: "a profile can hold other approval policies; put what it holds into config.toml",
        },
        Unguards {
            names: &["--dangerously-bypass-hook-trust"],
            settings: &[],
            instead: "give the option trust",
        },
        Unguards {
            names: &["--cd", "-C"],
            settings: &[],
            instead: "give the option workingDirectory",
        },
        Unguards {
            names: &["--listen", "--remote", "--json", "--experimental-json"],
            settings: &[],
            instead: WIRE,
        },
    ],
    variables: &[],
};

/// What they forbid does no harm; a policy that they put in place of ours is seen when the thread opens.
pub(super) const MACHINE: &[MachineFile] = &[MachineFile {
    path: "/etc/codex/managed_config.toml",
    ending: ".toml",
    variable: None,
    unguards: |text| {
        let sets = |line: &str| {
            let wanted = [("approval_policy", "untrusted"), ("approvals_reviewer", "user")];
            let others = |(key, value): &(&str, &str)| {
                line.trim_start().starts_with(key) && !line.contains(value)
            };
            wanted.iter().any(others)
        };
        text.lines().any(sets).then_some(Unguarded {
            what: "settings of this machine's administrator say when Codex asks, and win over agentwire",
            remedy: "sessions that would not ask fail when they start; ask the administrator for the \
                     approval policy untrusted",
        })
    },
}];

/// Commands that these allow Codex runs unasked.
pub(super) const OWN_RULES: OwnRules = OwnRules {
    tools: &["Bash", "Monitor", "PowerShell", "command_execution"],
    home: "CODEX_HOME",
    directory: ".codex",
    rules: "rules",
    ending: "rules",
    allows: "allow",
};
