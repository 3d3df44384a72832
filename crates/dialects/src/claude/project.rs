//! Project files that make Claude Code run something.

use agentwire_protocol::SessionConfig;

use crate::project::ParentSearch::{Everywhere, Repository};
use crate::project::{FileFormat, ProjectFile};

/// Read with the setting source `project`.
const PROJECT: [ProjectFile; 10] = [
    ProjectFile::file(".claude/settings.json", FileFormat::Json, Repository),
    ProjectFile::file(".claude/launch.json", FileFormat::Json, Repository),
    ProjectFile::file(".claude/scheduled_tasks.json", FileFormat::Opaque, Repository),
    // Skills below the working directory are loaded when the agent works on files there.
    ProjectFile::tree(".claude/agents", &[".md"], FileFormat::Markdown, Repository).and_below(),
    ProjectFile::tree(".claude/commands", &[".md"], FileFormat::Markdown, Repository).and_below(),
    ProjectFile::tree(".claude/skills", &[".md"], FileFormat::Markdown, Repository).and_below(),
    // A skill may be a plugin with its own hooks and servers.
    ProjectFile::tree(".claude/skills", &PLUGIN, FileFormat::Json, Repository).and_below(),
    ProjectFile::tree(".claude/workflows", &[""], FileFormat::Opaque, Repository),
    ProjectFile::tree(".claude/hooks", &[""], FileFormat::Script, Repository),
    // It has its own switch, but is only read with this source.
    ProjectFile::file(".mcp.json", FileFormat::Json, Everywhere),
];

/// Files that make a directory a plugin, or belong to one.
const PLUGIN: [&str; 4] = ["plugin.json", "hooks.json", ".mcp.json", ".lsp.json"];

/// Read with the setting source `local`.
const LOCAL: ProjectFile =
    ProjectFile::file(".claude/settings.local.json", FileFormat::Json, Repository);

/// The setting source that reads only the user's settings.
const USER: &str = "user";

/// The project files that a session with this configuration reads.
pub(super) fn files(config: &SessionConfig) -> Vec<ProjectFile> {
    let reads = |source: &str| match &config.setting_sources {
        Some(sources) => sources.iter().any(|name| name == source),
        None => true,
    };
    let mut files = Vec::new();
    if reads("project") {
        files.extend(PROJECT);
    }
    if reads("local") {
        files.push(LOCAL);
    }
    files
}

/// The setting sources of a session, without those of an untrusted project.
pub(super) fn sources(config: &SessionConfig) -> Option<Vec<String>> {
    if config.trust != Some(false) {
        return config.setting_sources.clone();
    }
    let given = config.setting_sources.clone();
    let mut sources = given.unwrap_or_else(|| vec![USER.to_owned()]);
    sources.retain(|source| source == USER);
    Some(sources)
}
