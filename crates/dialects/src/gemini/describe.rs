//! What Gemini's tools are. Over ACP it reports no arguments, so what a call touches is read from what it
//! shows. docs/policy.md shows the table; a test compares them.

use crate::acp;
use crate::describe::{AgentTools, CallFacts, Class, Description, Fields, Tool, TouchSource, tool};

pub(crate) const TOOLS: AgentTools = AgentTools { known: KNOWN, describe, ..acp::TOOLS };

const KNOWN: &[Tool] = &[
    tool("read_file", Class::Read, TouchSource::Guess),
    tool("read_many_files", Class::Read, TouchSource::Unclear),
    tool("list_directory", Class::Read, TouchSource::Guess),
    tool("grep_search", Class::Search, TouchSource::Guess),
    tool("search_file_content", Class::Search, TouchSource::Guess),
    tool("glob", Class::Search, TouchSource::Unclear),
    tool("write_file", Class::Edit, TouchSource::Guess),
    tool("replace", Class::Edit, TouchSource::Guess),
    tool("run_shell_command", Class::Shell, TouchSource::Command("command")),
    tool("web_fetch", Class::Network, TouchSource::Unclear),
    tool("google_web_search", Class::Network, TouchSource::Unclear),
    tool("write_todos", Class::Think, TouchSource::Nothing),
    tool("update_topic", Class::Think, TouchSource::Nothing),
    tool("read_background_output", Class::Think, TouchSource::Nothing),
    tool("invoke_agent", Class::Agent, TouchSource::Nothing),
    tool("ask_user", Class::Question, TouchSource::Nothing),
    tool("enter_plan_mode", Class::Mode, TouchSource::Nothing),
    tool("exit_plan_mode", Class::Mode, TouchSource::Nothing),
    // Writes to a file that every later session reads.
    tool("save_memory", Class::Unknown, TouchSource::Unclear),
];

fn describe<'a>(facts: &CallFacts<'a>) -> Description<'a> {
    Description::of(facts, KNOWN, |tool| acp::call_traits(facts, tool, directory))
}

/// Gemini's title is the whole command, and its description starts with the directory that it runs in
/// (fixture real-shell-allow-once).
fn directory(call: &Fields) -> Option<String> {
    let first = call.get("content")?.as_array()?.first()?;
    let text = first.get("content")?.get("text")?.as_str()?;
    let (directory, _) = text.strip_prefix("[current working directory ")?.split_once(']')?;
    Some(directory.to_owned())
}
