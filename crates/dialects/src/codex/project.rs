//! Project files that make Codex run something, and whether it reads them.

use std::path::Path;

use agentwire_protocol::SessionConfig;
use serde_json::{Map, Value, json};

use crate::project::ParentSearch::Repository;
use crate::project::{FileFormat, ProjectFile};

/// Read if the project is trusted, from the root of the repository down.
pub(super) const FILES: [ProjectFile; 6] = [
    ProjectFile::file(".codex/config.toml", FileFormat::Toml, Repository),
    ProjectFile::file(".codex/hooks.json", FileFormat::Json, Repository),
    ProjectFile::tree(".codex/agents", &[".toml"], FileFormat::Toml, Repository),
    ProjectFile::tree(".codex/rules", &[""], FileFormat::Opaque, Repository),
    ProjectFile::tree(".codex/environments", &[".toml"], FileFormat::Toml, Repository),
    ProjectFile::tree(".codex/hooks", &[""], FileFormat::Script, Repository),
];

/// The setting `projects`, if it is known whether the session's project is trusted. It also names every
/// directory above, because the one nearest to a file decides.
pub(super) fn trust(config: &SessionConfig) -> Option<Value> {
    let level = if config.trust? { "trusted" } else { "untrusted" };
    let directory = Path::new(config.working_directory.as_deref()?);
    let above = directory.ancestors().filter_map(Path::to_str).filter(|path| !path.is_empty());
    let projects: Map<String, Value> =
        above.map(|path| (path.to_owned(), json!({ "trust_level": level }))).collect();
    Some(Value::Object(projects))
}
