//! The commands for running sessions, and the options that choose a server.

use std::path::PathBuf;

use agentwire_protocol::Json;
use agentwire_protocol::command::Remember;
use clap::Subcommand;

use super::{Choice, one_of};

/// Which server to use.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server options")]
pub(crate) struct At {
    /// Server to use instead of this machine's
    #[arg(long, value_name = "URL", env = "AGENTWIRE_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,

    /// File with the access token [default: AGENTWIRE_TOKEN, else, without a
    /// URL, the token of this machine's server]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Additional trusted CA certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Send {
    /// Session id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub(crate) session: String,

    /// Prompt; `-` or a pipe reads stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Show the turn and answer its requests, as `run` does
    #[arg(long, short)]
    pub(crate) wait: bool,

    /// Print JSON: {"sessionId":…,"messageId":…,"resumed":…}
    #[arg(long, conflicts_with = "wait")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) at: At,
}

/// Running sessions, and their server.
#[derive(Debug, clap::Args)]
pub(crate) struct Sessions {
    /// Session ids, or unique prefixes of them
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
    /// List pending requests, oldest first
    #[command(after_long_help = LS_HELP)]
    Ls {
        /// Print JSON: {"requests":[…]}
        #[arg(long)]
        json: bool,

        #[command(flatten)]
        at: At,
    },
    /// Allow a tool call
    #[command(after_long_help = ALLOW_HELP)]
    Allow {
        /// Request id, as shown by `permit ls`
        #[arg(value_name = "RID")]
        request: String,

        /// Run the tool with this input instead
        #[arg(long, value_name = "JSON", value_parser = object)]
        input: Option<Json<'static>>,

        /// How long the answer holds
        #[arg(long, value_parser = one_of(REMEMBER), default_value = "once")]
        remember: Remember,

        #[command(flatten)]
        at: At,
    },
    /// Deny a tool call or decline a question
    #[command(after_long_help = DENY_HELP)]
    Deny {
        /// Request id, as shown by `permit ls`
        #[arg(value_name = "RID")]
        request: String,

        /// Message for the agent
        #[arg(long, value_name = "TEXT", default_value = "The user denied this request.")]
        message: String,

        #[command(flatten)]
        at: At,
    },
    /// Answer a question
    #[command(after_long_help = ANSWER_HELP)]
    Answer {
        /// Request id, as shown by `permit ls`
        #[arg(value_name = "RID")]
        request: String,

        /// One answer per question, in order: the option's number, its label, or free text; for
        /// multiple choice, such as `1,3`
        #[arg(value_name = "ANSWER", required = true)]
        answers: Vec<String>,

        #[command(flatten)]
        at: At,
    },
}

const REMEMBER: &[Choice<Remember>] = &[
    ("once", Remember::Once, "For this call only"),
    ("session", Remember::Session, "For identical calls in this session"),
];

fn object(text: &str) -> Result<Json<'static>, String> {
    let value = Json::parse(text).map_err(|error| error.to_string())?;
    match value.get().starts_with('{') {
        true => Ok(value.into_owned()),
        false => Err("expected an object, such as {\"command\":\"ls\"}".to_owned()),
    }
}

pub(super) const SEND_HELP: &str = "\
Examples:
  agentwire send 1a2b 'Now add a test'
  agentwire send 1a2b 'Now add a test' && agentwire wait 1a2b
  git diff | agentwire send 1a2b -
  agentwire send 1a2b --wait 'Why?' > answer.md

A server must run the session, or resume it if it has ended. During a turn the prompt is queued. \
Without --wait, stdout stays empty.

Exit code: 0 accepted; 2 no such session; 1 any other failure. With --wait, as for `run`.";

pub(super) const INTERRUPT_HELP: &str = "\
Examples:
  agentwire interrupt 1a2b
  agentwire ls --json | jq -r '.sessions[] | select(.state==\"working\").id' |
    xargs agentwire interrupt

Pending requests of the turn are denied. The session stays open for the next prompt.";

pub(super) const STOP_HELP: &str = "\
Examples:
  agentwire stop 1a2b 3c4d

Returns when the sessions have ended. Nothing is deleted: `agentwire send` or `agentwire run --resume` \
resumes a session. Stopping an ended session is not an error.";

const LS_HELP: &str = "\
Examples:
  agentwire permit ls
  agentwire permit ls --json | jq -r '.requests[].requestId'";

const ALLOW_HELP: &str = "\
Examples:
  agentwire permit allow 7f3c
  agentwire permit allow 7f3c --input '{\"command\":\"ls -l\"}'
  agentwire permit allow 7f3c --remember session";

const DENY_HELP: &str = "\
Examples:
  agentwire permit deny 7f3c
  agentwire permit deny 7f3c --message 'Not on this machine'";

const ANSWER_HELP: &str = "\
Examples:
  agentwire permit answer 9e01 2                     # the second option
  agentwire permit answer 9e01 Green 'as you like'   # two questions
  agentwire permit answer 9e01 1,3                   # multiple choice";

pub(super) const PERMIT_HELP: &str = "\
Examples:
  agentwire permit ls
  agentwire permit allow 7f3c
  agentwire permit allow 7f3c --input '{\"command\":\"ls -l\"}'
  agentwire permit allow 7f3c --remember session
  agentwire permit deny 7f3c --message 'Not on this machine'
  agentwire permit answer 9e01 2
  agentwire permit answer 9e01 Green 'as you like'

RID is an id from `permit ls` or a unique prefix of it; SESSION/RID also names the session. You allow \
exactly what was listed: if the request has changed since, the answer is refused.

Exit code: 0 answered; 1 already answered, or this client cannot answer it; 2 no such request.";
