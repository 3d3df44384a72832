//! Whether a project's own files may make an agent run something. They are trusted as they are: path and
//! content. A file that changes or appears must be trusted again.

mod ledger;
mod nested;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use agentwire_protocol::SessionConfig;

pub use ledger::{Entry, Ledger};
pub(crate) use survey::{Found, Survey, survey};

/// The digests of files, by path.
pub type Snapshot = BTreeMap<String, String>;

/// What the operator's settings say of projects that nobody trusts yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustPolicy {
    /// Somebody is asked.
    #[default]
    Ask,
    /// All are trusted.
    Always,
    /// None is trusted.
    Never,
}

/// What a start says of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing: somebody is asked.
    Ask,
    /// It is trusted, and that is remembered.
    Trust,
    /// It is trusted this time.
    TrustOnce,
    /// It is not trusted.
    Distrust,
}

impl Wish {
    /// What the options of a start say. Those that a session was started with before do not count: the
    /// files may have changed since.
    pub(crate) fn of(given: &SessionConfig, policy: TrustPolicy) -> Self {
        let sources = given.setting_sources.iter().flatten();
        // Only the operator can name them, and these say to read the project's settings.
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

/// Whether everything in `found` was trusted as it is. What is gone since is no matter.
fn covers(trusted: &Snapshot, found: &Snapshot) -> bool {
    found.iter().all(|(path, digest)| trusted.get(path) == Some(digest))
}
