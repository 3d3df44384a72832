//! What the pinned versions send and no unified event carries, read from known.json.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use agentwire_dialects::program;
use agentwire_protocol::AgentType;
use serde::{Deserialize, Serialize};

use super::Failure;
use super::residue::Residue;
use super::scenarios::Column;

/// By the name of a program and its driver.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KnownResidue(BTreeMap<String, KnownProgram>);

#[derive(Debug, Serialize, Deserialize)]
struct KnownProgram {
    agent: AgentType,
    version: String,
    #[serde(flatten)]
    residue: Residue,
}

impl KnownResidue {
    /// Reads the file; empty if there is none.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let failed = || Failure::of(format!("read {}", path.display()));
        match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| failed()(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed()(error)),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from);
        let written = text.and_then(|text| fs::write(path, text + "\n"));
        written.map_err(Failure::of(format!("write {}", path.display())))
    }

    /// The column names of an agent, or of all. With `newest`, columns of older versions are left out.
    pub(super) fn columns(&self, agent: Option<AgentType>, newest: bool) -> Vec<String> {
        let is_wanted = |before: &KnownProgram| {
            let tested = program(before.agent).newest_tested();
            agent.is_none_or(|agent| agent == before.agent)
                && (!newest || tested.is_none_or(|tested| tested == before.version))
        };
        let wanted = self.0.iter().filter(|(_, before)| is_wanted(before));
        wanted.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn of(&self, name: &str) -> Option<&Residue> {
        self.0.get(name).map(|before| &before.residue)
    }

    /// Records what a column sends. Runs differ a little, so entries of the same version are kept.
    pub(super) fn record(&mut self, column: &Column, residue: &Residue) {
        let fresh = || KnownProgram {
            agent: column.agent,
            version: column.version.clone(),
            residue: Residue::default(),
        };
        let before = self.0.entry(column.name.clone()).or_insert_with(fresh);
        if before.version != column.version {
            *before = fresh();
        }
        before.residue.add(residue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> KnownResidue {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/real/known.json");
        KnownResidue::read(&path).expect("known.json")
    }

    /// After pinning another version, run `cargo xtask drift --versions pinned --update`.
    #[test]
    fn known_versions_are_the_tested_versions() {
        let known = file();
        for agent in [AgentType::Claude, AgentType::Codex, AgentType::Gemini] {
            let of = known.0.values().filter(|before| before.agent == agent);
            let mut versions: Vec<&str> = of.map(|before| before.version.as_str()).collect();
            versions.sort_unstable();
            versions.dedup();
            assert_eq!(versions, program(agent).tested, "{agent:?}");
        }
    }

    #[test]
    fn columns_are_chosen_by_agent_and_version() {
        let known = file();
        assert_eq!(known.columns(Some(AgentType::Claude), false), ["claude", "claude, older"]);
        assert_eq!(known.columns(Some(AgentType::Claude), true), ["claude"]);
        assert_eq!(known.columns(Some(AgentType::Codex), true), ["codex", "codex exec"]);
        assert_eq!(known.columns(None, true).len() + 1, known.columns(None, false).len());
    }

    #[test]
    fn another_version_replaces_and_the_same_version_adds() {
        let mut known = KnownResidue::default();
        let column = |version: &str| Column {
            name: "parrot".to_owned(),
            agent: AgentType::Acp,
            driver: "acp".to_owned(),
            pinned: version.to_owned(),
            version: version.to_owned(),
            scenarios: BTreeMap::new(),
        };
        let residue =
            |name: &str| Residue { messages: [name.to_owned()].into(), ..Residue::default() };
        known.record(&column("1.0.0"), &residue("a"));
        known.record(&column("1.0.0"), &residue("b"));
        assert_eq!(known.of("parrot").expect("it is known").messages.len(), 2);
        known.record(&column("1.1.0"), &residue("c"));
        assert_eq!(known.of("parrot"), Some(&residue("c")));
    }
}
