//! How the agent's process is started.

mod own_rules;
mod running;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::{AgentDialect, Arg, Launch, Part, Start, Stdin};
use agentwire_dialects::program;
use agentwire_dialects::program::{DefaultCommand, Source};
use agentwire_protocol::session::{McpServer, OnLimit};
use agentwire_protocol::{AgentType, ErrorCode, GatewayError, Prompt, SessionConfig};
use tokio::time::timeout;

use self::own_rules::Question;
use super::state::Wanted;
use crate::budget::Budget;
use crate::managed_files::{self, Found};
use crate::own_dirs;
use crate::process::{Contain, Containment, Spawn, SpawnError, StdinPlan, prepare, resolve};
use crate::settings::{AgentCommand, Settings};
use crate::slow_fs::{look, unanswered};

pub(super) use self::running::{Happening, Running, SCRATCH};
pub(super) use self::watch::Alarm;

/// How much a process may have said that we have not read yet, where it ends by itself: Gemini (0.61.0)
/// ends without waiting for the rest to be written.
const PIPE_ROOM: usize = 1 << 20;

/// How long the start of a process may take: its directory and its program may not answer.
const START: Duration = Duration::from_secs(30);

/// The conversation that a process goes on with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The agent's own id of it; none begins a new one.
    pub(crate) resume: Option<String>,
    /// It goes on in a copy.
    pub(crate) fork: bool,
}

impl Origin {
    /// What the process must say that it opened.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        let id = self.resume.clone()?;
        Some(if self.fork { Wanted::Copy(id) } else { Wanted::Same(id) })
    }
}

/// How the processes of a session are started.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) agent: AgentType,
    pub(crate) dialect: &'static dyn AgentDialect,
    pub(crate) command: AgentCommand,
    pub(crate) contain: Arc<Contain>,
    pub(crate) settings: Arc<Settings>,
    /// The directories that agents do not see.
    pub(crate) kept: Arc<own_dirs::Kept>,
    /// What the agent starts in place of MCP servers that the client hosts and it cannot reach.
    pub(crate) offers: BTreeMap<String, McpServer>,
    /// What large lines are taken from.
    pub(crate) budget: Budget,
}

impl Plan {
    /// What a process of the session is started with; refuses what the agent cannot take.
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
        let parts = launch.args.iter().flat_map(|arg| &arg.0);
        let mut texts = parts.filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::File(_) | Part::EscapedFile(_) | Part::QuotedFile(_) | Part::Directory => None,
        });
        if texts.any(|text| text.contains('\0')) {
            let message = "an argument of the agent must not have a NUL byte";
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        Ok(launch)
    }

    /// Refuses what would take away what the gateway judges by, from the session or from the settings.
    fn check_guards(&self, config: &SessionConfig) -> Result<(), GatewayError> {
        let Some(guarded) = self.dialect.guarded() else { return Ok(()) };
        guarded.check(config)?;
        // The settings of one that is built in may have arguments that only it understands.
        if matches!(program(self.agent).command, DefaultCommand::BuiltIn { .. }) {
            return Ok(());
        }
        let whose = format!("[agents.{}]", self.agent.as_str());
        // What starts the program may have arguments of its own.
        let args = self.command.args.get(self.command.launcher_args..).unwrap_or_default();
        guarded.check_arguments(args, &whose)?;
        guarded.check_variables(self.command.env.keys(), &whose)
    }

    fn is_namespace(&self) -> bool {
        matches!(self.contain.containment(), Containment::Namespace { .. })
    }

    /// Refuses a program that the agent's own processes would not see.
    fn check_visible(&self, spawn: &Spawn) -> Result<(), GatewayError> {
        let is_namespace = self.is_namespace();
        let hides = |place: &&PathBuf| spawn.program.starts_with(place);
        let is_shown = spawn.veil.shown.iter().any(|place| spawn.program.starts_with(place));
        match spawn.veil.hidden.iter().find(hides).filter(|_| is_namespace && !is_shown) {
            None => Ok(()),
            Some(place) => {
                let message = format!(
                    "{} is not available: {} is in {}, which agents do not see; move the program elsewhere",
                    self.agent.as_str(),
                    spawn.program.display(),
                    place.display()
                );
                Err(GatewayError::new(ErrorCode::AgentUnavailable, message))
            }
        }
    }

    /// What the agent runs with: MCP servers that it can reach.
    pub(crate) fn reachable(&self, config: &SessionConfig) -> SessionConfig {
        let mut config = config.clone();
        if let Some(servers) = &mut config.mcp_servers {
            servers.extend(self.offers.clone());
        }
        config
    }

    /// What the agent is told: not what the gateway itself sees to.
    fn forwarded(&self, config: &SessionConfig) -> SessionConfig {
        let mut config = self.reachable(config);
        if config.on_limit.unwrap_or_default() == OnLimit::Ask {
            config.max_turns = None;
            config.max_budget_usd = None;
        }
        if !self.dialect.capabilities().structured_output {
            config.output_format = None;
        }
        // An agent that asks is answered by the gateway's rules, which read shell text strictly; one
        // that does not ask has to know them itself.
        if self.dialect.capabilities().permissions {
            config.allowed_tools = None;
        }
        config
    }

    /// Files of the machine by which the agent runs calls unasked.
    pub(super) async fn unasked(&self, launch: &Launch) -> Result<Vec<Found>, GatewayError> {
        let (dialect, env) = (self.dialect, launch.env.clone());
        look(&working_directory(launch), move |here| {
            drop(here);
            managed_files::look(dialect, &env)
        })
        .await
    }

    /// The program's path, or why the session cannot have it: what to install, which variable names
    /// another, or which rule it would pass over. The disk may not answer.
    pub(crate) async fn program(
        &self,
        config: &SessionConfig,
        launch: &Launch,
    ) -> Result<PathBuf, GatewayError> {
        let rules = self
            .dialect
            .own_rules()
            .and_then(|own| Question::of(self.agent.as_str(), own, config, launch));
        let directory = working_directory(launch);
        let (wanted, looked) = (launch.program.clone(), directory.clone());
        let (dialect, config, env) = (self.dialect, config.clone(), launch.env.clone());
        let found = look(&directory, move |here| {
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

    /// Starts a process.
    pub(super) async fn start(
        &self,
        config: &SessionConfig,
        launch: Launch,
    ) -> Result<Running, GatewayError> {
        let program = self.program(config, &launch).await?;
        let failed = |error: SpawnError| match error.code() {
            ErrorCode::Overloaded => {
                let message = format!("{error}; too much runs at once, try again later");
                GatewayError::new(ErrorCode::Overloaded, message)
            }
            _ => GatewayError::new(ErrorCode::StartFailed, error.to_string()),
        };
        let text = match &launch.stdin {
            Stdin::Text(text) => Some(text.clone()),
            Stdin::Open | Stdin::Empty => None,
        };
        let closes = launch.stdin != Stdin::Open;
        let runtime = self.settings.runtime_dir();
        let (mut spawn, files) = prepare(&launch, program, &runtime).map_err(failed)?;
        if closes && text.is_none() {
            spawn.stdin = StdinPlan::Null;
        }
        if let Some(guarded) = self.dialect.guarded() {
            let files = self.dialect.machine_files();
            spawn.env.retain(|(name, _)| {
                name.to_str().is_none_or(|name| {
                    launch.env.contains_key(name) || !guarded.keeps_out(name, files)
                })
            });
        }
        spawn.veil = own_dirs::veil(&self.settings, self.agent, files.directory());
        if self.is_namespace() {
            self.kept.check(&self.settings)?;
            // They may be moved before the keeper hides them: it looks again.
            spawn.veil.known = self.kept.known(&spawn.veil.hidden);
        }
        self.check_visible(&spawn)?;
        let Ok(process) = timeout(START, self.contain.spawn(spawn)).await else {
            let why = format!("no process could be started there in {} s", START.as_secs());
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
