//! Interrupts that arrive before the turn has started.

use std::time::Duration;

use agentwire_protocol::event::{EventKind, Status, TurnFailure};
use agentwire_protocol::{AgentType, Command, Prompt, SessionConfig};
use agentwire_sessions::settings::Timing;

use crate::harness::Session;

const HANG: (AgentType, &str) = (AgentType::Codex, include_str!("hang.sh"));
const DEAF: (AgentType, &str) = (AgentType::Codex, include_str!("deaf.sh"));

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

fn is(kind: &EventKind<'_>, status: Status) -> Option<()> {
    matches!(kind, EventKind::StatusChanged(changed) if changed.status == status).then_some(())
}
