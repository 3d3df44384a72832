//! What `--help` says.

use std::fmt::Write as _;

use agentwire_protocol::AgentType;

use super::flag::{Fate, Group};
use super::table::FLAGS;

const INTRODUCTION: &str = "\
Usage: agentwire claude [options] [prompt]

Takes the arguments of the claude program and speaks its stream-json on stdin and stdout, but any
agent may answer. Give it to the Agent SDKs as their executable (Python: cli_path, TypeScript:
pathToClaudeCodeExecutable), or call it by the name claude.
";

const CHOOSING: &str = "\
Choose the agent with AGENTWIRE_AGENT=claude|codex|gemini|acp|demo or `agent` in the configuration;
else it is the first of claude, codex, gemini that is installed, else demo.
";

pub(super) fn text(agent: AgentType) -> String {
    let name = agent.as_str();
    let mut help = format!("{INTRODUCTION}\nIt drives {name} now. {CHOOSING}");
    for group in Group::ALL.into_iter().filter(|group| *group != Group::Screen) {
        let _ = write!(help, "\n{}:\n", group.title());
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            let note = match flag.fates.with(agent) {
                Fate::Honoured | Fate::Forwarded => String::new(),
                Fate::Dropped => format!(" (changes nothing with {name})"),
                Fate::Refused => format!(" (not with {name})"),
            };
            let _ = writeln!(help, "  {:<45} {}{note}", flag.spelled(), flag.help);
        }
    }
    let absent = FLAGS.iter().filter(|flag| flag.group == Group::Screen).map(|flag| flag.name());
    let absent = absent.collect::<Vec<_>>().join(" ");
    let _ = write!(
        help,
        "\nThere is no screen and no background here: {absent}\nare refused, and so are the program's \
         commands (claude mcp, claude update, …).\n"
    );
    help
}
