//! What Gemini's tools are. Over ACP it reports no arguments, so what a call touches is read from what it
//! shows. docs/policy.md shows the table; a test compares them.

use crate::acp;
use crate::describe::{AgentTools, CallFacts, Class, Description, Fields, Shows, Tool, tool};

pub(crate) const TOOLS: AgentTools = AgentTools { known: KNOWN, describe, ..acp::TOOLS };

const KNOWN: &[Tool] = &[
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

fn describe<'a>(facts: &CallFacts<'a>) -> Description<'a> {
    Description::of(facts, KNOWN, |tool| acp::look(facts, tool, directory))
}

/// Gemini's title is the whole command, and its description starts with the directory that it runs in
/// (fixture real-shell-allow-once).
fn directory(call: &Fields) -> Option<String> {
    let first = call.get("content")?.as_array()?.first()?;
    let text = first.get("content")?.get("text")?.as_str()?;
    let (directory, _) = text.strip_prefix("[current working directory ")?.split_once(']')?;
    Some(directory.to_owned())
}
