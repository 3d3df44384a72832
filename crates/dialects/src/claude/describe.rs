//! Claude's tools, and where their input says what they touch. docs/policy.md shows the table; a test
//! compares the two.

use agentwire_protocol::ApprovalMode;

use crate::describe::{
    AgentTools, CallFacts, CallTraits, Class, Description, Tool, TouchSource, by_name, fields,
    tool, touched,
};

pub(crate) const TOOLS: AgentTools =
    AgentTools { known: KNOWN, leaves_sandbox: false, shell_moves: true, describe, own_mode };

const KNOWN: &[Tool] = &[
    tool("Read", Class::Read, TouchSource::Path("file_path")),
    tool("NotebookRead", Class::Read, TouchSource::Path("notebook_path")),
    tool("LS", Class::Read, TouchSource::PathOrHere("path")),
    tool("Grep", Class::Search, TouchSource::PathOrHere("path")),
    tool("Glob", Class::Search, TouchSource::PathAndPattern("path", "pattern")),
    tool("LSP", Class::Search, TouchSource::Path("filePath")),
    tool("Edit", Class::Edit, TouchSource::Path("file_path")),
    tool("MultiEdit", Class::Edit, TouchSource::Path("file_path")),
    tool("Write", Class::Edit, TouchSource::Path("file_path")),
    tool("NotebookEdit", Class::Edit, TouchSource::Path("notebook_path")),
    tool("Bash", Class::Shell, TouchSource::Command("command")),
    tool("Monitor", Class::Shell, TouchSource::Unclear),
    tool("PowerShell", Class::Shell, TouchSource::Unclear),
    tool("WebFetch", Class::Network, TouchSource::Address("url")),
    tool("WebSearch", Class::Network, TouchSource::Unclear),
    tool("TodoWrite", Class::Think, TouchSource::Nothing),
    tool("TodoRead", Class::Think, TouchSource::Nothing),
    tool("TaskCreate", Class::Think, TouchSource::Nothing),
    tool("TaskUpdate", Class::Think, TouchSource::Nothing),
    tool("TaskGet", Class::Think, TouchSource::Nothing),
    tool("TaskList", Class::Think, TouchSource::Nothing),
    tool("TaskOutput", Class::Think, TouchSource::Nothing),
    tool("BashOutput", Class::Think, TouchSource::Nothing),
    tool("ToolSearch", Class::Think, TouchSource::Nothing),
    tool("StructuredOutput", Class::Think, TouchSource::Nothing),
    tool("Agent", Class::Agent, TouchSource::Nothing),
    tool("Task", Class::Agent, TouchSource::Nothing),
    tool("SendMessage", Class::Agent, TouchSource::Nothing),
    tool("TaskStop", Class::Agent, TouchSource::Nothing),
    tool("AskUserQuestion", Class::Question, TouchSource::Nothing),
    tool("EnterPlanMode", Class::Mode, TouchSource::Nothing),
    tool("ExitPlanMode", Class::Mode, TouchSource::Nothing),
    tool("EnterWorktree", Class::Mode, TouchSource::Nothing),
    tool("ExitWorktree", Class::Mode, TouchSource::Nothing),
    tool("ListMcpResourcesTool", Class::Mcp, TouchSource::Unclear),
    tool("ReadMcpResourceTool", Class::Mcp, TouchSource::Unclear),
    tool("KillShell", Class::Unknown, TouchSource::Unclear),
    tool("KillBash", Class::Unknown, TouchSource::Unclear),
];

fn describe<'a>(facts: &CallFacts<'a>) -> Description<'a> {
    Description::of(facts, KNOWN, |tool| {
        let traits = by_name(facts, tool, touched);
        let reaches = |class: &Class| matches!(class, Class::Search | Class::Delete | Class::Move);
        let pattern = || {
            // Grep's own `pattern` matches text, not paths.
            let is_grep = tool.is_some_and(|tool| tool.name == "Grep");
            let field = if is_grep { "glob" } else { "pattern" };
            Some(fields(facts.input)?.get(field)?.as_str()?.to_owned())
        };
        let pattern = traits.suspects.iter().any(reaches).then(pattern).flatten();
        CallTraits { pattern, ..traits }
    })
}

fn own_mode(mode: &str) -> ApprovalMode {
    match mode {
        "acceptEdits" => ApprovalMode::AutoEdit,
        "bypassPermissions" => ApprovalMode::AutoAll,
        _ => ApprovalMode::Ask,
    }
}
