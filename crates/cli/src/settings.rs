//! Settings: defaults, then the file, then the environment, then flags.

mod diagnostic;
pub(crate) mod file;
mod server;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use agentwire_dialects::programs;
use agentwire_protocol::session::check_variables;
use agentwire_protocol::{AgentType, ErrorCode, GatewayError, Price};
use agentwire_sessions::Settings;
use agentwire_sessions::process;
use agentwire_sessions::settings::{AgentCommand, SessionDefaults, Timing};

use self::file::File;
pub(crate) use self::server::Server;
use self::value::{ContainmentName, PositiveSeconds, Program, Seconds, StoreName, TrustName};
use crate::args::Global;

#[derive(Debug)]
pub(crate) struct Loaded {
    /// Settings of the engine.
    pub(crate) engine: Settings,
    /// The default agent.
    pub(crate) agent: Option<AgentType>,
    /// Project directories by name.
    pub(crate) projects: BTreeMap<String, PathBuf>,
    pub(crate) server: Server,
    pub(crate) file: Option<PathBuf>,
}

/// Looks up environment variables.
type Environment = fn(&str) -> Option<OsString>;

pub(crate) fn load(global: &Global) -> Result<Loaded, GatewayError> {
    let (file, path) = read(global, environment)?;
    resolve(file, path, global, environment)
}

/// The settings without the file, for `doctor`.
pub(crate) fn load_without_file(global: &Global) -> Result<Loaded, GatewayError> {
    resolve(File::default(), None, global, environment)
}

/// The settings without agentwire's own variables, for `doctor`.
pub(crate) fn load_without_variables(global: &Global) -> Result<Loaded, GatewayError> {
    let (file, path) = read(global, foreign)?;
    resolve(file, path, global, foreign)
}

/// The settings with neither, for `doctor`.
pub(crate) fn load_defaults(global: &Global) -> Result<Loaded, GatewayError> {
    resolve(File::default(), None, global, foreign)
}

/// The environment without agentwire's own variables.
fn foreign(name: &str) -> Option<OsString> {
    if name.starts_with("XDG_") { environment(name) } else { None }
}

fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn config_dir(environment: Environment) -> Option<PathBuf> {
    Some(base("XDG_CONFIG_HOME", ".config", environment)?.join("agentwire"))
}

/// A named file must exist; the default one need not.
fn read(
    global: &Global,
    environment: Environment,
) -> Result<(File, Option<PathBuf>), GatewayError> {
    let usual = || Some(config_dir(environment)?.join("config.toml"));
    let Some(path) = global.config.clone().or_else(usual) else {
        return Ok((File::default(), None));
    };
    let failed = |why: &dyn std::fmt::Display| {
        invalid(format!("failed to read the settings in {}: {why}", path.display()))
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && global.config.is_none() => {
            return Ok((File::default(), None));
        }
        Err(error) => return Err(failed(&error)),
    };
    match toml::from_str(&text) {
        Ok(file) => Ok((file, Some(path))),
        Err(error) => Err(failed(&diagnostic::describe(&text, &error))),
    }
}

/// Flags override the environment, which overrides the file.
fn resolve(
    file: File,
    path: Option<PathBuf>,
    global: &Global,
    environment: Environment,
) -> Result<Loaded, GatewayError> {
    let data_dir = match &global.data_dir {
        Some(directory) => absolute(directory)?,
        None => base("XDG_DATA_HOME", ".local/share", environment)
            .ok_or_else(|| invalid("no home directory found; set AGENTWIRE_DATA_DIR".to_owned()))?
            .join("agentwire"),
    };
    let store = variable("AGENTWIRE_STORE", environment, StoreName::new)?.or(file.store.kind);
    let containment = variable("AGENTWIRE_CONTAINMENT", environment, ContainmentName::new)?
        .or(file.process.containment);
    let trust = variable("AGENTWIRE_TRUST", environment, TrustName::new)?.or(file.policy.trust);
    let request = variable("AGENTWIRE_REQUEST_TIMEOUT", environment, |text| {
        text.parse()
            .map_err(|_| format!("`{text}` is not a number of seconds"))
            .and_then(Seconds::new)
    })?;
    let usual = Timing::default();
    let limits = file.limits;
    let or = |given: Option<Seconds>, usual| given.map_or(usual, |Seconds(time)| time);
    let or_positive =
        |given: Option<PositiveSeconds>, usual| given.map_or(usual, |PositiveSeconds(time)| time);
    let timing = Timing {
        request: request
            .or(limits.request_timeout)
            .map(|Seconds(time)| time)
            .filter(|time| !time.is_zero()),
        call: or_positive(limits.call_timeout, usual.call),
        interrupt: or(limits.interrupt_grace, usual.interrupt),
        stop: or(limits.stop_grace, usual.stop),
        signal: or(limits.signal_grace, usual.signal),
        stall: or_positive(limits.stall_after, usual.stall),
    };
    let engine = Settings {
        data_dir,
        config_dir: config_dir(environment),
        store: store.map(|StoreName(kind)| kind).unwrap_or_default(),
        keeper: process::own_program(),
        containment: containment.map(|ContainmentName(choice)| choice).unwrap_or_default(),
        agents: commands(file.agents, environment)?,
        timing,
        sessions: limits.sessions.map(NonZeroUsize::get),
        in_flight: limits.in_flight.map(|mebibytes| mebibytes.get().saturating_mul(1 << 20)),
        prices: file.prices.into_iter().map(|(model, price)| (model, dollars(&price))).collect(),
        defaults: SessionDefaults {
            approval: file.policy.approval,
            allow: file.policy.allow,
            block: file.policy.block,
            trust: trust.map(|TrustName(policy)| policy).unwrap_or_default(),
        },
        private: private(path.as_deref(), file.server.tls_key.as_deref(), environment),
        secrets: file.server.tls_key.iter().cloned().collect(),
    };
    let agent = variable("AGENTWIRE_AGENT", environment, agent)?.or(file.agent);
    let projects = file.projects.into_iter().map(|(name, directory)| (name, directory.0)).collect();
    let server = Server::from(file.server);
    Ok(Loaded { engine, agent, projects, server, file: path })
}

/// The settings files, default and in use, and the server's key.
fn private(file: Option<&Path>, tls_key: Option<&Path>, environment: Environment) -> Vec<PathBuf> {
    config_dir(environment)
        .into_iter()
        .chain(file.map(Path::to_path_buf))
        .chain(tls_key.map(Path::to_path_buf))
        .collect()
}

/// How many of the first arguments belong to a launcher, such as `npx -y @google/gemini-cli`: all
/// up to and including the word that names the agent. If no word does, all of them count as the
/// launcher's.
fn launcher_args(agent: &str, program: Option<&str>, first: &[String]) -> usize {
    let names = |word: &str| {
        let file = Path::new(word).file_name().and_then(|file| file.to_str()).unwrap_or(word);
        let name = file.split('@').next().unwrap_or(file);
        !word.starts_with('-') && name.split(['-', '.', '_']).any(|part| part == agent)
    };
    if program.is_some_and(names) {
        return 0;
    }
    first.iter().rposition(|word| names(word)).map_or(first.len(), |at| at + 1)
}

fn commands(
    mut agents: file::Agents,
    environment: Environment,
) -> Result<BTreeMap<&'static str, AgentCommand>, GatewayError> {
    let mut commands = BTreeMap::new();
    for known in programs() {
        let agent = known.agent;
        let (name, given) = (agent.as_str(), agents.take(agent));
        if let Some(driver) = &given.driver {
            agentwire_dialects::driver(agent, Some(driver)).map_err(|error| {
                invalid(format!("invalid setting agents.{name}.driver: {}", error.message))
            })?;
        }
        check_variables(&given.env, "env")
            .map_err(|error| invalid(format!("invalid setting agents.{name}.{}", error.message)))?;
        let named = match known.variable() {
            Some(name) => variable(&name, environment, |program| Ok(program.to_owned()))?,
            None => None,
        };
        // The file's arguments belong to the file's program.
        let (program, first) = match (named, given.command) {
            (Some(program), _) => (Some(program), Vec::new()),
            (None, Some(Program { program, args })) => (Some(program), args),
            (None, None) => (None, Vec::new()),
        };
        let launcher_args = launcher_args(name, program.as_deref(), &first);
        let args = first.into_iter().chain(given.args).collect();
        commands.insert(
            name,
            AgentCommand {
                program,
                args,
                launcher_args,
                env: given.env,
                driver: given.driver,
                model: given.model,
            },
        );
    }
    Ok(commands)
}

fn dollars(price: &file::Price) -> Price {
    let or_input = |given: Option<value::Dollars>| given.unwrap_or(price.input).0;
    Price {
        input: price.input.0,
        output: price.output.0,
        cache_read: or_input(price.cache_read),
        cache_write: or_input(price.cache_write),
    }
}

fn agent(name: &str) -> Result<AgentType, String> {
    name.parse().map_err(|_| {
        let known = AgentType::NAMES;
        match diagnostic::nearest(name, &known) {
            Some(meant) => format!("unknown agent `{name}`; did you mean `{meant}`?"),
            None => format!("unknown agent `{name}`; known agents: {}", known.join(", ")),
        }
    })
}

/// Reads a variable that is set and not empty.
fn variable<T>(
    name: &str,
    environment: Environment,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, GatewayError> {
    let Some(value) = environment(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let read = match value.to_str() {
        Some(text) => read(text),
        None => Err("not valid UTF-8".to_owned()),
    };
    read.map(Some).map_err(|why| invalid(format!("invalid {name}: {why}")))
}

/// A base directory of the user: by its XDG variable, else below the home directory. The XDG
/// specification ignores relative paths.
fn base(variable: &str, under_home: &str, environment: Environment) -> Option<PathBuf> {
    let given = environment(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| Some(std::env::home_dir()?.join(under_home)))
}

fn absolute(path: &Path) -> Result<PathBuf, GatewayError> {
    std::path::absolute(path)
        .map_err(|error| invalid(format!("invalid path {}: {error}", path.display())))
}

fn invalid(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message)
}
