//! When Codex asks and what its commands may touch, by the unified modes.

use agentwire_protocol::{ApprovalMode, GatewayError, SandboxMode, SessionConfig};
use serde_json::{Value, json};

use super::Driver;

/// What a mode comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    /// The approval policy of the app server; exec never asks.
    pub(super) approval: &'static str,
    /// The sandbox, where the session names none.
    pub(super) sandbox: Sandbox,
    /// File changes within the workspace are accepted for the user.
    pub(super) accept_edits: bool,
}

/// What commands may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    FullAccess,
}

impl Sandbox {
    /// The word of `thread/start` and of `--sandbox`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::FullAccess => "danger-full-access",
        }
    }

    /// The policy of `turn/start`.
    pub(super) fn policy(self, config: &SessionConfig) -> Value {
        match self {
            Self::ReadOnly => json!({ "type": "readOnly", "networkAccess": false }),
            Self::WorkspaceWrite => json!({
                "type": "workspaceWrite",
                "writableRoots": config.additional_directories.clone().unwrap_or_default(),
                "networkAccess": false,
                "excludeTmpdirEnvVar": false,
                "excludeSlashTmp": false,
            }),
            Self::FullAccess => json!({ "type": "dangerFullAccess" }),
        }
    }
}

/// Reads a mode; the agent's own name wins. Exec cannot ask, so that what would have to ask before
/// everything may only read there.
pub(super) fn mode(
    driver: Driver,
    approval: Option<ApprovalMode>,
    permission: Option<&str>,
) -> Result<Mode, GatewayError> {
    let ask = Mode {
        approval: "untrusted",
        sandbox: match driver {
            Driver::AppServer => Sandbox::WorkspaceWrite,
            Driver::Exec => Sandbox::ReadOnly,
        },
        accept_edits: false,
    };
    let write = Mode { sandbox: Sandbox::WorkspaceWrite, ..ask };
    let dangerous = Mode { approval: "on-request", ..write };
    let edits = Mode { accept_edits: true, ..write };
    let never = Mode { approval: "never", ..write };
    // Nothing is to change: what would, asks.
    let plan = Mode { sandbox: Sandbox::ReadOnly, ..dangerous };
    let all = Mode { approval: "never", sandbox: Sandbox::FullAccess, ..ask };
    match (permission, approval.unwrap_or_default()) {
        (Some("default" | "untrusted"), _) | (None, ApprovalMode::Ask) => Ok(ask),
        (Some("on-request"), _) | (None, ApprovalMode::AskDangerous) => Ok(dangerous),
        (Some("acceptEdits"), _) | (None, ApprovalMode::AutoEdit) => Ok(edits),
        (Some("bypassPermissions"), _) | (None, ApprovalMode::AutoAll) => Ok(all),
        (Some("never"), _) => Ok(never),
        (Some("plan"), _) if driver == Driver::AppServer => Ok(plan),
        (Some(other), _) => {
            Err(GatewayError::unsupported(driver.name(), &format!("permissionMode {other}")))
        }
    }
}

/// The mode that a session is asked to run in.
pub(super) fn of(driver: Driver, config: &SessionConfig) -> Result<Mode, GatewayError> {
    let mode = mode(driver, config.approval_mode, config.permission_mode.as_deref())?;
    let sandbox = match config.sandbox_mode.unwrap_or_default() {
        SandboxMode::None => mode.sandbox,
        SandboxMode::ReadOnly => Sandbox::ReadOnly,
        SandboxMode::WorkspaceWrite => Sandbox::WorkspaceWrite,
        SandboxMode::FullAccess => Sandbox::FullAccess,
    };
    Ok(Mode { sandbox, ..mode })
}
