//! Commands that read sessions and check the installation.

use std::path::PathBuf;
use std::time::Duration;

use agentwire_protocol::{AgentType, SearchQuery, SessionSort, SessionState, UsageBin, UsageBy};
use clap::ValueEnum;
use jiff::Span;

use super::run::agents;
use super::{At, Choice, any_size, one_of};

#[derive(Debug, clap::Args)]
pub(crate) struct Ls {
    /// List all sessions
    #[arg(long, short, conflicts_with = "limit")]
    pub(crate) all: bool,

    /// Maximum number of sessions
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = any_size)]
    pub(crate) limit: usize,

    /// Only sessions in this state
    #[arg(long, value_name = "STATE", value_parser = one_of(STATES))]
    pub(crate) state: Option<SessionState>,

    /// Only sessions of this agent
    #[arg(long, value_parser = agents())]
    pub(crate) agent: Option<AgentType>,

    /// Only sessions that work in this directory or below it
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Order [default: activity with a filter, else running sessions first, each newest first]
    #[arg(long, value_parser = one_of(SORTS))]
    pub(crate) sort: Option<SessionSort>,

    /// Only sessions with these words in the title, the start of the first prompt, the directory or
    /// the tags
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,

    /// Print JSON: {"sessions":[…]}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

const STATES: &[Choice<SessionState>] = &[
    ("starting", SessionState::Starting, "The agent is starting"),
    ("idle", SessionState::Idle, "The agent waits for a prompt"),
    ("working", SessionState::Working, "The agent is working"),
    ("waitingPermission", SessionState::WaitingPermission, "The agent waits for permission"),
    ("waitingQuestion", SessionState::WaitingQuestion, "The agent waits for an answer"),
    ("stalled", SessionState::Stalled, "The agent has sent nothing for a long time"),
    ("ended", SessionState::Ended, "The session has ended"),
];

const SORTS: &[Choice<SessionSort>] = &[
    ("activity", SessionSort::Activity, "The last active first"),
    ("created", SessionSort::Created, "The last started first"),
    ("pinned", SessionSort::Pinned, "Pinned sessions first, then the last active"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Usage {
    /// What to tell apart
    #[arg(long, value_parser = one_of(USAGE_BY))]
    pub(crate) by: Option<UsageBy>,

    /// A row for each hour or day, in UTC
    #[arg(long, value_parser = one_of(BINS))]
    pub(crate) bin: Option<UsageBin>,

    /// Only turns that ended within this time, such as 12h, 7d or 8w [default: all]
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) since: Option<Span>,

    /// Print JSON: {"rows":[…],"complete":…}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

const USAGE_BY: &[Choice<UsageBy>] = &[
    ("agent", UsageBy::Agent, "The agents"),
    ("model", UsageBy::Model, "The models"),
    ("session", UsageBy::Session, "The sessions"),
    ("directory", UsageBy::Directory, "The working directories"),
];

const BINS: &[Choice<UsageBin>] = &[
    ("hour", UsageBin::Hour, "A row for each hour"),
    ("day", UsageBin::Day, "A row for each day"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// Words, all of which a text must have; `"two words"` must follow each other, `start*` stands for
    /// all words that start so
    #[arg(value_name = "WORD", required_unless_present = "rebuild")]
    pub(crate) words: Vec<String>,

    /// Only in this session (id, or a unique prefix of it)
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Only texts of events of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = SearchQuery::TYPES)]
    pub(crate) kind: Option<String>,

    /// Maximum number of texts
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = any_size)]
    pub(crate) limit: usize,

    /// Make the index again from the log first (on this machine)
    #[arg(long)]
    pub(crate) rebuild: bool,

    /// Print JSON: {"hits":[…],"next":…,"complete":…}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Name {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// Title
    #[arg(value_name = "TITLE")]
    pub(crate) title: Option<String>,

    /// Remove the title; the one from the first prompt or the agent is shown again
    #[arg(long, conflicts_with = "title")]
    pub(crate) no_title: bool,

    /// Pin the session
    #[arg(long)]
    pub(crate) pin: bool,

    /// Unpin the session
    #[arg(long, conflicts_with = "pin")]
    pub(crate) unpin: bool,

    /// Add a tag
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,

    /// Remove a tag
    #[arg(long = "untag", value_name = "TAG")]
    pub(crate) untags: Vec<String>,

    /// Print JSON: the session
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// Print JSON: the session, its `config` and its open `requests`
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,

    /// Output file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The stored events, byte for byte, one per line
    Jsonl,
    /// Plain text transcript
    Text,
    /// Markdown transcript
    Markdown,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Wait {
    /// Session ids, or unique prefixes of them
    #[arg(value_name = "ID", required = true)]
    pub(crate) sessions: Vec<String>,

    /// What to wait for
    #[arg(long = "for", value_enum, value_name = "WHAT", default_value_t = WaitFor::Idle)]
    pub(crate) what: WaitFor,

    /// Timeout in seconds
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Print JSON: {"sessions":[…]}
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitFor {
    /// All prompts are done, or the session has ended
    Idle,
    /// The session has ended
    Ended,
    /// A request waits for an answer
    Request,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prune {
    /// Delete sessions whose last event is older, such as 12h, 30d or 8w [default: 30d, unless --keep
    /// is given]
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Span>,

    /// Keep the N newest ended sessions
    #[arg(long, value_name = "N", value_parser = any_size)]
    pub(crate) keep: Option<usize>,

    /// Show what would be deleted, and delete nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,

    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Print JSON: {"sessions":[…],"bytes":…,"pruned":…}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Agents {
    /// Print JSON: {"agents":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Print JSON: {"ok":…,"checks":[…]}
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds <= 1e9);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "expected a number of seconds from 0 to 1000000000".to_owned())
}

fn age(text: &str) -> Result<Span, String> {
    text.parse::<Span>()
        .ok()
        .filter(|span| !span.is_negative())
        .ok_or_else(|| "expected a duration such as 12h, 30d or 8w".to_owned())
}

pub(super) const LS_HELP: &str = "\
Examples:
  agentwire ls
  agentwire ls --all --json | jq -r '.sessions[] | select(.state!=\"ended\").id'
  agentwire ls flaky test --agent codex -C ~/project
  agentwire ls --sort pinned --state ended

A dot marks running sessions, which are listed first unless --sort says otherwise. A star marks pinned \
sessions. COST is what the agent reports, if it does. \
With AGENTWIRE_URL (and AGENTWIRE_TOKEN) it lists the sessions of that server.";

pub(super) const USAGE_HELP: &str = "\
Examples:
  agentwire usage
  agentwire usage --by model --since 7d
  agentwire usage --bin day --by directory --json | jq '.rows[].costUsd'

INPUT is new input: neither read from a cache nor written to it. COST is what agents report. COMPUTED is \
by the prices in the settings ([prices.MODEL]), for turns whose model has one. WAITED is how long turns \
waited for an answer to a permission or a question. On a terminal a plot shows the days.";

pub(super) const SEARCH_HELP: &str = "\
Examples:
  agentwire search flaky parser
  agentwire search '\"cargo test\"' --type toolStarted
  agentwire search 'parse*' --session 3f2a --json | jq -r '.hits[].snippet'
  agentwire search --rebuild

Finds prompts, answers, thinking, and of calls the title, the tool, the command and the paths. The last \
indexed text comes first. `3f2a:17` is event 17 of that session.";

pub(super) const NAME_HELP: &str = "\
Examples:
  agentwire name 3f2a 'Flaky test in the parser'
  agentwire name 3f2a --tag parser --tag urgent --pin
  agentwire name 3f2a --no-title --untag urgent --unpin

Works on any session, whichever process runs it, and on those that have ended. A title has at most 200 \
characters. A session has at most 16 tags of at most 48 characters.";

pub(super) const SHOW_HELP: &str = "\
Examples:
  agentwire show 3f2a
  agentwire show 3f2a --json | jq .requests";

pub(super) const EXPORT_HELP: &str = "\
Examples:
  agentwire export 3f2a > session.jsonl
  agentwire export 3f2a --format markdown -o session.md

For a running session, the export has the events so far.";

pub(super) const WAIT_HELP: &str = "\
Examples:
  agentwire wait 3f2a && echo done
  agentwire wait 3f2a 8e21 --for ended --timeout 600
  agentwire wait 3f2a --for request && agentwire show 3f2a

Exit code: 0 all sessions reached the state; 1 a session or its last turn failed, cannot reach the state \
any more, or the timeout passed; 2 no such session.";

pub(super) const PRUNE_HELP: &str = "\
Examples:
  agentwire prune --dry-run
  agentwire prune --older-than 12h --yes
  agentwire prune --keep 100 --yes

Running sessions are never deleted. With both --older-than and --keep, a session is deleted only if \
both allow it. Later sessions reuse the space; the file does not shrink.";

pub(super) const AGENTS_HELP: &str = "\
Examples:
  agentwire agents
  AGENTWIRE_CODEX_BIN=/opt/codex/bin/codex agentwire agents
  agentwire agents --json | jq -r '.agents[] | select(.path).name'";

pub(super) const DOCTOR_HELP: &str = "\
Examples:
  agentwire doctor
  agentwire doctor --json | jq '.checks[] | select(.status!=\"ok\")'

Nothing is sent to a model: doctor asks agents for their version and login status, and runs one turn of \
the built-in demo agent. Exit code: 0 if no check failed, else 1.";
