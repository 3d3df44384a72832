//! The end: when to stop our own session, the closing line, and the exit code.

use std::io;
use std::time::Duration;

use agentwire_protocol::event::TurnFailure;
use agentwire_protocol::{ErrorCode, GatewayError, SessionState};

use super::mode::Mode;
use super::{Drive, TurnState};
use crate::failure::Failure;
use crate::view::layout::Ink;
use crate::{format, print};

/// How long a user who quits early waits for pending output.
const HASTE: Duration = Duration::from_millis(200);

impl Drive {
    /// Stops the session once its turn is over and nothing follows: no queued prompt, and no
    /// subagent whose end would start another turn.
    pub(super) async fn stop_if_done(&mut self) {
        let is_ended = matches!(self.turn, TurnState::Completed | TurnState::Failed(_));
        let Mode::Run(session) = &self.mode else { return };
        if !is_ended || self.stop_at.is_some() {
            return;
        }
        // The summary is updated just after the log.
        let shown = self.shown;
        let summary = session.until(|summary| summary.last_seq >= shown).await;
        let is_idle = match summary.state {
            SessionState::Starting | SessionState::Idle | SessionState::Ended => true,
            SessionState::Working
            | SessionState::WaitingPermission
            | SessionState::WaitingQuestion
            | SessionState::Stalled => false,
        };
        let was_cut = matches!(self.turn, TurnState::Failed(_));
        if is_idle && (was_cut || self.agents.is_empty()) {
            self.stop();
        }
    }

    /// Prints the closing line and returns the outcome.
    pub(super) async fn finish(mut self, left_early: bool) -> Result<(), Failure> {
        // First: after the closing line the user may type again.
        self.terminal = None;
        if self.screen.is_seen() {
            let text = match &self.mode {
                Mode::Run(session) => {
                    let short = format::short(session.id().as_str());
                    Some(format!("session {short}; continue with `agentwire run --resume {short}`"))
                }
                Mode::Answer(answering) if left_early => {
                    let short = format::short(answering.id().as_str());
                    Some(format!(
                        "detached; session {short} keeps running: `agentwire attach {short}`"
                    ))
                }
                Mode::Watch | Mode::Answer(_) => None,
            };
            if let Some(text) = text {
                self.screen.aside(|page, _| page.line(&[(Ink::Dim, &text)]));
            }
        }
        let verdict = self.verdict();
        let Self { screen, mut signals, .. } = self;
        tokio::select! {
            written = screen.finish() => written?,
            () = signals.end() => {}
            () = tokio::time::sleep(HASTE), if left_early => {}
        }
        verdict
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.is_unread {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        if self.interrupts > 0 {
            return Err(Failure::Exit(130));
        }
        let is_driven = match &self.mode {
            Mode::Run(_) => true,
            Mode::Watch => false,
            Mode::Answer(answering) => answering.has_goal(),
        };
        if self.turn == TurnState::Failed(TurnFailure::Interrupted) {
            return if is_driven { Err(Failure::Exit(130)) } else { Ok(()) };
        }
        if !is_driven {
            let failed = self.session_failed || matches!(self.turn, TurnState::Failed(_));
            return if failed { Err(Failure::Exit(1)) } else { Ok(()) };
        }
        if self.denied {
            print::note(
                "agentwire: a request was denied because there was no terminal to ask on; run it in a \
                 terminal, or allow it with --approval, --allow or --trust",
            );
            return Err(Failure::Exit(4));
        }
        match self.turn {
            TurnState::Completed => Ok(()),
            TurnState::Failed(_) if self.never_started => Err(Failure::Exit(3)),
            TurnState::Failed(_) => Err(Failure::Exit(1)),
            TurnState::None | TurnState::Running if self.session_failed => Err(Failure::Exit(1)),
            TurnState::None | TurnState::Running => {
                let message = "the session ended before the agent answered";
                Err(GatewayError::new(ErrorCode::AgentFailed, message).into())
            }
        }
    }
}
