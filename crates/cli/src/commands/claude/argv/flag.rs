//! What is known of a flag of the `claude` program.

use agentwire_dialects::program;
use agentwire_dialects::program::ClaudeFlags;
use agentwire_protocol::AgentType;

/// A flag of the `claude` program, and what becomes of it with each agent.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Every spelling, in the order in which the program writes them.
    pub(crate) names: &'static [&'static str],
    pub(crate) takes: Takes,
    pub(crate) group: Group,
    pub(crate) fates: Fates,
    /// Values that ask for nothing of an agent that is not Claude, so that it need not take them.
    pub(crate) vain: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// The value of a flag, by the name it has in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// `<value>`: the next word, whatever it is.
    One(&'static str),
    /// `<value>`, one of these.
    Choice(&'static str, &'static [&'static str]),
    /// `[value]`: the next word unless it looks like a flag.
    Maybe(&'static str),
    /// `<value...>`: the next word, and those after it that do not look like flags.
    Many(&'static str),
}

/// Where the help shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Session,
    Model,
    Prompt,
    Permissions,
    Extensions,
    Settings,
    Wire,
    Screen,
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The gateway understands it and sees to it.
    Honoured,
    /// The agent's program gets it as it is.
    Forwarded,
    /// It changes nothing for this agent.
    Dropped,
    /// This agent cannot do it.
    Refused,
}

/// The fate of a flag, by how an agent takes the flags of `claude`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fates {
    all: Fate,
    some: Fate,
    none: Fate,
}

impl Fates {
    pub(super) const HONOURED: Self = Self::of(Fate::Honoured, Fate::Honoured, Fate::Honoured);
    /// Only those that speak as Claude does have it, and the gateway knows it.
    pub(super) const CLAUDE: Self = Self::of(Fate::Honoured, Fate::Honoured, Fate::Refused);
    /// Only those that speak as Claude does have it.
    pub(crate) const NATIVE: Self = Self::of(Fate::Forwarded, Fate::Forwarded, Fate::Refused);
    /// Only the real program can do it.
    pub(super) const REAL: Self = Self::of(Fate::Forwarded, Fate::Refused, Fate::Refused);
    /// Claude takes it; elsewhere there is nothing that it could change.
    pub(super) const TRIFLE: Self = Self::of(Fate::Forwarded, Fate::Forwarded, Fate::Dropped);
    /// Claude takes it; for the others the gateway sees to it.
    pub(super) const SHARED: Self = Self::of(Fate::Forwarded, Fate::Forwarded, Fate::Honoured);
    pub(super) const NOWHERE: Self = Self::of(Fate::Refused, Fate::Refused, Fate::Refused);

    const fn of(all: Fate, some: Fate, none: Fate) -> Self {
        Self { all, some, none }
    }

    /// Another fate with agents that have flags of their own.
    pub(super) const fn others(self, none: Fate) -> Self {
        Self { none, ..self }
    }

    pub(crate) fn with(&self, agent: AgentType) -> Fate {
        match program(agent).claude_flags {
            ClaudeFlags::All => self.all,
            ClaudeFlags::Some => self.some,
            ClaudeFlags::None => self.none,
        }
    }

    /// Whether no agent has it under agentwire.
    pub(super) fn nowhere(&self) -> bool {
        [self.all, self.some, self.none].iter().all(|fate| *fate == Fate::Refused)
    }
}

impl Flag {
    /// The name by which the code knows it.
    pub(crate) fn name(&self) -> &'static str {
        let long = self.names.iter().find(|name| name.starts_with("--"));
        long.or(self.names.first()).copied().unwrap_or_default()
    }

    /// All of it, as the program's messages have it: `-n, --name <name>`
    pub(crate) fn spelled(&self) -> String {
        let names = self.names.join(", ");
        match self.takes {
            Takes::Nothing => names,
            Takes::One(value) | Takes::Choice(value, _) => format!("{names} <{value}>"),
            Takes::Maybe(value) => format!("{names} [{value}]"),
            Takes::Many(value) => format!("{names} <{value}...>"),
        }
    }

    pub(super) const fn vain(self, vain: &'static [&'static str]) -> Self {
        Self { vain, ..self }
    }
}

pub(crate) const fn flag(
    names: &'static [&'static str],
    takes: Takes,
    group: Group,
    fates: Fates,
    help: &'static str,
) -> Flag {
    Flag { names, takes, group, fates, vain: &[], help }
}

impl Group {
    pub(super) const ALL: [Self; 8] = [
        Self::Session,
        Self::Model,
        Self::Prompt,
        Self::Permissions,
        Self::Extensions,
        Self::Settings,
        Self::Wire,
        Self::Screen,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Session => "Session",
            Self::Model => "Model and limits",
            Self::Prompt => "System prompt and answer",
            Self::Permissions => "Permissions and tools",
            Self::Extensions => "MCP servers, agents, plugins",
            Self::Settings => "Settings",
            Self::Wire => "Input, output, diagnosis",
            Self::Screen => "Not here",
        }
    }
}

impl Fate {
    #[cfg(test)]
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Honoured => "honoured",
            Self::Forwarded => "forwarded",
            Self::Dropped => "dropped",
            Self::Refused => "refused",
        }
    }
}
