//! The words of the verbs that want something of sessions, and of which server.

use std::path::PathBuf;

use agentwire_protocol::Json;
use agentwire_protocol::command::Remember;
use clap::{Subcommand, ValueEnum};

/// Which server.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct At {
    /// Ask this server, and not this machine
    #[arg(long, value_name = "URL", env = "AGENTWIRE_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,

    /// The file with the token to come with [default: AGENTWIRE_TOKEN, else what the server on this
    /// machine has written]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Trust the certificates in this file too (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    /// The session; the beginning of its id is enough
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// What to do; `-` or nothing reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Show the turn, and ask what it asks, as `run` does
    #[arg(long, short)]
    pub(crate) wait: bool,

    /// One JSON object: {"sessionId":…,"messageId":…,"resumed":…}
    #[arg(long, conflicts_with = "wait")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Interrupt {
    /// The sessions; the beginnings of their ids are enough
    #[arg(value_name = "ID", required = true)]
    pub(crate) sessions: Vec<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    /// The sessions; the beginnings of their ids are enough
    #[arg(value_name = "ID", required = true)]
    pub(crate) sessions: Vec<String>,

    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Permit {
    #[command(subcommand)]
    pub(crate) verb: PermitVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermitVerb {
    /// List what agents ask and wait for, oldest first
    Ls {
        /// One JSON object: {"requests":[…]}
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        at: At,
    },
    /// Allow a tool to run
    Allow {
        /// The request, as `permit ls` has it
        #[arg(value_name = "RID")]
        request: String,

        /// Run it with this in place of what was asked
        #[arg(long, value_name = "JSON", value_parser = object)]
        input: Option<Json<'static>>,

        /// For how long
        #[arg(long, value_enum, default_value_t = RememberArg::Once)]
        remember: RememberArg,

        #[command(flatten)]
        at: At,
    },
    /// Refuse a tool or a question
    Deny {
        /// The request, as `permit ls` has it
        #[arg(value_name = "RID")]
        request: String,

        /// What the agent is told
        #[arg(long, value_name = "TEXT", default_value = "The user denied this request.")]
        message: String,

        #[command(flatten)]
        at: At,
    },
    /// Answer a question
    Answer {
        /// The request, as `permit ls` has it
        #[arg(value_name = "RID")]
        request: String,

        /// One for each question, in order: an option's number, its label, or other words; where
        /// several may be chosen, such as `1,3`
        #[arg(value_name = "ANSWER", required = true)]
        answers: Vec<String>,

        #[command(flatten)]
        at: At,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RememberArg {
    /// For this call
    Once,
    /// For its like in this session
    Session,
}

impl From<RememberArg> for Remember {
    fn from(remember: RememberArg) -> Self {
        match remember {
            RememberArg::Once => Self::Once,
            RememberArg::Session => Self::Session,
        }
    }
}

fn object(text: &str) -> Result<Json<'static>, String> {
    let value = Json::parse(text).map_err(|error| error.to_string())?;
    match value.get().starts_with('{') {
        true => Ok(value.into_owned()),
        false => Err("it must be an object, such as {\"command\":\"ls\"}".to_owned()),
    }
}

pub(super) const SEND_HELP: &str = "\
Examples:
  agentwire send 1a2b 'Now add a test'
  agentwire send 1a2b 'Now add a test' && agentwire wait 1a2b
  git diff | agentwire send 1a2b -
  agentwire send 1a2b --wait 'Why?' > answer.md

The session is one that a server runs, or one that is over: then the server goes on with it. While a
turn runs the prompt waits for its end. Without --wait nothing is printed on stdout.

Exit code: 0 it was taken; 2 there is no such session; 1 all else. With --wait that of `run`.";

pub(super) const INTERRUPT_HELP: &str = "\
Examples:
  agentwire interrupt 1a2b
  agentwire ls --json | jq -r '.sessions[] | select(.state==\"working\").id' | xargs agentwire interrupt

What the turn waits for is denied. The session takes the next prompt.";

pub(super) const STOP_HELP: &str = "\
Examples:
  agentwire stop 1a2b 3c4d

Comes back when they are over. Nothing is forgotten: `agentwire send` or `agentwire run --resume` goes
on with them. One that is over already is no mistake.";

pub(super) const PERMIT_HELP: &str = "\
Examples:
  agentwire permit ls
  agentwire permit allow 7f3c
  agentwire permit allow 7f3c --input '{\"command\":\"ls -l\"}'
  agentwire permit allow 7f3c --remember session
  agentwire permit deny 7f3c --message 'Not on this machine'
  agentwire permit answer 9e01 2
  agentwire permit answer 9e01 Green 'as you like'

RID is what `permit ls` shows, or any beginning of the request's id that no other has; SESSION/RID names
the session too. What is allowed is what was listed: if it has changed, the answer is refused.

Exit code: 0 it is answered; 1 somebody else was first, or it cannot be answered from here; 2 there is
no such request.";
