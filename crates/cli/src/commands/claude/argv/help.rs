//! The text of `agentwire claude --help` and `agentwire demo-agent --help`.

use std::fmt::Write as _;

use agentwire_dialects::programs;
use agentwire_protocol::AgentType;

use super::flag::{Fate, Flag, Group};
use super::table::FLAGS;

const INTRODUCTION: &str = "\
Usage: agentwire claude [options] [prompt]

Accepts the arguments of the claude program and speaks its stream-json on stdin and stdout, with any
agent behind it. Pass it to the Agent SDKs as their executable (Python: cli_path, TypeScript:
pathToClaudeCodeExecutable), or link it as `claude`.
";

/// What every page starts with.
fn introduction(agent: AgentType) -> String {
    let (name, names) = (agent.as_str(), AgentType::NAMES.join("|"));
    let candidates = programs().iter().filter(|known| known.is_candidate);
    let candidates: Vec<&str> = candidates.map(|known| known.agent.as_str()).collect();
    let candidates = candidates.join(", ");
    format!(
        "{INTRODUCTION}\nThe agent is {name} now. Choose another with AGENTWIRE_AGENT={names} or `agent`\n\
         in the settings. The default is the first installed of {candidates}, else demo.\n"
    )
}

pub(super) fn text(agent: AgentType) -> String {
    let mut help = introduction(agent);
    help.push_str(&flags(agent, FLAGS.iter()));
    let absent = FLAGS.iter().filter(|flag| flag.group == Group::Screen).map(|flag| flag.name());
    let absent = absent.collect::<Vec<_>>().join(" ");
    let _ = write!(
        help,
        "\nThere is no interactive, background or cloud mode here. These flags are refused, and so are \
         claude's commands\n(claude mcp, claude update, …): {absent}\n"
    );
    help
}

/// The flags that people and programs use most.
const COMMON: [&str; 13] = [
    "--print",
    "--continue",
    "--resume",
    "--model",
    "--max-turns",
    "--system-prompt",
    "--permission-mode",
    "--allowedTools",
    "--mcp-config",
    "--input-format",
    "--output-format",
    "--version",
    "--help",
];

pub(super) fn short(agent: AgentType) -> String {
    let mut help = introduction(agent);
    help.push_str("\nCommon flags:\n");
    for flag in FLAGS.iter().filter(|flag| COMMON.contains(&flag.name())) {
        row(&mut help, agent, flag);
    }
    help.push_str("\n`agentwire claude --help` lists all flags.\n");
    help
}

/// The flags that the agent takes, by group, and its `own` flags.
pub(super) fn supported(agent: AgentType, own: &'static [Flag]) -> String {
    let is_supported =
        |flag: &&Flag| matches!(flag.fates.with(agent), Fate::Honoured | Fate::Forwarded);
    flags(agent, FLAGS.iter().filter(is_supported).chain(own))
}

/// The flags by group, and which of them the agent does not support.
fn flags<'f>(agent: AgentType, flags: impl Iterator<Item = &'f Flag>) -> String {
    let flags: Vec<&Flag> = flags.collect();
    let mut help = String::new();
    for group in Group::ALL.into_iter().filter(|group| *group != Group::Screen) {
        let _ = write!(help, "\n{}:\n", group.title());
        for flag in flags.iter().filter(|flag| flag.group == group) {
            row(&mut help, agent, flag);
        }
    }
    help
}

fn row(help: &mut String, agent: AgentType, flag: &Flag) {
    let note = match flag.fates.with(agent) {
        Fate::Honoured | Fate::Forwarded => String::new(),
        Fate::Dropped => format!(" (no effect with {})", agent.as_str()),
        Fate::Refused => format!(" (not supported by {})", agent.as_str()),
    };
    let _ = writeln!(help, "  {:<45} {}{note}", flag.spelled(), flag.help);
}
