//! Queries: what a client may ask an agent besides prompts and settings.

use agentwire_protocol::Json;

/// Queries that report on the session, or do what other commands do.
const HARMLESS: &[&str] = &[
    "accountInfo",
    "backgroundTasks",
    "cancelAsyncMessage",
    "exportConversation",
    "fileSuggestions",
    "generateSessionTitle",
    "getBinaryVersion",
    "getContextUsage",
    "getHooksListing",
    "getPlan",
    "getSessionCost",
    "getStatus",
    "getTaskOutput",
    "getUsage",
    "getWorkspaceDiff",
    "initialization",
    "listModels",
    "listPermissionRules",
    "mcpServerStatus",
    "renameSession",
    "rewindConversation",
    "rewindFiles",
    "setMaxThinkingTokens",
    "setModel",
    "sideQuestion",
    "stopTask",
    "supportedAgents",
    "supportedCommands",
    "supportedModels",
    "supportedModes",
];

/// Whether a query may widen what the agent may do. An unknown one may.
pub fn may_widen(method: &str, args: &[Json<'static>]) -> bool {
    match method {
        "setPermissionMode" => {
            let mode = args.first().and_then(|mode| mode.read::<String>().ok());
            mode.is_none_or(|mode| mode_widens(&mode))
        }
        method => !HARMLESS.contains(&method),
    }
}

/// Whether one of an agent's own permission modes may let calls run without asking. An unknown one may.
pub fn mode_widens(mode: &str) -> bool {
    !matches!(mode, "default" | "plan" | "dontAsk")
}
