//! The words of the command line, and what they teach.

mod client;
mod models;
mod run;
mod server;
mod verbs;

use std::ffi::OsString;
use std::path::PathBuf;

use agentwire_dialects::programs;
use agentwire_protocol::Profile;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::client::{At, Interrupt, Permit, PermitVerb, Send, Stop};
use self::client::{INTERRUPT_HELP, PERMIT_HELP, SEND_HELP, STOP_HELP};
pub(crate) use self::models::ModelServer;
use self::models::model_server_help;
use self::run::{ATTACH_HELP, LOGS_HELP, RUN_HELP};
pub(crate) use self::run::{Attach, Format, Logs, Run};
pub(crate) use self::server::{Auth, Serve, Token, TokenVerb, Trust, TrustVerb};
use self::server::{SERVE_HELP, TOKEN_HELP};
use self::verbs::{
    AGENTS_HELP, DOCTOR_HELP, EXPORT_HELP, LS_HELP, PRUNE_HELP, SHOW_HELP, WAIT_HELP,
};
pub(crate) use self::verbs::{
    Agents, Doctor, Export, ExportFormat, Ls, Prune, Show, Wait, WaitFor,
};

/// One program between every coding agent and every client.
#[derive(Debug, Parser)]
#[command(name = "agentwire", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What every verb takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Global {
    /// Where sessions are kept [default: ~/.local/share/agentwire]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "AGENTWIRE_DATA_DIR",
        hide_env_values = true
    )]
    pub(crate) data_dir: Option<PathBuf>,

    /// The settings to read [default: ~/.config/agentwire/config.toml]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "AGENTWIRE_CONFIG",
        hide_env_values = true
    )]
    pub(crate) config: Option<PathBuf>,

    /// How much to tell on stderr of what goes on [default: warn]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "LEVEL",
        env = "AGENTWIRE_LOG",
        hide_env_values = true
    )]
    pub(crate) log_level: Option<LogLevel>,

    /// How to tell it: lines for people, or a JSON object a line [default: text]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        env = "AGENTWIRE_LOG_FORMAT",
        hide_env_values = true
    )]
    pub(crate) log_format: Option<LogFormat>,
}

/// How much is told on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Nothing
    Off,
    /// What failed
    Error,
    /// What may fail
    #[default]
    Warn,
    /// What begins and ends
    Info,
    /// Every request
    Debug,
    /// All there is
    Trace,
}

/// How it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// A JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Give an agent a prompt and watch it work
    ///
    /// On a terminal it shows text, tools, diffs and cost, and asks for permissions there. In a pipe
    /// stdout has the answer and nothing else. With no terminal nobody is asked: what needs
    /// permission is denied, and said so.
    #[command(after_long_help = RUN_HELP)]
    Run(Box<Run>),
    /// Come to a session: all it did, then what it does, and answer what it asks
    ///
    /// The same view as `run`. A session that a server runs is answered from here; leaving it does not
    /// interrupt it.
    #[command(after_long_help = ATTACH_HELP)]
    Attach(Attach),
    /// Print a session's log
    #[command(after_long_help = LOGS_HELP)]
    Logs(Logs),
    /// Turn an agent's recorded output into unified events, or into what another client would read
    ///
    /// Reads what an agent wrote on stdout, one JSON object a line, and writes unified events, one a
    /// line. Any bytes are taken: a line that is not understood becomes an event of type `other`, and
    /// the `native` lines of all events, in order, are the input byte for byte. With `--to claude` it
    /// writes what a client of Claude Code would read of such an agent.
    #[command(after_long_help = TRANSLATE_HELP)]
    Translate(Translate),
    /// Be the recorded agent of a transcript
    ///
    /// Writes what the agent wrote, when it wrote it. In a transcript of both sides a line of the
    /// client is waited for where the recorded client had spoken, and the ids of its requests stand in
    /// the answers; so a recording can take the agent's place under anything that drives agents.
    #[command(after_long_help = PLAY_HELP)]
    Play(Play),
    /// List sessions, newest first
    #[command(after_long_help = LS_HELP)]
    Ls(Ls),
    /// Tell all that is known of a session
    #[command(after_long_help = SHOW_HELP)]
    Show(Show),
    /// Write a session's whole log, or a transcript of it
    #[command(after_long_help = EXPORT_HELP)]
    Export(Export),
    /// Wait until sessions are idle, are over or ask something
    #[command(after_long_help = WAIT_HELP)]
    Wait(Wait),
    /// Give a session a prompt
    ///
    /// A session that is over goes on with it.
    #[command(after_long_help = SEND_HELP)]
    Send(Send),
    /// Stop the turns of sessions; the sessions stay
    #[command(after_long_help = INTERRUPT_HELP)]
    Interrupt(Interrupt),
    /// End sessions
    #[command(after_long_help = STOP_HELP)]
    Stop(Stop),
    /// See and answer what agents ask
    #[command(after_long_help = PERMIT_HELP)]
    Permit(Permit),
    /// Forget old sessions
    #[command(after_long_help = PRUNE_HELP)]
    Prune(Prune),
    /// List the agents that are installed
    #[command(after_long_help = AGENTS_HELP)]
    Agents(Agents),
    /// Check the set-up, and say how to mend what is wrong
    #[command(after_long_help = DOCTOR_HELP)]
    Doctor(Doctor),
    /// Serve sessions over HTTP and WebSockets, to any number of clients
    ///
    /// Listens on this machine alone, asks every client for a token, and tells on stderr where it is
    /// and where the token stands.
    #[command(after_long_help = SERVE_HELP)]
    Serve(Serve),
    /// Show, make and revoke the tokens that clients come with
    #[command(after_long_help = TOKEN_HELP)]
    Token(Token),
    /// List and revoke the directories whose own files may make agents run something
    Trust(Trust),
    /// Be the `claude` program for those who drive it, with any agent behind
    ///
    /// Takes claude's own flags (`agentwire claude --help` lists them) and speaks its stream-json, so
    /// that the official SDKs work with every agent. The same when called by the name `claude`.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Claude(Claude),
    /// Speak the unified protocol on stdin and stdout
    ///
    /// Command frames in, one JSON object a line; events and replies out. Any number of sessions.
    #[command(after_long_help = UNIFIED_HELP)]
    Unified,
    /// Speak JSON-RPC 2.0 on stdin and stdout
    ///
    /// Calls in, one JSON object or batch a line; replies, and notifications with Claude's messages,
    /// out. Any number of sessions, of any agent.
    #[command(after_long_help = RPC_HELP)]
    Rpc,
    /// Speak the NDJSON backend's protocol on stdin and stdout
    ///
    /// What a program expects that was written for Claude's SDK behind a pipe: sessions, messages and
    /// callbacks, one JSON object a line. Any agent, any number of sessions.
    #[command(after_long_help = BACKEND_HELP)]
    Backend,
    /// Be the model: the APIs that agents call, played from the prompt, with no key
    ///
    /// Claude Code and the like call it in place of their vendor. What it answers stands in the prompt,
    /// as steps in double square brackets, so that a set-up can be tried from end to end, the same each
    /// time, without a key, a network or cost.
    #[command(after_long_help = model_server_help())]
    ModelServer(ModelServer),
    /// The demo agent: Claude's protocol and flags, real tools, no model
    ///
    /// Speaks stream-json on stdin and stdout as `claude -p` does. Its prompt scripts it; see
    /// docs/demo-agent.md.
    #[command(hide = true, disable_help_flag = true)]
    DemoAgent(DemoAgent),
    /// Print the JSON Schema of what agentwire says and takes
    Schema(Schema),
    /// Print a completion script for your shell
    #[command(after_long_help = COMPLETIONS_HELP)]
    Completions(Completions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Translate {
    /// The wire that the input speaks
    #[arg(long, value_parser = From::parser(), default_value = From::AUTO)]
    pub(crate) from: From,

    /// The wire to write
    #[arg(long, value_enum, default_value_t = To::Unified)]
    pub(crate) to: To,

    /// How much to show: `core` has only the specification's twelve types, without native lines
    #[arg(long, value_enum, default_value_t = ProfileArg::Full)]
    pub(crate) profile: ProfileArg,

    /// With `--to claude`, text in pieces too: `stream_event` lines
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// The input is a transcript of both sides, `{"dir":"in"|"out","line":…}` a line: translate what
    /// the agent wrote
    #[arg(long)]
    pub(crate) transcript: bool,

    /// The session id to put on the events [default: a new UUID]
    #[arg(long, value_name = "ID")]
    pub(crate) session_id: Option<String>,

    /// Say on stderr at the end what was read and written
    #[arg(long)]
    pub(crate) summary: bool,

    /// The file to read; `-` or nothing is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// The wire that a recording speaks; none is found out from its first lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct From(pub(crate) Option<&'static str>);

impl From {
    const AUTO: &'static str = "auto";

    fn parser() -> impl TypedValueParser<Value = Self> {
        let auto = PossibleValue::new(Self::AUTO).help("Found out from the first lines");
        let wires = programs().iter().flat_map(|known| known.wires);
        let names = wires.map(|wire| PossibleValue::new(wire.dialect.name()).help(wire.about));
        let names = std::iter::once(auto).chain(names);
        PossibleValuesParser::new(names)
            .map(|name| Self(agentwire_dialects::agent(&name).map(|dialect| dialect.name())))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// Unified events as NDJSON
    Unified,
    /// Messages as Claude Code prints them: Claude's own pass as they are
    Claude,
    /// Messages as insights pages read them
    Insights,
    /// Events as the board lists them
    Board,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArg {
    /// The twelve types of the specification
    Core,
    /// Everything
    Full,
}

impl std::convert::From<ProfileArg> for Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Core => Self::Core,
            ProfileArg::Full => Self::Full,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Play {
    /// How fast: 2 is twice as fast as recorded; `max` or 0 waits for nobody but the client
    #[arg(long, default_value = "1", value_name = "X")]
    pub(crate) speed: Speed,

    /// A transcript, `{"dir":"in"|"out","t_ms":N,"line":…}` a line, or only what the agent wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// How many times as fast as recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    Times(f64),
    Max,
}

impl std::str::FromStr for Speed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<f64>() {
            _ if text == "max" => Ok(Self::Max),
            Ok(0.0) => Ok(Self::Max),
            Ok(times) if times.is_finite() && times >= 0.001 => Ok(Self::Times(times)),
            _ => Err("give a number such as 2 or 0.5, or `max`"),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Claude {
    /// Claude's flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CLAUDE_FLAGS")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoAgent {
    /// Claude's flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "CLAUDE_FLAGS")]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    /// Of what
    #[arg(value_enum)]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    /// A unified event
    Event,
    /// The request that starts a session
    Request,
    /// What a client says on a line of the unified protocol
    Command,
    /// What is said of a command; its definition `Replies` has what goes with which
    Reply,
    /// The server, in OpenAPI 3.1
    Openapi,
    /// The settings in config.toml
    Config,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Your shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

const UNIFIED_HELP: &str = r#"Try it:
  echo '{"id":1,"command":"start","agentType":"demo","prompt":"/say hello"}' | agentwire unified

Frames: {"id","command":"start|attach|prompt|interrupt|stop|finish|settle|configure|query|rewind","sessionId",…}
give {"id","reply":…} or {"id","error":{"code","message"}}. Events are bare: they have a "type".
docs/protocols/unified.md has it all."#;

const RPC_HELP: &str = r#"Try it:
  echo '{"jsonrpc":"2.0","id":1,"method":"run","params":{"agent":"demo","prompt":"/say hello"}}' | agentwire rpc

The reply is the turn's result; what comes before are notifications: "message" (assistant, user,
system, result), "request" (answer it with request/settle), "event" if "events": true was given.
Methods: run, session/create, session/send, session/interrupt, session/kill, session/list,
session/events, session/attach, session/configure, request/settle, query, control.
Sessions last until they are killed or stdin ends. docs/protocols/jsonrpc.md has it all."#;

const BACKEND_HELP: &str = r#"Try it:
  echo '{"type":"session.create","id":"1","payload":{"prompt":"/say hello","cwd":".","agent":"demo"}}' | agentwire backend

In: session.create, session.send, session.interrupt, session.kill, callback.response, query.call.
Out: session.created, sdk.message, callback.request, query.result, session.interrupted, session.killed,
error. A session that names no agent has the one of AGENTWIRE_AGENT or of the settings, else the first
of claude, codex, gemini that is installed, else the demo agent.
docs/protocols/backend.md has it all."#;

const TRANSLATE_HELP: &str = "\
Examples:
  claude -p --output-format stream-json --verbose 'Say hi' | agentwire translate
  codex exec --json 'Say hi' </dev/null | agentwire translate --from codex --profile core
  agentwire translate --from gemini recorded.jsonl --summary > events.jsonl
  agentwire translate recorded.jsonl | jq -rj 'select(.type==\"textChunk\").content'
  agentwire translate --from codex --to claude recorded.jsonl | jq -r 'select(.type==\"result\").result'

Exit code: 0 for any input; 1 if it cannot be read or the events cannot be written; 2 for wrong
arguments.";

const PLAY_HELP: &str = "\
Examples:
  agentwire play agent.jsonl | agentwire translate
  AGENTWIRE_CODEX_BIN=./recorded-codex agentwire run -a codex 'Say hi'
    where recorded-codex is a script: exec agentwire play codex.jsonl

A line {\"dir\":\"exit\",\"code\":N} at the end of a transcript tells that the agent ended by itself; else
it ends when its client does.
Exit code: that of the recorded agent, 0 if it is not known; 1 if the file cannot be played.";

const COMPLETIONS_HELP: &str = "\
Examples:
  agentwire completions bash > ~/.local/share/bash-completion/completions/agentwire
  agentwire completions zsh > ~/.zfunc/_agentwire
  agentwire completions fish > ~/.config/fish/completions/agentwire.fish";
