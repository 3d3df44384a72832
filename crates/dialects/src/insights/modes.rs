//! A session's permission mode, in the specification's four words.

use agentwire_protocol::{ApprovalMode, Configure, SessionConfig};

use super::wire::Failure;
use crate::agent::mode_name;
use crate::claude::render::claude_mode;

/// The permission modes in the specification.
const MODES: [&str; 4] = [DEFAULT, ACCEPT_EDITS, BYPASS, "plan"];

const DEFAULT: &str = "default";
const ACCEPT_EDITS: &str = "acceptEdits";
const BYPASS: &str = "bypassPermissions";

/// A mode as a page names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode(&'static str);

impl Mode {
    pub(super) fn read(word: &str) -> Result<Self, Failure> {
        MODES.into_iter().find(|known| *known == word).map(Self).ok_or_else(|| {
            let known = MODES.join(", ");
            Failure::invalid(format!("unknown permission mode {word}; expected one of {known}"))
        })
    }

    /// The mode for any agent's own name; `None` if pages have no word for it.
    fn heard(word: &str) -> Option<Self> {
        let word = claude_mode(word)?;
        MODES.contains(&word).then_some(Self(word))
    }

    pub(super) fn as_str(self) -> &'static str {
        self.0
    }

    /// Uses the agent's own mode where it has one. The gateway itself implements "ask for everything" and
    /// "allow everything": they work with every agent and can change at any time.
    fn ask(self) -> (Option<ApprovalMode>, Option<String>) {
        match self.0 {
            DEFAULT => (Some(ApprovalMode::Ask), None),
            BYPASS => (Some(ApprovalMode::AutoAll), None),
            own => (None, Some(own.to_owned())),
        }
    }

    pub(super) fn configure(self) -> Configure {
        let (approval_mode, permission_mode) = self.ask();
        Configure { approval_mode, permission_mode, ..Configure::default() }
    }

    pub(super) fn start(self, config: &mut SessionConfig) {
        (config.approval_mode, config.permission_mode) = self.ask();
    }
}

/// The mode that the page knows, and the changes that it waits for.
#[derive(Debug, Default)]
pub(super) struct Modes {
    told: Option<Mode>,
    asked: Vec<Mode>,
}

impl Modes {
    /// The page knows the mode because it asked for it.
    pub(super) fn begin(&mut self, mode: Mode) {
        self.told = Some(mode);
    }

    /// The mode that the agent starts with is not a change.
    pub(super) fn update_info(&mut self, word: &str) {
        self.told = self.told.or(Mode::heard(word));
    }

    pub(super) fn ask(&mut self, mode: Mode) {
        self.asked.push(mode);
    }

    pub(super) fn answered(&mut self, mode: Mode, is_taken: bool) {
        if let Some(at) = self.asked.iter().position(|asked| *asked == mode) {
            self.asked.remove(at);
        }
        if is_taken {
            self.told = Some(mode);
        }
    }

    /// The agent reports its mode; `ours` is the gateway's mode, if that was requested. Returns the mode to
    /// report to the page: a change that the page asked for is reported by its reply.
    pub(super) fn heard(&mut self, word: &str, ours: Option<ApprovalMode>) -> Option<Mode> {
        let mode = ours.map(|mode| Mode(mode_name(mode))).or_else(|| Mode::heard(word))?;
        let fits = |known: &Mode| mode == *known || (ours.is_none() && is_under(mode, *known));
        if self.asked.iter().any(fits) || self.told.as_ref().is_some_and(fits) {
            return None;
        }
        self.told = Some(mode);
        Some(mode)
    }
}

/// Where the gateway allows everything, the agent only needs to stop asking about edits.
fn is_under(agents: Mode, pages: Mode) -> bool {
    agents.0 == ACCEPT_EDITS && pages.0 == BYPASS
}
