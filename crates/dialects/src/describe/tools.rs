//! What a dialect knows about its agent's tools: everything that the judge needs to know about an agent.

use agentwire_protocol::{ApprovalMode, SessionConfig};

use super::{CallFacts, CallTraits, Class, Description};

/// Where a tool's input says what it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchSource {
    /// Nothing that matters to the judge.
    Nothing,
    /// Not known, or not reliable.
    Unclear,
    Path(&'static str),
    /// The path is in this field; without it, the working directory.
    PathOrHere(&'static str),
    /// As `PathOrHere`; the second field is a path pattern, which must not lead outside.
    PathAndPattern(&'static str, &'static str),
    /// A list of changes in this field, each with its `path` and `kind`.
    Changes(&'static str),
    /// The shell text or the words of a command are in this field.
    Command(&'static str),
    Address(&'static str),
    /// The fields are not fixed: every path that the input names.
    Guess,
}

#[derive(Clone, Copy, Debug)]
pub struct Tool {
    pub name: &'static str,
    pub class: Class,
    pub shows: TouchSource,
}

pub(crate) const fn tool(name: &'static str, class: Class, shows: TouchSource) -> Tool {
    Tool { name, class, shows }
}

/// What a dialect knows about its agent's tools and modes.
#[derive(Clone, Copy, Debug)]
pub struct AgentTools {
    pub known: &'static [Tool],
    /// An allowed call leaves the agent's sandbox.
    pub leaves_sandbox: bool,
    /// Its shell stays in the directory where a command left it.
    pub shell_moves: bool,
    pub(crate) describe: for<'a> fn(&CallFacts<'a>) -> Description<'a>,
    pub(crate) own_mode: fn(&str) -> ApprovalMode,
}

impl AgentTools {
    /// The tools of an agent of which nothing is known.
    pub const UNKNOWN: Self = Self {
        known: &[],
        leaves_sandbox: true,
        shell_moves: true,
        describe: |facts| Description::of(facts, &[], |_| CallTraits::default()),
        own_mode: |_| ApprovalMode::Ask,
    };

    pub fn describe<'a>(&self, facts: &CallFacts<'a>) -> Description<'a> {
        (self.describe)(facts)
    }

    /// What the agent's own mode name means to the judge. If a mode approves calls, the gateway approves
    /// them and the agent asks. In any other mode the agent's own restrictions apply, and the user answers
    /// what it asks.
    pub fn own_mode(&self, mode: &str) -> ApprovalMode {
        (self.own_mode)(mode)
    }

    /// The mode that a session is judged by. The agent's own mode name takes precedence.
    pub fn mode_of(&self, config: &SessionConfig) -> ApprovalMode {
        match config.permission_mode.as_deref() {
            Some(own) => self.own_mode(own),
            None => config.approval_mode.unwrap_or_default(),
        }
    }

    pub fn find(&self, name: &str) -> Option<&'static Tool> {
        find(self.known, name)
    }
}

pub(super) fn find(known: &'static [Tool], name: &str) -> Option<&'static Tool> {
    known.iter().find(|tool| tool.name == name)
}

/// The class that a tool name stands for in the rules of every agent without such a tool.
pub fn common_class(name: &str) -> Option<Class> {
    find(crate::claude::TOOLS.known, name).map(|tool| tool.class)
}

/// Where a tool that is known only by its kind says what it touches.
pub(crate) fn shows_by_class(class: Class) -> TouchSource {
    match class {
        Class::Think | Class::Agent | Class::Question | Class::Mode => TouchSource::Nothing,
        Class::Read
        | Class::Search
        | Class::Edit
        | Class::Delete
        | Class::Move
        | Class::Shell
        | Class::Network
        | Class::Mcp
        | Class::Unknown => TouchSource::Unclear,
    }
}
