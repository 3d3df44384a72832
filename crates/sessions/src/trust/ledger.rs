//! What is trusted, stored in the data directory: one file per agent and directory, replaced as a whole, so
//! that several processes can share them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use agentwire_protocol::AgentType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::survey::hex;
use super::{Snapshot, covers};
use crate::clock;
use crate::held_dir::HeldDir;

/// How many states of a directory are remembered, so that you can switch between branches.
const STATES: usize = 16;

/// Maximum size of such a file.
const FILE_LIMIT: u64 = 16 << 20;

#[derive(Clone, Debug)]
pub struct Ledger {
    place: PathBuf,
    /// The place is reached through it.
    _data_dir: Option<HeldDir>,
}

/// What is trusted in one directory, for one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TrustedDirectory {
    pub agent: String,
    /// The real path of the directory.
    pub directory: String,
    pub trusted_at: String,
    /// The trusted states, newest last.
    pub states: Vec<Snapshot>,
}

impl Ledger {
    pub fn new(data_dir: &Path) -> Self {
        Self { place: data_dir.join("trust"), _data_dir: None }
    }

    /// The ledger of a data directory that is held open: no agent can put another in its place.
    pub(crate) fn within(data_dir: HeldDir) -> Self {
        Self { place: data_dir.path().join("trust"), _data_dir: Some(data_dir) }
    }

    /// Whether these files were trusted as they are.
    pub(crate) fn trusts(&self, agent: AgentType, directory: &str, found: &Snapshot) -> bool {
        let entry = read(&self.path(agent, directory));
        // File names may collide by design; the entry says whose it is.
        entry.is_some_and(|entry| {
            entry.agent == agent.as_str()
                && entry.directory == directory
                && entry.states.iter().any(|state| covers(state, found))
        })
    }

    /// Remembers that these files are trusted. This is durable when the call returns.
    pub(crate) fn remember(
        &self,
        agent: AgentType,
        directory: &str,
        found: Snapshot,
    ) -> io::Result<()> {
        let path = self.path(agent, directory);
        let mut entry = read(&path).unwrap_or_default();
        entry.agent = agent.as_str().to_owned();
        entry.directory = directory.to_owned();
        entry.trusted_at = clock::now();
        entry.states.retain(|state| *state != found);
        entry.states.push(found);
        let old = entry.states.len().saturating_sub(STATES);
        entry.states.drain(..old);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.place)?;
        let new = self.place.join(format!(".{}", Uuid::new_v4().simple()));
        let written = write(&new, &entry).and_then(|()| fs::rename(&new, &path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written?;
        File::open(&self.place)?.sync_all()
    }

    pub fn entries(&self) -> Vec<TrustedDirectory> {
        let files = fs::read_dir(&self.place).into_iter().flatten().flatten();
        let files = files.map(|file| file.path());
        let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let mut entries: Vec<TrustedDirectory> = files.filter_map(|path| read(&path)).collect();
        entries.sort_by(|a, b| (&a.directory, &a.agent).cmp(&(&b.directory, &b.agent)));
        entries
    }

    /// Forgets what is trusted in this directory for every agent. Returns for how many.
    pub fn revoke(&self, directory: &str) -> io::Result<usize> {
        let mut count = 0;
        for agent in AgentType::ALL {
            match fs::remove_file(self.path(agent, directory)) {
                Ok(()) => count += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    fn path(&self, agent: AgentType, directory: &str) -> PathBuf {
        let name = hex(&Sha256::digest(format!("{}\0{directory}", agent.as_str())));
        self.place.join(format!("{}.json", name.get(..32).unwrap_or(&name)))
    }
}

/// An entry that cannot be read does not count: someone is asked again.
fn read(path: &Path) -> Option<TrustedDirectory> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > FILE_LIMIT {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write(path: &Path, entry: &TrustedDirectory) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(entry)?)?;
    file.sync_all()
}
