//! A flag of the `claude` program, and how each agent treats it.

use agentwire_dialects::program;
use agentwire_dialects::program::ClaudeFlags;
use agentwire_protocol::AgentType;

#[derive(Debug)]
pub(crate) struct Flag {
    /// Every spelling, in the program's order.
    pub(crate) names: &'static [&'static str],
    pub(crate) takes: Takes,
    pub(crate) group: Group,
    pub(crate) fates: Fates,
    /// Values that change nothing for agents other than Claude, so they are accepted.
    pub(crate) vain: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// The value of a flag, and its name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// `<value>`: the next word, even if it looks like a flag.
    One(&'static str),
    /// `<value>`, one of these.
    Choice(&'static str, &'static [&'static str]),
    /// `[value]`: the next word unless it looks like a flag.
    Maybe(&'static str),
    /// `<value...>`: the next word, and those after it that do not look like flags.
    Many(&'static str),
}

/// The section of the help.
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

/// How a flag is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The gateway implements it.
    Honoured,
    /// The agent's program gets it unchanged.
    Forwarded,
    /// Accepted without effect.
    Dropped,
    /// Refused: this agent does not support it.
    Refused,
}

/// How a flag is treated, by how an agent takes Claude's flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fates {
    all: Fate,
    some: Fate,
    none: Fate,
}

impl Fates {
    pub(super) const HONOURED: Self = Self::of(Fate::Honoured, Fate::Honoured, Fate::Honoured);
    /// Only agents with Claude's dialect have it, and the gateway implements it.
    pub(super) const CLAUDE: Self = Self::of(Fate::Honoured, Fate::Honoured, Fate::Refused);
    /// Only agents with Claude's dialect have it.
    pub(crate) const NATIVE: Self = Self::of(Fate::Forwarded, Fate::Forwarded, Fate::Refused);
    /// Only the real program has it.
    pub(super) const REAL: Self = Self::of(Fate::Forwarded, Fate::Refused, Fate::Refused);
    /// Claude takes it; it has no effect with other agents.
    pub(super) const TRIFLE: Self = Self::of(Fate::Forwarded, Fate::Forwarded, Fate::Dropped);
    /// Claude takes it; the gateway implements it for other agents.
    pub(super) const SHARED: Self = Self::of(Fate::Forwarded, Fate::Forwarded, Fate::Honoured);
    pub(super) const NOWHERE: Self = Self::of(Fate::Refused, Fate::Refused, Fate::Refused);

    const fn of(all: Fate, some: Fate, none: Fate) -> Self {
        Self { all, some, none }
    }

    /// Other treatment for agents with their own flags.
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

    /// Whether agentwire refuses it for every agent.
    pub(super) fn nowhere(&self) -> bool {
        [self.all, self.some, self.none].iter().all(|fate| *fate == Fate::Refused)
    }
}

impl Flag {
    /// The long name, which identifies it in the code.
    pub(crate) fn name(&self) -> &'static str {
        let long = self.names.iter().find(|name| name.starts_with("--"));
        long.or(self.names.first()).copied().unwrap_or_default()
    }

    /// As in the program's messages: `-n, --name <name>`
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
