//! The flags of Claude's command line that the demo agent supports.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use agentwire_protocol::AgentType;
use serde_json::Value;
use uuid::Uuid;

use super::rules::{Mode, Rule, rules};
use super::script::DIRECTIVES;
use crate::commands::claude::argv::{
    CommandLine, Fate, Fates, Flag, Group, Refused, Takes, flag, flag_help, invalid,
};

/// The version of Claude that the demo agent imitates.
pub(super) const VERSION: &str = "2.1.325 (demo)";

/// The parsed command line.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) model: Option<String>,
    pub(super) mode: Mode,
    /// The mode may change to `bypassPermissions`.
    pub(super) may_bypass: bool,
    /// Permissions are asked on stdout.
    pub(super) asks_on_stdio: bool,
    pub(super) partial_messages: bool,
    pub(super) forward_subagent_text: bool,
    pub(super) session_id: Option<String>,
    pub(super) resume: Option<String>,
    pub(super) fork: bool,
    pub(super) forget: bool,
    pub(super) allowed: Vec<Rule>,
    pub(super) disallowed: Vec<Rule>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) directories: Vec<PathBuf>,
    pub(super) max_turns: Option<u64>,
    pub(super) max_budget_usd: Option<f64>,
    pub(super) mcp_configs: Vec<String>,
    pub(super) system: Option<String>,
    pub(super) append_system: Option<String>,
    pub(super) schema: Option<Value>,
    pub(super) state_dir: Option<PathBuf>,
    /// The prompt on the command line; there are no others.
    pub(super) prompt: Option<String>,
    pub(super) version: bool,
    pub(super) help: bool,
    streams: Streams,
}

#[derive(Debug, Default)]
struct Streams {
    output: bool,
    input: bool,
    verbose: bool,
}

/// The text of `agentwire demo-agent --help`; without the flags that of `-h`.
pub(super) fn help(is_short: bool) -> String {
    let mut help = HELP.to_owned();
    for (name, arguments, does) in DIRECTIVES {
        let _ = writeln!(help, "  {:<45} {does}", format!("/{name} {arguments}").trim_end());
    }
    help.push_str(&match is_short {
        true => "\n`agentwire demo-agent --help` lists the flags.\n".to_owned(),
        false => flag_help(AgentType::Demo, OWN),
    });
    help
}

const HELP: &str = "\
Usage: agentwire demo-agent -p --output-format stream-json --verbose [options] [prompt]

An agent without a model: it speaks Claude's stream-json and runs real tools. To use it, run
`agentwire run -a demo`. Its prompt scripts it; a prompt without directives plays a tour.
Reference: docs/demo-agent.md

Directives, one per line of the prompt:
";

/// The demo agent's own flags.
static OWN: &[Flag] = &[flag(
    &["--state-dir"],
    Takes::One("path"),
    Group::Session,
    Fates::NATIVE,
    "directory for conversations",
)];

impl Flags {
    /// Parses the arguments; errors are in Claude's words.
    pub(super) fn read(args: &[String]) -> Result<Self, String> {
        let words = CommandLine::read(args.iter().map(OsString::from), OWN);
        let words = words.map_err(|refused| refused.message)?;
        let mut flags = Self::default();
        for (flag, value) in &words.flags {
            if flag.fates.with(AgentType::Demo) == Fate::Refused {
                return Err(Refused::unsupported(flag, AgentType::Demo).message);
            }
            match value {
                Some(value) => flags.option(flag, value)?,
                None => flags.switch(flag.name())?,
            }
        }
        flags.prompt = words.operands.into_iter().next();
        flags.check()?;
        Ok(flags)
    }

    /// A flag without a value. Many have no effect without a model, settings or plugins.
    fn switch(&mut self, name: &str) -> Result<(), String> {
        match name {
            "--verbose" => self.streams.verbose = true,
            "--version" => self.version = true,
            "--help" => self.help = true,
            "--include-partial-messages" => self.partial_messages = true,
            "--forward-subagent-text" => self.forward_subagent_text = true,
            "--fork-session" => self.fork = true,
            "--no-session-persistence" => self.forget = true,
            "--allow-dangerously-skip-permissions" => self.may_bypass = true,
            "--dangerously-skip-permissions" => {
                self.may_bypass = true;
                self.mode = Mode::Bypass;
            }
            "--resume" => {
                return Err("Error: --resume requires a valid session ID.".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn option(&mut self, flag: &Flag, value: &str) -> Result<(), String> {
        let text = || Some(value.to_owned());
        let wrong = |what: &str| Err(invalid(flag, value, what).message);
        match flag.name() {
            "--output-format" | "--input-format" if value != "stream-json" => {
                return wrong("The demo agent speaks stream-json only.");
            }
            "--output-format" => self.streams.output = true,
            "--input-format" => self.streams.input = true,
            "--permission-prompt-tool" => self.asks_on_stdio = value == "stdio",
            "--permission-mode" => {
                self.mode = Mode::named(value).unwrap_or_default();
                self.may_bypass |= self.mode == Mode::Bypass;
            }
            "--model" => self.model = text().filter(|model| !matches!(&**model, "" | "default")),
            "--resume" => self.resume = text(),
            "--session-id" if Uuid::try_parse(value).is_err() => {
                return Err("Error: Invalid session ID. Must be a valid UUID.".to_owned());
            }
            "--session-id" => self.session_id = text(),
            "--allowedTools" => self.allowed.extend(rules(value)),
            "--disallowedTools" => self.disallowed.extend(rules(value)),
            "--tools" if value == "default" => self.tools = None,
            "--tools" => {
                let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                self.tools = Some(names.map(str::to_owned).collect());
            }
            "--add-dir" => self.directories.push(PathBuf::from(value)),
            "--max-turns" => match value.parse() {
                Ok(turns) if turns > 0 => self.max_turns = Some(turns),
                _ => return wrong("It must be a positive integer."),
            },
            "--max-budget-usd" => match value.parse() {
                Ok(budget) if budget > 0.0 => self.max_budget_usd = Some(budget),
                _ => return wrong("It must be a positive amount."),
            },
            "--mcp-config" => self.mcp_configs.push(value.to_owned()),
            "--system-prompt" => self.system = text(),
            "--append-system-prompt" => self.append_system = text(),
            "--json-schema" => match serde_json::from_str(value) {
                Ok(schema @ Value::Object(_)) => self.schema = Some(schema),
                _ => return Err("Error: --json-schema is not a valid JSON Schema".to_owned()),
            },
            "--state-dir" => self.state_dir = Some(PathBuf::from(value)),
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.version || self.help {
            return Ok(());
        }
        if !self.streams.output {
            let what = "Error: the demo agent speaks --output-format=stream-json only";
            return Err(what.to_owned());
        }
        if !self.streams.verbose {
            let what = "Error: When using --print, --output-format=stream-json requires --verbose";
            return Err(what.to_owned());
        }
        if !self.streams.input && self.prompt.is_none() {
            let what = "Error: Input must be provided either through stdin with \
                        --input-format=stream-json or as a prompt argument when using --print";
            return Err(what.to_owned());
        }
        if self.session_id.is_some() && self.resume.is_some() && !self.fork {
            let what = "Error: --session-id can only be used with --resume if --fork-session is also \
                        specified.";
            return Err(what.to_owned());
        }
        Ok(())
    }
}
