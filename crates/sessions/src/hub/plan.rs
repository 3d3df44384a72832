//! What a session starts with: new, resumed or forked, its id, and the bridge to the client's MCP servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::hooks;
use agentwire_dialects::{driver, named_driver};
use agentwire_protocol::session::McpServer;
use agentwire_protocol::{
    AgentType, ErrorCode, GatewayError, NewSession, SessionConfig, SessionId, SessionState,
    SessionSummary, TurnEnd,
};
use uuid::Uuid;

use super::Hub;
use crate::bridge::Bridge;
use crate::clock;
use crate::own_dirs;
use crate::session::Origin;
use crate::slow_fs::access;
use crate::store::{Open, Record};

/// Refuses contradictory options, and options that no process can be started with.
pub(super) fn check(new: &NewSession) -> Result<(), GatewayError> {
    new.config.check_texts()?;
    if !new.has_native_hooks {
        hooks::check_events(&new.config)
            .map_err(|why| GatewayError::new(ErrorCode::InvalidMessage, why))?;
    }
    let message = match &new.id {
        _ if new.resume.is_some() && new.native_resume.is_some() => {
            "resume and nativeResume name two sessions; give one"
        }
        _ if new.fork && new.resume.is_none() && new.native_resume.is_none() => {
            "fork needs resume or nativeResume: name the session to fork"
        }
        Some(_) if new.goes_on() => {
            "a resumed session keeps its id; leave out the id, or fork the session"
        }
        Some(id) if !is_uuid(id.as_str()) => "the session's id must be a UUID",
        Some(_) | None => return Ok(()),
    };
    Err(GatewayError::new(ErrorCode::InvalidMessage, message))
}

/// How long a resumed session must wait for the end of the minute in which its agent created its own
/// session: otherwise the agent would lose that session. Our session may be much older, because it may have
/// waited for trust.
pub(super) fn rest(record: &Record, now: &str) -> Option<Duration> {
    let made = record.native_since.as_deref().unwrap_or(&record.summary.created_at);
    clock::left_of_minute(made, now)
}

pub(super) struct SessionSetup {
    pub(super) record: Record,
    /// The full configuration; the record holds only the part that is stored.
    pub(super) config: SessionConfig,
    pub(super) origin: Origin,
    /// The session that this one is forked from, as shown to readers.
    pub(super) forked_from: Option<String>,
}

impl Hub {
    pub(super) async fn session_setup(
        &self,
        new: &NewSession,
    ) -> Result<SessionSetup, GatewayError> {
        let fork = new.fork;
        let Some(from) = &new.resume else {
            let (mut record, config) = self.created(new, new.config.clone()).await?;
            let native = new.native_resume.clone();
            // A fork gets its own id, which the agent has not reported yet.
            record.summary.native_session_id = native.clone().filter(|_| !fork);
            let origin = Origin { resume: native.clone(), fork };
            let forked_from = native.filter(|_| fork);
            return Ok(SessionSetup { record, config, origin, forked_from });
        };
        if !fork {
            return self.resumed(from, new).await;
        }
        let source = self.record(from).await?;
        check_guards(&source, new)?;
        let native = resumable(&source, new)?;
        let (mut record, config) = self.created(new, joined(&source.config, new)?).await?;
        record.unkept = united(&source.unkept, &record.unkept);
        record.summary.title = source.summary.title;
        let origin = Origin { resume: Some(native), fork };
        Ok(SessionSetup { record, config, origin, forked_from: Some(from.as_str().to_owned()) })
    }

    /// The id of a new session: the requested one, the one that the agent already uses for it, or a new
    /// one.
    async fn new_id(&self, new: &NewSession) -> Result<SessionId, GatewayError> {
        let is_used = async |id: &SessionId| {
            let wanted = id.clone();
            let is_kept =
                self.read_store(move |store| Ok(store.session(&wanted)?.is_some())).await?;
            Ok::<_, GatewayError>(is_kept || self.shared.live().contains_key(id))
        };
        if let Some(id) = &new.id {
            return if is_used(id).await? { Err(taken(id)) } else { Ok(id.clone()) };
        }
        let same =
            driver(new.agent, new.config.driver.as_deref())?.capabilities().shares_session_id
                && !new.fork;
        if let Some(native) = new.native_resume.as_deref().filter(|id| same && is_uuid(id)) {
            let id = SessionId::from(native);
            if !is_used(&id).await? {
                return Ok(id);
            }
        }
        Ok(SessionId::from(Uuid::new_v4().to_string()))
    }

    /// A bridge to the MCP servers that the client hosts, if the agent cannot reach them itself, and the
    /// servers the agent starts instead.
    pub(super) async fn bridge(
        &self,
        dialect: &dyn AgentDialect,
        config: &SessionConfig,
    ) -> Result<(Option<Bridge>, BTreeMap<String, McpServer>), GatewayError> {
        let servers = config.mcp_servers.iter().flatten();
        let hosted = servers.filter(|(_, server)| server.is_hosted());
        let hosted: Vec<String> = hosted.map(|(name, _)| name.clone()).collect();
        if hosted.is_empty() || dialect.capabilities().hosted_mcp {
            return Ok((None, BTreeMap::new()));
        }
        let Some(executable) = &self.shared.settings.keeper else {
            let what = "MCP servers of type sdk: no program is set to relay them";
            return Err(GatewayError::unsupported(dialect.agent_type().as_str(), what));
        };
        let pool = self.shared.log.budget().work.clone();
        let directory = self.shared.settings.data_dir.clone();
        let (bridge, offers) = Bridge::open(hosted, executable, pool, directory).await?;
        Ok((Some(bridge), offers))
    }

    async fn created(
        &self,
        new: &NewSession,
        mut config: SessionConfig,
    ) -> Result<(Record, SessionConfig), GatewayError> {
        let id = self.new_id(new).await?;
        self.fill_in(new.agent, &mut config);
        self.shared.settings.defaults.apply(&mut config);
        self.place(&mut config).await?;
        let (driver_name, dialect) = named_driver(new.agent, config.driver.as_deref())?;
        check_power(dialect, new, &config)?;
        let now = clock::now();
        let record = Record {
            summary: SessionSummary {
                id,
                agent_type: new.agent,
                state: SessionState::Starting,
                reason: None,
                error: None,
                title: None,
                working_directory: config.working_directory.clone(),
                model: config.model.clone(),
                approval_mode: Some(dialect.tools().mode_of(&config)),
                driver: Some(driver_name.to_owned()),
                native_session_id: None,
                agent_version: None,
                gateway_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                created_at: now.clone(),
                updated_at: now,
                last_seq: 0,
                turns: 0,
                last_turn: None,
                usage: Default::default(),
                cost_usd: None,
                open_requests: 0,
                pinned: false,
                tags: Vec::new(),
            },
            owner: self.owner_name(),
            config: config.kept(),
            open: Open::default(),
            client: new.client.clone(),
            unfit: None,
            unkept: unkept(new, &config),
            native_since: None,
            first_prompt: None,
        };
        Ok((record, config))
    }

    /// Resolves the working directory, and refuses one where agentwire keeps its own files.
    async fn place(&self, config: &mut SessionConfig) -> Result<(), GatewayError> {
        let given = PathBuf::from(config.working_directory.as_deref().unwrap_or("."));
        let settings = Arc::clone(&self.shared.settings);
        let looked = given.clone();
        let working = access(&given, move |_here| {
            let working = directory(&looked)?;
            own_dirs::check(Path::new(&working), &own_dirs::all(&settings))?;
            Ok::<_, GatewayError>(working)
        });
        let working = working.await??;
        let home = std::env::home_dir();
        for further in config.additional_directories.iter().flatten() {
            let further = match (further.strip_prefix('~'), &home) {
                (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                    home.join(rest.trim_start_matches('/'))
                }
                (Some(_) | None, _) => Path::new(&working).join(further),
            };
            let (settings, looked) = (Arc::clone(&self.shared.settings), further.clone());
            access(&further, move |_here| own_dirs::check(&looked, &own_dirs::all(&settings)))
                .await??;
        }
        config.working_directory = Some(working);
        Ok(())
    }

    /// Fills in what the settings say about the agent where the session does not.
    fn fill_in(&self, agent: AgentType, config: &mut SessionConfig) {
        let command = self.command(agent);
        config.model = config.model.take().or(command.model);
        config.driver = config.driver.take().or(command.driver);
    }

    async fn resumed(
        &self,
        id: &SessionId,
        new: &NewSession,
    ) -> Result<SessionSetup, GatewayError> {
        let mut record = self.record(id).await?;
        if record.summary.state != SessionState::Ended {
            let message =
                format!("session {id} still runs; attach to it, stop it first, or fork it");
            return Err(GatewayError::new(ErrorCode::Conflict, message));
        }
        check_guards(&record, new)?;
        let native = resumable(&record, new)?;
        let mut config = joined(&record.config, new)?;
        if new.replaces_config {
            self.fill_in(new.agent, &mut config);
            record.summary.model = None;
        }
        self.shared.settings.defaults.apply(&mut config);
        self.place(&mut config).await?;
        let (driver_name, dialect) = named_driver(new.agent, config.driver.as_deref())?;
        check_power(dialect, new, &config)?;
        record.config = config.kept();
        record.unkept = united(&record.unkept, &unkept(new, &config));
        record.owner = self.owner_name();
        let summary = &mut record.summary;
        summary.state = SessionState::Starting;
        summary.reason = None;
        summary.error = None;
        summary.model = config.model.clone().or(summary.model.take());
        summary.approval_mode = Some(dialect.tools().mode_of(&config));
        summary.working_directory.clone_from(&config.working_directory);
        summary.driver = Some(driver_name.to_owned());
        summary.gateway_version = Some(env!("CARGO_PKG_VERSION").to_owned());
        // The agent stores nothing of a session whose turns all failed: it starts over.
        let has_nothing = dialect.capabilities().forgets_failures
            && summary.last_turn == Some(TurnEnd::Failed)
            && summary.usage.output_tokens == 0;
        let origin = Origin { resume: (!has_nothing).then_some(native), fork: false };
        Ok(SessionSetup { record, config, origin, forked_from: None })
    }
}

/// The operator's options for a session that are not stored.
fn unkept(new: &NewSession, config: &SessionConfig) -> Vec<String> {
    let names = if new.is_limited { Vec::new() } else { config.unkept_names() };
    names.into_iter().map(str::to_owned).collect()
}

/// Refuses a limited client an agent that changes things and cannot ask. Defaults count: the client's
/// options and the settings may each be harmless alone.
fn check_power(
    dialect: &dyn AgentDialect,
    new: &NewSession,
    config: &SessionConfig,
) -> Result<(), GatewayError> {
    if !new.is_limited || !dialect.runs_unasked(config)? {
        return Ok(());
    }
    let message = format!(
        "{} cannot ask before it changes files, and this session would let it: that needs the scope \
         admin; use another driver, or approvalMode ask without a sandboxMode that can write",
        dialect.name()
    );
    Err(GatewayError::new(ErrorCode::Forbidden, message))
}

/// Guards from before and now: starting a session without a guard does not hand it over to limited clients.
fn united(before: &[String], now: &[String]) -> Vec<String> {
    let lost = before.iter().filter(|name| !now.contains(name)).cloned();
    lost.chain(now.iter().cloned()).collect()
}

/// Refuses to resume an operator's session without the options that guarded it.
fn check_guards(record: &Record, new: &NewSession) -> Result<(), GatewayError> {
    if !new.is_limited || record.unkept.is_empty() {
        return Ok(());
    }
    let (id, fields) = (&record.summary.id, record.unkept.join(", "));
    let message = format!(
        "session {id} was started with {fields}, which are not stored: only a token with the scope admin \
         may resume or fork it and set them again"
    );
    Err(GatewayError::new(ErrorCode::Forbidden, message))
}

/// The agent's own id to resume this session with, or why it cannot be resumed.
fn resumable(record: &Record, new: &NewSession) -> Result<String, GatewayError> {
    let SessionSummary { id, agent_type, native_session_id, .. } = &record.summary;
    let message = match native_session_id {
        _ if let Some(why) = &record.unfit => format!("session {id} cannot be resumed: {why}"),
        _ if *agent_type != new.agent => {
            let agent = agent_type.as_str();
            format!("session {id} belongs to {agent}; resume it with that agent")
        }
        Some(native) => return Ok(native.clone()),
        None => format!(
            "session {id} cannot be resumed: its agent never reported an id for it; start a new session"
        ),
    };
    Err(GatewayError::new(ErrorCode::Conflict, message))
}

pub(super) fn taken(id: &SessionId) -> GatewayError {
    let message = format!("session {id} already exists; resume it, or choose another id");
    GatewayError::new(ErrorCode::Conflict, message)
}

/// Accepts only the one form that all agents accept.
fn is_uuid(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

fn directory(path: &Path) -> Result<String, GatewayError> {
    let invalid = |message: String| GatewayError::new(ErrorCode::InvalidMessage, message);
    let path = path.canonicalize().map_err(|error| {
        invalid(format!("failed to enter the directory {}: {error}", path.display()))
    })?;
    if !path.is_dir() {
        return Err(invalid(format!("{} is not a directory", path.display())));
    }
    path.into_os_string().into_string().map_err(|path| {
        invalid(format!("the directory {} has a name that is not UTF-8", path.display()))
    })
}

/// The configuration of an existing session: newly given options win.
fn joined(kept: &SessionConfig, new: &NewSession) -> Result<SessionConfig, GatewayError> {
    let given = &new.config;
    if new.replaces_config {
        let directory = given.working_directory.clone().or(kept.working_directory.clone());
        return Ok(SessionConfig { working_directory: directory, ..given.clone() });
    }
    let join = || {
        let mut fields = serde_json::to_value(kept)?;
        let given = serde_json::to_value(given)?;
        if let (Some(fields), Some(given)) = (fields.as_object_mut(), given.as_object()) {
            fields.extend(given.clone());
        }
        serde_json::from_value(fields)
    };
    let mut joined: SessionConfig = join().map_err(|error: serde_json::Error| {
        let message = format!("failed to merge the options with those of the session: {error}");
        GatewayError::new(ErrorCode::Internal, message)
    })?;
    // Both options name the same thing, and the agent's own name would win over a mode requested now.
    if given.approval_mode.is_some() || given.permission_mode.is_some() {
        joined.permission_mode.clone_from(&given.permission_mode);
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_for_no_event_is_refused_unless_its_name_is_the_agents_own() {
        let with = |event: &str| {
            let hooks = BTreeMap::from([(event.to_owned(), Vec::new())]);
            let config = SessionConfig { hooks: Some(hooks), ..SessionConfig::default() };
            NewSession { config, ..NewSession::of(AgentType::ALL[0]) }
        };
        assert!(check(&with("PreToolUse")).is_ok());
        let error = check(&with("BeforeTool")).expect_err("no such event");
        assert_eq!(error.code, ErrorCode::InvalidMessage);
        assert_eq!(error.message, "unknown hook BeforeTool");
        let native = NewSession { has_native_hooks: true, ..with("BeforeTool") };
        assert!(check(&native).is_ok());
    }
}
