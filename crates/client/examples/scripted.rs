//! A program that uses the crate, and its test with a scripted gateway, so that no agent runs.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::process::ExitCode;

use agentwire_client::{
    AgentClient, AgentError, AgentType, Command, Request, ScriptedTransport, SessionRequest,
};

/// A shortened recording from `agentwire export`.
const TRANSCRIPT: &str = include_str!("transcript.jsonl");

/// The program: lets an agent work, and allows it to read but not to write.
async fn work(client: &AgentClient, prompt: &str) -> Result<String, AgentError> {
    let session = client.create(SessionRequest::new(AgentType::Claude, prompt)).await?;
    let mut answer = String::new();
    let mut events = session.events();
    while let Some(event) = events.try_next().await? {
        if let Some(Request::Permission(asked)) = event.request() {
            match asked.tool_name().as_deref() {
                Some("Read") => asked.allow().await?,
                Some(_) | None => asked.deny("look, but do not touch").await?,
            };
        }
        if let agentwire_client::EventKind::TextChunk(chunk) = &event.kind {
            answer.push_str(&chunk.content.decode());
        }
    }
    Ok(answer)
}

/// The test. In your program this is a `#[tokio::test]`.
async fn test() -> Result<(), AgentError> {
    let script = ScriptedTransport::new()
        .transcript(TRANSCRIPT)?
        // The agent waits for an answer: the events after the request follow a command.
        .hold_after(4)
        // The connection breaks in the middle of the answer. The program does not notice.
        .cut_after(7);
    let client = AgentClient::over(script.clone());
    let answer = work(&client, "Tidy up").await?;
    assert_eq!(answer, "I may not, so I leave it.");
    let commands = script.commands();
    let [Command::Settle(settlement)] = commands.as_slice() else {
        return Err(AgentError::invalid(format!("one answer was expected: {commands:?}")));
    };
    assert_eq!(settlement.message.as_deref(), Some("look, but do not touch"));
    println!("answered: {answer}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match test().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
