//! Which agents are installed: where, in which version, whether that one was tested, and whether it is
//! signed in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentwire_dialects::program;
use agentwire_dialects::program::{
    DefaultCommand, Login, LoginMethod, LoginQuestion, Problem, Program, Source, Standing,
    version_in,
};
use agentwire_protocol::AgentType;
use agentwire_sessions::Settings;
use agentwire_sessions::process::{
    Contain, Spawn, StdinPlan, Veil, environment, own_path, resolve,
};
use agentwire_sessions::settings::AgentCommand;
use agentwire_sessions::{managed_files, own_dirs};
use serde::{Serialize, Serializer};
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout_at};

/// How long a program may take to answer all questions. Some are slow to start.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many bytes of its output are read.
const ENOUGH: u64 = 4096;

/// An agent, installed or not.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installed {
    pub(crate) name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    /// Why it was not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) standing: Standing,
    #[serde(skip)]
    pub(crate) newest_tested: Option<&'static str>,
    /// Known problems of that version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<Problem>,
    /// `None` if it is not installed, needs no login or was not asked.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) login: Option<SignIn>,
    /// The first is the default.
    pub(crate) drivers: Vec<&'static str>,
    /// The environment variable that names another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variable: Option<String>,
    /// How to install it.
    #[serde(rename = "install", serialize_with = "words")]
    pub(crate) source: Source,
    /// Whether the settings name the program.
    pub(crate) configured: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignIn {
    #[serde(serialize_with = "name")]
    pub(crate) login: Login,
    #[serde(skip_serializing_if = "Option::is_none")]
    login_method: Option<LoginMethod>,
    /// A variable that holds a key, for programs that do not report their login.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_variable: Option<&'static str>,
    #[serde(skip)]
    pub(crate) how_to: &'static str,
}

impl SignIn {
    pub(crate) fn words(&self) -> String {
        match self.key_variable {
            Some(name) => format!("{}, {name} is set", self.login.words()),
            None => self.login.words().to_owned(),
        }
    }
}

impl Installed {
    /// The problems that stop agentwire from working, then the rest.
    pub(crate) fn worst_first(&self) -> impl Iterator<Item = &Problem> {
        let of = |fatal| self.problems.iter().filter(move |problem| problem.fatal == fatal);
        of(true).chain(of(false))
    }
}

fn words<S: Serializer>(source: &Source, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(source)
}

fn name<S: Serializer>(login: &Login, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match login {
        Login::SignedIn(_) => "signedIn",
        Login::NotSignedIn => "notSignedIn",
        Login::NotTold => "notTold",
    })
}

/// Looks for all agents at once. Without containment no program is started, so versions stay
/// unknown.
pub(crate) async fn look(settings: &Settings, contain: Option<&Contain>) -> Vec<Installed> {
    let looks = AgentType::ALL.map(|agent| {
        let (settings, contain) = (settings.clone(), contain.cloned());
        tokio::spawn(async move { look_for(agent, &settings, contain.as_ref()).await })
    });
    let mut found = Vec::new();
    for look in looks {
        found.extend(look.await);
    }
    found
}

async fn look_for(agent: AgentType, settings: &Settings, contain: Option<&Contain>) -> Installed {
    let command = settings.agent(agent);
    let known = program(agent);
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let path = find(known, &command, settings, &here);
    let is_built_in = matches!(known.command, DefaultCommand::BuiltIn { .. });
    let is_own = command.program.is_none() && is_built_in;
    let mut problems = Vec::new();
    if let (Ok(_), Some((_, dialect))) = (&path, known.drivers.first()) {
        let found = managed_files::find(*dialect, &command.env);
        problems.extend(found.iter().map(|found| Problem::of_machine(found.does)));
    }
    let (version, login) = match (&path, contain) {
        (Ok(_), _) if is_own => (Some(env!("CARGO_PKG_VERSION").to_owned()), None),
        (Ok(path), Some(contain)) => {
            let questions = Questions {
                contain,
                program: path,
                command: &command,
                // Not the current directory: a project's settings could make the program run
                // something.
                directory: Path::new("/"),
                veil: own_dirs::PinnedDirs::new(settings).veil(settings, agent, None),
                until: Instant::now() + PATIENCE,
            };
            questions.ask_all(known).await
        }
        (Ok(_), None) | (Err(_), _) => (None, None),
    };
    Installed {
        name: agent.as_str(),
        standing: match &path {
            Ok(_) => known.standing(version.as_deref()),
            Err(_) => Standing::Missing,
        },
        newest_tested: known.newest_tested(),
        problems: known.problems_of(version.as_deref()).into_iter().chain(problems).collect(),
        login,
        error: path.as_ref().err().cloned(),
        path: path.ok(),
        version,
        drivers: known.drivers.iter().map(|(name, _)| *name).collect(),
        variable: known.variable(),
        source: known.source,
        configured: command.program.is_some(),
    }
}

fn find(
    known: &Program,
    command: &AgentCommand,
    settings: &Settings,
    here: &Path,
) -> Result<PathBuf, String> {
    let program = match (&command.program, known.command) {
        (Some(program), _) => program.clone(),
        (None, DefaultCommand::None) => return Err("no command is set".to_owned()),
        (None, DefaultCommand::BuiltIn { .. }) => {
            let own = settings.keeper.as_ref();
            let own = own.ok_or_else(|| "failed to find agentwire itself".to_owned())?;
            // The path is shown to people, so it is the real file's.
            return Ok(own_path(own).unwrap_or_else(|_| own.clone()));
        }
        (None, DefaultCommand::Named(name)) => name.to_owned(),
    };
    let search = std::env::var_os("PATH");
    resolve(&program, search.as_deref(), here).map_err(|error| error.to_string())
}

/// What to ask a program, until a deadline.
struct Questions<'q> {
    contain: &'q Contain,
    program: &'q Path,
    command: &'q AgentCommand,
    directory: &'q Path,
    veil: Veil,
    until: Instant,
}

impl Questions<'_> {
    /// Its version, and whether it is signed in. The second question is only asked if the version
    /// is known to understand it.
    async fn ask_all(&self, known: &Program) -> (Option<String>, Option<SignIn>) {
        let output = self.ask(&["--version"]).await;
        let version = output.and_then(|(text, _)| version_in(&text).map(str::to_owned));
        let (login, key_variable) = match known.login {
            LoginQuestion::Ask { args, read } => match known.standing(version.as_deref()) {
                Standing::Tested | Standing::Between | Standing::Newer => {
                    let output = self.ask(args).await;
                    (output.map_or(Login::NotTold, |(out, err)| read(&out, &err)), None)
                }
                Standing::Older | Standing::Unknown | Standing::Missing => (Login::NotTold, None),
            },
            LoginQuestion::None { key } => {
                (Login::NotTold, key.filter(|name| self.has_variable(name)))
            }
            LoginQuestion::Needless => return (version, None),
        };
        let login_method = match login {
            Login::SignedIn(method) => method,
            Login::NotSignedIn | Login::NotTold => None,
        };
        (version, Some(SignIn { login, login_method, key_variable, how_to: known.sign_in }))
    }

    /// Its stdout and stderr. Dropping the future ends every process that it started.
    async fn ask(&self, args: &[&str]) -> Option<(String, String)> {
        let args = self.command.args.iter().map(String::as_str).chain(args.iter().copied());
        let spawn = Spawn {
            program: self.program.to_owned(),
            args: args.map(OsString::from).collect(),
            env: environment(&self.command.env),
            directory: self.directory.to_owned(),
            stdin: StdinPlan::Null,
            veil: self.veil.clone(),
        };
        let output = async {
            let process = self.contain.spawn(spawn).await.ok()?;
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let (mut stdout, mut stderr) =
                (process.stdout.take(ENOUGH), process.stderr.take(ENOUGH));
            let (first, second) =
                tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err));
            first.and(second).ok()?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Some((text(&out), text(&err)))
        };
        timeout_at(self.until, output).await.ok().flatten()
    }

    fn has_variable(&self, name: &str) -> bool {
        let all = environment(&self.command.env);
        all.iter().any(|(key, value)| key == name && !value.is_empty())
    }
}
