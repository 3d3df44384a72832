//! The life of the agent's processes: start, output, end.

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::Sink as _;
use agentwire_protocol::event::{ErrorEvent, SessionEndReason};
use agentwire_protocol::{ErrorCode, GatewayError, Json, Prompt, Text, TurnEnd};

use super::actor::Actor;
use super::agent::{ProcessActivity, Running, SCRATCH};
use super::core::{Effect, ProcessEnd, ended};
use super::long_line::LongLine;
use super::stderr;
use crate::blocking::{blocking, blocking_if_long};
use crate::budget::{self, Share};
use crate::process::TreeSignal;

impl Actor {
    /// Starts the agent. With one process per turn, the start waits for a prompt.
    pub(super) async fn open(&mut self) -> Result<(), GatewayError> {
        self.find_overriding_files().await?;
        if self.plan.dialect.capabilities().process_per_turn {
            let launch = self.plan.launch(&self.config, self.supervisor.origin(), None, None)?;
            self.plan.program(&self.config, &launch).await?;
            self.core.state.ready();
            return Ok(());
        }
        self.start_process(None).await
    }

    pub(super) async fn start_process(
        &mut self,
        prompt: Option<&Prompt>,
    ) -> Result<(), GatewayError> {
        let summary = &self.core.state.record.summary;
        let session = summary.id.as_str().to_owned();
        // An agent that has reported its id has used ours, although it may have stored nothing under it to
        // resume.
        let id = summary.native_session_id.is_none().then_some(session.as_str());
        let launch = self.plan.launch(&self.config, self.supervisor.origin(), id, prompt)?;
        let mut process = self.plan.start(&self.config, launch).await?;
        process.counted = Some(self.outbox.log().metrics().process(self.plan.agent));
        tracing::debug!(session, pid = process.control.pid(), "agent process started");
        let is_per_turn = self.plan.dialect.capabilities().process_per_turn;
        let turn = is_per_turn.then(|| self.core.state.current_turn());
        self.supervisor.started(process, turn);
        self.core.state.expect_conversation(self.supervisor.origin().expected_conversation());
        self.tape.start(&mut self.core);
        Ok(())
    }

    /// With one process per turn: starts the next one, if a prompt waits.
    pub(super) async fn next_process(&mut self) {
        while !self.supervisor.has_process() && !self.phase.is_ending() {
            let is_interrupted = self.prompts.next_is_interrupted();
            let Some(prompt) = self.prompts.next() else { return };
            let started = match self.check_again().await {
                Ok(()) => self.start_process(Some(&prompt)).await,
                Err(error) => Err(error),
            };
            if is_interrupted && started.is_ok() {
                self.supervisor.signal(TreeSignal::Interrupt);
                self.escalate();
            }
            if let Err(error) = started {
                self.core.error(error.code.as_str(), error.message.clone());
                let text = error.message;
                let process_end = ProcessEnd { text, stderr: None, is_cut: true, is_mute: true };
                self.core.end_process(process_end, Exit::Unknown, &mut self.tape);
                self.core.state.ready();
            }
        }
    }

    pub(super) async fn process_activity(&mut self, activity: ProcessActivity) {
        let Some(process) = self.supervisor.process_mut() else { return };
        self.core.journal.tick();
        match activity {
            ProcessActivity::Writable => process.flush(),
            ProcessActivity::Stdout(count) => {
                process.heard(count);
                self.core.state.silent(false);
                SCRATCH.with_borrow(|buffer| self.listen(buffer.get(..count).unwrap_or_default()));
            }
            ProcessActivity::Stderr(count) => {
                let dialect = self.plan.dialect;
                let core = &mut self.core;
                let each = &mut |line: &[u8], unterminated: bool| {
                    core.event(stderr::draft(dialect, line, unterminated));
                };
                if count == 0 {
                    process.close_stderr();
                    process.said.end(each);
                } else {
                    SCRATCH.with_borrow(|buffer| {
                        process.said.feed(buffer.get(..count).unwrap_or_default(), each);
                    });
                }
            }
            ProcessActivity::Exited(exit) => process.exited(exit),
            ProcessActivity::Gone => process.gone(),
            ProcessActivity::LongLine(share) => self.take_long(share),
            ProcessActivity::TryDisk => self.write_again(),
        }
        self.input_handled().await;
    }

    /// Does what follows from the agent's output so far.
    async fn input_handled(&mut self) {
        self.verify_resume();
        self.process_ended().await;
        self.calm();
    }

    fn listen(&mut self, bytes: &[u8]) {
        let Some(process) = self.supervisor.process_mut() else { return };
        let Some(long) = &mut process.long else {
            let size = self.tape.held() + bytes.len();
            blocking_if_long(size, || self.tape.feed(bytes, &mut self.core));
            if self.tape.held() > budget::SMALL {
                process.long = Some(LongLine::new(self.tape.take_held()));
                self.write_long();
            }
            self.load = self.load.max(size);
            return;
        };
        if let Some((length, rest)) = long.push(bytes) {
            // The line is too long to be stored. From here on it is only counted.
            process.long = None;
            self.tape.skip(length);
            return self.tape.feed(rest, &mut self.core);
        }
        self.write_long();
    }

    /// Moves the received part of a long line from memory to the disk. If the disk is full, it is retried.
    fn write_long(&mut self) {
        let Some(process) = self.supervisor.process_mut() else { return };
        if let Err(error) = blocking(|| process.write_long()) {
            let session = self.core.state.record.summary.id.as_str();
            tracing::warn!(session, %error, "a long line waits: no room on the disk");
        }
    }

    /// Retries the disk write of a long line. A session that must stop, or that is ending and whose agent
    /// has exited, does not wait for room: the line is lost, and what follows it is read.
    fn write_again(&mut self) {
        self.write_long();
        let Some(process) = self.supervisor.process_mut() else { return };
        let is_ending =
            self.phase.is_stopped() || (self.phase.is_ending() && process.exit().is_some());
        if let Some(long) = process.long.as_mut().filter(|long| is_ending && long.is_stuck()) {
            long.lose();
        }
    }

    /// A long line has ended, and there is memory for it.
    fn take_long(&mut self, share: Share) {
        let process = self.supervisor.process_mut();
        let Some(mut long) = process.and_then(Running::take_long) else { return };
        let (length, is_complete) = (long.length(), long.is_complete());
        // What follows the line is read, whatever happens to the line.
        let rest = long.take_rest();
        blocking(|| match long.take() {
            Ok(line) => {
                self.tape.give_back(line);
                // Without its end, the line is reported when the output ends.
                if is_complete {
                    self.tape.feed(b"\n", &mut self.core);
                }
            }
            Err(error) => {
                let message = format!("failed to store a line of {length} bytes: {error}");
                self.core.error("lineLost", message);
            }
        });
        self.outbox.hold_line(share);
        self.load = length;
        if !rest.is_empty() {
            self.listen(&rest);
        }
    }

    /// Handles the end of the process, once all its output is read.
    pub(super) async fn process_ended(&mut self) {
        // The end of its turn comes first. With one process per turn, the process ends together with the
        // turn.
        let per_turn = self.plan.dialect.capabilities().process_per_turn;
        if self.core.checks_answer() && !per_turn && !self.phase.is_ending() {
            return;
        }
        let Some(process) = self.supervisor.take_over() else { return };
        self.drop_signals();
        let exit = process.exit().unwrap_or(Exit::Unknown);
        let session = self.core.state.record.summary.id.as_str();
        tracing::debug!(session, pid = process.control.pid(), ?exit, "agent process ended");
        // With one process per turn, the end of the process is expected, and the held end of the turn still
        // waits for its hooks.
        if !per_turn {
            self.core.end_turn();
        }
        let was_busy = self.core.state.is_busy();
        self.report_lost(process.said.lost());
        let is_mute = process.watch.is_mute();
        let text = self.end_tape(exit, &process);
        self.take_changes();
        self.core.forget_calls();
        self.limit_is_moot("the agent ended");
        // The agent will not answer the last messages it got.
        self.fail_calls(None, ErrorCode::AgentFailed, "the agent ended");
        if let Some((reason, error)) = self.phase.ending() {
            return self.end(reason, error);
        }
        match exit {
            _ if per_turn => self.wait_for_prompt(),
            Exit::Code(0) if !was_busy => self.end(SessionEndReason::Completed, None),
            _ => {
                let code = if is_mute { ErrorCode::StartFailed } else { ErrorCode::AgentFailed };
                self.core.error(code.as_str(), text.clone());
                self.end(SessionEndReason::Failed, Some(text));
            }
        }
    }

    fn report_lost(&mut self, lost: u64) {
        if lost > 0 {
            let details = Some(Json::of(&serde_json::json!({ "bytes": lost })));
            let code = Some(Text::fixed("stderrCut"));
            let message = format!("{lost} more bytes of stderr were not stored");
            self.core.emit(ErrorEvent { code, details, ..ErrorEvent::new(message) });
        }
    }

    /// Ends everything that the process has open. Returns a description of how it ended.
    fn end_tape(&mut self, exit: Exit, process: &Running) -> String {
        let stderr = process.said.last_lines();
        let is_mute = process.watch.is_mute();
        let verdict = process.watch.verdict();
        let text = verdict.map_or_else(|| ended(exit, is_mute, stderr.as_deref()), str::to_owned);
        let is_cut = verdict.is_some();
        let process_end = ProcessEnd { text: text.clone(), stderr, is_cut, is_mute };
        self.core.end_process(process_end, exit, &mut self.tape);
        text
    }

    /// With one process per turn: the next one continues where this one ended.
    fn wait_for_prompt(&mut self) {
        self.core.state.ready();
        // Until the agent has reported its own id and stored something under it, the next process starts
        // like this one did.
        let summary = &self.core.state.record.summary;
        let has_nothing = summary.last_turn == Some(TurnEnd::Failed)
            && !self.core.state.has_answer
            && self.plan.dialect.capabilities().forgets_failures;
        if let Some(id) = summary.native_session_id.clone().filter(|_| !has_nothing) {
            self.supervisor.resume_from(id);
        }
        if self.prompts.has_queued() {
            self.core.effects.push(Effect::Start(self.prompts.change()));
        }
    }

    /// A resumed session must be the one that was requested; otherwise it ends.
    pub(super) fn verify_resume(&mut self) {
        let Some(message) = self.core.state.take_mismatch() else { return };
        self.core.error("resumeFailed", message.clone());
        self.phase.fail(message);
        self.supervisor.signal(TreeSignal::Kill);
    }
}
