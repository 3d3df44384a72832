//! What a dialect knows of its agent's tools: all that the judge needs to know of an agent.

use agentwire_protocol::{ApprovalMode, SessionConfig};

use super::{CallFacts, Class, Description, Seen};

/// Where a tool's input says what it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Nothing that has to be known.
    Nothing,
    /// Not known where, or not to be relied on.
    Unclear,
    /// The path is in this field.
    Path(&'static str),
    /// The path is in this field, and is the working directory without it.
    PathOrHere(&'static str),
    /// As before; the second is a pattern of paths, which must not lead out.
    PathAndPattern(&'static str, &'static str),
    /// A list of changes in this field, each with its `path` and `kind`.
    Changes(&'static str),
    /// The shell text or the words of a command are in this field.
    Command(&'static str),
    /// The address is in this field.
    Address(&'static str),
    /// The fields are not fixed: every path that the input names.
    Guess,
}

/// A tool of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The agent's name of it.
    pub name: &'static str,
    /// What it does.
    pub class: Class,
    /// What it touches.
    pub shows: Shows,
}

pub(crate) const fn tool(name: &'static str, class: Class, shows: Shows) -> Tool {
    Tool { name, class, shows }
}

/// What a dialect knows of its agent's tools and modes.
#[derive(Clone, Copy, Debug)]
pub struct AgentTools {
    /// The tools that are known by name.
    pub known: &'static [Tool],
    /// A call that is allowed leaves the sandbox that the agent runs in.
    pub leaves_sandbox: bool,
    /// Its shell stays in the directory where a command has left it.
    pub shell_moves: bool,
    pub(crate) describe: for<'a> fn(&CallFacts<'a>) -> Description<'a>,
    pub(crate) own_mode: fn(&str) -> ApprovalMode,
}

impl AgentTools {
    /// Those of an agent of which nothing is known.
    pub const UNKNOWN: Self = Self {
        known: &[],
        leaves_sandbox: true,
        shell_moves: true,
        describe: |facts| Description::of(facts, &[], |_| Seen::default()),
        own_mode: |_| ApprovalMode::Ask,
    };

    /// Describes a call.
    pub fn describe<'a>(&self, facts: &CallFacts<'a>) -> Description<'a> {
        (self.describe)(facts)
    }

    /// What the agent's own name of a mode means to the judge. A mode that approves calls is the
    /// gateway's: the agent asks. In any other the agent's own restrictions hold, and what it asks about
    /// is for the user.
    pub fn own_mode(&self, mode: &str) -> ApprovalMode {
        (self.own_mode)(mode)
    }

    /// The mode that a session is judged by. The agent's own name of one wins.
    pub fn mode_of(&self, config: &SessionConfig) -> ApprovalMode {
        match config.permission_mode.as_deref() {
            Some(own) => self.own_mode(own),
            None => config.approval_mode.unwrap_or_default(),
        }
    }

    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&'static Tool> {
        find(self.known, name)
    }
}

pub(super) fn find(known: &'static [Tool], name: &str) -> Option<&'static Tool> {
    known.iter().find(|tool| tool.name == name)
}

/// The class that a name stands for in the rules of every agent that has no such tool.
pub fn common_class(name: &str) -> Option<Class> {
    find(crate::claude::TOOLS.known, name).map(|tool| tool.class)
}

/// Where a tool that is known only by its kind says what it touches.
pub(crate) fn shows_by_class(class: Class) -> Shows {
    match class {
        Class::Think | Class::Agent | Class::Question | Class::Mode => Shows::Nothing,
        Class::Read
        | Class::Search
        | Class::Edit
        | Class::Delete
        | Class::Move
        | Class::Shell
        | Class::Network
        | Class::Mcp
        | Class::Unknown => Shows::Unclear,
    }
}
