//! What a call of Codex said that it does, where its request asks for something else: the dialect puts
//! it beside what is asked for, in the field `startedAs`.

use agentwire_protocol::{AgentType, Json};
use serde_json::Value;

use super::{Asked, input};

/// One thing that the call said.
pub(super) struct Started {
    tool: Option<String>,
    server: Option<String>,
    pub(super) input: Option<Json<'static>>,
}

impl Started {
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked {
            tool_name: self.tool.as_deref(),
            server: self.server.as_deref(),
            input: self.input.as_ref(),
            ..Asked::default()
        }
    }
}

/// All that the call said.
pub(super) fn of(agent: AgentType, asked: Option<&Json<'_>>) -> Vec<Started> {
    let is_beside = |asked: &&Json<'_>| agent == AgentType::Codex && asked.get().contains(FIELD);
    let fields = input::fields(asked.filter(is_beside)).unwrap_or_default();
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    let list = fields.get(FIELD).and_then(Value::as_array).into_iter().flatten();
    let read = |value: &Value| Started {
        tool: text(value, "tool"),
        server: text(value, "server"),
        input: value.get("input").map(Json::of),
    };
    list.map(read).collect()
}

const FIELD: &str = "startedAs";
