//! Claude's tools, and where their input says what they touch. docs/policy.md shows the table; a test
//! compares the two.

use agentwire_protocol::ApprovalMode;

use crate::describe::{
    AgentTools, CallFacts, Class, Description, Seen, Shows, Tool, by_name, fields, tool, touched,
};

pub(crate) const TOOLS: AgentTools =
    AgentTools { known: KNOWN, leaves_sandbox: false, shell_moves: true, describe, own_mode };

const KNOWN: &[Tool] = &[
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

fn describe<'a>(facts: &CallFacts<'a>) -> Description<'a> {
    Description::of(facts, KNOWN, |tool| {
        let seen = by_name(facts, tool, touched);
        let reaches = |class: &Class| matches!(class, Class::Search | Class::Delete | Class::Move);
        let pattern = || {
            // Grep's own `pattern` matches text, not paths.
            let is_grep = tool.is_some_and(|tool| tool.name == "Grep");
            let field = if is_grep { "glob" } else { "pattern" };
            Some(fields(facts.input)?.get(field)?.as_str()?.to_owned())
        };
        let pattern = seen.suspects.iter().any(reaches).then(pattern).flatten();
        Seen { pattern, ..seen }
    })
}

fn own_mode(mode: &str) -> ApprovalMode {
    match mode {
        "acceptEdits" => ApprovalMode::AutoEdit,
        "bypassPermissions" => ApprovalMode::AutoAll,
        _ => ApprovalMode::Ask,
    }
}
