//! What a tool call is, and what it would touch. A dialect describes; only the session judges.
//!
//! Each agent's folder has a `describe.rs` with its table of tools and the code that reads their input. A
//! call that no code reads has an unknown class and touches unknown things, so a dialect that describes
//! nothing allows nothing.

mod by_name;
mod read;
mod tools;

use std::borrow::Cow;

use agentwire_protocol::Json;
use agentwire_protocol::event::ToolKind;

pub(crate) use by_name::{
    by_name, file_address, has_scheme, shell_command, shown, touched, unsure,
};
pub(crate) use read::{Fields, TEXT, fields, is_one, value};
pub use read::{INPUT_LIMIT, is_plain, is_text};
use tools::find;
pub use tools::{AgentTools, Tool, TouchSource, common_class};
pub(crate) use tools::{shows_by_class, tool};

use crate::permission_updates::{PermissionRule, PermissionUpdate};
use crate::programs;

/// The files by which agents change their own permissions, as path prefixes or whole names.
pub fn own_files() -> impl Iterator<Item = &'static str> {
    programs().iter().flat_map(|program| program.protected).copied()
}

/// The rules that a request suggests to add: for that tool, each with what it says about a call, or for
/// every call.
pub fn suggestion(tool: &str, contents: Vec<Option<String>>) -> Json<'static> {
    let rule = |rule_content| PermissionRule { tool_name: tool.to_owned(), rule_content };
    PermissionUpdate::allowing(contents.into_iter().map(rule).collect())
}

/// What a tool does, as far as the judge cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    Read,
    Search,
    Edit,
    Delete,
    Move,
    Shell,
    Network,
    /// Thinks, plans, maintains a list, or looks at what the agent itself is running.
    Think,
    /// Starts or messages a subagent.
    Agent,
    Question,
    Mcp,
    Mode,
    /// Anything else; treated as dangerous.
    #[default]
    Unknown,
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Shell => "shell",
            Self::Network => "network",
            Self::Think => "think",
            Self::Agent => "agent",
            Self::Question => "question",
            Self::Mcp => "mcp",
            Self::Mode => "mode",
            Self::Unknown => "unknown",
        }
    }

    /// The class of a tool of which only the kind is known.
    pub fn of_kind(kind: ToolKind) -> Self {
        match kind {
            ToolKind::Read => Self::Read,
            ToolKind::Edit => Self::Edit,
            ToolKind::Delete => Self::Delete,
            ToolKind::Move => Self::Move,
            ToolKind::Search => Self::Search,
            ToolKind::Execute => Self::Shell,
            ToolKind::Fetch => Self::Network,
            ToolKind::Think => Self::Think,
            ToolKind::Agent => Self::Agent,
            ToolKind::Question => Self::Question,
            ToolKind::Mcp => Self::Mcp,
            ToolKind::SwitchMode => Self::Mode,
            ToolKind::Other => Self::Unknown,
        }
    }
}

/// What a call would touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Touches {
    /// Nothing that matters to the judge.
    Nothing,
    /// Not known with certainty.
    #[default]
    Unclear,
    /// At least one file.
    Files {
        /// The paths as the call writes them.
        paths: Vec<String>,
        /// There are no others, and the paths do not contradict each other.
        are_all: bool,
    },
    Command(ShellCommand),
    Host(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    pub text: String,
    pub form: CommandForm,
    /// Where it runs; `None` means the working directory.
    pub directory: Option<String>,
}

/// How the text of a command becomes a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandForm {
    Shell,
    /// A shell reads it; if it starts another shell with a text, that text is the command.
    Started,
    /// These words are run as they are, or joined for a shell.
    Words(Vec<String>),
    /// It is only a display text, or something next to it may change what it does.
    Unsure,
}

/// What the agent has said about a call, on any wire: the input of a description.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallFacts<'a> {
    /// The tool's name in the request or the call.
    pub tool_name: Option<&'a str>,
    /// The name is only a title, which the model may have written: it allows nothing.
    pub is_title: bool,
    pub call_id: Option<&'a str>,
    /// The kind that the started call reported.
    pub kind: Option<ToolKind>,
    pub input: Option<&'a Json<'a>>,
    pub title: Option<&'a str>,
    pub server: Option<&'a str>,
    /// The path that made the agent ask.
    pub blocked_path: Option<&'a str>,
    /// The agent itself warns about the call.
    pub warns: bool,
    /// The agent may have left its directory: a shell command ran that could have changed it.
    pub moved: bool,
    /// Where the agent is, if it says so.
    pub directory: Option<&'a str>,
}

/// A call as its dialect describes it. Only a dialect can create one.
///
/// ```compile_fail
/// use agentwire_dialects::describe::{CallFacts, Description};
/// let described = Description::of(&CallFacts::default(), &[], |_| Default::default());
/// ```
#[derive(Clone, Debug)]
pub struct Description<'a> {
    pub class: Class,
    /// The classes that it may have: a rule that denies one of them denies the call.
    pub suspects: Vec<Class>,
    pub touches: Touches,
    /// The name pattern of a search.
    pub pattern: Option<String>,
    /// The agent's own name for the tool, if it is certain.
    pub name: Option<Cow<'a, str>>,
    /// Any name for it, perhaps someone else's. A deny rule may match it; an allow rule may not.
    pub called: Option<Cow<'a, str>>,
    /// The server of an MCP tool and the tool's own name, as far as they are known.
    pub mcp: Option<(Cow<'a, str>, Cow<'a, str>)>,
    pub input: Option<Json<'a>>,
    /// The path that made the agent ask.
    pub blocked_path: Option<Cow<'a, str>>,
    /// The agent itself warns about the call.
    pub warns: bool,
    /// The agent may have left its directory.
    pub moved: bool,
    /// Where the agent is, if it says so.
    pub directory: Option<Cow<'a, str>>,
    others: Vec<Description<'static>>,
}

/// What a dialect sees in a call. The default is the most dangerous.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTraits {
    pub(crate) class: Class,
    /// The classes that it may have.
    pub(crate) suspects: Vec<Class>,
    pub(crate) touches: Touches,
    /// The name pattern of a search.
    pub(crate) pattern: Option<String>,
    /// The name is the agent's own for the tool.
    pub(crate) is_named: bool,
}

impl<'a> Description<'a> {
    /// Describes a call by what a dialect sees in it; `call_traits` gets the tool with that name.
    pub(crate) fn of(
        facts: &CallFacts<'a>,
        known: &'static [Tool],
        call_traits: impl FnOnce(Option<&'static Tool>) -> CallTraits,
    ) -> Self {
        let called = facts.tool_name.filter(|name| !name.is_empty());
        let server = facts.server.filter(|server| !server.is_empty());
        let tool = called.and_then(|name| find(known, name));
        // A server can give its tool any name, so this check comes before the table.
        let full = called.and_then(|name| name.strip_prefix("mcp__")?.split_once("__"));
        let is_served = server.is_some() || full.is_some() || facts.kind == Some(ToolKind::Mcp);
        let (traits, is_other) = if is_served {
            let class = Class::Mcp;
            let traits = CallTraits {
                class,
                suspects: vec![class],
                is_named: tool.is_none(),
                ..CallTraits::default()
            };
            (traits, false)
        } else {
            let tool = tool.filter(|_| !facts.is_title);
            let traits = call_traits(tool);
            // A call that does not match its name is not allowed by a rule for that name.
            let is_other = tool.is_some_and(|tool| {
                traits.class != tool.class
                    && (traits.class == Class::Unknown || tool.class == Class::Network)
            });
            (traits, is_other)
        };
        let mcp = full.or_else(|| server.zip(called)).filter(|_| is_served);
        let is_named = traits.is_named && !facts.is_title && !is_other;
        let CallTraits { class, suspects, touches, pattern, .. } = traits;
        Self {
            class,
            suspects,
            touches,
            pattern,
            name: called.filter(|_| is_named).map(Cow::Borrowed),
            called: called.map(Cow::Borrowed),
            mcp: mcp.map(|(server, tool)| (Cow::Borrowed(server), Cow::Borrowed(tool))),
            input: facts.input.map(|input| Json::trusted(input.get())),
            blocked_path: facts.blocked_path.map(Cow::Borrowed),
            warns: facts.warns,
            moved: facts.moved,
            directory: facts.directory.map(Cow::Borrowed),
            others: Vec::new(),
        }
    }

    /// Adds what the same call claimed elsewhere that it does.
    pub(crate) fn contradicted(self, others: Vec<Description<'static>>) -> Self {
        Self { others, ..self }
    }

    /// What the same call claimed elsewhere that it does. If there are any, it is not known which of them
    /// runs.
    pub fn others(&self) -> &[Description<'static>] {
        &self.others
    }

    pub(crate) fn into_owned(self) -> Description<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Description {
            name: self.name.map(own),
            called: self.called.map(own),
            mcp: self.mcp.map(|(server, tool)| (own(server), own(tool))),
            input: self.input.map(Json::into_owned),
            blocked_path: self.blocked_path.map(own),
            class: self.class,
            suspects: self.suspects,
            touches: self.touches,
            pattern: self.pattern,
            warns: self.warns,
            moved: self.moved,
            directory: self.directory.map(own),
            others: self.others,
        }
    }
}
