//! Starts a session, shows what it does, and goes on with it.
//!
//! `cargo run --example quickstart` needs nothing installed: the example brings the program along, and the
//! agent is the built-in demo. `cargo run --example quickstart -- codex 'Fix the failing test'` takes an
//! agent that you have.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::Write as _;
use std::process::ExitCode;

use agentwire::trial::{self, Trial};
use agentwire_client::{
    AgentClient, AgentError, AgentType, ApprovalMode, EventKind, EventStream, Request, SandboxMode,
    SessionConfig, SessionRequest,
};

fn main() -> ExitCode {
    trial::run(quickstart)
}

async fn quickstart(trial: &Trial) -> Result<(), AgentError> {
    // A program of your own says `AgentClient::connect().await?`: the server on this machine, or the
    // installed `agentwire`.
    let client = AgentClient::builder()
        .data_dir(trial.data_dir())
        .program(trial.program())
        .connect()
        .await?;

    let (agent, prompt) = asked();
    // The demo agent writes a file; other agents work where you are.
    let directory = (agent == AgentType::Demo).then(|| trial.work().display().to_string());
    let request = SessionRequest::new(agent, prompt).with_config(SessionConfig {
        working_directory: directory,
        approval_mode: Some(ApprovalMode::Ask),
        sandbox_mode: Some(SandboxMode::WorkspaceWrite),
        ..SessionConfig::default()
    });
    let session = client.create(request).await?;
    show_turn(session.events()).await?;
    println!("\n-- {} tokens so far", session.usage().total_tokens);

    // Later, and from anywhere: the session is over, and goes on.
    session.stop().await?;
    session.ended().await?;
    let resumed = client.resume(session.id().clone(), "/say This is turn {turns}.").await?;
    show_turn(resumed.events()).await?;

    client.close().await;
    Ok(())
}

/// Shows what happens, to the end of the turn.
async fn show_turn(mut events: EventStream) -> Result<(), AgentError> {
    while let Some(event) = events.try_next().await? {
        if let Some(Request::Permission(asked)) = event.request() {
            println!("May {} run? Yes.", asked.tool_name().unwrap_or_default());
            asked.allow().await?;
        }
        match &event.kind {
            EventKind::TextChunk(chunk) => print!("{}", chunk.content),
            EventKind::ToolStarted(tool) => {
                let input = tool.arguments.as_ref().map(|input| input.get()).unwrap_or_default();
                println!("\nTool: {} {input}", tool.tool_name);
            }
            EventKind::ToolCompleted(tool) => println!("Done, success: {}", tool.success),
            EventKind::FileChanged(file) => {
                println!("File {:?}: {}", file.change_type, file.file_path);
            }
            EventKind::SessionEnded(ended) => println!("Session ended: {}", ended.reason.as_str()),
            _ => {}
        }
        let _ = std::io::stdout().flush();
        if event.ends_turn() {
            println!();
            return Ok(());
        }
    }
    Ok(())
}

/// The agent and the prompt of the command line.
fn asked() -> (AgentType, String) {
    let mut words = std::env::args().skip(1);
    let agent = match words.next().as_deref() {
        Some("claude") => AgentType::Claude,
        Some("codex") => AgentType::Codex,
        Some("gemini") => AgentType::Gemini,
        Some("acp") => AgentType::Acp,
        Some(_) | None => AgentType::Demo,
    };
    let tour = "/say I write a file.\n/write hello.txt Hello\n/read hello.txt";
    (agent, words.next().unwrap_or_else(|| tour.to_owned()))
}
