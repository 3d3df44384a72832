//! What the modes of agents mean: which ask, and which approve by themselves.

use agentwire_protocol::ApprovalMode;

/// Names of modes that ask before anything runs, best first.
const ASKING: &[&str] = &["default", "ask", "manual", "approve", "read-only"];

/// A mode with one of these in its name approves by itself.
const APPROVING: &[&str] = &[
    "bypass",
    "yolo",
    "accept",
    "autoedit",
    "autoall",
    "autoapprove",
    "autopilot",
    "dontask",
    "fullaccess",
    "fullauto",
    "dangerous",
    "unrestricted",
    "skippermission",
];

/// The gateway mode that a name means, in the vocabulary of any agent. The agent then stays in the mode
/// that asks.
pub(crate) fn gateway_mode(mode: &str) -> Option<ApprovalMode> {
    match mode {
        "default" | "ask" => Some(ApprovalMode::Ask),
        "acceptEdits" | "autoEdit" | "auto_edit" | "auto-edit" => Some(ApprovalMode::AutoEdit),
        "bypassPermissions" | "yolo" | "autoAll" => Some(ApprovalMode::AutoAll),
        _ => None,
    }
}

pub(super) fn approves(mode: &str) -> bool {
    let plain: String = mode.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    plain == "auto" || plain == "smartapprove" || APPROVING.iter().any(|name| plain.contains(name))
}

/// The offered mode in which the agent asks most.
pub(super) fn asking(offered: &[String]) -> Option<&str> {
    let of_name = |name: &&str| offered.iter().find(|id| id.eq_ignore_ascii_case(name));
    ASKING.iter().find_map(of_name).map(String::as_str)
}
