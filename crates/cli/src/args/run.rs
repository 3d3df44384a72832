//! The words of `run`, `attach` and `logs`.

use agentwire_dialects::programs;
use agentwire_protocol::{AgentType, ApprovalMode, SandboxMode};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{At, ProfileArg};

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Which agent [default: AGENTWIRE_AGENT, else the configured one, else the first that is
    /// installed, else demo]
    #[arg(short, long, value_parser = agents())]
    pub(crate) agent: Option<AgentType>,

    /// Where the agent works [default: here]
    #[arg(short = 'C', long = "directory", value_name = "DIR")]
    pub(crate) directory: Option<String>,

    /// Which model
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// When to ask before a tool runs
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) approval: Option<ApprovalArg>,

    /// What the agent's commands may touch
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) sandbox: Option<SandboxArg>,

    /// Go on with this session; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// How the agent is driven, where there are several ways
    #[arg(long)]
    pub(crate) driver: Option<String>,

    /// How many steps a turn may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_turns: Option<u32>,

    /// How much it may cost
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_budget: Option<f64>,

    /// A tool that runs unasked, such as `Read` or `Bash(ls -la)`; may be given several times
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// A tool that never runs; may be given several times
    #[arg(long, value_name = "RULE")]
    pub(crate) block: Vec<String>,

    /// Trust the project's own files that make the agent run something, as they are now
    #[arg(long)]
    pub(crate) trust: bool,

    /// What the agent is told before the first prompt, in place of its own
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,

    /// What stdout gets
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// With `--format jsonl`, how much: `core` has only the specification's twelve types
    #[arg(long, value_enum, default_value_t = ProfileArg::Full)]
    pub(crate) profile: ProfileArg,

    /// What to do; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// The session; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// What stdout gets
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// With `--format jsonl`, how much: `core` has only the specification's twelve types
    #[arg(long, value_enum, default_value_t = ProfileArg::Full)]
    pub(crate) profile: ProfileArg,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Logs {
    /// The session; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// Go on until the session ends
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// With `--format jsonl`, how much: `core` has only the specification's twelve types
    #[arg(long, value_enum, default_value_t = ProfileArg::Full)]
    pub(crate) profile: ProfileArg,

    /// Only the events after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,

    /// What the agent wrote on stdout, byte for byte
    #[arg(long, conflicts_with_all = ["format", "profile"])]
    pub(crate) native: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// Unified events, one a line
    Jsonl,
}

/// Every agent, by name.
fn agents() -> impl TypedValueParser<Value = AgentType> {
    let names =
        programs().iter().map(|known| PossibleValue::new(known.agent.as_str()).help(known.about));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<AgentType>())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub(crate) enum ApprovalArg {
    /// Before every tool
    Ask,
    /// Before dangerous ones
    AskDangerous,
    /// File edits run unasked
    AutoEdit,
    /// Everything runs unasked
    AutoAll,
}

impl From<ApprovalArg> for ApprovalMode {
    fn from(mode: ApprovalArg) -> Self {
        match mode {
            ApprovalArg::Ask => Self::Ask,
            ApprovalArg::AskDangerous => Self::AskDangerous,
            ApprovalArg::AutoEdit => Self::AutoEdit,
            ApprovalArg::AutoAll => Self::AutoAll,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "camelCase")]
pub(crate) enum SandboxArg {
    /// The agent's own default
    None,
    /// Nothing is written
    ReadOnly,
    /// Only the workspace is written
    WorkspaceWrite,
    /// No limits
    FullAccess,
}

impl From<SandboxArg> for SandboxMode {
    fn from(mode: SandboxArg) -> Self {
        match mode {
            SandboxArg::None => Self::None,
            SandboxArg::ReadOnly => Self::ReadOnly,
            SandboxArg::WorkspaceWrite => Self::WorkspaceWrite,
            SandboxArg::FullAccess => Self::FullAccess,
        }
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        Ok(_) | Err(_) => Err("give an amount in dollars, such as 0.50".to_owned()),
    }
}

pub(super) const RUN_HELP: &str = "\
Examples:
  agentwire run -a demo                           a tour: no key, no network
  agentwire run 'Why does the build fail?'
  agentwire run -a codex -C ~/project --approval autoEdit 'Fix the failing test'
  git diff | agentwire run --system 'Review this diff.' > review.md
  agentwire run --allow Read --allow 'Bash(git status)' 'What changed?'
  agentwire run --format jsonl 'Say hi' | jq -r .type
  agentwire run --resume 1a2b 'Now add a test'
  agentwire run --trust 'Run the checks'          uses the project's hooks and MCP servers
  agentwire run -- '-x is not a flag here'

At a permission: y allows, a allows its like in this session, n denies, d denies and says why,
i interrupts. Ctrl-C interrupts the turn; twice ends the session; three times leaves at once.
In text, control characters of the agent are shown escaped; `--format jsonl` has them as they are.

Exit code: 0 done; 1 the turn failed; 2 wrong arguments; 3 the agent is not available; 4 a request
was denied for want of someone to ask; 130 interrupted.";

pub(super) const ATTACH_HELP: &str = "\
Examples:
  agentwire attach 1a2b
  agentwire attach 1a2b --format jsonl | jq -r .type
  agentwire attach 1a2b --url https://agents.example --token-file token

At a permission or a question on a terminal: the keys of `run`; the first answer counts, whoever gives
it, and `i` interrupts the turn. Ctrl-C leaves; the session goes on. If the server restarts, it is
found again and nothing is left out. A session that another process runs, such as `agentwire run`, can
be watched from here, not answered.

Exit code: 0 the session ended; 1 its last turn failed; 2 there is no such session; 130 left by Ctrl-C.";

pub(super) const LOGS_HELP: &str = "\
Examples:
  agentwire logs 1a2b
  agentwire logs -f 1a2b                          until the session ends
  agentwire logs --format jsonl --after 40 1a2b | jq .type
  agentwire logs --native 1a2b > recorded.jsonl   what the agent wrote, byte for byte
  AGENTWIRE_URL=https://agents.example agentwire logs -f 1a2b

Of a server, -f goes on where it was if the connection breaks or the server restarts.";
