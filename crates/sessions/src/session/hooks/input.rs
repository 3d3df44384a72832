//! What a hook is told, in Claude's words.

use std::collections::BTreeMap;

use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::{RequestRaised, ToolKind, ToolStarted};
use agentwire_protocol::{ApprovalMode, Json, Text};
use serde::Serialize;
use serde_json::Value;

use super::super::book::Raised;
use super::output::Output;
use crate::store::Record;

type Fields = BTreeMap<String, Json<'static>>;

/// What a hook is told.
#[derive(Debug, Default, Serialize)]
pub(super) struct Input {
    pub(super) session_id: String,
    /// There is none: the log is the transcript.
    pub(super) transcript_path: &'static str,
    pub(super) cwd: String,
    pub(super) permission_mode: String,
    pub(super) hook_event_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_input: Option<Json<'static>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_use_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_response: Option<Json<'static>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_interrupt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop_hook_active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notification_type: Option<&'static str>,
}

impl Input {
    /// With what every hook is told.
    pub(super) fn of(mut self, event: &'static str, record: &Record, agent: &Agent<'_>) -> Self {
        self.session_id = record.summary.id.as_str().to_owned();
        self.cwd = record.summary.working_directory.clone().unwrap_or_default();
        let mode = match record.config.approval_mode.unwrap_or_default() {
            ApprovalMode::Ask | ApprovalMode::AskDangerous => "default",
            ApprovalMode::AutoEdit => "acceptEdits",
            ApprovalMode::AutoAll => "bypassPermissions",
        };
        let own = record.config.permission_mode.clone();
        self.permission_mode = own.unwrap_or_else(|| mode.to_owned());
        self.hook_event_name = event;
        self.agent_id = agent.parent.as_ref().map(|_| agent.id.to_string());
        self
    }

    /// Of a subagent of that kind.
    pub(super) fn subagent(kind: Option<String>) -> Self {
        Self { agent_type: kind, ..Self::default() }
    }
}

/// A tool call, as hooks see it.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    /// What Claude calls such a tool.
    pub(super) name: String,
    /// What the agent calls it.
    pub(super) own: String,
    pub(super) input: Json<'static>,
    pub(super) agent: Agent<'static>,
    kind: ToolKind,
    server: Option<String>,
    pub(super) before: Before,
    /// It has given output, or will run whatever anybody says.
    pub(super) is_running: bool,
}

/// How far the `PreToolUse` of a call is.
#[derive(Clone, Debug, Default)]
pub(super) enum Before {
    /// It was not raised.
    #[default]
    Untold,
    /// Its hooks are open, as that occasion.
    Raised(u64),
    /// Its hooks are answered, and the agent may still ask.
    Answered(Output),
    /// There is nothing more to do.
    Done,
}

impl ToolCall {
    pub(super) fn started(tool: &ToolStarted<'_>, agent: &Agent<'_>) -> Self {
        let own = tool.tool_name.to_string();
        let server = tool.server.as_ref().map(Text::to_string);
        Self::new(own, tool.kind, server, tool.arguments.as_ref(), tool.title.as_ref(), agent)
    }

    /// The call that a permission is about; `known` is what was told of it before.
    pub(super) fn asked(
        request: &RequestRaised<'_>,
        agent: &Agent<'_>,
        known: Option<&Self>,
    ) -> Self {
        let own = request.tool_name.as_ref().map(Text::to_string);
        let own = own.or(known.map(|known| known.own.clone())).unwrap_or_default();
        let kind = known.map(|known| known.kind).unwrap_or_default();
        let server = known.and_then(|known| known.server.clone());
        let input = request.input.as_ref().or(known.map(|known| &known.input));
        Self {
            before: Before::Done,
            ..Self::new(own, kind, server, input, request.title.as_ref(), agent)
        }
    }

    /// The call that a permission is about of which nothing else is known.
    pub(super) fn vague(raised: &Raised) -> Self {
        let own = raised.tool_name.clone().unwrap_or_default();
        let title = raised.title.as_deref().map(Text::from);
        let input = raised.input.as_ref();
        Self::new(own, ToolKind::Other, None, input, title.as_ref(), &raised.agent)
    }

    fn new(
        own: String,
        kind: ToolKind,
        server: Option<String>,
        input: Option<&Json<'_>>,
        title: Option<&Text<'_>>,
        agent: &Agent<'_>,
    ) -> Self {
        let fields: Fields = input.and_then(|input| input.read().ok()).unwrap_or_default();
        let name = match &server {
            Some(server) => format!("mcp__{server}__{own}"),
            None => claude_name(&own, kind, &fields).to_owned(),
        };
        let agent = Agent {
            id: agent.id.clone().into_owned(),
            parent: agent.parent.clone().map(Text::into_owned),
        };
        let title = title.map(Text::decode);
        let input = claude_input(&name, fields, title.as_deref());
        let (before, is_running) = (Before::Untold, false);
        Self { name, own, input, agent, kind, server, before, is_running }
    }

    /// Whether hooks would be told the same of the other.
    pub(super) fn is_told_like(&self, other: &Self) -> bool {
        (&self.name, self.input.get()) == (&other.name, other.input.get())
    }

    /// What matchers look at.
    pub(super) fn names(&self) -> [&str; 2] {
        [&self.name, &self.own]
    }

    /// What a hook is told of it.
    pub(super) fn told(&self, id: Option<&str>) -> Input {
        Input {
            tool_name: Some(self.name.clone()),
            tool_input: Some(self.input.clone()),
            tool_use_id: id.map(str::to_owned),
            ..Input::default()
        }
    }
}

/// What Claude calls such a tool; its own name, where Claude has none.
fn claude_name<'n>(own: &'n str, kind: ToolKind, fields: &Fields) -> &'n str {
    let says = |word: &str| own.contains(word);
    match kind {
        ToolKind::Execute => "Bash",
        ToolKind::Read => "Read",
        ToolKind::Edit if says("write") || says("create") || only_adds(fields) => "Write",
        ToolKind::Edit => "Edit",
        ToolKind::Search if says("glob") => "Glob",
        ToolKind::Search => "Grep",
        ToolKind::Fetch if says("search") => "WebSearch",
        ToolKind::Fetch => "WebFetch",
        ToolKind::Think if says("todo") => "TodoWrite",
        ToolKind::Agent => "Task",
        ToolKind::Question => "AskUserQuestion",
        ToolKind::Think
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Mcp
        | ToolKind::SwitchMode
        | ToolKind::Other => own,
    }
}

/// Codex lists what it changes.
fn only_adds(fields: &Fields) -> bool {
    let changes: Vec<Value> = list(fields, "changes");
    let adds = |change: &Value| change.pointer("/kind/type").is_some_and(|kind| kind == "add");
    !changes.is_empty() && changes.iter().all(adds)
}

/// The agent's own fields and, where they are certain, the ones that hooks look for.
fn claude_input(name: &str, mut fields: Fields, title: Option<&str>) -> Json<'static> {
    match name {
        "Bash" => {
            let command = match fields.get("command").and_then(|command| command.read().ok()) {
                Some(Value::Array(words)) => {
                    Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
                }
                Some(Value::String(_)) => None,
                Some(_) | None => title.map(str::to_owned),
            };
            fields.extend(command.map(|command| ("command".to_owned(), Json::of(&command))));
        }
        "Read" | "Edit" | "Write" if !fields.contains_key("file_path") => {
            let path = only_path(&fields);
            fields.extend(path.map(|path| ("file_path".to_owned(), Json::of(&path))));
        }
        _ => {}
    }
    Json::of(&fields)
}

/// The file that a call touches, if it is one. Of several none stands for the others.
fn only_path(fields: &Fields) -> Option<String> {
    let named = ["path", "absolute_path", "abs_path", "filePath"];
    let named = named.iter().find_map(|name| fields.get(*name)?.read::<String>().ok());
    if named.is_some() {
        return named;
    }
    let paths = ["changes", "locations", "content"].into_iter().flat_map(|name| list(fields, name));
    let mut paths: Vec<String> =
        paths.filter_map(|item| Some(item.get("path")?.as_str()?.to_owned())).collect();
    paths.sort();
    paths.dedup();
    if paths.len() == 1 { paths.pop() } else { None }
}

fn list(fields: &Fields, name: &str) -> Vec<Value> {
    fields.get(name).and_then(|list| list.read().ok()).unwrap_or_default()
}
