//! Turns flags into a session's configuration and into arguments for the agent's program.

use std::path::Path;

use agentwire_dialects::program;
use agentwire_dialects::program::ClaudeFlags;
use agentwire_protocol::session::{OnLimit, OutputFormat, SystemPrompt};
use agentwire_protocol::{AgentType, Json, SessionConfig};
use serde_json::Value;

use super::command_line::invalid;
use super::flag::{Fate, Flag, Takes};
use super::table::FLAGS;
use super::{Kept, Refused, sources};

const SOURCES: [&str; 3] = ["user", "project", "local"];

pub(super) fn config(
    words: &Kept,
    agent: AgentType,
    directory: &Path,
) -> Result<SessionConfig, Refused> {
    let text = |name: &str| words.last(name).map(str::to_owned);
    let mut native = forwarded(words, agent);
    let (mcp_servers, further) = sources::mcp_servers(words, agent, directory)?;
    native.extend(further);
    let (agents, further) = sources::agents(words, directory)?;
    native.extend(further);
    native.extend(prompt_tool(words, agent)?);
    let max_turns = whole(words, "--max-turns")?.filter(|turns| *turns > 0);
    let max_budget_usd = amount(words)?;
    let limited = max_turns.is_some() || max_budget_usd.is_some();
    Ok(SessionConfig {
        working_directory: Some(directory.display().to_string()),
        model: text("--model").filter(|model| !matches!(&**model, "" | "default")),
        permission_mode: permission_mode(words),
        allowed_tools: tools(words, "--allowedTools"),
        blocked_tools: tools(words, "--disallowedTools"),
        max_turns,
        max_budget_usd,
        // The real program never asks whether to continue.
        on_limit: limited.then_some(OnLimit::Fail),
        max_thinking_tokens: whole(words, "--max-thinking-tokens")?,
        system_prompt: system_prompt(words, agent, directory)?,
        additional_directories: list(
            words.all("--add-dir").map(|path| directory.join(path).display().to_string()),
        ),
        mcp_servers,
        agents,
        setting_sources: setting_sources(words)?,
        betas: list(words.all("--betas").flat_map(|betas| betas.split(',')).map(str::to_owned)),
        output_format: schema(words)?,
        fallback_model: text("--fallback-model").filter(|model| !model.is_empty()),
        native_args: Some(native).filter(|args| !args.is_empty()),
        ..SessionConfig::default()
    })
}

/// `--flag=value`, so that no value can become a flag. In the order of the table, so that the order
/// on the command line does not matter. For single values the last one counts.
fn forwarded(words: &Kept, agent: AgentType) -> Vec<String> {
    let mut args = Vec::new();
    for flag in FLAGS.iter().filter(|flag| flag.fates.with(agent) == Fate::Forwarded) {
        let repeats = matches!(flag.takes, Takes::Many(_)) || flag.name().starts_with("--plugin");
        let given = words.of(flag.name()).collect::<Vec<_>>();
        let counts = if repeats { given.len() } else { 1 };
        for value in given.iter().skip(given.len().saturating_sub(counts)) {
            args.push(word(flag, *value));
        }
    }
    args
}

fn word(flag: &Flag, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("{}={value}", flag.name()),
        None => flag.name().to_owned(),
    }
}

/// An MCP tool may answer for the client; only Claude can call it.
fn prompt_tool(words: &Kept, agent: AgentType) -> Result<Option<String>, Refused> {
    match words.given("--permission-prompt-tool") {
        None | Some((_, "" | "stdio")) => Ok(None),
        Some((flag, tool)) => match program(agent).claude_flags {
            ClaudeFlags::All => Ok(Some(word(flag, Some(tool)))),
            ClaudeFlags::Some | ClaudeFlags::None => {
                let (name, agent) = (flag.name(), agent.as_str());
                let message = format!(
                    "error: option '{name}' other than stdio is not supported with {agent}"
                );
                Err(Refused::new(message))
            }
        },
    }
}

fn permission_mode(words: &Kept) -> Option<String> {
    if words.has("--dangerously-skip-permissions") {
        return Some("bypassPermissions".to_owned());
    }
    let mode = words.last("--permission-mode")?;
    Some(if mode == "manual" { "default" } else { mode }.to_owned())
}

fn list(items: impl Iterator<Item = String>) -> Option<Vec<String>> {
    let items: Vec<_> = items.filter(|item| !item.is_empty()).collect();
    Some(items).filter(|items| !items.is_empty())
}

fn tools(words: &Kept, name: &str) -> Option<Vec<String>> {
    list(words.all(name).flat_map(rules).map(str::to_owned))
}

/// The rules of a list, split at commas and spaces outside of parentheses.
pub(crate) fn rules(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = list.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c == ' ')
    });
    parts.map(str::trim).filter(|rule| !rule.is_empty())
}

fn whole(words: &Kept, name: &str) -> Result<Option<u32>, Refused> {
    let Some((flag, value)) = words.given(name) else { return Ok(None) };
    value.trim().parse().map(Some).map_err(|_| invalid(flag, value, "must be a whole number"))
}

fn amount(words: &Kept) -> Result<Option<f64>, Refused> {
    let Some((flag, value)) = words.given("--max-budget-usd") else { return Ok(None) };
    match value.trim().parse::<f64>() {
        Ok(amount) if amount > 0.0 && amount.is_finite() => Ok(Some(amount)),
        Ok(_) | Err(_) => {
            let why = "--max-budget-usd must be a positive number greater than 0";
            Err(invalid(flag, value, why))
        }
    }
}

/// The file's text, then the flag's, then appended text.
fn system_prompt(
    words: &Kept,
    agent: AgentType,
    directory: &Path,
) -> Result<Option<SystemPrompt>, Refused> {
    let part = |name: &str| -> Result<Option<String>, Refused> {
        let file = words.last(&format!("{name}-file")).map(str::to_owned);
        let file = file.map(|path| sources::prompt_file(&path, directory)).transpose()?;
        Ok(match (file, words.last(name)) {
            (Some(file), Some(text)) => Some(format!("{}\n\n{text}", file.trim_end())),
            (file, text) => file.or_else(|| text.map(str::to_owned)),
        })
    };
    let whole =
        part("--system-prompt")?.filter(|text| program(agent).speaks_claude() || !text.is_empty());
    Ok(SystemPrompt::joined(whole, part("--append-system-prompt")?))
}

fn setting_sources(words: &Kept) -> Result<Option<Vec<String>>, Refused> {
    let Some(value) = words.last("--setting-sources") else { return Ok(None) };
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<_> = names.map(str::to_owned).collect();
    match names.iter().find(|name| !SOURCES.contains(&name.as_str())) {
        Some(name) => Err(Refused::new(format!(
            "Error processing --setting-sources: Invalid setting source: {name}. Valid options are: {}",
            SOURCES.join(", ")
        ))),
        None => Ok(Some(names)),
    }
}

fn schema(words: &Kept) -> Result<Option<OutputFormat>, Refused> {
    let Some(text) = words.last("--json-schema") else { return Ok(None) };
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => {}
        Ok(_) => return Err(Refused::new("Error: --json-schema must be a JSON object")),
        Err(error) => {
            return Err(Refused::new(format!("Error: --json-schema is not valid JSON: {error}")));
        }
    }
    let schema = Json::trusted(text.to_owned());
    Ok(Some(OutputFormat { kind: "json_schema".to_owned(), schema }))
}
