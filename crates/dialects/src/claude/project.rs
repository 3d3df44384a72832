//! The files of a project that make Claude Code run something.

use agentwire_protocol::SessionConfig;

use crate::project::Above::{Everywhere, Repository};
use crate::project::{Form, ProjectFile};

/// Read with the setting source `project`.
const PROJECT: [ProjectFile; 10] = [
    ProjectFile::file(".claude/settings.json", Form::Json, Repository),
    ProjectFile::file(".claude/launch.json", Form::Json, Repository),
    ProjectFile::file(".claude/scheduled_tasks.json", Form::Opaque, Repository),
    // Skills below the working directory are loaded when the agent works on files there.
    ProjectFile::tree(".claude/agents", &[".md"], Form::Markdown, Repository).and_below(),
    ProjectFile::tree(".claude/commands", &[".md"], Form::Markdown, Repository).and_below(),
    ProjectFile::tree(".claude/skills", &[".md"], Form::Markdown, Repository).and_below(),
    // A skill may be a plugin, with hooks and servers of its own.
    ProjectFile::tree(".claude/skills", &PLUGIN, Form::Json, Repository).and_below(),
    ProjectFile::tree(".claude/workflows", &[""], Form::Opaque, Repository),
    ProjectFile::tree(".claude/hooks", &[""], Form::Script, Repository),
    // With its own switch, but only with this source.
    ProjectFile::file(".mcp.json", Form::Json, Everywhere),
];

/// The files that make a directory a plugin, or are in one.
const PLUGIN: [&str; 4] = ["plugin.json", "hooks.json", ".mcp.json", ".lsp.json"];

/// Read with the setting source `local`.
const LOCAL: ProjectFile = ProjectFile::file(".claude/settings.local.json", Form::Json, Repository);

/// The settings of the user alone.
const USER: &str = "user";

/// What a session that is started so reads.
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

/// The setting sources of a session, without those of a project that is not trusted.
pub(super) fn sources(config: &SessionConfig) -> Option<Vec<String>> {
    if config.trust != Some(false) {
        return config.setting_sources.clone();
    }
    let given = config.setting_sources.clone();
    let mut sources = given.unwrap_or_else(|| vec![USER.to_owned()]);
    sources.retain(|source| source == USER);
    Some(sources)
}
