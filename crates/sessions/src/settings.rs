//! The engine's settings.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentwire_protocol::shell::quoted;
use agentwire_protocol::{AgentType, ApprovalMode, Price, SessionConfig};

use crate::process::ContainmentChoice;
use crate::trust::TrustPolicy;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where logs, locks and the demo agent's conversations are stored.
    pub data_dir: PathBuf,
    /// The directory of agentwire's own settings; no agent may work there.
    pub config_dir: Option<PathBuf>,
    pub store: StoreKind,
    /// The program that contains agents when started with `keeper`: agentwire itself.
    pub keeper: Option<PathBuf>,
    /// How to contain an agent's processes; by default, the best that works.
    pub containment: ContainmentChoice,
    /// How to start each agent, if not by its own name.
    pub agents: BTreeMap<&'static str, AgentCommand>,
    pub timing: Timing,
    /// Prices of models, by name.
    pub prices: BTreeMap<String, Price>,
    /// Defaults for sessions.
    pub defaults: SessionDefaults,
    /// How many sessions may run at once; default [`SESSIONS`].
    pub sessions: Option<usize>,
    /// How many bytes of large data may be in memory at once; default [`crate::budget::IN_FLIGHT`].
    pub in_flight: Option<usize>,
    /// agentwire's own files and directories outside the data directory: its settings and secrets. An
    /// agent's call that may read or write them always asks.
    pub private: Vec<PathBuf>,
    /// Those of them that no agent needs to see: hidden from agents where the system supports it.
    pub secrets: Vec<PathBuf>,
}

/// Default limit on running sessions.
pub const SESSIONS: usize = 256;

/// Where logs are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// A file in the data directory.
    #[default]
    Sqlite,
    /// In memory: logs are gone when the process ends.
    Memory,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program; by default, the agent's own name.
    pub program: Option<String>,
    /// Arguments before the ones we add.
    pub args: Vec<String>,
    /// How many of these arguments belong to a program that starts the agent, such as `npx`.
    pub launcher_args: usize,
    pub env: BTreeMap<String, String>,
    /// The driver, if the session names none.
    pub driver: Option<String>,
    /// The model, if the session names none.
    pub model: Option<String>,
}

/// Defaults for sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDefaults {
    pub approval: Option<ApprovalMode>,
    /// Tools that run without asking.
    pub allow: Option<Vec<String>>,
    /// Tools that never run, whatever the session says.
    pub block: Vec<String>,
    /// Whether a project's own files may make an agent run something, if nobody has decided.
    pub trust: TrustPolicy,
}

impl SessionDefaults {
    /// Fills in what the session does not specify.
    pub fn apply(&self, config: &mut SessionConfig) {
        config.approval_mode = config.approval_mode.or(self.approval);
        if config.allowed_tools.is_none() {
            config.allowed_tools = self.allow.clone();
        }
        if !self.block.is_empty() {
            let blocked = config.blocked_tools.get_or_insert_default();
            let new = self.block.iter().filter(|tool| !blocked.contains(tool));
            let new: Vec<_> = new.cloned().collect();
            blocked.extend(new);
        }
    }
}

/// Timeouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Until an unanswered request is denied; without it, requests wait.
    pub request: Option<Duration>,
    /// Until a call to the agent fails.
    pub call: Duration,
    /// From an interrupt to the first signal.
    pub interrupt: Duration,
    /// From a stop to SIGTERM.
    pub stop: Duration,
    /// From one signal to the next stronger one.
    pub signal: Duration,
    /// Silence after which a working agent counts as stalled.
    pub stall: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            request: None,
            call: Duration::from_secs(60),
            interrupt: Duration::from_secs(10),
            stop: Duration::from_secs(3),
            signal: Duration::from_secs(2),
            stall: Duration::from_secs(300),
        }
    }
}

impl Settings {
    /// Creates the data directory if there is none yet, for this user only.
    pub fn make_data_dir(&self) -> io::Result<()> {
        if self.data_dir.exists() {
            return self.check_data_dir();
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.data_dir)?;
        // A power cut must not lose the directory, with everything durable in it.
        match self.data_dir.canonicalize()?.parent() {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    /// Refuses a data directory that others can write to or have written to: they could put their own
    /// tokens there.
    pub fn check_data_dir(&self) -> io::Result<()> {
        let Ok(found) = self.data_dir.metadata() else { return Ok(()) };
        let (shown, own) = (self.data_dir.display(), rustix::process::geteuid().as_raw());
        let quoted = quoted(&shown.to_string());
        let is_foreign = |found: &Metadata| found.uid() != own && found.uid() != 0;
        let link = self.data_dir.symlink_metadata().ok().filter(Metadata::is_symlink);
        let message = if link.is_some_and(|link| is_foreign(&link)) {
            format!(
                "the link {shown} belongs to another user, who chooses where it leads; name the data \
                 directory itself with AGENTWIRE_DATA_DIR"
            )
        } else if is_foreign(&found) {
            format!(
                "the data directory {shown} belongs to another user; take it over: chown {own} \
                 {quoted}, or choose another with AGENTWIRE_DATA_DIR"
            )
        } else if found.mode() & 0o022 != 0 {
            format!(
                "others can write to the data directory {shown}; restrict it: chmod 700 {quoted}"
            )
        } else if let Some(path) = foreign_entry(&self.data_dir, is_foreign)? {
            let (from, to) = aside(&path, "foreign");
            format!(
                "another user has put {} into the data directory; move it away: mv {from} {to}",
                path.display()
            )
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Where files are stored that processes are started with.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.data_dir.join("run")
    }

    pub fn sessions(&self) -> usize {
        self.sessions.unwrap_or(SESSIONS).min(tokio::sync::Semaphore::MAX_PERMITS)
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.unwrap_or(crate::budget::IN_FLIGHT)
    }

    pub fn agent(&self, agent: AgentType) -> AgentCommand {
        self.agents.get(agent.as_str()).cloned().unwrap_or_default()
    }
}

/// Shell words for a file, and for its name once it is moved out of the way.
pub fn aside(path: &Path, suffix: &str) -> (String, String) {
    let path = path.display();
    (quoted(&path.to_string()), quoted(&format!("{path}.{suffix}")))
}

/// A file of another user in this directory. Links are not followed.
fn foreign_entry(
    directory: &Path,
    is_foreign: impl Fn(&Metadata) -> bool,
) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_moved = entry.file_name().to_string_lossy().ends_with(".foreign");
        // An entry that is gone by now does no harm.
        if !is_moved && entry.metadata().is_ok_and(|found| is_foreign(&found)) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}
