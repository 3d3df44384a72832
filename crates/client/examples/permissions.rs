//! Decides what an agent may do: allow, deny, change the input, or answer a question.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::process::ExitCode;

use agentwire::example::{self, Trial};
use agentwire_client::{
    AgentClient, AgentError, AgentType, InProcessTransport, PermissionRequest, Request,
    SessionConfig, SessionRequest,
};
use serde_json::{Value, json};

const PROMPT: &str = "/write notes.txt draft\n/bash rm -rf build\n/bash echo from the agent\n\
                      /ask Which colour? | red | green";

fn main() -> ExitCode {
    example::run(permissions)
}

// In your program: `#[tokio::main] async fn main() -> Result<(), AgentError>`, and a client from
// `AgentClient::connect().await?` or a gateway with your own settings.
async fn permissions(trial: &Trial) -> Result<(), AgentError> {
    // A gateway in this process: no server, no child process.
    let gateway = InProcessTransport::with_settings(trial.settings()).await?;
    let client = AgentClient::over(gateway);
    let config = SessionConfig {
        working_directory: Some(trial.work().display().to_string()),
        ..SessionConfig::default()
    };
    let request = SessionRequest::new(AgentType::Demo, PROMPT).with_config(config);
    let session = client.create(request).await?;
    let mut events = session.events();
    while let Some(event) = events.try_next().await? {
        if let Some(request) = event.request() {
            let counts = match request {
                Request::Permission(asked) => decide(&asked).await?,
                Request::Question(asked) => {
                    for question in asked.questions() {
                        println!("asked: {}", question.question);
                    }
                    asked.answer(["green"]).await?
                }
                // Hooks and MCP messages only reach programs that registered them.
                other => other.deny("nobody is there to answer").await?,
            };
            if !counts {
                println!("somebody else was faster");
            }
        }
        if event.ends_turn() {
            break;
        }
    }
    client.close().await;
    Ok(())
}

/// Allows file changes, and harmless commands with another input. Returns whether the answer counts: a rule
/// or another client may have been faster.
async fn decide(asked: &PermissionRequest) -> Result<bool, AgentError> {
    let tool = asked.tool_name().unwrap_or_default();
    let input: Value = asked.input().and_then(|input| input.read().ok()).unwrap_or_default();
    let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
    match tool.as_str() {
        "Write" | "Edit" => {
            println!("allowed: {tool}");
            asked.allow().await
        }
        "Bash" if command.starts_with("echo ") => {
            println!("allowed with another input: {command}");
            asked.allow_with(&json!({ "command": "echo from the client" })).await
        }
        _ => {
            println!("denied: {tool} {command}");
            asked.deny("only harmless commands may run").await
        }
    }
}
