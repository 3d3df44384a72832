//! Starts the agent's process.

mod own_rules;
mod running;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::{AgentDialect, Arg, ArgPart, Launch, Start, Stdin};
use agentwire_dialects::program;
use agentwire_dialects::program::{DefaultCommand, Source};
use agentwire_protocol::session::{McpServer, OnLimit};
use agentwire_protocol::{AgentType, ErrorCode, GatewayError, Prompt, SessionConfig};
use tokio::time::timeout;

use self::own_rules::OwnRulesCheck;
use super::state::ExpectedConversation;
use crate::budget::Budget;
use crate::managed_files::{self, OverridingFile};
use crate::own_dirs;
use crate::process::{Contain, Containment, Spawn, SpawnError, StdinPlan, prepare, resolve};
use crate::settings::{AgentCommand, Settings};
use crate::slow_fs::{access, unanswered};

pub(super) use self::running::{ProcessActivity, Running, SCRATCH};
pub(super) use self::watch::Alarm;

/// Pipe size for a process that ends by itself. Gemini (0.61.0) exits without waiting until its remaining
/// output is written, so the pipe must hold all that agentwire has not read yet.
const PIPE_ROOM: usize = 1 << 20;

/// How long the start of a process may take. The disk of its directory or program may not respond.
const START: Duration = Duration::from_secs(30);

/// The conversation that a process continues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The agent's own id of the conversation; `None` starts a new one.
    pub(crate) resume: Option<String>,
    /// Continue in a copy.
    pub(crate) fork: bool,
}

impl Origin {
    /// The conversation that the process must report it has opened.
    pub(super) fn expected_conversation(&self) -> Option<ExpectedConversation> {
        let id = self.resume.clone()?;
        let expected =
            if self.fork { ExpectedConversation::Copy } else { ExpectedConversation::Same };
        Some(expected(id))
    }
}

#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) agent: AgentType,
    pub(crate) dialect: &'static dyn AgentDialect,
    pub(crate) command: AgentCommand,
    pub(crate) contain: Arc<Contain>,
    pub(crate) settings: Arc<Settings>,
    /// Directories that are hidden from agents.
    pub(crate) pinned_dirs: Arc<own_dirs::PinnedDirs>,
    /// Replacements that the agent starts for MCP servers that the client hosts and the agent cannot reach.
    pub(crate) offers: BTreeMap<String, McpServer>,
    /// The budget that large lines are counted against.
    pub(crate) budget: Budget,
}

impl Plan {
    /// Builds what a process of the session is started with. Refuses what the agent does not support.
    pub(crate) fn launch(
        &self,
        config: &SessionConfig,
        origin: &Origin,
        native_session_id: Option<&str>,
        prompt: Option<&Prompt>,
    ) -> Result<Launch, GatewayError> {
        let config = self.forwarded(config);
        let resume = origin.resume.as_deref();
        let start = Start { config: &config, resume, fork: origin.fork, native_session_id, prompt };
        let mut launch = self.dialect.launch(&start)?;
        if let Some(program) = &self.command.program {
            launch.program = program.clone();
        }
        launch.args.splice(0..0, self.command.args.iter().map(|arg| Arg::from(arg.as_str())));
        for (name, value) in &self.command.env {
            launch.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self.check_guards(&config)?;
        let mut parts = launch.args.iter().flat_map(|arg| &arg.0);
        let has_nul = |part: &ArgPart| matches!(part, ArgPart::Text(text) if text.contains('\0'));
        if parts.any(has_nul) {
            let message = "an argument of the agent must not contain a NUL byte";
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        Ok(launch)
    }

    /// Refuses options, from the session or from the settings, that would remove what the gateway judges
    /// by.
    fn check_guards(&self, config: &SessionConfig) -> Result<(), GatewayError> {
        let Some(refused_options) = self.dialect.refused_options() else { return Ok(()) };
        refused_options.check(config)?;
        // A built-in agent may have arguments in the settings that only it understands.
        if matches!(program(self.agent).command, DefaultCommand::BuiltIn { .. }) {
            return Ok(());
        }
        let whose = format!("[agents.{}]", self.agent.as_str());
        // The launcher may have arguments of its own.
        let args = self.command.args.get(self.command.launcher_args..).unwrap_or_default();
        refused_options.check_arguments(args, &whose)?;
        refused_options.check_variables(self.command.env.keys(), &whose)
    }

    fn is_namespace(&self) -> bool {
        matches!(self.contain.containment(), Containment::Namespace { .. })
    }

    /// Refuses a program that is hidden from the agent's own processes.
    fn check_visible(&self, spawn: &Spawn) -> Result<(), GatewayError> {
        let is_namespace = self.is_namespace();
        let hides = |place: &&PathBuf| spawn.program.starts_with(place);
        let is_shown = spawn.veil.shown.iter().any(|place| spawn.program.starts_with(place));
        let hidden = spawn.veil.hidden.iter().find(hides).filter(|_| is_namespace && !is_shown);
        let Some(place) = hidden else { return Ok(()) };
        let (agent, program, place) =
            (self.agent.as_str(), spawn.program.display(), place.display());
        let message = format!(
            "{agent} is not available: {program} is in {place}, which is hidden from agents; move the program elsewhere"
        );
        Err(GatewayError::new(ErrorCode::AgentUnavailable, message))
    }

    /// The configuration with MCP servers that the agent can reach.
    pub(crate) fn reachable(&self, config: &SessionConfig) -> SessionConfig {
        let mut config = config.clone();
        if let Some(servers) = &mut config.mcp_servers {
            servers.extend(self.offers.clone());
        }
        config
    }

    /// The configuration that the agent gets: without what the gateway handles itself.
    fn forwarded(&self, config: &SessionConfig) -> SessionConfig {
        let mut config = self.reachable(config);
        if config.on_limit.unwrap_or_default() == OnLimit::Ask {
            config.max_turns = None;
            config.max_budget_usd = None;
        }
        if !self.dialect.capabilities().structured_output {
            config.output_format = None;
        }
        // The gateway's rules, which read shell text strictly, answer an agent that asks. An agent that
        // does not ask must apply the rules itself.
        if self.dialect.capabilities().permissions {
            config.allowed_tools = None;
        }
        config
    }

    /// Files on this machine that let the agent run calls without asking.
    pub(super) async fn unasked(
        &self,
        launch: &Launch,
    ) -> Result<Vec<OverridingFile>, GatewayError> {
        let (dialect, env) = (self.dialect, launch.env.clone());
        access(&working_directory(launch), move |here| {
            drop(here);
            managed_files::find(dialect, &env)
        })
        .await
    }

    /// The program's path, or why the session cannot use it: what to install, which variable names another
    /// program, or which rule it would bypass. The disk may not respond.
    pub(crate) async fn program(
        &self,
        config: &SessionConfig,
        launch: &Launch,
    ) -> Result<PathBuf, GatewayError> {
        let rules = self
            .dialect
            .own_rules()
            .and_then(|own| OwnRulesCheck::of(self.agent.as_str(), own, config, launch));
        let directory = working_directory(launch);
        let (wanted, looked) = (launch.program.clone(), directory.clone());
        let (dialect, config, env) = (self.dialect, config.clone(), launch.env.clone());
        let found = access(&directory, move |here| {
            drop(here);
            managed_files::check(dialect, &config, &env)?;
            rules.map_or(Ok(()), |rules| rules.check())?;
            let path = std::env::var_os("PATH");
            Ok::<_, GatewayError>(resolve(&wanted, path.as_deref(), &looked))
        });
        found.await??.map_err(|error| {
            let (agent, known) = (self.agent.as_str(), program(self.agent));
            let install = match known.source {
                source @ Source::Npm(_) => format!("install it with `{source}`"),
                Source::Other(words) => words.to_owned(),
            };
            let variable = known.variable();
            let is_set = |name: &&String| std::env::var_os(name).is_some_and(|it| !it.is_empty());
            let advice = match (&variable, known.command) {
                (Some(name), _) if is_set(&name) => format!("{error}; correct {name}, or unset it"),
                (Some(name), DefaultCommand::None) if launch.program == agent => {
                    format!("no command is set; {install}, or set {name} to its path")
                }
                (Some(name), _) => format!("{error}; {install}, or set {name} to its path"),
                (None, _) => format!("{error}; {install}"),
            };
            let message = format!("{agent} is not available: {advice}");
            GatewayError::new(ErrorCode::AgentUnavailable, message)
        })
    }

    pub(super) async fn start(
        &self,
        config: &SessionConfig,
        launch: Launch,
    ) -> Result<Running, GatewayError> {
        let program = self.program(config, &launch).await?;
        let failed = |error: SpawnError| match error.code() {
            ErrorCode::Overloaded => {
                let message = format!("{error}; too much is running, try again later");
                GatewayError::new(ErrorCode::Overloaded, message)
            }
            _ => GatewayError::new(ErrorCode::StartFailed, error.to_string()),
        };
        let text = match &launch.stdin {
            Stdin::Text(text) => Some(text.clone()),
            Stdin::Open | Stdin::Empty => None,
        };
        let closes = launch.stdin != Stdin::Open;
        let data_dir = self.pinned_dirs.data_dir(&self.settings);
        let runtime = self.settings.runtime_dir();
        let (mut spawn, files) = prepare(&launch, program, &runtime, data_dir).map_err(failed)?;
        if closes && text.is_none() {
            spawn.stdin = StdinPlan::Null;
        }
        if let Some(refused_options) = self.dialect.refused_options() {
            let files = self.dialect.machine_files();
            spawn.env.retain(|(name, _)| {
                name.to_str().is_none_or(|name| {
                    launch.env.contains_key(name) || !refused_options.keeps_out(name, files)
                })
            });
        }
        spawn.veil = self.pinned_dirs.veil(&self.settings, self.agent, files.directory());
        if self.is_namespace() {
            self.pinned_dirs.check(&self.settings)?;
            // The directories may be moved before the keeper hides them, so the keeper checks again.
            spawn.veil.identities = self.pinned_dirs.identities(&spawn.veil);
        }
        self.check_visible(&spawn)?;
        let Ok(process) = timeout(START, self.contain.spawn(spawn)).await else {
            let why = format!("no process started there within {} s", START.as_secs());
            return Err(unanswered(&working_directory(&launch), &why));
        };
        let process = process.map_err(failed)?;
        if self.dialect.capabilities().process_per_turn {
            process.stdout.widen(PIPE_ROOM);
        }
        let (data_dir, pool) = (self.settings.data_dir.clone(), self.budget.work.clone());
        Ok(Running::new(process, files, text.as_deref(), closes, data_dir, pool))
    }
}

fn working_directory(launch: &Launch) -> PathBuf {
    PathBuf::from(launch.working_directory.as_deref().unwrap_or("/"))
}
