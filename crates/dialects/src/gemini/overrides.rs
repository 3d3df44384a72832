//! The arguments and variables of `gemini` that the gateway cannot allow, and the machine-wide files that
//! override it. Yargs parses the arguments.

use crate::overrides::{ArgumentParser, FileOverride, MachineFile, RefusedOption, RefusedOptions};

const MODE: &str = "use the options approvalMode, allowedTools and blockedTools";
const WIRE: &str = "agentwire speaks with the program itself";
const TRUST: &str = "use the option trust";
const MACHINE_WIDE: &str = "machine-wide settings override the policy that makes Gemini ask";

pub(crate) const REFUSED_OPTIONS: RefusedOptions = RefusedOptions {
    agent: "gemini",
    parser: ArgumentParser::Loose,
    arguments: &[
        RefusedOption::any(
            &[
                "--yolo",
                "-y",
                "--approval-mode",
                "--allowed-tools",
                "--policy",
                "--admin-policy",
                "--extensions",
                "-e",
            ],
            MODE,
        ),
        RefusedOption::any(
            &[
                "--acp",
                "--experimental-acp",
                "--prompt",
                "-p",
                "--prompt-interactive",
                "-i",
                "--output-format",
                "-o",
            ],
            WIRE,
        ),
        RefusedOption::any(&["--skip-trust"], TRUST),
    ],
    variables: &[
        RefusedOption::any(
            &["GEMINI_CLI_SYSTEM_SETTINGS_PATH", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"],
            MACHINE_WIDE,
        ),
        RefusedOption::any(
            &["GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH"],
            TRUST,
        ),
    ],
};

const ALLOWS: FileOverride = FileOverride {
    what: "policies of this machine's administrator override the one that makes Gemini ask agentwire, so \
           what they allow runs without asking",
    remedy: "sessions with blockedTools are refused; ask the administrator to allow nothing there",
};

pub(crate) const MACHINE: &[MachineFile] = &[
    MachineFile {
        path: if cfg!(target_os = "macos") {
            "/Library/Application Support/GeminiCli/policies"
        } else {
            "/etc/gemini-cli/policies"
        },
        ending: ".toml",
        variable: None,
        find_override: |text| text.contains("allow").then_some(ALLOWS),
    },
    MachineFile {
        path: if cfg!(target_os = "macos") {
            "/Library/Application Support/GeminiCli/settings.json"
        } else {
            "/etc/gemini-cli/settings.json"
        },
        ending: ".json",
        variable: Some("GEMINI_CLI_SYSTEM_SETTINGS_PATH"),
        find_override: |text| text.contains("adminPolicyPaths").then_some(ALLOWS),
    },
];
