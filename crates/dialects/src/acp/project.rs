//! Project files that make an ACP agent run something. Which agent the user's program is, is unknown, so
//! the files of all known agents count, including those of agents that many others are built on.

use agentwire_protocol::{AgentType, SessionConfig};

use crate::programs;
use crate::project::Above::Repository;
use crate::project::{Form, ProjectFile};

/// The usual files in an agent's own directory.
macro_rules! own {
    ($($directory:literal),* $(,)?) => {
        [$(
            ProjectFile::file(concat!($directory, "/settings.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/settings.local.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/config.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/config.toml"), Form::Toml, Repository),
            ProjectFile::file(concat!($directory, "/config.yaml"), Form::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/config.yml"), Form::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/cli.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/permissions.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/environment.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/opencode.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/opencode.jsonc"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/package.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/mcp.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/mcp-config.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/hooks.json"), Form::Json, Repository),
            ProjectFile::file(concat!($directory, "/hooks.toml"), Form::Toml, Repository),
            ProjectFile::file(concat!($directory, "/.env"), Form::Variables, Repository),
            ProjectFile::file(concat!($directory, "/setup.sh"), Form::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/pre-commit.sh"), Form::Opaque, Repository),
            ProjectFile::file(concat!($directory, "/sandbox.bashrc"), Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/settings"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/mcp"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/agent"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/agent"), &DATA, Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/agents"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/agents"), &DATA, Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/cli-agents"), &DATA, Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/droids"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/mode"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/modes"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/command"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/commands"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/commands"), &[".toml"], Form::Prompt, Repository),
            ProjectFile::tree(concat!($directory, "/skill"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/skills"), &TEXTS, Form::Markdown, Repository),
            ProjectFile::tree(concat!($directory, "/extensions"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/plugin"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/plugins"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/policies"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/recipes"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/tool"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/tools"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/workflows"), &[""], Form::Opaque, Repository),
            ProjectFile::tree(concat!($directory, "/hooks"), &[".json"], Form::Json, Repository),
            ProjectFile::tree(concat!($directory, "/hooks"), &[""], Form::Script, Repository),
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
    ProjectFile::file("opencode.json", Form::Json, Repository),
    ProjectFile::file("opencode.jsonc", Form::Json, Repository),
    ProjectFile::file("crush.json", Form::Json, Repository),
    ProjectFile::file(".crush.json", Form::Json, Repository),
    ProjectFile::file("fastagent.config.yaml", Form::Opaque, Repository),
    ProjectFile::file("fastagent.secrets.yaml", Form::Opaque, Repository),
    ProjectFile::file(".vscode/mcp.json", Form::Json, Repository),
    ProjectFile::file(".github/mcp.json", Form::Json, Repository),
    ProjectFile::tree(".github/copilot", &[".json"], Form::Json, Repository),
    ProjectFile::tree(".github/hooks", &[".json"], Form::Json, Repository),
    ProjectFile::tree(".github/agents", &TEXTS, Form::Markdown, Repository),
    ProjectFile::tree(".github/skills", &TEXTS, Form::Markdown, Repository),
    ProjectFile::tree(".clinerules/hooks", &[""], Form::Opaque, Repository),
];

pub(super) fn files(agent: AgentType) -> Vec<ProjectFile> {
    let others = programs().iter().filter(|program| program.agent != agent);
    let drivers = others.filter_map(|program| program.drivers.first());
    let files = drivers.flat_map(|(_, dialect)| dialect.project_files(&SessionConfig::default()));
    // Projects have `.env` for their own programs.
    let files = files.filter(|file| file.path != ".env");
    files.chain(DIRECTORIES.iter().copied()).chain(FILES).collect()
}
