//! The files of a project that make Gemini CLI run something.

use crate::agent::Launch;
use crate::project::Above::{Everywhere, Nowhere};
use crate::project::{Form, ProjectFile};

/// The variable that says whether the workspace is trusted. It wins over the program's own list.
const TRUST: &str = "GEMINI_CLI_TRUST_WORKSPACE";

/// Read where the workspace is trusted. Of `.env` the variables of its login are read otherwise too.
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

/// Says whether the workspace is trusted. The program's own question is never asked: the gateway has.
pub(crate) fn trust(trust: Option<bool>, launch: &mut Launch) {
    if trust != Some(false) {
        launch.words(&["--skip-trust"]);
    }
    // The flag alone comes too late for the settings, which are read before it (0.61.0).
    if let Some(trust) = trust {
        launch.env.insert(TRUST.to_owned(), trust.to_string());
    }
}
