//! Claude's command line, as far as a demo can mean it.

use std::path::PathBuf;

use serde_json::Value;
use uuid::Uuid;

use super::rules::{Mode, Rule, rules};

/// The version that the demo agent speaks like.
pub(super) const VERSION: &str = "2.1.325 (demo)";

/// What was asked for at the start.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) model: Option<String>,
    pub(super) mode: Mode,
    /// The mode may change to `bypassPermissions`.
    pub(super) may_bypass: bool,
    /// Permissions are asked for on the wire.
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
    /// The prompt on the command line: there is no other.
    pub(super) prompt: Option<String>,
    pub(super) version: bool,
    streams: Streams,
}

#[derive(Debug, Default)]
struct Streams {
    output: bool,
    input: bool,
    verbose: bool,
}

/// Flags that say nothing to an agent without a model, settings or plugins.
const VAIN: [&str; 14] = [
    "--agent",
    "--betas",
    "--debug-file",
    "--effort",
    "--fallback-model",
    "--max-thinking-tokens",
    "--permission-prompts",
    "--plugin-dir",
    "--setting-sources",
    "--settings",
    "--task-budget",
    "--thinking",
    "--thinking-display",
    "--title",
];

impl Flags {
    /// Reads the arguments; an error is what Claude would say of them.
    pub(super) fn read(args: &[String]) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut words = args.iter();
        let mut only_words = false;
        while let Some(word) = words.next() {
            if only_words || !word.starts_with('-') || word == "-" {
                flags.prompt = Some(word.clone());
                continue;
            }
            if word == "--" {
                only_words = true;
                continue;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word.as_str(), None),
            };
            if value.is_none() && flags.switch(name) {
                continue;
            }
            let known = is_option(name);
            match value.or_else(|| known.then(|| words.next().map(String::as_str)).flatten()) {
                Some(value) if known => flags.option(name, value)?,
                None if known => {
                    return Err(format!("error: option '{name} <value>' argument missing"));
                }
                _ => return Err(format!("error: unknown option '{name}'")),
            }
        }
        flags.check()?;
        Ok(flags)
    }

    /// A flag without a value; false if it is none.
    fn switch(&mut self, name: &str) -> bool {
        match name {
            "-p" | "--print" | "--strict-mcp-config" | "--debug" => {}
            "--verbose" => self.streams.verbose = true,
            "-v" | "--version" => self.version = true,
            "--include-partial-messages" => self.partial_messages = true,
            "--forward-subagent-text" => self.forward_subagent_text = true,
            "--fork-session" => self.fork = true,
            "--no-session-persistence" => self.forget = true,
            "--allow-dangerously-skip-permissions" => self.may_bypass = true,
            "--dangerously-skip-permissions" => {
                self.may_bypass = true;
                self.mode = Mode::Bypass;
            }
            _ => return false,
        }
        true
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let text = || Some(value.to_owned());
        let wrong = |what: &str| {
            Err(format!("error: option '{name}' argument '{value}' is invalid. {what}"))
        };
        match name {
            "--output-format" | "--input-format" if value != "stream-json" => {
                return wrong("The demo agent speaks stream-json only.");
            }
            "--output-format" => self.streams.output = true,
            "--input-format" => self.streams.input = true,
            "--permission-prompt-tool" => self.asks_on_stdio = value == "stdio",
            "--permission-mode" => match Mode::named(value) {
                Some(mode) => {
                    self.mode = mode;
                    self.may_bypass |= mode == Mode::Bypass;
                }
                None => return wrong(&format!("Allowed choices are {}.", Mode::names())),
            },
            "--model" => self.model = text().filter(|model| !matches!(&**model, "" | "default")),
            "-r" | "--resume" => self.resume = text(),
            "--session-id" if Uuid::try_parse(value).is_err() => {
                return Err("Error: Invalid session ID. Must be a valid UUID.".to_owned());
            }
            "--session-id" => self.session_id = text(),
            "--allowedTools" | "--allowed-tools" => self.allowed.extend(rules(value)),
            "--disallowedTools" | "--disallowed-tools" => self.disallowed.extend(rules(value)),
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
        if self.version {
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

fn is_option(name: &str) -> bool {
    const OPTIONS: [&str; 21] = [
        "--add-dir",
        "--allowed-tools",
        "--allowedTools",
        "--append-system-prompt",
        "--disallowed-tools",
        "--disallowedTools",
        "--input-format",
        "--json-schema",
        "--max-budget-usd",
        "--max-turns",
        "--mcp-config",
        "--model",
        "--output-format",
        "--permission-mode",
        "--permission-prompt-tool",
        "--resume",
        "--session-id",
        "--state-dir",
        "--system-prompt",
        "--tools",
        "-r",
    ];
    OPTIONS.contains(&name) || VAIN.contains(&name)
}
