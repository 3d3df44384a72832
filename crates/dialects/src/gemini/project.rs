//! Project files that make Gemini CLI run something.

use crate::agent::Launch;
use crate::project::ParentSearch::{Everywhere, Nowhere};
use crate::project::{FileFormat, ProjectFile};

/// The variable that says whether the workspace is trusted. It overrides the program's own list.
const TRUST: &str = "GEMINI_CLI_TRUST_WORKSPACE";

/// Read if the workspace is trusted. Otherwise, only the sign-in variables of `.env` are read.
pub(super) const FILES: [ProjectFile; 11] = [
    ProjectFile::file(".gemini/settings.json", FileFormat::Json, Nowhere),
    ProjectFile::file(".gemini/.env", FileFormat::Variables, Everywhere),
    ProjectFile::file(".env", FileFormat::Variables, Everywhere),
    ProjectFile::tree(".gemini/extensions", &[".json"], FileFormat::Json, Nowhere),
    ProjectFile::tree(".gemini/extensions", &[".toml"], FileFormat::Prompt, Nowhere),
    ProjectFile::tree(".gemini/policies", &[""], FileFormat::Opaque, Nowhere),
    ProjectFile::tree(".gemini/commands", &[".toml"], FileFormat::Prompt, Nowhere),
    ProjectFile::tree(".gemini/agents", &[".md"], FileFormat::Markdown, Nowhere),
    ProjectFile::tree(".gemini/skills", &[".md"], FileFormat::Markdown, Nowhere),
    ProjectFile::tree(".gemini/hooks", &[""], FileFormat::Script, Nowhere),
    ProjectFile::file(".gemini/sandbox.bashrc", FileFormat::Opaque, Nowhere),
];

/// Tells Gemini whether the workspace is trusted. Gemini never asks that itself, because the gateway has.
pub(crate) fn trust(trust: Option<bool>, launch: &mut Launch) {
    if trust != Some(false) {
        launch.words(&["--skip-trust"]);
    }
    // The flag alone is too late for the settings, which are read before it (0.61.0).
    if let Some(trust) = trust {
        launch.env.insert(TRUST.to_owned(), trust.to_string());
    }
}
