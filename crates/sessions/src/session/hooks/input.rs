//! The input of a hook, in Claude's format.

use agentwire_dialects::hooks;
use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::{RequestRaised, ToolKind, ToolStarted};
use agentwire_protocol::{ApprovalMode, Json, Text};
use serde::Serialize;

use super::super::pending_request::{PendingRequest, owned};
use super::output::Output;
use crate::store::Record;

#[derive(Debug, Default, Serialize)]
pub(super) struct Input {
    pub(super) session_id: String,
    /// Always empty: the log is the transcript.
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
    /// Fills in the fields that every hook gets.
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
}

#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    /// Claude's name for such a tool.
    pub(super) name: String,
    /// The agent's name for it.
    pub(super) own: String,
    pub(super) input: Json<'static>,
    pub(super) agent: Agent<'static>,
    kind: ToolKind,
    server: Option<String>,
    /// The arguments as the agent reported them.
    given: Option<Json<'static>>,
    pub(super) pre_tool_use: PreToolUse,
    /// It has produced output, or will run whatever anyone answers.
    pub(super) is_running: bool,
}

/// The state of the call's `PreToolUse`.
#[derive(Clone, Debug, Default)]
pub(super) enum PreToolUse {
    /// Not raised.
    #[default]
    NotRaised,
    /// Its hooks are open, as that occasion.
    Raised(u64),
    /// Its hooks are answered, and the agent may still ask.
    Answered(Output),
    /// Nothing more to do.
    Done,
}

impl ToolCall {
    pub(super) fn started(tool: &ToolStarted<'_>, agent: &Agent<'_>) -> Self {
        let own = tool.tool_name.to_string();
        let server = tool.server.as_ref().map(Text::to_string);
        Self::new(own, tool.kind, server, tool.arguments.as_ref(), tool.title.as_ref(), agent)
    }

    /// The call that a permission is about; `known` is what was reported of it before.
    pub(super) fn asked(
        request: &RequestRaised<'_>,
        agent: &Agent<'_>,
        known: Option<&Self>,
    ) -> Self {
        let own = request.tool_name.as_ref().map(Text::to_string);
        let own = own.or(known.map(|known| known.own.clone())).unwrap_or_default();
        let kind = known.map(|known| known.kind).unwrap_or_default();
        let server = known.and_then(|known| known.server.clone());
        let given = known.and_then(|known| known.given.as_ref());
        let input = hooks::overlaid(given, request.input.as_ref());
        Self {
            pre_tool_use: PreToolUse::Done,
            ..Self::new(own, kind, server, input.as_ref(), request.title.as_ref(), agent)
        }
    }

    /// The call that a permission is about, if nothing else is known of it.
    pub(super) fn vague(raised: &PendingRequest) -> Self {
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
        let title = title.map(Text::decode);
        let (server_name, title) = (server.as_deref(), title.as_deref());
        let call = hooks::ToolCall { name: &own, kind, server: server_name, input, title };
        let given = input.map(|input| input.clone().into_owned());
        let hooks::ToolUse { name, input, .. } = hooks::shown(&call);
        let (pre_tool_use, is_running) = (PreToolUse::NotRaised, false);
        let agent = owned(agent);
        Self { name, own, input, agent, kind, server, given, pre_tool_use, is_running }
    }

    /// Whether hooks would get the same input for the other call.
    pub(super) fn is_reported_like(&self, other: &Self) -> bool {
        (&self.name, self.input.get()) == (&other.name, other.input.get())
    }

    /// The names that matchers are compared with.
    pub(super) fn names(&self) -> [&str; 2] {
        [&self.name, &self.own]
    }

    pub(super) fn hook_input(&self, id: Option<&str>) -> Input {
        Input {
            tool_name: Some(self.name.clone()),
            tool_input: Some(self.input.clone()),
            tool_use_id: id.map(str::to_owned),
            ..Input::default()
        }
    }
}
