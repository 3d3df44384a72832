//! The lines with which each agent asks for a call, shows it or runs it, in the recorded formats, and the
//! answers it gets.

use agentwire_dialects::acp::ACP;
use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::claude::CLAUDE;
use agentwire_dialects::codex::CODEX;
use agentwire_dialects::demo::DEMO;
use agentwire_dialects::gemini::OVER_ACP as GEMINI;
use serde_json::{Value, json};

use super::{ToolAction, WORK};

/// An agent's wire. Each way to express a call is a list of lines. There is no way if the wire cannot
/// express it.
pub(super) struct Wire {
    pub(super) name: &'static str,
    pub(super) dialect: &'static dyn AgentDialect,
    /// The lines with which the agent asks.
    pub(super) asks: fn(ToolAction<'_>) -> Vec<Vec<Value>>,
    /// The lines with which it runs the call without asking, or shows it to the gateway's own hook.
    pub(super) runs: fn(ToolAction<'_>) -> Vec<Vec<Value>>,
    /// The line that says that a requested call has run.
    pub(super) ran: fn(&[Value]) -> Value,
    /// The line with which it withdraws its request.
    pub(super) withdraws: fn() -> Value,
    /// Whether a line on its stdin allows the call.
    pub(super) answer: fn(&Value) -> bool,
}

pub(super) const WIRES: &[Wire] = &[
    claude_wire(&CLAUDE),
    claude_wire(&DEMO),
    Wire {
        name: "codex",
        dialect: &CODEX,
        asks: codex,
        runs: codex_runs,
        ran: |asked| {
            let item = asked[0]["params"]["item"].clone();
            codex_item("item/completed", "completed", item)
        },
        withdraws: || {
            json!({ "method": "serverRequest/resolved",
                "params": { "threadId": "t1", "requestId": 0 } })
        },
        answer: |line| {
            let result = &line["result"];
            match result["permissions"].as_object() {
                Some(given) => !given.is_empty(),
                None => word(&[&result["decision"], &result["action"]], "accept", "decline"),
            }
        },
    },
    Wire {
        name: "gemini",
        dialect: &GEMINI,
        asks: |action| gemini(action).into_iter().map(|call| vec![permission(&call)]).collect(),
        runs: |action| gemini(action).into_iter().map(|call| vec![update(call)]).collect(),
        ran: acp_ran,
        withdraws: acp_withdraws,
        answer: acp_answer,
    },
    Wire {
        name: "acp",
        dialect: &ACP,
        asks: |action| acp(action).into_iter().map(|call| vec![permission(&call)]).collect(),
        runs: |action| acp(action).into_iter().map(|call| vec![update(call)]).collect(),
        ran: acp_ran,
        withdraws: acp_withdraws,
        answer: acp_answer,
    },
];

const fn claude_wire(dialect: &'static dyn AgentDialect) -> Wire {
    let answer: fn(&Value) -> bool = |line| {
        let one = [&line["response"]["response"]["behavior"], &line["payload"]["behavior"]];
        word(&one, "allow", "deny")
    };
    let ran: fn(&[Value]) -> Value = |_| claude_result(json!({ "content": "done" }), None);
    let withdraws: fn() -> Value =
        || json!({ "type": "control_cancel_request", "request_id": "r" });
    Wire { name: "claude", dialect, asks: claude, runs: claude_hook, ran, withdraws, answer }
}

/// The result of Claude's call, and its metadata.
pub(super) fn claude_result(mut result: Value, meta: Option<Value>) -> Value {
    result["type"] = "tool_result".into();
    result["tool_use_id"] = "t".into();
    let mut line = json!({ "type": "user", "session_id": "n",
        "message": { "role": "user", "content": [result] } });
    if let Some(mut meta) = meta {
        meta["id"] = "t".into();
        line["tool_result_meta"] = json!([meta]);
    }
    line
}

fn word(said: &[&Value], allows: &str, denies: &str) -> bool {
    let said: Vec<&str> = said.iter().filter_map(|word| word.as_str()).collect();
    match said.as_slice() {
        [word] if *word == allows => true,
        [word] if *word == denies => false,
        _ => panic!("no answer: {said:?}"),
    }
}

/// The tool and the input of one of Claude's calls.
fn claude_call(action: ToolAction<'_>) -> Option<(String, Value)> {
    let (tool, input) = match action {
        ToolAction::Run(command) => {
            ("Bash", json!({ "command": command, "description": "Say hi" }))
        }
        ToolAction::Read(path) => ("Read", json!({ "file_path": path })),
        ToolAction::Search(path) => ("Grep", json!({ "path": path, "pattern": "x" })),
        ToolAction::Write(path) => ("Write", json!({ "file_path": path, "content": "x" })),
        ToolAction::Edit(path) => {
            ("Edit", json!({ "file_path": path, "old_string": "a", "new_string": "b" }))
        }
        ToolAction::Fetch(url) => ("WebFetch", json!({ "url": url, "prompt": "x" })),
        ToolAction::Think => ("TodoWrite", json!({ "todos": [] })),
        ToolAction::Spawn => ("Task", json!({ "prompt": "x" })),
        ToolAction::ChangeMode => ("ExitPlanMode", json!({})),
        ToolAction::AskUser => ("AskUserQuestion", json!({ "questions": [] })),
        ToolAction::Other(name) => (name, json!({})),
        ToolAction::Mcp(server, tool) => {
            return Some((format!("mcp__{server}__{tool}"), json!({})));
        }
        ToolAction::Delete(_) | ToolAction::Move(_) => return None,
    };
    Some((tool.to_owned(), input))
}

fn claude(action: ToolAction<'_>) -> Vec<Vec<Value>> {
    let Some((tool, input)) = claude_call(action) else { return Vec::new() };
    let started = json!({ "type": "assistant", "session_id": "n", "message": { "id": "m",
        "role": "assistant",
        "content": [{ "type": "tool_use", "id": "t", "name": tool, "input": input }] } });
    let asks = json!({ "type": "control_request", "request_id": "r", "request": {
        "subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "input": input,
        "permission_suggestions": [], "tool_use_id": "t" } });
    let calls_back = json!({ "type": "callback.request", "id": "r", "session_id": "n",
        "payload": { "type": "tool_permission", "tool_name": tool, "tool_input": input,
            "tool_use_id": "t" } });
    vec![vec![started.clone(), asks.clone()], vec![asks], vec![started, calls_back]]
}

fn claude_hook(action: ToolAction<'_>) -> Vec<Vec<Value>> {
    let call = claude_call(action).map(|(tool, input)| {
        let shown = json!({ "hook_event_name": "PreToolUse", "permission_mode": "default",
            "tool_name": tool, "tool_input": input });
        vec![json!({ "type": "control_request", "request_id": "h", "request": {
            "subtype": "hook_callback", "callback_id": "agentwire-policy", "input": shown,
            "tool_use_id": "t" } })]
    });
    call.into_iter().collect()
}

/// The ways in which Codex writes a command: plain, and as it starts a shell for it.
fn codex_commands(command: &str) -> Vec<String> {
    let quote = ['\'', '"'].into_iter().find(|quote| !command.contains(*quote));
    let wrapped = quote.map(|quote| format!("/bin/bash -lc {quote}{command}{quote}"));
    std::iter::once(command.to_owned()).chain(wrapped).collect()
}

/// The item of one of Codex's calls, and the method and parameters of the request about it.
fn codex_calls(action: ToolAction<'_>) -> Vec<(Value, &'static str, Value)> {
    let change = |path: &str, kind: Value| {
        let changes = json!([{ "path": path, "kind": kind, "diff": "x" }]);
        let item = json!({ "type": "fileChange", "id": "c", "changes": changes });
        vec![(item, "item/fileChange/requestApproval", json!({ "reason": null }))]
    };
    match action {
        ToolAction::Run(command) => {
            let ways = codex_commands(command).into_iter().map(|command| {
                let item = json!({ "type": "commandExecution", "id": "c", "command": command,
                    "cwd": WORK, "commandActions": [] });
                let params = json!({ "kind": "command", "command": command, "cwd": WORK,
                    "commandActions": [], "environmentId": "local", "reason": null,
                    "proposedExecpolicyAmendment": ["x"],
                    "availableDecisions": ["accept", "cancel"] });
                (item, "item/commandExecution/requestApproval", params)
            });
            ways.collect()
        }
        ToolAction::Write(path) => change(path, json!({ "type": "add" })),
        ToolAction::Edit(path) => change(path, json!({ "type": "update", "move_path": null })),
        ToolAction::Delete(path) => change(path, json!({ "type": "delete" })),
        ToolAction::Move(path) => {
            change(path, json!({ "type": "update", "move_path": "/srv/other/b" }))
        }
        ToolAction::Mcp(server, tool) => {
            let item = json!({ "type": "mcpToolCall", "id": "c", "server": server, "tool": tool,
                "arguments": {} });
            let message = format!("Allow the {server} MCP server to run tool \"{tool}\"?");
            let params = json!({ "serverName": server, "mode": "form", "message": message,
                "_meta": { "codex_approval_kind": "mcp_tool_call", "tool_params": {} },
                "requestedSchema": { "type": "object", "properties": {} } });
            vec![(item, "mcpServer/elicitation/request", params)]
        }
        ToolAction::Other("Unheard") => {
            let params = json!({ "permissions": { "network": { "enabled": true } } });
            vec![(Value::Null, "item/permissions/requestApproval", params)]
        }
        ToolAction::Read(_)
        | ToolAction::Search(_)
        | ToolAction::Fetch(_)
        | ToolAction::Think
        | ToolAction::Spawn
        | ToolAction::ChangeMode
        | ToolAction::AskUser
        | ToolAction::Other(_) => Vec::new(),
    }
}

fn codex_item(method: &str, status: &str, mut item: Value) -> Value {
    item["status"] = status.into();
    json!({ "method": method, "params": { "threadId": "t1", "turnId": "u1", "item": item } })
}

fn codex(action: ToolAction<'_>) -> Vec<Vec<Value>> {
    let ways = codex_calls(action).into_iter().map(|(item, method, mut params)| {
        let started = (!item.is_null()).then(|| codex_item("item/started", "inProgress", item));
        for (name, value) in [("threadId", "t1"), ("turnId", "u1")] {
            params[name] = value.into();
        }
        if method.starts_with("item/") {
            params["itemId"] = "c".into();
        }
        let asks = json!({ "id": 0, "method": method, "params": params });
        started.into_iter().chain([asks]).collect()
    });
    ways.collect()
}

fn codex_runs(action: ToolAction<'_>) -> Vec<Vec<Value>> {
    let items = codex_calls(action).into_iter().map(|(item, ..)| item);
    let runs = items.filter(|item| !item.is_null()).map(|item| {
        vec![
            codex_item("item/started", "inProgress", item.clone()),
            codex_item("item/completed", "completed", item),
        ]
    });
    runs.collect()
}

/// Gemini's call: its id contains the tool's name, and it has no arguments.
fn gemini_call(tool: &str, kind: &str, title: &str, content: &Value, paths: &[&str]) -> Value {
    let locations: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
    json!({ "toolCallId": format!("{tool}__{tool}_1794766158180_0"), "status": "pending",
        "title": title, "content": content, "locations": locations, "kind": kind })
}

fn gemini(action: ToolAction<'_>) -> Vec<Value> {
    let text =
        |text: String| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let diff = |path: &str, kind: &str| {
        json!([{ "type": "diff", "path": path, "oldText": "", "newText": "x",
            "_meta": { "kind": kind } }])
    };
    let none = &json!([]);
    vec![match action {
        ToolAction::Run(command) => {
            let said = text(format!("[current working directory {WORK}] (Say hi)"));
            gemini_call("run_shell_command", "execute", command, &said, &[])
        }
        ToolAction::Read(path) => gemini_call("read_file", "read", path, none, &[path]),
        ToolAction::Search(path) => gemini_call("grep_search", "search", "'x'", none, &[path]),
        ToolAction::Write(path) => {
            let title = format!("Writing to {path}");
            gemini_call("write_file", "edit", &title, &diff(path, "add"), &[path])
        }
        ToolAction::Edit(path) => {
            let title = format!("{path}: a => b");
            gemini_call("replace", "edit", &title, &diff(path, "modify"), &[path])
        }
        ToolAction::Fetch(url) => gemini_call("web_fetch", "fetch", url, none, &[]),
        ToolAction::Mcp(server, tool) => {
            let title = format!("{tool} ({server} MCP Server)");
            gemini_call(
                &format!("mcp_{server}_{tool}"),
                "other",
                &title,
                &text("{}".to_owned()),
                &[],
            )
        }
        ToolAction::Think => gemini_call("write_todos", "think", "Set 0 todos", none, &[]),
        ToolAction::Spawn => gemini_call("invoke_agent", "think", "Helper", none, &[]),
        ToolAction::ChangeMode => gemini_call("exit_plan_mode", "switch_mode", "Plan", none, &[]),
        ToolAction::AskUser => gemini_call("ask_user", "other", "Which?", none, &[]),
        ToolAction::Other(name) => gemini_call(name, "other", name, none, &[]),
        ToolAction::Delete(_) | ToolAction::Move(_) => return Vec::new(),
    }]
}

/// Calls of an agent that sends its arguments, as claude-agent-acp does.
fn acp(action: ToolAction<'_>) -> Vec<Value> {
    let call = |name: &str, kind: &str, input: Value| {
        json!({ "toolCallId": "t", "name": name, "status": "pending", "rawInput": input,
            "title": name, "kind": kind })
    };
    vec![match action {
        ToolAction::Run(command) => {
            let words: Vec<&str> = command.split(' ').collect();
            let is_plain = !command.contains(['\'', '"']) && !words.contains(&"");
            let words = is_plain.then(|| json!(words));
            let ways = [json!(command), json!(["bash", "-lc", command])].into_iter().chain(words);
            return ways.map(|it| call("Bash", "execute", json!({ "command": it }))).collect();
        }
        ToolAction::Read(path) => call("Read", "read", json!({ "file_path": path })),
        ToolAction::Search(path) => call("Grep", "search", json!({ "path": path, "pattern": "x" })),
        ToolAction::Write(path) => {
            call("Write", "edit", json!({ "file_path": path, "content": "x" }))
        }
        ToolAction::Edit(path) => {
            let input = json!({ "file_path": path, "old_string": "a", "new_string": "b" });
            call("Edit", "edit", input)
        }
        ToolAction::Delete(path) => call("Delete", "delete", json!({ "path": path })),
        ToolAction::Move(path) => {
            call("Move", "move", json!({ "path": path, "to": "/srv/other/b" }))
        }
        ToolAction::Fetch(url) => call("WebFetch", "fetch", json!({ "url": url })),
        ToolAction::Mcp(server, tool) => {
            call(&format!("mcp__{server}__{tool}"), "other", json!({}))
        }
        ToolAction::Think => call("TodoWrite", "think", json!({ "todos": [] })),
        ToolAction::Spawn => {
            let mut call = call("Task", "think", json!({ "prompt": "x" }));
            call["_meta"] = json!({ "claudeCode": { "toolName": "Task" } });
            call
        }
        ToolAction::ChangeMode => call("ExitPlanMode", "switch_mode", json!({})),
        ToolAction::Other(name) => call(name, "other", json!({})),
        ToolAction::AskUser => return Vec::new(),
    }]
}

pub(super) fn permission(call: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {
        "sessionId": "s", "toolCall": call, "options": [
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" },
        ] } })
}

fn update(mut call: Value) -> Value {
    call["sessionUpdate"] = "tool_call_update".into();
    call["status"] = "in_progress".into();
    json!({ "jsonrpc": "2.0", "method": "session/update",
        "params": { "sessionId": "s", "update": call } })
}

fn acp_ran(asked: &[Value]) -> Value {
    let mut ran = update(asked[0]["params"]["toolCall"].clone());
    ran["params"]["update"]["status"] = "completed".into();
    ran
}

fn acp_withdraws() -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 0 } })
}

fn acp_answer(line: &Value) -> bool {
    word(&[&line["result"]["outcome"]["optionId"]], "once", "no")
}
