//! The agent's process: how it is started, and its three pipes.

mod own_rules;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::agent::{AgentDialect, Arg, Exit, Launch, Part, Start, Stdin};
use agentwire_dialects::program;
use agentwire_dialects::program::{DefaultCommand, Source};
use agentwire_protocol::session::{McpServer, OnLimit};
use agentwire_protocol::{AgentType, ErrorCode, GatewayError, Prompt, SessionConfig};
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout};

use self::own_rules::Question;
use super::book::Wanted;
use super::long::LongLine;
use super::stderr::Stderr;
use crate::backlog::Backlog;
use crate::budget::Budget;
use crate::figures::Counted;
use crate::look::{look, unanswered};
use crate::machine::{self, Found};
use crate::own;
use crate::process::{
    Contain, Containment, Control, LaunchFiles, Output, Spawn, SpawnError, StdinPlan, prepare,
    resolve,
};
use crate::settings::{AgentCommand, Settings};

/// How much is read at once.
const READ_LIMIT: usize = 128 << 10;

/// How much a process may have said that we have not read yet, where it ends by itself: Gemini (0.61.0)
/// ends without waiting for the rest to be written.
const PIPE_ROOM: usize = 1 << 20;

/// How long the end of what a process left behind is waited for. It is killed at once; only what runs
/// as another user cannot be.
const LEFT_GRACE: Duration = Duration::from_secs(5);

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
    pub(crate) kept: Arc<own::Kept>,
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
            machine::look(dialect, &env)
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
            machine::check(dialect, &config, &env)?;
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
            let variable = variable.map(|name| format!(", or set {name} to its path"));
            let message = format!(
                "{agent} is not available: {error}; {install}{}",
                variable.unwrap_or_default()
            );
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
        if self.is_namespace() {
            self.kept.check(&self.settings)?;
        }
        spawn.veil = own::veil(&self.settings, self.agent, files.directory());
        self.check_visible(&spawn)?;
        let Ok(process) = timeout(START, self.contain.spawn(spawn)).await else {
            let why = format!("no process could be started there in {} s", START.as_secs());
            return Err(unanswered(&working_directory(&launch), &why));
        };
        let process = process.map_err(failed)?;
        if self.dialect.capabilities().process_per_turn {
            process.stdout.widen(PIPE_ROOM);
        }
        let mut outgoing = Backlog::new(self.settings.data_dir.clone());
        outgoing.push(text.unwrap_or_default().as_bytes());
        Ok(Running {
            stdin: process.stdin,
            outgoing,
            closes,
            stdout: Some(process.stdout),
            stderr: Some(process.stderr),
            control: process.control,
            said: Stderr::default(),
            long: None,
            exit: None,
            is_gone: false,
            started: Instant::now(),
            has_spoken: false,
            verdict: None,
            heard: Instant::now(),
            closed: None,
            left_until: None,
            counted: None,
            _files: files,
        })
    }
}

fn working_directory(launch: &Launch) -> PathBuf {
    PathBuf::from(launch.working_directory.as_deref().unwrap_or("/"))
}

/// A process that runs, or has ended and is not yet read to its end.
pub(super) struct Running {
    stdin: Option<pipe::Sender>,
    outgoing: Backlog,
    /// stdin is closed once all is written.
    closes: bool,
    stdout: Option<Output>,
    stderr: Option<Output>,
    pub(super) control: Control,
    pub(super) said: Stderr,
    /// A line that is too long to be held in memory until it ends.
    pub(super) long: Option<LongLine>,
    pub(super) exit: Option<Exit>,
    is_gone: bool,
    pub(super) started: Instant,
    /// It has said something.
    pub(super) has_spoken: bool,
    /// Why the gateway ended it, if it did.
    pub(super) verdict: Option<String>,
    /// When it last said something.
    pub(super) heard: Instant,
    /// Until when what it left behind is waited for.
    pub(super) left_until: Option<Instant>,
    /// When it closed stdout, if it lives on without.
    pub(super) closed: Option<Instant>,
    /// As long as it is here, it is counted as running.
    pub(super) counted: Option<Counted>,
    _files: LaunchFiles,
}

/// What happened to a process.
#[derive(Debug)]
pub(super) enum Happening {
    Exited(Exit),
    Gone,
    /// So many bytes are in [`SCRATCH`]; none is the end.
    Stdout(usize),
    Stderr(usize),
    Writable,
}

impl Running {
    /// The next that happens. Cancelling it loses nothing.
    pub(super) async fn next(&mut self, may_read: bool) -> Happening {
        let is_writing = !self.outgoing.is_empty();
        let writable = async |sender: &Option<pipe::Sender>| match sender {
            Some(sender) => drop(sender.writable().await),
            None => std::future::pending().await,
        };
        let has_exited = self.exit.is_some();
        let end = async {
            match has_exited {
                false => Happening::Exited(self.control.exited().await),
                true => {
                    self.control.gone().await;
                    Happening::Gone
                }
            }
        };
        // In no order: none of these may keep another waiting, however fast it comes.
        tokio::select! {
            () = writable(&self.stdin), if is_writing => Happening::Writable,
            count = read(&mut self.stdout), if may_read => Happening::Stdout(count),
            count = read(&mut self.stderr), if may_read => Happening::Stderr(count),
            end = end, if !self.is_gone => end,
            // It is gone, and its last words may not be read yet.
            else => std::future::pending().await,
        }
    }

    /// Takes note of the process's end.
    pub(super) fn exited(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.left_until = (!self.is_gone).then(|| Instant::now() + LEFT_GRACE);
        self.stdin = None;
    }

    /// The whole tree is gone: what is in the pipes is all that will be.
    pub(super) fn gone(&mut self) {
        self.is_gone = true;
        self.left_until = None;
    }

    /// Whether there is nothing left to read or to wait for.
    pub(super) fn is_over(&self) -> bool {
        self.is_read() && self.long.is_none()
    }

    /// Whether it has ended, and all that it said is read.
    pub(super) fn is_read(&self) -> bool {
        self.is_gone && self.stdout.is_none() && self.stderr.is_none()
    }

    /// How many bytes wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.outgoing.len()
    }

    /// Queues a line.
    pub(super) fn send(&mut self, line: &str) {
        if self.stdin.is_some() && !self.closes {
            self.outgoing.push(line.as_bytes());
            self.outgoing.push(b"\n");
            self.flush();
        }
    }

    /// Closes stdin once all that waits is written.
    pub(super) fn close_stdin(&mut self) {
        self.closes = true;
        self.flush();
    }

    /// Writes what the pipe takes now.
    pub(super) fn flush(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        loop {
            let written = match self.outgoing.next() {
                Ok([]) => break,
                Ok(rest) => stdin.try_write(rest),
                Err(error) => {
                    // A part of a line must not be left out.
                    tracing::error!(%error, "what waits for an agent cannot be read back");
                    self.closes = true;
                    break;
                }
            };
            match written {
                Ok(count) => self.outgoing.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It reads no more: its exit tells the rest.
                Err(_) => {
                    self.stdin = None;
                    break;
                }
            }
        }
        self.outgoing.clear();
        if self.closes {
            self.stdin = None;
        }
    }

    /// stdout has said something, or is at its end.
    pub(super) fn heard(&mut self, count: usize) {
        self.heard = Instant::now();
        self.has_spoken |= count > 0;
        if count == 0 {
            self.stdout = None;
            self.closed = Some(self.heard);
        }
    }

    /// stderr is at its end.
    pub(super) fn close_stderr(&mut self) {
        self.stderr = None;
    }
}

std::thread_local! {
    /// One buffer for all sessions of a thread. It is filled and emptied without anything being awaited
    /// in between: what completes a `select!` runs on in the same poll.
    pub(super) static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LIMIT]);
}

/// Reads into [`SCRATCH`]. An error is an end.
async fn read(output: &mut Option<Output>) -> usize {
    let Some(output) = output else { return std::future::pending().await };
    std::future::poll_fn(|context| {
        SCRATCH.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            let read = Pin::new(&mut *output).poll_read(context, &mut buffer);
            read.map(|result| result.map_or(0, |()| buffer.filled().len()))
        })
    })
    .await
}
