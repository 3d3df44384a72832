//! What each agent's tools are, and where their input says what they touch. docs/policy.md shows
//! these tables; a test compares them.

use agentwire_protocol::AgentType;
use agentwire_protocol::event::ToolKind;

/// What a tool does, as far as the policy cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reads a file or a directory.
    Read,
    /// Looks for something in files.
    Search,
    /// Changes files.
    Edit,
    /// Deletes files.
    Delete,
    /// Moves files.
    Move,
    /// Runs a command.
    Shell,
    /// Reads from a network.
    Network,
    /// Thinks, plans, keeps a list, or looks at what the agent itself has running.
    Think,
    /// Starts or speaks to a subagent.
    Agent,
    /// Asks the user.
    Question,
    /// A tool of an MCP server.
    Mcp,
    /// Changes the agent's mode.
    Mode,
    /// Anything else; counts as dangerous.
    Unknown,
}

impl Class {
    /// The word for it.
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

const fn tool(name: &'static str, class: Class, shows: Shows) -> Tool {
    Tool { name, class, shows }
}

const CLAUDE: &[Tool] = &[
    tool("Read", Class::Read, Shows::Path("file_path")),
    tool("NotebookRead", Class::Read, Shows::Path("notebook_path")),
    tool("LS", Class::Read, Shows::PathOrHere("path")),
    tool("Grep", Class::Search, Shows::PathOrHere("path")),
    tool("Glob", Class::Search, Shows::PathAndPattern("path", "pattern")),
    tool("LSP", Class::Search, Shows::Path("filePath")),
    tool("Edit", Class::Edit, Shows::Path("file_path")),
    tool("MultiEdit", Class::Edit, Shows::Path("file_path")),
    tool("Write", Class::Edit, Shows::Path("file_path")),
    tool("NotebookEdit", Class::Edit, Shows::Path("notebook_path")),
    tool("Bash", Class::Shell, Shows::Command("command")),
    tool("Monitor", Class::Shell, Shows::Unclear),
    tool("PowerShell", Class::Shell, Shows::Unclear),
    tool("WebFetch", Class::Network, Shows::Address("url")),
    tool("WebSearch", Class::Network, Shows::Unclear),
    tool("TodoWrite", Class::Think, Shows::Nothing),
    tool("TodoRead", Class::Think, Shows::Nothing),
    tool("TaskCreate", Class::Think, Shows::Nothing),
    tool("TaskUpdate", Class::Think, Shows::Nothing),
    tool("TaskGet", Class::Think, Shows::Nothing),
    tool("TaskList", Class::Think, Shows::Nothing),
    tool("TaskOutput", Class::Think, Shows::Nothing),
    tool("BashOutput", Class::Think, Shows::Nothing),
    tool("ToolSearch", Class::Think, Shows::Nothing),
    tool("StructuredOutput", Class::Think, Shows::Nothing),
    tool("Agent", Class::Agent, Shows::Nothing),
    tool("Task", Class::Agent, Shows::Nothing),
    tool("SendMessage", Class::Agent, Shows::Nothing),
    tool("TaskStop", Class::Agent, Shows::Nothing),
    tool("AskUserQuestion", Class::Question, Shows::Nothing),
    tool("EnterPlanMode", Class::Mode, Shows::Nothing),
    tool("ExitPlanMode", Class::Mode, Shows::Nothing),
    tool("EnterWorktree", Class::Mode, Shows::Nothing),
    tool("ExitWorktree", Class::Mode, Shows::Nothing),
    tool("ListMcpResourcesTool", Class::Mcp, Shows::Unclear),
    tool("ReadMcpResourceTool", Class::Mcp, Shows::Unclear),
    tool("KillShell", Class::Unknown, Shows::Unclear),
    tool("KillBash", Class::Unknown, Shows::Unclear),
];

const CODEX: &[Tool] = &[
    tool("command_execution", Class::Shell, Shows::Command("command")),
    tool("file_change", Class::Edit, Shows::Changes("changes")),
    tool("image_view", Class::Read, Shows::Path("path")),
    tool("web_search", Class::Network, Shows::Unclear),
    tool("request_permissions", Class::Unknown, Shows::Unclear),
];

const GEMINI: &[Tool] = &[
    tool("read_file", Class::Read, Shows::Guess),
    tool("read_many_files", Class::Read, Shows::Unclear),
    tool("list_directory", Class::Read, Shows::Guess),
    tool("grep_search", Class::Search, Shows::Guess),
    tool("search_file_content", Class::Search, Shows::Guess),
    tool("glob", Class::Search, Shows::Unclear),
    tool("write_file", Class::Edit, Shows::Guess),
    tool("replace", Class::Edit, Shows::Guess),
    tool("run_shell_command", Class::Shell, Shows::Command("command")),
    tool("web_fetch", Class::Network, Shows::Unclear),
    tool("google_web_search", Class::Network, Shows::Unclear),
    tool("write_todos", Class::Think, Shows::Nothing),
    tool("update_topic", Class::Think, Shows::Nothing),
    tool("read_background_output", Class::Think, Shows::Nothing),
    tool("invoke_agent", Class::Agent, Shows::Nothing),
    tool("ask_user", Class::Question, Shows::Nothing),
    tool("enter_plan_mode", Class::Mode, Shows::Nothing),
    tool("exit_plan_mode", Class::Mode, Shows::Nothing),
    // Writes to a file that every later session reads.
    tool("save_memory", Class::Unknown, Shows::Unclear),
];

/// The tools of an agent that are known by name.
pub fn tools(agent: AgentType) -> &'static [Tool] {
    match agent {
        AgentType::Claude | AgentType::Demo => CLAUDE,
        AgentType::Codex => CODEX,
        AgentType::Gemini => GEMINI,
        AgentType::Acp => &[],
    }
}

/// The tool of that name.
pub(super) fn find(agent: AgentType, name: &str) -> Option<&'static Tool> {
    tools(agent).iter().find(|tool| tool.name == name)
}

/// Where a tool that is known only by its kind says what it touches.
pub(super) fn shows_by_class(agent: AgentType, class: Class) -> Shows {
    match (agent, class) {
        (_, Class::Think | Class::Agent | Class::Question | Class::Mode) => Shows::Nothing,
        (AgentType::Acp, Class::Shell) => Shows::Command("command"),
        (
            AgentType::Gemini | AgentType::Acp,
            Class::Read | Class::Search | Class::Edit | Class::Delete,
        ) => Shows::Guess,
        _ => Shows::Unclear,
    }
}

/// Names that stand for a class of tools in the rules of every agent.
pub(super) fn unified(name: &str) -> Option<Class> {
    find(AgentType::Claude, name).map(|tool| tool.class)
}

/// What of a path no mode lets an agent change unasked: by these files, programs of the user run
/// other programs, or agents change what they may do. A name that ends in `*` is a beginning.
pub const PROTECTED: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "HEAD",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".agents",
    ".cursor",
    ".agentwire",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".husky",
    ".cargo",
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    ".pre-commit-config.yaml",
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config",
    ".local",
    ".env*",
    ".netrc",
    ".npmrc",
    ".yarnrc*",
    ".pnpmfile.cjs",
    ".pypirc",
    ".tool-versions",
    "mise.toml",
    ".mise*",
    ".profile",
    ".login",
    ".logout",
    ".inputrc",
    ".bash*",
    ".zsh*",
    ".zprofile",
    ".zlog*",
    ".cshrc",
    ".tcshrc",
    ".kshrc",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".tmux.conf",
    ".ripgreprc",
    ".gdbinit",
    ".lldbinit",
];
