//! Interrupts that arrive before the turn has started.

use std::time::{Duration, Instant};

use agentwire_protocol::event::{EventKind, Status, TurnFailure};
use agentwire_protocol::reply::PromptQueue;
use agentwire_protocol::{AgentType, Command, ErrorCode, Prompt, SessionConfig};
use agentwire_sessions::settings::Timing;

use crate::harness::{PATIENCE, Session};

const HANG: (AgentType, &str) = (AgentType::Codex, include_str!("hang.sh"));
const DEAF: (AgentType, &str) = (AgentType::Codex, include_str!("deaf.sh"));
const STEPS: (AgentType, &str) = (AgentType::Codex, include_str!("steps.sh"));

fn exec() -> SessionConfig {
    SessionConfig { driver: Some("exec".to_owned()), ..SessionConfig::default() }
}

#[tokio::test]
async fn an_interrupt_that_overtakes_the_start_of_the_process_ends_its_turn() {
    let mut session = Session::start(HANG, exec(), "").await;
    for _ in 0..5 {
        let prompt = Command::Prompt(Prompt::text("go"));
        // The session receives both before the prompt is durable.
        let prompted = session.handle.post(prompt, None).unwrap();
        let interrupt = Command::Interrupt { cancel_queued: false };
        let interrupted = session.handle.post(interrupt, None).unwrap();
        prompted.await.reply.unwrap();
        interrupted.await.reply.unwrap();
        assert_eq!(session.failed().await.reason, TurnFailure::Interrupted);
    }
    session.end().await;
}

#[tokio::test]
async fn an_interrupt_that_the_agent_misses_while_it_starts_is_repeated() {
    let timing = Timing { interrupt: Duration::from_millis(200), ..Timing::default() };
    let mut session = Session::start_within(timing, DEAF, exec(), "go").await.unwrap();
    session.until(|kind| is(kind, Status::Ready)).await;
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    assert_eq!(session.failed().await.reason, TurnFailure::Interrupted);
    session.end().await;
}

/// The interrupt waits for the disk while its turn ends by itself.
#[tokio::test]
async fn an_interrupt_of_a_turn_that_has_ended_leaves_the_next_turn_alone() {
    let mut session = Session::start_on_disk(Timing::default(), STEPS, exec(), "one").await;
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    session.prompt("two").await;
    let disk = session.disk();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::fs::write(session.file("say"), "").unwrap();
    until_there(&session, "said").await;
    let interrupt = Command::Interrupt { cancel_queued: false };
    let interrupted = session.handle.post(interrupt, None).unwrap();
    std::fs::write(session.file("go"), "").unwrap();
    until_there(&session, "gone").await;
    disk.execute_batch("COMMIT").unwrap();
    interrupted.await.reply.unwrap();
    session.turn_ended().await;
    std::fs::write(session.file("go"), "").unwrap();
    session.completed().await;
    session.end().await;
}

#[tokio::test]
async fn an_interrupt_while_the_last_process_ends_is_for_the_next_turn() {
    let mut session = Session::start_within(Timing::default(), STEPS, exec(), "one").await.unwrap();
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    session.prompt("two").await;
    for file in ["stay", "say", "go"] {
        std::fs::write(session.file(file), "").unwrap();
    }
    session.completed().await;
    let interrupt = Command::Interrupt { cancel_queued: false };
    session.handle.send(interrupt).await.unwrap();
    std::fs::remove_file(session.file("stay")).unwrap();
    assert_eq!(session.failed().await.reason, TurnFailure::Interrupted);
    session.end().await;
}

/// The prompt that was interrupted never got a process.
#[tokio::test]
async fn an_interrupt_of_a_cancelled_prompt_leaves_the_next_turn_alone() {
    let moment = Duration::from_millis(100);
    let timing = Timing { interrupt: moment, signal: moment, ..Timing::default() };
    let mut session = Session::start_on_disk(timing, STEPS, exec(), "").await;
    let disk = session.disk();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let prompted = session.handle.post(Command::Prompt(Prompt::text("a")), None).unwrap();
    let interrupt = Command::Interrupt { cancel_queued: true };
    let interrupted = session.handle.post(interrupt, None).unwrap();
    let next = session.handle.post(Command::Prompt(Prompt::text("b")), None).unwrap();
    disk.execute_batch("COMMIT").unwrap();
    prompted.await.reply.unwrap();
    interrupted.await.reply.unwrap();
    next.await.reply.unwrap();
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    // Longer than all signals would take.
    tokio::time::sleep(6 * moment).await;
    for file in ["say", "go"] {
        std::fs::write(session.file(file), "").unwrap();
    }
    session.completed().await;
    session.end().await;
}

/// The interrupt was for the prompt that is cancelled, not for the one after it.
#[tokio::test]
async fn a_prompt_that_is_cancelled_alone_takes_its_interrupt_with_it() {
    let moment = Duration::from_millis(100);
    let timing = Timing { interrupt: moment, signal: moment, ..Timing::default() };
    let mut session = Session::start_within(timing, STEPS, exec(), "one").await.unwrap();
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    for id in ["two", "three"] {
        let prompt = Prompt { message_id: Some(id.to_owned()), ..Prompt::text(id) };
        session.handle.send(Command::Prompt(prompt)).await.unwrap();
    }
    for file in ["stay", "say", "go"] {
        std::fs::write(session.file(file), "").unwrap();
    }
    session.completed().await;
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    let cancel = || Command::Cancel { message_id: "two".to_owned() };
    session.handle.send(cancel()).await.unwrap();
    assert_eq!(session.handle.send(cancel()).await.unwrap_err().code, ErrorCode::Conflict);
    let edit = Command::Edit { message_id: "three".to_owned(), text: "other".to_owned() };
    session.handle.send(edit).await.unwrap();
    let queue: PromptQueue = session.handle.send(Command::Queue).await.unwrap().read().unwrap();
    let queued: Vec<_> = queue.queued.iter().map(|it| (&*it.message_id, &*it.prompt)).collect();
    assert_eq!(queued, [("three", "other")]);
    std::fs::remove_file(session.file("say")).unwrap();
    std::fs::remove_file(session.file("stay")).unwrap();
    let prompt = session
        .until(|kind| match kind {
            EventKind::TurnStarted(turn) => turn.prompt.as_ref().map(ToString::to_string),
            _ => None,
        })
        .await;
    assert_eq!(prompt, "other");
    // Longer than all signals would take.
    tokio::time::sleep(6 * moment).await;
    for file in ["say", "go"] {
        std::fs::write(session.file(file), "").unwrap();
    }
    session.completed().await;
    session.end().await;
}

async fn until_there(session: &Session, file: &str) {
    let begun = Instant::now();
    while !session.file(file).exists() {
        assert!(begun.elapsed() < PATIENCE, "{file} never comes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is(kind: &EventKind<'_>, status: Status) -> Option<()> {
    matches!(kind, EventKind::StatusChanged(changed) if changed.status == status).then_some(())
}
