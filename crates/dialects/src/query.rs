//! Queries: what a client may ask an agent beside prompts and settings.

use agentwire_protocol::Json;

/// Those that tell of the session, or do what other commands do.
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

/// Whether a query may widen what the agent may do. One that is not known may.
pub fn may_widen(method: &str, args: &[Json<'static>]) -> bool {
    match method {
        "setPermissionMode" => {
            let mode = args.first().and_then(|mode| mode.read::<String>().ok());
            mode.is_none_or(|mode| mode_widens(&mode))
        }
        method => !HARMLESS.contains(&method),
    }
}

/// Whether a permission mode of an agent's own may let calls run unasked. One that is not known may.
pub fn mode_widens(mode: &str) -> bool {
    !matches!(mode, "default" | "plan" | "dontAsk")
}
