//! Names and results of tools, for wires without their own terms for them.

use agentwire_protocol::event::ToolStarted;
use agentwire_protocol::{Json, Text};

use crate::claude::tools::{ToolCall, ToolUse};
use crate::json::{Scanner, Value};

/// A call under Claude's name for it, if there is one.
pub(crate) fn tool_use(tool: &ToolStarted<'_>) -> ToolUse {
    let title = tool.title.as_ref().map(Text::decode);
    let server = tool.server.as_ref().map(Text::decode);
    ToolCall {
        name: &tool.tool_name.decode(),
        kind: tool.kind,
        server: server.as_deref(),
        input: tool.arguments.as_ref(),
        title: title.as_deref(),
    }
    .as_claude()
}

/// A string, the texts of content blocks, or JSON as it is.
pub(crate) fn result_text(scanner: &mut Scanner, result: &Json<'_>) -> String {
    let Ok(document) = scanner.scan_tolerant(result.get()) else {
        return result.get().to_owned();
    };
    let root = document.root();
    if let Some(text) = root.string() {
        return text.into_owned();
    }
    let texts: Vec<_> =
        root.items().filter_map(|block| block.get("text").and_then(Value::string)).collect();
    match texts.is_empty() {
        true => result.get().to_owned(),
        false => texts.join("\n"),
    }
}
