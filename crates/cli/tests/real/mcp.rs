//! A small MCP server on stdin and stdout, with two tools that repeat their input.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

/// The argument that makes this program the server.
pub(crate) const VERB: &str = "mcp-server";

pub(crate) fn run() -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(reply) = reply(&request) else { continue };
        if writeln!(stdout, "{reply}").and_then(|()| stdout.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// The server's answer; `None` for a notification.
pub(crate) fn reply(request: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let result = match request["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "echo", "version": "1" },
        }),
        Some("tools/list") => {
            let tool = |name: &str| {
                json!({
                    "name": name,
                    "description": "Says back the word.",
                    "inputSchema": { "type": "object", "properties": { "word": { "type": "string" } } },
                    "annotations": { "readOnlyHint": true },
                })
            };
            json!({ "tools": [tool("say_back"), tool("say_again")] })
        }
        Some("tools/call") => {
            let word = request["params"]["arguments"]["word"].as_str().unwrap_or("nothing");
            json!({ "content": [{ "type": "text", "text": format!("back: {word}") }] })
        }
        _ => json!({}),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
