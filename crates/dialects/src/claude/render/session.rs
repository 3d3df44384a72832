//! What is known about the session: everything that `system/init` reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use agentwire_protocol::event::{AgentInfo, RequestKind, SessionStarted, Status, StatusChanged};
use agentwire_protocol::{AgentType, EventKind, Json, SessionConfig, TokenUsage};
use serde_json::json;

use super::VERSION;
use super::frames::{Init, Server, Usage};
use super::output::MessageWriter;
use crate::agent::mode_name;
use crate::json::{Scanner, Value};
use crate::program;
use crate::program::CacheCount;

/// The model of an agent that does not report one: Claude's word for "whatever is set".
const UNKNOWN_MODEL: &str = "default";

/// How many MCP servers are remembered.
const SERVER_LIMIT: usize = 256;

/// How many tools of each server are remembered.
const TOOL_LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The agent, if the start of the session was seen.
    pub(super) agent: Option<AgentType>,
    model: Option<String>,
    mode: Option<&'static str>,
    cwd: Option<String>,
    tools: Vec<String>,
    commands: Vec<String>,
    agents: Vec<String>,
    servers: BTreeMap<String, &'static str>,
    /// The servers' tools, if they are reported per server.
    offered: BTreeMap<String, BTreeSet<String>>,
    /// The client's servers whose tools are not reported yet.
    awaited: BTreeSet<String>,
    /// How many tokens were in the context when last reported, and how many it can hold.
    pub(super) context_used: u64,
    pub(super) context_size: u64,
    scanner: Scanner,
}

impl Session {
    /// Learns what the event reports about the session as a whole.
    pub(super) fn update_info(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::SessionStarted(started) => self.started(started),
            EventKind::StatusChanged(change) => self.changed(change),
            EventKind::UsageReported(report) => {
                self.context_used = report.context_used.unwrap_or(self.context_used);
                self.context_size = report.context_size.unwrap_or(self.context_size);
            }
            // A server that the agent speaks to is connected.
            EventKind::RequestRaised(request) if request.kind == RequestKind::Mcp => {
                request.name.iter().for_each(|name| self.server(&name.decode(), "connected"));
            }
            _ => {}
        }
    }

    fn started(&mut self, started: &SessionStarted<'_>) {
        self.agent = Some(started.agent_type);
        self.model.clone_from(&started.config.model);
        self.cwd.clone_from(&started.config.working_directory);
        self.mode = configured_mode(&started.config);
        for (name, server) in started.config.mcp_servers.iter().flatten() {
            self.server(name, "pending");
            let is_hosted = server.kind.as_deref() == Some("sdk");
            if is_hosted && self.servers.contains_key(name) {
                self.awaited.insert(name.clone());
            }
        }
        started.info.iter().for_each(|info| self.info(info));
    }

    fn changed(&mut self, change: &StatusChanged<'_>) {
        change.info.iter().for_each(|info| self.info(info));
        let message = change.message.as_ref().map(|message| message.decode());
        match (change.status, message) {
            (Status::Model, Some(model)) => self.model = Some(model.into_owned()),
            (Status::Mode, Some(mode)) => self.mode = claude_mode(&mode).or(self.mode),
            (Status::McpServer, Some(name)) => {
                let details = change.details.as_ref();
                let status = details.and_then(|details| word(&mut self.scanner, details, "status"));
                if let Some(status) = status.as_deref().and_then(server_status) {
                    self.server(&name, status);
                    if status == "failed" {
                        self.awaited.remove(&*name);
                    }
                }
                self.offer(&name, details);
            }
            (Status::Commands, _) => {
                if let Some(details) = change.details.as_ref().filter(is_list) {
                    self.commands = names(&mut self.scanner, details);
                }
            }
            _ => {}
        }
    }

    fn info(&mut self, info: &AgentInfo<'_>) {
        if let Some(model) = &info.model {
            self.model = Some(model.to_string());
        }
        if let Some(cwd) = &info.working_directory {
            self.cwd = Some(cwd.to_string());
        }
        // The client knows the mode that it asked for; the agent may run in another.
        if self.mode.is_none() {
            self.mode = info.mode.as_ref().and_then(|mode| claude_mode(&mode.decode()));
        }
        for (known, told) in [
            (&mut self.tools, &info.tools),
            (&mut self.commands, &info.commands),
            (&mut self.agents, &info.agents),
        ] {
            if let Some(told) = told.as_ref().filter(|told| is_list(told)) {
                *known = names(&mut self.scanner, told);
            }
        }
        if let Some(told) = &info.mcp_servers {
            let Ok(document) = self.scanner.scan(told.get()) else { return };
            let servers: Vec<(String, &'static str)> = document
                .root()
                .items()
                .filter_map(|server| {
                    let status = server.get("status").and_then(Value::string);
                    Some((name(server)?, status.as_deref().and_then(server_status)?))
                })
                .collect();
            servers.iter().for_each(|(name, status)| self.server(name, status));
        }
    }

    /// A server reported its tools.
    fn offer(&mut self, server: &str, details: Option<&Json<'_>>) {
        let Some(details) = details else { return };
        let Ok(document) = self.scanner.scan(details.get()) else { return };
        let Some(tools) = document.root().get("tools") else { return };
        let names: Vec<String> = tools.items().take(TOOL_LIMIT).filter_map(name).collect();
        self.awaited.remove(server);
        if self.servers.contains_key(server) {
            let known = self.offered.entry(server.to_owned()).or_default();
            known.extend(names);
            while known.len() > TOOL_LIMIT {
                known.pop_last();
            }
        }
    }

    /// The MCP servers, as Claude lists them when asked.
    pub(super) fn servers(&self) -> Vec<serde_json::Value> {
        let servers = self.servers.iter().map(|(name, status)| {
            let tools = self.offered.get(name).into_iter().flatten();
            let tools: Vec<_> = tools.map(|tool| json!({ "name": tool })).collect();
            json!({ "name": name, "status": status, "tools": tools })
        });
        servers.collect()
    }

    /// Whether some of the client's servers have not reported their tools, which `init` lists.
    pub(super) fn awaits_tools(&self) -> bool {
        !self.awaited.is_empty()
    }

    pub(super) fn await_no_more(&mut self) {
        self.awaited.clear();
    }

    fn server(&mut self, name: &str, status: &'static str) {
        if self.servers.len() < SERVER_LIMIT || self.servers.contains_key(name) {
            self.servers.insert(name.to_owned(), status);
        }
    }

    pub(super) fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(UNKNOWN_MODEL)
    }

    /// Tokens as Claude counts them.
    pub(super) fn usage(&self, usage: &TokenUsage) -> Usage {
        let cached = usage.cached_tokens.unwrap_or(0);
        let created = usage.cache_creation_tokens.unwrap_or(0);
        let count = self.agent.map_or(CacheCount::Unknown, |agent| program(agent).cache);
        let within = match count {
            CacheCount::WithinInput => true,
            CacheCount::BesideInput => false,
            // An agent that counts cached tokens next to the input also counts them in the total.
            CacheCount::Unknown => {
                usage.total_tokens
                    < usage.input_tokens.saturating_add(usage.output_tokens).saturating_add(cached)
            }
        };
        let less = if within { cached.saturating_add(created) } else { 0 };
        Usage {
            input_tokens: usage.input_tokens.saturating_sub(less),
            cache_creation_input_tokens: created,
            cache_read_input_tokens: cached,
            output_tokens: usage.output_tokens,
            ..Usage::default()
        }
    }

    /// The mode, if one was reported.
    pub(super) fn mode(&self) -> Option<&'static str> {
        self.mode
    }

    /// Writes `system/init`.
    pub(super) fn init(&self, writer: &mut MessageWriter<'_>) {
        let servers = self.servers.iter().map(|(name, status)| Server { name, status });
        let offered = self.offered.iter().flat_map(|(server, tools)| {
            tools.iter().map(move |tool| format!("mcp__{server}__{tool}"))
        });
        let mut tools = self.tools.clone();
        tools.extend(offered.filter(|tool| !self.tools.contains(tool)));
        let uuid = writer.uuid();
        let session_id = writer.session_id;
        writer.frame(&Init {
            subtype: "init",
            cwd: self.cwd.as_deref().unwrap_or_default(),
            session_id,
            tools: &tools,
            mcp_servers: servers.collect(),
            model: self.model(),
            permission_mode: self.mode.unwrap_or("default"),
            slash_commands: &self.commands,
            api_key_source: "none",
            claude_code_version: VERSION,
            output_style: "default",
            agents: &self.agents,
            skills: [],
            plugins: [],
            uuid,
        });
    }
}

fn configured_mode(config: &SessionConfig) -> Option<&'static str> {
    let own = config.permission_mode.as_deref().and_then(claude_mode);
    own.or(config.approval_mode.map(mode_name))
}

/// Claude's name for a mode of any agent; `None` if the word is not a mode.
pub(crate) fn claude_mode(word: &str) -> Option<&'static str> {
    match word {
        "default" | "ask" | "untrusted" | "on-request" | "on-failure" => Some("default"),
        "acceptEdits" | "autoEdit" | "auto_edit" | "auto-edit" => Some("acceptEdits"),
        "bypassPermissions" | "autoAll" | "yolo" | "never" => Some("bypassPermissions"),
        "plan" => Some("plan"),
        "dontAsk" => Some("dontAsk"),
        "auto" => Some("auto"),
        _ => None,
    }
}

/// Claude's name for a server's state.
fn server_status(word: &str) -> Option<&'static str> {
    match word {
        "connected" | "ready" => Some("connected"),
        "pending" | "starting" => Some("pending"),
        "failed" | "error" | "cancelled" => Some("failed"),
        "needs-auth" => Some("needs-auth"),
        "disabled" => Some("disabled"),
        _ => None,
    }
}

fn is_list(json: &&Json<'_>) -> bool {
    json.get().starts_with('[')
}

/// The names in a list of names, or of objects that have one.
fn names(scanner: &mut Scanner, list: &Json<'_>) -> Vec<String> {
    let Ok(document) = scanner.scan(list.get()) else { return Vec::new() };
    document.root().items().filter_map(name).collect()
}

fn name(item: Value<'_>) -> Option<String> {
    item.string().or_else(|| item.get("name")?.string()).map(Cow::into_owned)
}

fn word(scanner: &mut Scanner, object: &Json<'_>, field: &str) -> Option<String> {
    let document = scanner.scan(object.get()).ok()?;
    document.root().get(field)?.string().map(Cow::into_owned)
}
