//! Authorization: what a client may do with its scope, and which settings give an agent more power.

use agentwire_dialects::front::{GatewayCall, GatewayQuery};
use agentwire_dialects::query::{may_widen, mode_widens};
use agentwire_protocol::session::SandboxMode;
use agentwire_protocol::{
    ApprovalMode, Command, Configure, ErrorCode, GatewayError, Json, NewSession, SessionConfig,
};

use crate::tokens::{Caller, Scope};

pub(crate) fn need(caller: &Caller, scope: Scope) -> Result<(), GatewayError> {
    match caller.scope.allows(scope) {
        true => Ok(()),
        false => Err(forbidden(format!(
            "this needs the scope {}; the token `{}` has {}",
            scope.as_str(),
            caller.name,
            caller.scope.as_str()
        ))),
    }
}

/// Refuses calls that the client may not make, on any front.
pub(crate) fn check(caller: &Caller, ask: &GatewayCall) -> Result<(), GatewayError> {
    match ask {
        GatewayCall::Start(new) => start(caller, new),
        GatewayCall::Command(_, command) => match command {
            // The session checks what the answer may allow: it knows the request.
            Command::Settle(_) => need(caller, Scope::Approve),
            Command::Configure(change) => {
                need(caller, Scope::Drive)?;
                configure(caller, change)
            }
            Command::Start(_)
            | Command::Prompt(_)
            | Command::Interrupt { .. }
            | Command::Stop
            | Command::Finish
            | Command::Cancel { .. }
            | Command::Edit { .. }
            | Command::Rewind { .. } => need(caller, Scope::Drive),
            Command::Query { method, args } => {
                need(caller, Scope::Drive)?;
                query(caller, method, args)
            }
            Command::Attach { .. } | Command::Queue => Ok(()),
        },
        GatewayCall::Query(GatewayQuery::Label(..)) => need(caller, Scope::Drive),
        GatewayCall::Sessions { .. }
        | GatewayCall::Events { .. }
        | GatewayCall::Session(_)
        | GatewayCall::Own(_)
        | GatewayCall::Query(
            GatewayQuery::Sessions(_)
            | GatewayQuery::Session(_)
            | GatewayQuery::Usage(_)
            | GatewayQuery::Search(_)
            | GatewayQuery::Requests(_),
        ) => Ok(()),
    }
}

/// Refuses settings that give an agent more power, unless the client has the scope admin.
pub(crate) fn config(caller: &Caller, config: &SessionConfig) -> Result<(), GatewayError> {
    match widens(config) {
        Some(what) if caller.scope != Scope::Admin => Err(forbidden(format!(
            "config.{what} extends what the agent may do; this needs the scope admin"
        ))),
        Some(_) | None => Ok(()),
    }
}

pub(crate) fn configure(caller: &Caller, change: &Configure) -> Result<(), GatewayError> {
    let changed = SessionConfig {
        approval_mode: change.approval_mode,
        permission_mode: change.permission_mode.clone(),
        ..SessionConfig::default()
    };
    config(caller, &changed)
}

/// Refuses to start a session with settings that the client may not use.
pub(crate) fn start(caller: &Caller, new: &NewSession) -> Result<(), GatewayError> {
    need(caller, Scope::Drive)?;
    config(caller, &new.config)?;
    if new.native_resume.is_some() && caller.is_limited() {
        let message = "resuming by the agent's own id needs the scope admin; resume by the session's id instead";
        return Err(forbidden(message.to_owned()));
    }
    match confines(&new.config) {
        // A client that resumes a session may not change its limits.
        Some(what) if new.resume.is_some() && caller.scope != Scope::Admin => {
            Err(forbidden(format!(
                "config.{what} changes what the session is confined to; resuming it this way needs the \
                 scope admin"
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses a query that gives an agent more power, or that might.
pub(crate) fn query(
    caller: &Caller,
    method: &str,
    args: &[Json<'static>],
) -> Result<(), GatewayError> {
    match may_widen(method, args) && caller.scope != Scope::Admin {
        false => Ok(()),
        true => Err(forbidden(format!(
            "the query {method} may extend what the agent may do; this needs the scope admin"
        ))),
    }
}

/// The field that changes where a session works, or what limits it.
fn confines(config: &SessionConfig) -> Option<&'static str> {
    let fields = [
        ("workingDirectory", config.working_directory.is_some()),
        ("projectId", config.project_id.is_some()),
        ("blockedTools", config.blocked_tools.is_some()),
        ("sandboxMode", config.sandbox_mode.is_some()),
        ("maxTurns", config.max_turns.is_some()),
        ("maxBudgetUsd", config.max_budget_usd.is_some()),
        ("maxBudgetTokens", config.max_budget_tokens.is_some()),
        ("onLimit", config.on_limit.is_some()),
        ("driver", config.driver.is_some()),
    ];
    fields.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

/// The field that gives an agent more power than a session has by default. Every new field must be
/// classified here.
fn widens(config: &SessionConfig) -> Option<&'static str> {
    let SessionConfig {
        approval_mode,
        permission_mode,
        sandbox_mode,
        sandbox,
        allowed_tools,
        additional_directories,
        mcp_servers,
        setting_sources,
        env,
        native_args,
        native_options,
        trust,
        // These name, limit or describe the work. The hub asks the dialect what an agent does without
        // asking.
        agent_type: _,
        driver: _,
        project_id: _,
        working_directory: _,
        model: _,
        blocked_tools: _,
        max_turns: _,
        system_prompt: _,
        max_budget_usd: _,
        max_budget_tokens: _,
        on_limit: _,
        max_thinking_tokens: _,
        include_partial_messages: _,
        enable_file_checkpointing: _,
        agents: _,
        betas: _,
        output_format: _,
        fallback_model: _,
        // Answering them needs the scope approve.
        hooks: _,
    } = config;
    let is_wide = |mode: &SandboxMode| matches!(mode, SandboxMode::None | SandboxMode::FullAccess);
    let has = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let fields = [
        ("approvalMode", approval_mode.is_some_and(|mode| mode != ApprovalMode::Ask)),
        ("permissionMode", permission_mode.as_deref().is_some_and(mode_widens)),
        ("sandboxMode", sandbox_mode.as_ref().is_some_and(is_wide)),
        ("sandbox", sandbox.is_some()),
        ("allowedTools", has(allowed_tools)),
        ("additionalDirectories", has(additional_directories)),
        ("mcpServers", mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty())),
        // An empty list turns off the operator's own settings.
        ("settingSources", setting_sources.is_some()),
        ("trust", *trust == Some(true)),
        ("env", env.as_ref().is_some_and(|env| !env.is_empty())),
        ("nativeArgs", has(native_args)),
        ("nativeOptions", native_options.as_ref().is_some_and(|options| !options.is_empty())),
    ];
    fields.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
}

fn forbidden(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(scope: Scope) -> Caller {
        Caller::without_token("a test", scope)
    }

    #[test]
    fn a_resume_keeps_what_the_session_was_confined_to() {
        let mut new = NewSession::of(agentwire_protocol::AgentType::Demo);
        new.config.working_directory = Some("/elsewhere".to_owned());
        assert!(start(&who(Scope::Drive), &new).is_ok(), "a new session may work anywhere");
        new.resume = Some("s".into());
        assert!(start(&who(Scope::Drive), &new).is_err());
        assert!(start(&who(Scope::Admin), &new).is_ok());
        new.config = SessionConfig { model: Some("m".to_owned()), ..SessionConfig::default() };
        assert!(start(&who(Scope::Drive), &new).is_ok());
    }
}
