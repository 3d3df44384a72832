//! Project files that make an ACP agent run something. Which agent the user's program is, is unknown, so
//! the files of all known agents count, including those of agents that many others are built on.

use agentwire_protocol::{AgentType, SessionConfig};

use crate::programs;
use crate::project::ParentSearch::Repository;
use crate::project::{FileFormat, ProjectFile};

/// The usual files in an agent's own directory.
macro_rules! own {
    ($($directory:literal),* $(,)?) => {
        [$(
            ProjectFile::file(concat!($directory, "/settings.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/settings.local.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/config.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/config.toml"), FileFormat::Toml, Repository),
            ProjectFile::file(concat!($directory, "/config.yaml"), FileFormat::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/config.yml"), FileFormat::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/cli.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/permissions.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/environment.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/opencode.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/opencode.jsonc"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/package.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/mcp.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/mcp-config.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/hooks.json"), FileFormat::Json, Repository),
            ProjectFile::file(concat!($directory, "/hooks.toml"), FileFormat::Toml, Repository),
            ProjectFile::file(concat!($directory, "/.env"), FileFormat::Variables, Repository),
            ProjectFile::file(concat!($directory, "/setup.sh"), FileFormat::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/pre-commit.sh"), FileFormat::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/sandbox.bashrc"), FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/settings"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/mcp"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/agent"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/agent"), &DATA, FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/agents"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/agents"), &DATA, FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/cli-agents"), &DATA, FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/droids"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/mode"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/modes"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/command"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/commands"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/commands"), &[".toml"], FileFormat::Prompt, Repository),
            ProjectFile::tree(concat!($directory, "/skill"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/skills"), &TEXTS, FileFormat::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/extensions"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/plugin"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/plugins"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/policies"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/recipes"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/tool"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/tools"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/workflows"), &[""], FileFormat::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/hooks"), &[".json"], FileFormat::Json, Repository),
            ProjectFile::tree(concat!($directory, "/hooks"), &[""], FileFormat::Script, Repository),
        )*]
    };
}

const TEXTS: [&str; 2] = [".md", ".markdown"];

const DATA: [&str; 4] = [".json", ".toml", ".yaml", ".yml"];

const DIRECTORIES: &[ProjectFile] = &own!(
    ".agents",
    ".amazonq",
    ".amp",
    ".augment",
    ".cline",
    ".codebuddy",
    ".copilot",
    ".crush",
    ".cursor",
    ".factory",
    ".fast-agent",
    ".goose",
    ".iflow",
    ".junie",
    ".kimi",
    ".kiro",
    ".opencode",
    ".openhands",
    ".pi",
    ".qoder",
    ".qwen",
    ".vibe",
);

/// Their files outside those directories.
const FILES: [ProjectFile; 13] = [
    ProjectFile::file("opencode.json", FileFormat::Json, Repository),
    ProjectFile::file("opencode.jsonc", FileFormat::Json, Repository),
    ProjectFile::file("crush.json", FileFormat::Json, Repository),
    ProjectFile::file(".crush.json", FileFormat::Json, Repository),
    ProjectFile::file("fastagent.config.yaml", FileFormat::Opaque, Repository),
    ProjectFile::file("fastagent.secrets.yaml", FileFormat::Opaque, Repository),
    ProjectFile::file(".vscode/mcp.json", FileFormat::Json, Repository),
    ProjectFile::file(".github/mcp.json", FileFormat::Json, Repository),
    ProjectFile::tree(".github/copilot", &[".json"], FileFormat::Json, Repository),
    ProjectFile::tree(".github/hooks", &[".json"], FileFormat::Json, Repository),
    ProjectFile::tree(".github/agents", &TEXTS, FileFormat::Markdown, Repository),
    ProjectFile::tree(".github/skills", &TEXTS, FileFormat::Markdown, Repository),
    ProjectFile::tree(".clinerules/hooks", &[""], FileFormat::Opaque, Repository),
];

pub(super) fn files(agent: AgentType) -> Vec<ProjectFile> {
    let others = programs().iter().filter(|program| program.agent != agent);
    let drivers = others.filter_map(|program| program.drivers.first());
    let files = drivers.flat_map(|(_, dialect)| dialect.project_files(&SessionConfig::default()));
    // Projects have `.env` for their own programs.
    let files = files.filter(|file| file.path != ".env");
    files.chain(DIRECTORIES.iter().copied()).chain(FILES).collect()
}
