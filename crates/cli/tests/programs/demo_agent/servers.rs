//! MCP servers: one that the agent starts, and one that the client hosts.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

use crate::demo_agent::harness::{
    DemoHome, await_file, await_gone, blocks, requests, result, text,
};
use crate::shared::ClaudeClient;

const MARK: &str = "AGENTWIRE_TEST_MCP_SERVER";

/// The replies of a server that adds numbers; `None` for a notification.
fn reply(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let arguments = &message["params"]["arguments"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "calc", "version": "1" },
        }),
        "tools/list" if message["params"]["cursor"].is_null() => {
            json!({ "tools": [{ "name": "add", "inputSchema": { "type": "object" } }], "nextCursor": "2" })
        }
        "tools/list" => json!({ "tools": [{ "name": "boom" }, { "name": "hang" }] }),
        "tools/call" if message["params"]["name"] == "add" => {
            let sum = arguments["a"].as_i64()? + arguments["b"].as_i64()?;
            json!({ "content": [{ "type": "text", "text": sum.to_string() }] })
        }
        _ => json!({ "content": [{ "type": "text", "text": "it went boom" }], "isError": true }),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Not a test: the server itself, when this test program is started as one.
#[test]
fn serve() {
    let Ok(directory) = std::env::var(MARK) else { return };
    std::fs::write(format!("{directory}/server.pid"), format!("{}\n", std::process::id())).unwrap();
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message["params"]["name"] == "hang" {
            std::fs::write(format!("{directory}/called"), "yes\n").unwrap();
            continue;
        }
        if let Some(reply) = reply(&message) {
            // The test harness writes to stdout too; a newline keeps its output apart.
            writeln!(stdout, "\n{reply}").unwrap();
            stdout.flush().unwrap();
        }
    }
}

fn config(home: &DemoHome) -> String {
    let program = std::env::current_exe().unwrap();
    json!({ "mcpServers": {
        "calc": {
            "command": program,
            "args": ["--exact", "demo_agent::servers::serve", "--nocapture"],
            "env": { MARK: home.work() },
        },
        "gone": { "command": "/no/such/program", "args": [] },
        "web": { "type": "http", "url": "http://127.0.0.1:9/mcp" },
    } })
    .to_string()
}

#[test]
fn a_server_of_the_session_is_started_called_and_ended() {
    let home = DemoHome::new();
    let file = home.work().join("mcp.json");
    std::fs::write(&file, config(&home)).unwrap();
    let mut demo = home.start(&["--mcp-config", file.to_str().unwrap()]);
    let lines = demo
        .turn("/tool mcp__calc__add {\"a\":2,\"b\":3}\n/say {result}\n/tool mcp__calc__boom {}");
    assert_eq!(text(&lines), "5");
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    let tools = init["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("mcp__calc__add")) && tools.contains(&json!("mcp__calc__boom")));
    assert_eq!(blocks(&lines, "tool_result")[1]["is_error"], true);
    let asked = requests(&lines, "can_use_tool");
    assert_eq!(asked[0]["request"]["mcp_server"]["name"], "calc");
    let status = demo.control(json!({ "subtype": "mcp_status" }));
    let of = |name: &str| {
        let servers = status["response"]["mcpServers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(
        (of("calc"), of("gone"), of("web")),
        (json!("connected"), json!("failed"), json!("failed"))
    );
    let pid = await_file(&home.work().join("server.pid"));
    assert_eq!(demo.end().0, Some(0));
    await_gone(&pid);
}

#[test]
fn a_call_that_hangs_can_be_interrupted() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--mcp-config", &config(&home), "--allowedTools=mcp__calc"]);
    demo.prompt("/tool mcp__calc__hang {}");
    await_file(&home.work().join("called"));
    demo.request("int", json!({ "subtype": "interrupt" }));
    assert_eq!(demo.until_result()["terminal_reason"], "aborted_tools");
    let lines = demo.turn("/tool mcp__calc__add {\"a\":1,\"b\":1}\n/say {result}");
    assert_eq!(text(&lines), "2");
    assert!(requests(&lines, "can_use_tool").is_empty(), "a rule names the server");
}

/// Runs a turn and answers as the client's own server.
fn host(demo: &mut ClaudeClient, prompt: &str) -> Vec<Value> {
    demo.turn_with(prompt, |request| match request["subtype"].as_str() {
        Some("mcp_message") => {
            let ack = json!({ "jsonrpc": "2.0", "id": 0, "result": {} });
            Some(json!({ "mcp_response": reply(&request["message"]).unwrap_or(ack) }))
        }
        _ => Some(json!({ "behavior": "allow" })),
    })
}

#[test]
fn a_server_of_the_client_is_reached_through_it() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let greeting = demo.initialize(json!({ "sdkMcpServers": ["my calc"] }));
    assert!(greeting["response"]["models"].is_array());
    // The handshake started before `initialize` was answered.
    let early: Vec<Value> =
        demo.written.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = early.iter().find(|line| line["type"] == "control_request").unwrap().clone();
    assert_eq!(first["request"]["message"]["method"], "initialize");
    demo.answer(&first, json!({ "mcp_response": reply(&first["request"]["message"]) }));
    let lines = host(&mut demo, "/tool mcp__my_calc__add {\"a\":20,\"b\":3}\n/say {result}");
    assert_eq!(text(&lines), "23");
    let call = requests(&lines, "mcp_message").pop().unwrap();
    assert_eq!(call["request"]["server_name"], "my calc");
    assert_eq!(call["request"]["message"]["params"]["arguments"], json!({ "a": 20, "b": 3 }));

    demo.prompt("/tool mcp__my_calc__add {\"a\":1,\"b\":1}");
    let asked = demo.until_request("can_use_tool");
    demo.answer(&asked, json!({ "behavior": "allow" }));
    let message = demo.until_request("mcp_message");
    demo.request("int", json!({ "subtype": "interrupt" }));
    let cancelled = demo.until(|line| line["type"] == "control_cancel_request");
    assert_eq!(cancelled["request_id"], message["request_id"]);
    assert_eq!(demo.until_result()["terminal_reason"], "aborted_tools");
}

#[test]
fn structured_output_follows_the_schema() {
    let home = DemoHome::new();
    let schema = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "age": { "type": "integer", "minimum": 3 } },
        "required": ["name", "age"],
        "additionalProperties": false,
    });
    let mut demo = home.start(&[&format!("--json-schema={schema}")]);
    let lines = demo.turn("/tool StructuredOutput {\"name\":\"Ada\",\"age\":36}");
    assert_eq!(result(&lines)["structured_output"], json!({ "name": "Ada", "age": 36 }));
    assert_eq!(result(&lines)["result"], "{\"age\":36,\"name\":\"Ada\"}");
    let lines = demo.turn("/say none given");
    assert_eq!(result(&lines)["structured_output"], json!({ "name": "", "age": 3 }));
    let lines = demo.turn("/tool StructuredOutput {\"name\":1,\"extra\":2}");
    let wrong = blocks(&lines, "tool_result")[0]["content"].as_str().unwrap().to_owned();
    for words in ["root/name: must be string", "'age'", "'extra'"] {
        assert!(wrong.contains(words), "{words} in {wrong}");
    }
}
