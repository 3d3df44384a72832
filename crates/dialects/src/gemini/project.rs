//! Project files that make Gemini CLI run something.

use crate::agent::Launch;
use crate::project::Above::{Everywhere, Nowhere};
use crate::project::{Form, ProjectFile};

/// The variable that says whether the workspace is trusted. It overrides the program's own list.
const TRUST: &str = "GEMINI_CLI_TRUST_WORKSPACE";

/// Read if the workspace is trusted. Otherwise, only the sign-in variables of `.env` are read.
pub(super) const FILES: [ProjectFile; 11] = [
    ProjectFile::file(".gemini/settings.json", Form::Json, Nowhere),
    ProjectFile::file(".gemini/.env", Form::Variables, Everywhere),
    ProjectFile::file(".env", Form::Variables, Everywhere),
    ProjectFile::tree(".gemini/extensions", &[".json"], Form::Json, Nowhere),
    ProjectFile::tree(".gemini/extensions", &[".toml"], Form::Prompt, Nowhere),
    ProjectFile::tree(".gemini/policies", &[""], Form::Opaque, Nowhere),
    ProjectFile::tree(".gemini/commands", &[".toml"], Form::Prompt, Nowhere),
    ProjectFile::tree(".gemini/agents", &[".md"], Form::Markdown, Nowhere),
    ProjectFile::tree(".gemini/skills", &[".md"], Form::Markdown, Nowhere),
    ProjectFile::tree(".gemini/hooks", &[""], Form::Script, Nowhere),
    ProjectFile::file(".gemini/sandbox.bashrc", Form::Opaque, Nowhere),
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
