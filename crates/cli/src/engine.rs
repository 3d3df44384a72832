//! Opens the engine for a command.

use std::io;
use std::path::Path;

use agentwire_dialects::program::{DefaultCommand, Program};
use agentwire_dialects::programs;
use agentwire_protocol::shell::quoted;
use agentwire_protocol::{AgentType, ErrorCode, GatewayError};
use agentwire_sessions::process::ContainmentChoice;
use agentwire_sessions::{Hub, Settings, process};
use tokio::runtime::{Builder, Runtime};

use crate::args::Global;
use crate::failure::Failure;
use crate::print;
use crate::settings::{self, Loaded};

/// The runtime for clients: a thread for each core. Sessions have threads of their own.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// The first installed agent. The built-in one does not count.
pub(crate) fn installed(settings: &Settings) -> Option<AgentType> {
    let here = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_path_buf());
    let path = std::env::var_os("PATH");
    let is_installed = |known: &&&Program| {
        let program = settings.agent(known.agent).program;
        let program = match (&program, known.command) {
            (Some(program), _) => program,
            (None, DefaultCommand::Named(name)) => name,
            (None, DefaultCommand::None | DefaultCommand::BuiltIn { .. }) => return false,
        };
        process::resolve(program, path.as_deref(), &here).is_ok()
    };
    let mut candidates = programs().iter().filter(|known| known.is_candidate);
    candidates.find(is_installed).map(|known| known.agent)
}

pub(crate) fn built_in() -> AgentType {
    let is_built_in = |known: &&&Program| matches!(known.command, DefaultCommand::BuiltIn { .. });
    programs().iter().find(is_built_in).map_or(AgentType::ANY, |known| known.agent)
}

/// The first installed agent, else the built-in one. The fallback prints a note, because its
/// answers must not be taken for a model's. `other` names the way to choose another agent.
pub(crate) fn installed_or_built_in(settings: &Settings, other: &str) -> AgentType {
    fall_back(settings, "using the built-in", other)
}

/// The same for a front, whose sessions may name their agents.
pub(crate) fn default_of_front(settings: &Settings) -> AgentType {
    fall_back(settings, "sessions that name no agent use the built-in", "AGENTWIRE_AGENT")
}

fn fall_back(settings: &Settings, what: &str, other: &str) -> AgentType {
    installed(settings).unwrap_or_else(|| {
        let candidates = programs().iter().filter(|known| known.is_candidate);
        let names: Vec<&str> = candidates.map(|known| known.agent.as_str()).collect();
        let (names, agent) = (names.join(", "), built_in());
        print::note(&format!(
            "agentwire: no agent is installed (looked for {names}); {what} {agent} agent; \
             choose another with {other}",
        ));
        agent
    })
}

/// Opens the engine. This process becomes the reaper of what agents leave behind, and hides its
/// memory from them. If the system refuses either, the keepers still contain the agents.
pub(crate) async fn hub(loaded: Loaded) -> Result<Hub, GatewayError> {
    // It must be ours alone, and usable.
    loaded.engine.check_data_dir().map_err(|error| unusable(&loaded.engine, &error))?;
    if loaded.engine.keeper.is_some() {
        let _ = process::become_subreaper();
        let _ = process::hide_memory();
    }
    Hub::open(loaded.engine).await
}

/// Creates the data directory if there is none. Refuses one that is not ours alone, or cannot be used.
pub(crate) fn make_data_dir(settings: &Settings) -> Result<(), GatewayError> {
    settings.make_data_dir().map_err(|error| unusable(settings, &error))
}

/// The system's own errors name neither the directory nor a fix.
fn unusable(settings: &Settings, error: &io::Error) -> GatewayError {
    let message = match error.raw_os_error() {
        None => error.to_string(),
        Some(_) => {
            let directory = settings.data_dir.display().to_string();
            let fix = match error.kind() {
                io::ErrorKind::PermissionDenied if settings.data_dir.is_dir() => {
                    format!("run `chmod 700 {}`, or ", quoted(&directory))
                }
                _ => String::new(),
            };
            format!(
                "failed to use the data directory {directory}: {error}; {fix}choose another with \
                 --data-dir or AGENTWIRE_DATA_DIR"
            )
        }
    };
    GatewayError::new(ErrorCode::Forbidden, message)
}

/// The runtime for commands that run no sessions.
pub(crate) fn small() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Works on the sessions of this machine without starting agents.
pub(crate) fn reading<T>(
    global: &Global,
    work: impl AsyncFnOnce(&Hub) -> Result<T, Failure>,
) -> Result<T, Failure> {
    reading_with(settings::load(global)?, work)
}

pub(crate) fn reading_with<T>(
    mut loaded: Loaded,
    work: impl AsyncFnOnce(&Hub) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // Nothing is started, so nothing has to be contained.
    loaded.engine.keeper = None;
    loaded.engine.containment = ContainmentChoice::Auto;
    small()?.block_on(async {
        let hub = hub(loaded).await?;
        let done = work(&hub).await;
        hub.shutdown().await;
        done
    })
}
