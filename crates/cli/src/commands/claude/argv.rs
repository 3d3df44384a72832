//! The command line of the `claude` program, for sessions without an interactive screen.
//!
//! [`parse`] looks at the words only, so that `--version` is cheap. [`Arguments::with`] interprets them
//! for an agent and reads the files that they name.

mod command_line;
mod config;
mod flag;
mod help;
mod sources;
mod table;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use agentwire_dialects::program;
use agentwire_protocol::{AgentType, SessionConfig};
use uuid::Uuid;

pub(crate) use self::command_line::{CommandLine, invalid};
pub(crate) use self::config::rules;
pub(crate) use self::flag::{Fate, Fates, Flag, Group, Takes, flag};

#[derive(Debug)]
pub(crate) enum Action {
    Version,
    /// `--help` lists every flag, `-h` the common ones.
    Help {
        is_short: bool,
    },
    Session(Arguments),
}

/// A well-formed command line that was not checked against an agent yet.
#[derive(Clone, Debug)]
pub(crate) struct Arguments(CommandLine);

/// The session that a command line describes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Invocation {
    /// The prompt on the command line.
    pub(crate) prompt: Option<String>,
    pub(crate) print: bool,
    pub(crate) input: InputFormat,
    pub(crate) output: OutputFormat,
    pub(crate) verbose: bool,
    pub(crate) config: SessionConfig,
    /// Permissions are asked from the client; otherwise they are denied.
    pub(crate) asks_client: bool,
    /// The mode may change to `bypassPermissions`.
    pub(crate) may_bypass: bool,
    pub(crate) resume: Option<Resume>,
    /// The resumed session gets a new id.
    pub(crate) fork: bool,
    /// A UUID.
    pub(crate) session_id: Option<String>,
    pub(crate) include_partial: bool,
    pub(crate) forward_subagent_text: bool,
    pub(crate) replay_user_messages: bool,
    pub(crate) no_session_persistence: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputFormat {
    Text,
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resume {
    Continue,
    Session(String),
}

/// The error for a wrong command line, for stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) exit: u8,
}

/// Reads the arguments, without the program's name.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Action, Refused> {
    let args: Vec<OsString> = args.collect();
    let is_short = !args.iter().any(|arg| arg == "--help");
    let words = CommandLine::read(args.into_iter(), &[])?;
    if words.has("--version") {
        return Ok(Action::Version);
    }
    if words.has("--help") {
        return Ok(Action::Help { is_short });
    }
    let first = words.operands.first().filter(|_| !words.literal);
    if let Some(command) = first.filter(|word| table::COMMANDS.contains(&word.as_str())) {
        return Err(Refused::new(format!(
            "error: agentwire does not support the claude command '{command}'; run the claude program \
             itself, or write '-- {command}' if it is a prompt"
        )));
    }
    Ok(Action::Session(Arguments(words)))
}

/// The text of `agentwire claude --help`, or of `-h`, for this agent.
pub(crate) fn help(agent: AgentType, is_short: bool) -> String {
    if is_short { help::short(agent) } else { help::text(agent) }
}

/// A list of the flags that the agent supports, with more of its own.
pub(crate) fn flag_help(agent: AgentType, own: &'static [Flag]) -> String {
    help::supported(agent, own)
}

impl Arguments {
    /// Interprets the command line for this agent and directory. Reads the files that it names.
    pub(crate) fn with(self, agent: AgentType, directory: &Path) -> Result<Invocation, Refused> {
        let CommandLine { flags, operands, .. } = self.0;
        let mut kept = Vec::new();
        for (flag, value) in flags {
            let says_nothing = value.as_deref().is_some_and(|value| flag.vain.contains(&value));
            match flag.fates.with(agent) {
                _ if says_nothing && !program(agent).speaks_claude() => {}
                Fate::Honoured | Fate::Forwarded => kept.push((flag, value)),
                Fate::Dropped => {}
                Fate::Refused => return Err(Refused::unsupported(flag, agent)),
            }
        }
        let words = Kept(kept);
        let resume = match (words.has("--continue"), words.maybe("--resume")) {
            (_, Some(None | Some(""))) => {
                return Err(Refused::new(
                    "Error: --resume requires a valid session ID or session title when used with \
                     --print. Usage: claude -p --resume <session-id|title>",
                ));
            }
            (_, Some(Some(id))) => Some(Resume::Session(id.to_owned())),
            (true, None) => Some(Resume::Continue),
            (false, None) => None,
        };
        let include_partial = words.has("--include-partial-messages");
        let invocation = Invocation {
            prompt: operands.into_iter().next().filter(|prompt| !prompt.is_empty()),
            print: words.has("--print"),
            input: match words.last("--input-format") {
                Some("stream-json") => InputFormat::StreamJson,
                Some(_) | None => InputFormat::Text,
            },
            output: match words.last("--output-format") {
                Some("stream-json") => OutputFormat::StreamJson,
                Some("json") => OutputFormat::Json,
                Some(_) | None => OutputFormat::Text,
            },
            verbose: words.has("--verbose"),
            config: SessionConfig {
                include_partial_messages: Some(include_partial),
                ..config::config(&words, agent, directory)?
            },
            asks_client: words.last("--permission-prompt-tool") == Some("stdio")
                && words.last("--permission-prompts") != Some("none"),
            may_bypass: words.has("--allow-dangerously-skip-permissions")
                || words.has("--dangerously-skip-permissions"),
            resume,
            fork: words.has("--fork-session"),
            session_id: words.last("--session-id").map(str::to_owned),
            include_partial,
            forward_subagent_text: words.has("--forward-subagent-text"),
            replay_user_messages: words.has("--replay-user-messages"),
            no_session_persistence: words.has("--no-session-persistence"),
        };
        invocation.check(words.has("--resume-session-at"))?;
        Ok(invocation)
    }
}

impl Invocation {
    /// Refuses flags that conflict, in the words of the real program.
    fn check(&self, resumes_at: bool) -> Result<(), Refused> {
        let streams_in = self.input == InputFormat::StreamJson;
        let streams_out = self.output == OutputFormat::StreamJson;
        let is_uuid = |id: &String| id.len() == 36 && Uuid::try_parse(id).is_ok();
        let wrong = [
            (
                !self.session_id.as_ref().is_none_or(is_uuid),
                "Error: Invalid session ID. Must be a valid UUID.",
            ),
            (
                self.session_id.is_some() && self.resume.is_some() && !self.fork,
                "Error: --session-id can only be used with --continue or --resume if \
                 --fork-session is also specified.",
            ),
            (
                streams_in && !streams_out,
                "Error: --input-format=stream-json requires output-format=stream-json.",
            ),
            (
                self.replay_user_messages && !(streams_in && streams_out),
                "Error: --replay-user-messages requires both --input-format=stream-json and \
                 --output-format=stream-json.",
            ),
            (
                self.include_partial && !streams_out,
                "Error: --include-partial-messages requires --print and \
                 --output-format=stream-json.",
            ),
            (
                resumes_at && !matches!(self.resume, Some(Resume::Session(_))),
                "Error: --resume-session-at requires --resume",
            ),
            // A client that streams both ways is a program, and some programs omit `--verbose`.
            (
                streams_out && !streams_in && !self.verbose,
                "Error: When using --print, --output-format=stream-json requires --verbose",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, message)) => Err(Refused::new(message)),
            None => Ok(()),
        }
    }

    /// The real program would open its interactive screen here.
    pub(crate) fn refuse_screen(&self, stdin_is_terminal: bool) -> Result<(), Refused> {
        if self.print || self.input == InputFormat::StreamJson || !stdin_is_terminal {
            return Ok(());
        }
        Err(Refused::new(
            "error: agentwire claude has no interactive mode; use 'agentwire run' for a session in the \
             terminal, or give a prompt with -p",
        ))
    }

    /// The prompt of a session with text input: the words on the command line, then stdin, if it is
    /// not a terminal.
    pub(crate) fn text_prompt(&self, piped: &str) -> Result<String, Refused> {
        let parts = [self.prompt.as_deref().unwrap_or_default(), piped];
        let prompt =
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
        if prompt.trim().is_empty() {
            return Err(Refused::new(
                "Error: Input must be provided either through stdin or as a prompt argument when \
                 using --print",
            ));
        }
        Ok(prompt)
    }
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: 1 }
    }

    /// This agent does not support the flag.
    pub(crate) fn unsupported(flag: &Flag, agent: AgentType) -> Self {
        let whose = if flag.fates.nowhere() {
            "by agentwire".to_owned()
        } else {
            format!("with {}", agent.as_str())
        };
        Self::new(format!("error: option '{}' is not supported {whose}", flag.name()))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

/// The flags that the agent takes, in the given order.
struct Kept(Vec<(&'static Flag, Option<String>)>);

impl Kept {
    fn of<'k>(&'k self, name: &'k str) -> impl DoubleEndedIterator<Item = Option<&'k str>> {
        let these = self.0.iter().filter(move |(flag, _)| flag.name() == name);
        these.map(|(_, value)| value.as_deref())
    }

    fn has(&self, name: &str) -> bool {
        self.of(name).next().is_some()
    }

    /// The last value; the flag may have none.
    fn maybe<'k>(&'k self, name: &'k str) -> Option<Option<&'k str>> {
        self.of(name).next_back()
    }

    fn last<'k>(&'k self, name: &'k str) -> Option<&'k str> {
        self.maybe(name).flatten()
    }

    fn all<'k>(&'k self, name: &'k str) -> impl Iterator<Item = &'k str> {
        self.of(name).flatten()
    }

    /// The last value, with its flag for error messages.
    fn given<'k>(&'k self, name: &str) -> Option<(&'static Flag, &'k str)> {
        let mut these = self.0.iter().rev();
        these.find_map(|(flag, value)| (flag.name() == name).then_some((*flag, value.as_deref()?)))
    }
}
