//! What Codex's commands may touch, by the unified modes. Codex never decides whether a call may run: it
//! always runs with the policy that asks most, and the gateway's policy answers.

use agentwire_protocol::{ApprovalMode, GatewayError, SandboxMode, SessionConfig};
use serde_json::{Value, json};

use super::Driver;

/// The approval policy of the app server, in every mode. Exec never asks.
pub(super) const APPROVAL: &str = "untrusted";

/// Who is asked: the client, not a model.
pub(super) const REVIEWER: &str = "user";

/// What commands may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    FullAccess,
}

impl Sandbox {
    /// The value for `thread/start` and `--sandbox`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::FullAccess => "danger-full-access",
        }
    }

    /// The value for `turn/start`.
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

/// The sandbox of a mode; `permission` wins over `approval`. Exec cannot ask, so a mode that would have to
/// ask before everything may only read there.
pub(super) fn mode(
    driver: Driver,
    approval: Option<ApprovalMode>,
    permission: Option<&str>,
) -> Result<Sandbox, GatewayError> {
    let approval = match permission {
        None => approval.unwrap_or_default(),
        Some("default" | "untrusted") => ApprovalMode::Ask,
        Some("acceptEdits") => ApprovalMode::AutoEdit,
        Some("bypassPermissions") => ApprovalMode::AutoAll,
        Some("on-request" | "never") => return Ok(Sandbox::WorkspaceWrite),
        Some("plan") if driver == Driver::AppServer => return Ok(Sandbox::ReadOnly),
        Some(other) => {
            return Err(driver.unsupported(format!("permissionMode {other}")));
        }
    };
    Ok(match (approval, driver) {
        (ApprovalMode::Ask, Driver::Exec) => Sandbox::ReadOnly,
        (ApprovalMode::Ask, Driver::AppServer)
        | (ApprovalMode::AskDangerous | ApprovalMode::AutoEdit, _) => Sandbox::WorkspaceWrite,
        (ApprovalMode::AutoAll, _) => Sandbox::FullAccess,
    })
}

pub(super) fn of(driver: Driver, config: &SessionConfig) -> Result<Sandbox, GatewayError> {
    let by_mode = mode(driver, config.approval_mode, config.permission_mode.as_deref())?;
    Ok(match config.sandbox_mode.unwrap_or_default() {
        SandboxMode::None => by_mode,
        SandboxMode::ReadOnly => Sandbox::ReadOnly,
        SandboxMode::WorkspaceWrite => Sandbox::WorkspaceWrite,
        SandboxMode::FullAccess => Sandbox::FullAccess,
    })
}

pub(super) fn runs_all(config: &SessionConfig) -> bool {
    match config.permission_mode.as_deref() {
        Some(own) => matches!(own, "bypassPermissions" | "never"),
        None => config.approval_mode == Some(ApprovalMode::AutoAll),
    }
}
