//! `run`, `attach` and `logs`.

use agentwire_dialects::programs;
use agentwire_protocol::{AgentType, ApprovalMode, Profile, SandboxMode};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{At, Choice, PROFILES, any_number, one_of, whole};

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Agent to run [default: AGENTWIRE_AGENT, else the settings, else the first installed, else
    /// demo]
    #[arg(short, long, value_parser = agents())]
    pub(crate) agent: Option<AgentType>,

    /// Working directory of the agent [default: .]
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<String>,

    /// Model
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// When to ask before a tool runs [default: the settings, else ask]
    #[arg(long, value_parser = one_of(APPROVALS), value_name = "MODE")]
    pub(crate) approval: Option<ApprovalMode>,

    /// Sandbox for the agent's commands
    #[arg(long, value_parser = one_of(SANDBOXES), value_name = "MODE")]
    pub(crate) sandbox: Option<SandboxMode>,

    /// Resume this session (id or a unique prefix)
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// How to drive the agent, if there are several ways (docs/agents.md)
    #[arg(long, hide_short_help = true)]
    pub(crate) driver: Option<String>,

    /// Maximum number of model calls per turn
    #[arg(long, value_name = "N", value_parser = turns)]
    pub(crate) max_turns: Option<u32>,

    /// Maximum cost in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_budget: Option<f64>,

    /// Allow a tool without asking, such as `Read` or `Bash(ls)` (repeatable)
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Never run this tool (repeatable)
    #[arg(long, value_name = "RULE")]
    pub(crate) block: Vec<String>,

    /// Trust this version of the project's hooks, MCP servers and helper programs
    #[arg(long)]
    pub(crate) trust: bool,

    /// System prompt, in place of the agent's own
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,

    #[command(flatten)]
    pub(crate) output: Output,

    /// Prompt; `-` or a pipe reads stdin; without one, a terminal asks for it
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) output: Output,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// Follow the log until the session ends
    #[arg(short, long)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) output: Output,

    /// Only print events after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = any_number)]
    pub(crate) after: u64,

    /// Print the agent's stdout, byte for byte
    #[arg(long, conflicts_with_all = ["format", "profile"])]
    pub(crate) native: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// How events are printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Output {
    /// Output format: text, or jsonl for unified events
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// With `--format jsonl`: all events (full), all without the agent's native lines (lean),
    /// or the specification's twelve types (core)
    #[arg(
        long,
        value_parser = one_of(PROFILES),
        hide_possible_values = true,
        default_value = "full",
        hide_short_help = true
    )]
    pub(crate) profile: Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    Text,
    /// Unified events, one per line
    Jsonl,
}

/// Every agent, by name.
pub(super) fn agents() -> impl TypedValueParser<Value = AgentType> {
    let names =
        programs().iter().map(|known| PossibleValue::new(known.agent.as_str()).help(known.about));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<AgentType>())
}

const APPROVALS: &[Choice<ApprovalMode>] = &[
    ("ask", ApprovalMode::Ask, "Ask before every tool"),
    (
        "askDangerous",
        ApprovalMode::AskDangerous,
        "Allow reads, edits and harmless commands in the project; ask before the rest",
    ),
    ("autoEdit", ApprovalMode::AutoEdit, "Allow file edits in the project; ask before the rest"),
    ("autoAll", ApprovalMode::AutoAll, "Allow every tool; you still get the agent's questions"),
];

const SANDBOXES: &[Choice<SandboxMode>] = &[
    ("none", SandboxMode::None, "The agent's own default"),
    ("readOnly", SandboxMode::ReadOnly, "No writes"),
    ("workspaceWrite", SandboxMode::WorkspaceWrite, "Writes only in the workspace"),
    ("fullAccess", SandboxMode::FullAccess, "No restrictions"),
];

fn turns(text: &str) -> Result<u32, String> {
    Ok(u32::try_from(whole(text, 1, 1000)?).unwrap_or(u32::MAX))
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        Ok(_) | Err(_) => Err("expected an amount in dollars, such as 0.50".to_owned()),
    }
}

pub(super) const RUN_HELP: &str = "\
Examples:
  agentwire run -a demo                           # a tour: no key, no network
  agentwire run 'Why does the build fail?'
  agentwire run -a codex -C ~/project --approval autoEdit 'Fix the failing test'
  git diff | agentwire run 'Review this diff.' > review.md
  agentwire run --allow Read --allow 'Bash(git status)' 'What changed?'
  agentwire run --format jsonl 'Say hi' | jq -r .type
  agentwire run --resume 1a2b 'Now add a test'
  agentwire run --trust 'Run the checks'          # uses the project's hooks and MCP servers
  agentwire run -- '-x is not a flag here'

Keys at a permission request: y allow, a allow this same call for the rest of the session, n deny, d deny with a \
message, i interrupt. Ctrl-C interrupts the turn; twice stops the session; three times quits at once.
stdin: with a prompt, a pipe or a file on stdin is read to its end and follows the prompt after a \
blank line. If a pipe stays silent for 3 s, `run` goes on without it and says so. In a shell loop that \
reads from stdin, add </dev/null.
Text output shows the agent's control characters escaped; `--format jsonl` prints them unchanged.

Exit code: 0 done; 1 the turn failed; 2 wrong arguments; 3 the agent is not available; 4 a request was \
denied because there was no terminal to ask on; 130 interrupted.";

pub(super) const ATTACH_HELP: &str = "\
Examples:
  agentwire attach 1a2b
  agentwire attach 1a2b --format jsonl | jq -r .type
  agentwire attach 1a2b --url https://agents.example --token-file token

On a terminal, requests take the same keys as in `run`. The first answer wins if several clients are \
attached. Ctrl-C detaches; the session continues. If the server restarts, `attach` reconnects and \
misses nothing. You can watch a session that another process runs, such as `agentwire run`, but not \
answer it.

Exit code: 0 the session ended; 1 its last turn failed; 2 no such session; 130 detached with Ctrl-C.";

pub(super) const LOGS_HELP: &str = "\
Examples:
  agentwire logs 1a2b
  agentwire logs -f 1a2b                          # until the session ends
  agentwire logs --format jsonl --after 40 1a2b | jq .type
  agentwire logs --native 1a2b > recorded.jsonl   # what the agent wrote, byte for byte
  AGENTWIRE_URL=https://agents.example agentwire logs -f 1a2b

With a server, -f reconnects and continues where it was if the connection breaks or the server restarts.";
