//! A request that waits for an answer, with what is needed to judge and settle it.

use agentwire_dialects::describe::AgentTools;
use agentwire_dialects::mcp;
use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::{RequestKind, RequestRaised, ToolKind};
use agentwire_protocol::{Json, Text};

use crate::budget::SMALL;

/// What the rules need to know about a tool call.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The name is only its title, which the model may have written.
    pub(super) is_title: bool,
    pub(super) kind: ToolKind,
    pub(super) server: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct PendingRequest {
    pub(super) id: String,
    /// Describes its call.
    pub(super) tools: &'static AgentTools,
    pub(super) kind: RequestKind,
    pub(super) agent: Agent<'static>,
    pub(super) digest: String,
    pub(super) tool_name: Option<String>,
    pub(super) input: Option<Json<'static>>,
    pub(super) title: Option<String>,
    pub(super) blocked_path: Option<String>,
    /// The agent warns about it.
    pub(super) warns: bool,
    /// The agent may have left its directory.
    pub(super) moved: bool,
    /// An answer cannot change its input.
    pub(super) is_fixed: bool,
    pub(super) tool: Option<Tool>,
    pub(super) tool_use_id: Option<String>,
    /// The keys that may answer its questions: their texts and ids.
    pub(super) questions: Vec<String>,
    /// The rules that the agent suggests.
    pub(super) suggestions: Option<Json<'static>>,
    pub(super) asker: Asker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// The agent, on its own wire.
    Agent,
    /// The gateway itself, at a limit.
    Limit,
    /// The gateway itself, before it starts an agent in a project that is not trusted yet.
    Trust,
    /// The agent, as the peer of an MCP server that the client hosts.
    Relay,
}

impl PendingRequest {
    /// A request whose call is not known.
    pub(super) fn new(
        request: &RequestRaised<'_>,
        agent: &Agent<'_>,
        asker: Asker,
        tools: &'static AgentTools,
    ) -> Self {
        let text = |text: &Option<Text<'_>>| text.as_ref().map(Text::to_string);
        Self {
            id: request.request_id.to_string(),
            tools,
            kind: request.kind,
            agent: owned(agent),
            digest: request.input_digest.clone(),
            tool_name: text(&request.tool_name),
            input: request.input.as_ref().map(|input| stored_input(input, asker)),
            title: text(&request.title),
            blocked_path: text(&request.blocked_path),
            warns: request.warning.is_some(),
            moved: false,
            is_fixed: request.input_is_fixed,
            tool: None,
            tool_use_id: text(&request.tool_use_id),
            questions: request
                .questions
                .iter()
                .flat_map(|asked| asked.id.iter().chain([&asked.question]).map(Text::to_string))
                .collect(),
            suggestions: request.suggestions.clone().map(Json::into_owned),
            asker,
        }
    }
}

/// The agent, independent of the event that names it.
pub(super) fn owned(agent: &Agent<'_>) -> Agent<'static> {
    Agent { id: agent.id.clone().into_owned(), parent: agent.parent.clone().map(Text::into_owned) }
}

/// What is kept of a request's input in memory. The log has the whole message to an MCP server, so a large
/// one uses no memory while it waits for an answer.
fn stored_input(input: &Json<'_>, asker: Asker) -> Json<'static> {
    match asker {
        Asker::Relay if input.get().len() > SMALL => mcp::head(input),
        _ => input.clone().into_owned(),
    }
}
