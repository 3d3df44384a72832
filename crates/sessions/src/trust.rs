//! Whether a project's own files may make an agent run something. Files are trusted by path and content: a
//! file that changes or appears must be trusted again.

mod ledger;
mod nested;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use agentwire_protocol::SessionConfig;

pub use ledger::{Ledger, TrustedDirectory};
pub(crate) use survey::{Survey, SurveyedFile, survey};

/// The digests of files, by path.
pub type Snapshot = BTreeMap<String, String>;

/// What the operator's settings say about projects that nobody trusts yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustPolicy {
    /// Ask someone.
    #[default]
    Ask,
    /// Trust all.
    Always,
    /// Trust none.
    Never,
}

/// What a start says about the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing: ask someone.
    Ask,
    /// The project is trusted, and that is remembered.
    Trust,
    /// The project is trusted this time.
    TrustOnce,
    /// The project is not trusted.
    Distrust,
}

impl Wish {
    /// What the options of a start say. Options of earlier starts of the session do not count: the files
    /// may have changed since.
    pub(crate) fn of(given: &SessionConfig, policy: TrustPolicy) -> Self {
        let sources = given.setting_sources.iter().flatten();
        // Only the operator can name sources, and these say to read the project's settings.
        let names_project = sources.into_iter().any(|name| name == "project" || name == "local");
        match (given.trust, policy) {
            (Some(true), _) => Self::Trust,
            (Some(false), _) | (None, TrustPolicy::Never) => Self::Distrust,
            (None, TrustPolicy::Always) => Self::TrustOnce,
            (None, TrustPolicy::Ask) if names_project => Self::TrustOnce,
            (None, TrustPolicy::Ask) => Self::Ask,
        }
    }
}

/// Whether everything in `found` was trusted as it is. Files that are gone since do not matter.
fn covers(trusted: &Snapshot, found: &Snapshot) -> bool {
    found.iter().all(|(path, digest)| trusted.get(path) == Some(digest))
}
