//! Starts a session, prints what it does, and resumes it.
//!
//! `cargo run --example quickstart` needs nothing installed: the example includes the program, and the
//! agent is the built-in demo. `cargo run --example quickstart -- codex 'Fix the failing test'` uses an
//! installed agent: it works in the current directory and asks you for permissions.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use agentwire::example::{self, Trial};
use agentwire_client::{
    AgentClient, AgentError, AgentType, ApprovalMode, EventKind, EventStream, Request,
    SessionConfig, SessionRequest,
};

fn main() -> ExitCode {
    example::run(quickstart)
}

// In your program: `#[tokio::main] async fn main() -> Result<(), AgentError>`, and instead of the builder
// `AgentClient::connect().await?`: the server on this machine, or the installed `agentwire`.
async fn quickstart(trial: &Trial) -> Result<(), AgentError> {
    let (agent, prompt) = asked()?;
    let client = AgentClient::builder()
        .data_dir(trial.data_dir())
        .program(trial.program())
        .connect()
        .await?;

    // The demo agent writes a file; other agents work in the current directory.
    let directory = (agent == AgentType::Demo).then(|| trial.work().display().to_string());
    let request = SessionRequest::new(agent, prompt).with_config(SessionConfig {
        working_directory: directory,
        approval_mode: Some(ApprovalMode::Ask),
        ..SessionConfig::default()
    });
    let session = client.create(request).await?;
    show_turn(session.events(), agent).await?;
    println!("\n-- {} tokens so far", session.usage().total_tokens);

    // An ended session can be resumed later, from any client.
    session.stop().await?;
    session.ended().await?;
    let more = match agent {
        AgentType::Demo => "/say This is turn {turns}.",
        AgentType::Claude | AgentType::Codex | AgentType::Gemini | AgentType::Acp => {
            "Sum up in one sentence what you did."
        }
    };
    let resumed = client.resume(session.id().clone(), more).await?;
    show_turn(resumed.events(), agent).await?;

    client.close().await;
    Ok(())
}

/// Prints the events up to the end of the turn.
async fn show_turn(mut events: EventStream, agent: AgentType) -> Result<(), AgentError> {
    while let Some(event) = events.try_next().await? {
        if let Some(request) = event.request() {
            answer(&request, agent).await?;
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

/// Asks the user, except for the demo agent, which may do anything in its own directory. An agent waits for
/// its answer, so answer every request. Returns whether the answer counts: a rule may be faster.
async fn answer(request: &Request, agent: AgentType) -> Result<bool, AgentError> {
    let nobody = "nobody is there to answer";
    match request {
        Request::Permission(asked) if agent == AgentType::Demo => {
            println!("May {} run? Yes.", asked.tool_name().unwrap_or_default());
            asked.allow().await
        }
        Request::Permission(asked) => {
            let tool = asked.tool_name().unwrap_or_default();
            let input = asked.input().map(|input| input.get()).unwrap_or_default();
            match say(format!("May {tool} run? {input} [y/N]")).await.as_deref() {
                Some("y" | "yes") => asked.allow().await,
                Some(_) => asked.deny("the user said no").await,
                None => asked.deny(nobody).await,
            }
        }
        Request::Question(asked) => {
            let mut answers = Vec::new();
            for question in asked.questions() {
                match say(question.question.to_string()).await {
                    Some(answer) => answers.push(answer),
                    None => return asked.deny(nobody).await,
                }
            }
            asked.answer(answers).await
        }
        // Hooks and MCP messages only reach programs that registered them.
        other => other.deny(nobody).await,
    }
}

/// Asks the user; `None` if stdin is not a terminal.
async fn say(question: String) -> Option<String> {
    print!("\n{question} ");
    let _ = std::io::stdout().flush();
    if !std::io::stdin().is_terminal() {
        println!("(no terminal to ask)");
        return None;
    }
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    Some(line.await.ok()??.ok()?.trim().to_owned())
}

/// The agent and the prompt from the command line.
fn asked() -> Result<(AgentType, String), AgentError> {
    let mut words = std::env::args().skip(1);
    let agent = words.next().map_or(Ok(AgentType::Demo), |name| name.parse())?;
    let tour = "/say I write a file.\n/write hello.txt Hello\n/read hello.txt";
    match (agent, words.next()) {
        (_, Some(prompt)) => Ok((agent, prompt)),
        (AgentType::Demo, None) => Ok((agent, tour.to_owned())),
        (AgentType::Claude | AgentType::Codex | AgentType::Gemini | AgentType::Acp, None) => {
            Err(AgentError::invalid(format!("missing prompt: say what {agent} should do")))
        }
    }
}
