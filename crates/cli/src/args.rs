//! The command line: commands, options and their help.

mod client;
mod help;
mod models;
mod run;
mod server;
mod verbs;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use agentwire_dialects::programs;
use agentwire_protocol::Profile;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::client::{At, Permit, PermitVerb, Send, Sessions};
use self::client::{INTERRUPT_HELP, PERMIT_HELP, SEND_HELP, STOP_HELP};
pub(crate) use self::help::{GROUPS, command, explain, unbroken};
pub(crate) use self::models::ModelServer;
use self::models::model_server_help;
use self::run::{ATTACH_HELP, LOGS_HELP, RUN_HELP};
pub(crate) use self::run::{Attach, Format, Logs, Output, Run};
pub(crate) use self::server::{Auth, Serve, Token, TokenVerb, Trust, TrustVerb};
use self::server::{SERVE_HELP, TOKEN_HELP, TRUST_HELP};
use self::verbs::{
    AGENTS_HELP, DOCTOR_HELP, EXPORT_HELP, LS_HELP, NAME_HELP, PRUNE_HELP, SEARCH_HELP, SHOW_HELP,
    USAGE_HELP, WAIT_HELP,
};
pub(crate) use self::verbs::{
    Agents, Doctor, Export, ExportFormat, Ls, Name, Prune, Search, Show, Usage, Wait, WaitFor,
};

/// One program between every coding agent and every client.
#[derive(Debug, Parser)]
#[command(
    name = "agentwire",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_long_help = HELP
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The heading of the options of every command.
const GLOBAL: &str = "Global options";

/// Options of every command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = GLOBAL)]
pub(crate) struct Global {
    /// Data directory [default: ~/.local/share/agentwire]
    #[arg(
        long,
        global = true,
        display_order = 1000,
        value_name = "DIR",
        env = "AGENTWIRE_DATA_DIR",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) data_dir: Option<PathBuf>,

    /// Settings file [default: ~/.config/agentwire/config.toml]
    #[arg(
        long,
        global = true,
        display_order = 1001,
        value_name = "FILE",
        env = "AGENTWIRE_CONFIG",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) config: Option<PathBuf>,

    /// Log level for stderr: off, error, warn, info, debug or trace [default: warn]
    #[arg(
        long,
        global = true,
        display_order = 1002,
        value_enum,
        hide_possible_values = true,
        value_name = "LEVEL",
        env = "AGENTWIRE_LOG",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) log_level: Option<LogLevel>,

    /// Log format for stderr: text or json [default: text]
    #[arg(
        long,
        global = true,
        display_order = 1003,
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT",
        env = "AGENTWIRE_LOG_FORMAT",
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) log_format: Option<LogFormat>,
}

/// Log level for stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// No logs
    Off,
    /// Failures
    Error,
    /// Problems that may lead to a failure
    #[default]
    Warn,
    /// Starts and ends of sessions, turns and connections
    Info,
    /// Every request and command
    Debug,
    /// Everything
    Trace,
}

/// Log format for stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text for people
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run an agent on a prompt
    ///
    /// On a terminal, `run` shows text, tools, diffs and cost, and asks you for permissions. In a
    /// pipe, stdout carries the answer and nothing else. Without a terminal to ask on, requests are
    /// denied, and stderr says so. What you pipe into `run` follows the prompt, after a blank line.
    #[command(after_long_help = RUN_HELP)]
    Run(Box<Run>),
    /// Attach to a session: replay it, follow it live, answer its requests
    ///
    /// Shows the same view as `run`. If a server runs the session, you can answer its requests here.
    /// Detaching does not interrupt the session.
    #[command(after_long_help = ATTACH_HELP)]
    Attach(Attach),
    /// Print a session's log
    #[command(after_long_help = LOGS_HELP)]
    Logs(Logs),
    /// Convert an agent's recorded output to unified events or another client format
    ///
    /// Reads an agent's stdout, one JSON object per line, and writes unified events, one per line.
    /// Accepts any bytes: a line that cannot be parsed becomes an event of type `other`, and the
    /// `native` lines of all events, in order, are the input byte for byte. With `--to claude` it
    /// writes what a Claude Code client would receive from such an agent.
    #[command(after_long_help = TRANSLATE_HELP)]
    Translate(Translate),
    /// Replay a recorded agent
    ///
    /// Writes what the recorded agent wrote, at the recorded times. In a transcript of both sides,
    /// `play` waits for a line from the client wherever the recorded client sent one, and answers
    /// with the ids of the live requests. So a recording can stand in for the agent under any program
    /// that drives agents.
    #[command(after_long_help = PLAY_HELP)]
    Play(Play),
    /// List sessions, newest first
    #[command(after_long_help = LS_HELP)]
    Ls(Ls),
    /// Set the title, the pin and the tags of a session
    #[command(after_long_help = NAME_HELP)]
    Name(Name),
    /// Search in prompts, answers, thinking, commands and paths
    #[command(after_long_help = SEARCH_HELP)]
    Search(Search),
    /// Show what agents have used: tokens, cost, turns, time
    #[command(after_long_help = USAGE_HELP)]
    Usage(Usage),
    /// Show a session: state, settings, usage, pending requests
    #[command(after_long_help = SHOW_HELP)]
    Show(Show),
    /// Export a session's log or a transcript
    #[command(after_long_help = EXPORT_HELP)]
    Export(Export),
    /// Wait until sessions are idle, end, or need an answer
    #[command(after_long_help = WAIT_HELP)]
    Wait(Wait),
    /// Send a prompt to a session
    ///
    /// A session that has ended is resumed.
    #[command(after_long_help = SEND_HELP)]
    Send(Send),
    /// Interrupt the current turn of sessions
    #[command(after_long_help = INTERRUPT_HELP)]
    Interrupt(Sessions),
    /// End sessions
    #[command(after_long_help = STOP_HELP)]
    Stop(Sessions),
    /// List and answer requests of agents
    #[command(after_long_help = PERMIT_HELP)]
    Permit(Permit),
    /// Delete old sessions
    #[command(after_long_help = PRUNE_HELP)]
    Prune(Prune),
    /// List agents: version, tested, signed in
    #[command(after_long_help = AGENTS_HELP)]
    Agents(Agents),
    /// Check the installation and suggest fixes
    #[command(after_long_help = DOCTOR_HELP)]
    Doctor(Doctor),
    /// Serve sessions over HTTP and WebSocket
    ///
    /// By default the server listens on loopback only and every client needs a token. stderr shows
    /// the address and the token file.
    #[command(after_long_help = SERVE_HELP)]
    Serve(Serve),
    /// Show, create and revoke access tokens
    #[command(after_long_help = TOKEN_HELP)]
    Token(Token),
    /// List and revoke trusted project directories
    #[command(after_long_help = TRUST_HELP)]
    Trust(Trust),
    /// Drop-in replacement for the `claude` program, with any agent
    ///
    /// Accepts claude's flags (`agentwire claude --help` lists them) and speaks its stream-json, so
    /// that the official SDKs work with every agent. A link named `claude` to agentwire does the same.
    #[command(
        disable_help_flag = true,
        disable_version_flag = true,
        after_long_help = CLAUDE_HELP
    )]
    Claude(Claude),
    /// Serve the unified protocol on stdin and stdout
    ///
    /// Reads command frames, one JSON object per line. Writes events and replies. Any number of
    /// sessions.
    #[command(after_long_help = UNIFIED_HELP)]
    Unified,
    /// Serve JSON-RPC 2.0 on stdin and stdout
    ///
    /// Reads calls, one JSON object or batch per line. Writes replies, and notifications with
    /// Claude-shaped messages. Any agent, any number of sessions.
    #[command(after_long_help = RPC_HELP)]
    Rpc,
    /// Serve the NDJSON backend protocol on stdin and stdout
    ///
    /// For programs written for Claude's SDK behind a pipe: sessions, messages and callbacks, one
    /// JSON object per line. Any agent, any number of sessions.
    #[command(after_long_help = BACKEND_HELP)]
    Backend,
    /// Serve scripted model APIs for tests, without a key
    ///
    /// Claude Code, Codex and Gemini call it in place of their vendor's API. The prompt contains the
    /// answer as steps in double square brackets, so you can test a setup from end to end,
    /// reproducibly, without a key, a network or cost.
    #[command(after_long_help = model_server_help())]
    ModelServer(ModelServer),
    /// Run the demo agent: Claude's protocol and flags, real tools, no model
    ///
    /// Speaks stream-json on stdin and stdout as `claude -p` does. Its prompt scripts it; see
    /// docs/demo-agent.md.
    #[command(disable_help_flag = true)]
    DemoAgent(DemoAgent),
    /// Print JSON Schemas and the OpenAPI document
    #[command(after_long_help = SCHEMA_HELP)]
    Schema(Schema),
    /// Print help for a command
    #[command(hide = true)]
    Help(Help),
    /// Print a shell completion script
    #[command(after_long_help = COMPLETIONS_HELP)]
    Completions(Completions),
    /// Print the man pages
    #[command(after_long_help = MAN_HELP)]
    Man(ManPages),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Translate {
    /// Format of the input
    #[arg(long, value_parser = From::parser(), default_value = From::AUTO)]
    pub(crate) from: From,

    /// Format of the output
    #[arg(long, value_enum, default_value_t = To::Unified)]
    pub(crate) to: To,

    /// Which events to write
    #[arg(long, value_parser = one_of(PROFILES), default_value = "full")]
    pub(crate) profile: Profile,

    /// With `--to claude`, also write partial text (`stream_event` lines)
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// The input is a transcript of both sides (`{"dir":"in"|"out","line":…}` per line); translate
    /// the agent's side
    #[arg(long)]
    pub(crate) transcript: bool,

    /// Session id for the events [default: a new UUID]
    #[arg(long, value_name = "ID")]
    pub(crate) session_id: Option<String>,

    /// Print a summary on stderr at the end
    #[arg(long)]
    pub(crate) summary: bool,

    /// File to read [default: stdin]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// The format of a recording; `None` detects it from the first lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct From(pub(crate) Option<&'static str>);

impl From {
    const AUTO: &'static str = "auto";

    fn parser() -> impl TypedValueParser<Value = Self> {
        let auto = PossibleValue::new(Self::AUTO).help("Detect from the first lines");
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
    /// Claude Code messages; Claude's own lines pass unchanged
    Claude,
    /// Messages of the insights protocol
    Insights,
    /// Events of the board API
    Board,
}

/// A value of an option: its name, the value, and what it does.
type Choice<T> = (&'static str, T, &'static str);

/// One of these values.
fn one_of<T: Copy + std::marker::Send + Sync + 'static>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, _, does)| PossibleValue::new(*name).help(*does));
    PossibleValuesParser::new(names).try_map(move |name| {
        let chosen = choices.iter().find(|(known, ..)| *known == name);
        chosen.map(|(_, value, _)| *value).ok_or("unknown value")
    })
}

const PROFILES: &[Choice<Profile>] = &[
    ("core", Profile::Core, "Only the specification's twelve event types, without native lines"),
    ("lean", Profile::Lean, "All event types, without native lines"),
    ("full", Profile::Full, "All event types, with the agent's native lines"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Play {
    /// Speed factor: 2 is twice as fast as recorded; `max` or 0 skips all pauses
    #[arg(long, default_value = "1", value_name = "X")]
    pub(crate) speed: Speed,

    /// Transcript (`{"dir":"in"|"out","t_ms":N,"line":…}` per line) or the agent's plain output
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Replay speed relative to the recording.
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
    /// Which schema
    #[arg(value_enum)]
    pub(crate) of: SchemaOf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    /// A unified event
    Event,
    /// The request that starts a session
    Request,
    /// A command frame of the unified protocol
    Command,
    /// A reply to a command; the definition `Replies` maps commands to replies
    Reply,
    /// The HTTP API, as OpenAPI 3.1
    Openapi,
    /// The settings file config.toml
    Config,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Help {
    /// Command, such as `run` or `permit allow` [default: the program's own help]
    #[arg(value_name = "COMMAND")]
    pub(crate) verb: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// Your shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManPages {
    /// Command whose page to print, such as `run` or `permit allow` [default: the program's own page]
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) verb: Vec<String>,

    /// Write all pages into this directory
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// Parses a whole number and names the range if it is not one.
fn whole(text: &str, from: u64, to: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (from..=to).contains(number));
    number.ok_or_else(|| match to {
        u64::MAX => format!("expected a whole number, {from} or more"),
        to => format!("expected a whole number from {from} to {to}"),
    })
}

fn any_number(text: &str) -> Result<u64, String> {
    whole(text, 0, u64::MAX)
}

fn any_size(text: &str) -> Result<usize, String> {
    whole(text, 0, u64::MAX).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

fn positive_size(text: &str) -> Result<NonZeroUsize, String> {
    let number = whole(text, 1, u64::MAX)?;
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    Ok(NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN))
}

fn port(text: &str) -> Result<u16, String> {
    let number = whole(text, 0, u16::MAX.into())?;
    Ok(u16::try_from(number).unwrap_or(u16::MAX))
}

const HELP: &str = "\
Examples:
  agentwire run -a demo                      # a tour: no key, no network
  agentwire run 'Fix the failing test'       # the first of claude, codex, gemini that is installed
  agentwire doctor                           # checks the installation
  agentwire serve --open                     # sessions in your browser";

const SCHEMA_HELP: &str = "\
Examples:
  agentwire schema event > event.schema.json
  agentwire schema openapi > openapi.json
  agentwire schema config > config.schema.json    # for your editor's checks of config.toml";

const CLAUDE_HELP: &str = r#"Examples:
  agentwire claude -p 'Say hi'
  AGENTWIRE_AGENT=codex agentwire claude -p 'Say hi' --output-format json
  mkdir -p ~/bin && ln -s "$(command -v agentwire)" ~/bin/claude

`agentwire claude --help` lists the flags. Reference: docs/claude-drop-in.md"#;

const UNIFIED_HELP: &str = r#"Try it:
  echo '{"id":1,"command":"start","agentType":"demo","prompt":"/say hello"}' | agentwire unified

Frames: {"id":…,"command":…,"sessionId":…}, with the commands start, attach, prompt, interrupt, stop,
finish, settle, configure, query and rewind. A frame gets {"id","reply":…} or
{"id","error":{"code","message"}}. Events have a "type", and never the "id" of a frame.
Reference: docs/protocols/unified.md"#;

const RPC_HELP: &str = r#"Try it:
  echo '{"jsonrpc":"2.0","id":1,"method":"run","params":{"agent":"demo","prompt":"/say hi"}}' |
    agentwire rpc

The reply is the turn's result. Before it come notifications: "message" (assistant, user, system,
result), "request" (answer it with request/settle), and "event" if you set "events": true.
Methods: run, session/create, session/send, session/interrupt, session/kill, session/list,
session/events, session/attach, session/configure, request/settle, query, control.
Sessions run until you kill them or stdin ends. Reference: docs/protocols/jsonrpc.md"#;

const BACKEND_HELP: &str = r#"Try it:
  echo '{"type":"session.create","id":"1","payload":{"prompt":"/say hi","agent":"demo"}}' |
    agentwire backend

In: session.create, session.send, session.interrupt, session.kill, callback.response, query.call.
Out: session.created, sdk.message, callback.request, query.result, session.interrupted,
session.killed, error.
The agent is the one that the session names, else AGENTWIRE_AGENT, else the one in the settings,
else the first installed of claude, codex, gemini, else the demo agent.
Reference: docs/protocols/backend.md"#;

const TRANSLATE_HELP: &str = "\
Examples:
  claude -p --output-format stream-json --verbose 'Say hi' | agentwire translate
  codex exec --json 'Say hi' </dev/null | agentwire translate --from codex --profile core
  agentwire translate --from gemini recorded.jsonl --summary > events.jsonl
  agentwire translate recorded.jsonl | jq -rj 'select(.type==\"textChunk\").content'
  agentwire translate --from codex --to claude recorded.jsonl |
    jq -r 'select(.type==\"result\").result'

Exit code: 0 for any input; 1 if reading or writing fails; 2 for wrong arguments.";

const PLAY_HELP: &str = "\
Examples:
  agentwire play agent.jsonl | agentwire translate
  printf '#!/bin/sh\\nexec agentwire play %s\\n' \"$PWD/codex.jsonl\" > fake-codex
  chmod +x fake-codex
  AGENTWIRE_CODEX_BIN=$PWD/fake-codex agentwire run -a codex -C ~/project 'Say hi'

A last line {\"dir\":\"exit\",\"code\":N} means that the recorded agent exited by itself. Otherwise `play` \
exits when its client does.
Exit code: that of the recorded agent, or 0 if unknown; 1 if the file cannot be replayed.";

const COMPLETIONS_HELP: &str = "\
Examples:
  agentwire completions bash > ~/.local/share/bash-completion/completions/agentwire
  agentwire completions zsh > ~/.zfunc/_agentwire
  agentwire completions fish > ~/.config/fish/completions/agentwire.fish";

const MAN_HELP: &str = "\
Examples:
  agentwire man | man -l -
  agentwire man run | man -l -
  agentwire man permit allow | man -l -
  agentwire man -o ~/.local/share/man/man1";
