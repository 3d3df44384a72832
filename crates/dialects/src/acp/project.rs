//! The files of a project that make an ACP agent run something. Gemini's are known. Which ones another
//! agent reads is not, so those of all known agents count: ACP agents are often built on these.

use agentwire_protocol::AgentType;

use crate::project::ProjectFile;
use crate::{claude, codex, gemini};

pub(super) fn files(agent: AgentType) -> Vec<ProjectFile> {
    if agent == AgentType::Gemini {
        return gemini::project::FILES.to_vec();
    }
    let mut files = claude::project::PROJECT.to_vec();
    files.push(claude::project::LOCAL);
    files.extend(codex::project::FILES);
    // Only Gemini takes its own settings from `.env`.
    files.extend(gemini::project::FILES.into_iter().filter(|file| file.path != ".env"));
    files
}
