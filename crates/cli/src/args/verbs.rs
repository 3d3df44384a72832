//! The words of the verbs that look at sessions and at the set-up.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use jiff::Span;

use super::At;

#[derive(Debug, clap::Args)]
pub(crate) struct Ls {
    /// All of them, however many
    #[arg(long, short, conflicts_with = "limit")]
    pub(crate) all: bool,

    /// At most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// One JSON object: {"sessions":[…]}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The session, by its id or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// One JSON object: the session, its `config` and its open `requests`
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The session, by its id or the beginning of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// What to write
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,

    /// The file to write [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The events as they are kept, byte for byte, one a line
    Jsonl,
    /// A transcript in plain text
    Text,
    /// A transcript in Markdown
    Markdown,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// The sessions, each by its id or the beginning of it
    #[arg(value_name = "ID", required = true)]
    pub(crate) sessions: Vec<String>,

    /// What to wait for
    #[arg(long = "for", value_enum, value_name = "WHAT", default_value_t = WaitFor::Idle)]
    pub(crate) what: WaitFor,

    /// Give up after so many seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// One JSON object: {"sessions":[…]}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// All prompts are worked off, or the session is over
    Idle,
    /// The session is over
    Ended,
    /// Somebody has to allow or to answer something
    Request,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prune {
    /// Sessions whose last event is older than this, such as 12h, 30d or 8w [default: 30d, unless
    /// --keep is given]
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Span>,

    /// Not the N newest of those that are over
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,

    /// Only say what would be forgotten
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,

    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// One JSON object: {"sessions":[…],"bytes":…,"pruned":…}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Agents {
    /// One JSON object: {"agents":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// One JSON object: {"ok":…,"checks":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds <= 1e9);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "it must be a number of seconds from 0 to 1000000000".to_owned())
}

fn age(text: &str) -> Result<Span, String> {
    text.parse::<Span>()
        .ok()
        .filter(|span| !span.is_negative())
        .ok_or_else(|| "it must be a time such as 12h, 30d or 8w".to_owned())
}

pub(super) const LS_HELP: &str = "\
Examples:
  agentwire ls
  agentwire ls --all --json | jq -r '.sessions[] | select(.state!=\"ended\").id'

A dot marks those that run; they come first. COST is what the agent says, if it does.
With AGENTWIRE_URL (and AGENTWIRE_TOKEN) it lists those of that server.";

pub(super) const SHOW_HELP: &str = "\
Examples:
  agentwire show 3f2a
  agentwire show 3f2a --json | jq .requests";

pub(super) const EXPORT_HELP: &str = "\
Examples:
  agentwire export 3f2a > session.jsonl
  agentwire export 3f2a --format markdown -o session.md

Of a session that still runs, what has happened so far is written.";

pub(super) const WAIT_HELP: &str = "\
Examples:
  agentwire wait 3f2a && echo done
  agentwire wait 3f2a 8e21 --for ended --timeout 600
  agentwire wait 3f2a --for request && agentwire show 3f2a

Exit code: 0 all have come so far; 1 one of them or its last turn failed, or can no longer come so far,
or time ran out; 2 there is no such session.";

pub(super) const PRUNE_HELP: &str = "\
Examples:
  agentwire prune --dry-run
  agentwire prune --older-than 12h --yes
  agentwire prune --keep 100 --yes

A session that runs is never forgotten. With both --older-than and --keep, only what neither keeps
goes. The room is used again by later sessions; the file does not shrink.";

pub(super) const AGENTS_HELP: &str = "\
Examples:
  agentwire agents
  AGENTWIRE_CODEX_BIN=/opt/codex/bin/codex agentwire agents
  agentwire agents --json | jq -r '.agents[] | select(.path).name'";

pub(super) const DOCTOR_HELP: &str = "\
Examples:
  agentwire doctor
  agentwire doctor --json | jq '.checks[] | select(.status!=\"ok\")'

Nothing is sent to a model: agents are only asked for their version, and one turn of the built-in demo
agent is run. Exit code: 0 if nothing is marked with a cross, else 1.";
