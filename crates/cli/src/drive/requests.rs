//! Asks the person at the terminal, one request at a time. Without a terminal, requests of our own
//! session are denied, and requests of another process's session stay open.

use agentwire_protocol::event::{RequestOutcome, RequestRaised, RequestSettled, SettledBy};
use agentwire_protocol::{Command, ErrorCode, Settlement};

use super::{CommandReply, Drive, Mode};
use crate::terminal::Typed;
use crate::view::dialog::{Dialog, DialogStep, Reading};
use crate::view::layout::Ink;

pub(super) struct OpenRequest {
    id: String,
    request: RequestRaised<'static>,
    /// The subagent that asks, if it is not the main agent.
    agent: Option<String>,
    /// An answer was sent, or the view has said that it cannot be answered here.
    is_answered: bool,
}

impl OpenRequest {
    pub(super) fn new(request: RequestRaised<'static>, agent: Option<String>) -> Self {
        Self { id: request.request_id.to_string(), request, agent, is_answered: false }
    }
}

impl Drive {
    /// Asks the next open request, or denies what cannot be answered here.
    pub(super) fn ask_next(&mut self) {
        if let Some(dialog) = &self.dialog {
            // New output went above the prompt; draw it again.
            if !self.is_answered() && dialog.reading() == Reading::Keys {
                let prompt = dialog.prompt();
                self.screen.bottom(prompt);
            }
            return;
        }
        while let Some(open) = self.open.iter_mut().find(|open| !open.is_answered) {
            let (id, about) = (open.id.clone(), open.agent.clone());
            let is_ours = match self.mode {
                Mode::Run(_) => true,
                Mode::Watch | Mode::Answer(_) if self.shown < self.present => return,
                Mode::Watch | Mode::Answer(_) => false,
            };
            let can_ask = self.terminal.is_some() && !matches!(self.mode, Mode::Watch);
            let dialog = Dialog::new(open.request.clone(), about).filter(|_| can_ask);
            match (dialog, is_ours) {
                (Some(dialog), _) => {
                    self.dialog = Some(dialog);
                    return self.ask_again();
                }
                (None, true) if can_ask => {
                    self.refuse(&id, "this request cannot be answered in a terminal");
                }
                (None, true) => self.refuse(&id, "there is no terminal to ask on"),
                (None, false) => {
                    open.is_answered = true;
                    self.show_waiting(&id);
                }
            }
        }
    }

    /// Shows the whole question and starts to read keys.
    pub(super) fn ask_again(&mut self) {
        let Some(dialog) = self.dialog.as_ref().filter(|_| !self.is_answered()) else { return };
        let others = self.open.iter().filter(|open| !open.is_answered).count().saturating_sub(1);
        let Some(terminal) = &mut self.terminal else { return };
        if terminal.read_as(dialog.reading()).is_err() {
            return self.typed(&Typed::Gone);
        }
        self.screen.aside(|page, directory| {
            dialog.show(page, directory);
            if others > 0 {
                page.line(&[(Ink::Dim, &format!("  ({others} more pending)"))]);
            }
        });
        if let Some(tool) = dialog.tool() {
            self.screen.saw_changes_of(&tool);
        }
        self.show_prompt();
    }

    pub(super) fn typed(&mut self, typed: &Typed) {
        let Some(dialog) = &mut self.dialog else { return };
        let before = dialog.reading();
        let step = match typed {
            Typed::Key(key) => dialog.key(*key),
            Typed::Line(line) => dialog.line(line),
            Typed::Nothing => DialogStep::Same,
            Typed::Gone => {
                self.dialog = None;
                self.terminal = None;
                return self.ask_next();
            }
        };
        match step {
            DialogStep::Same if before == Reading::Keys => self.screen.ring(),
            DialogStep::Same => self.show_prompt(),
            DialogStep::Next => {
                let now = dialog.reading();
                if let Some(terminal) = self.terminal.as_mut().filter(|_| now != before)
                    && terminal.read_as(now).is_err()
                {
                    return self.typed(&Typed::Gone);
                }
                self.screen.aside(|page, _| dialog.show_stage(page));
                self.show_prompt();
            }
            DialogStep::Answer(settlement) => {
                self.restore_terminal();
                self.settle(*settlement);
            }
            DialogStep::Interrupt => self.interrupt(),
        }
    }

    /// A request was settled, here or by another client.
    pub(super) fn settled(&mut self, settled: &RequestSettled<'_>) {
        let id = &*settled.request_id.decode();
        let was_answered = self.open.iter().any(|open| open.id == id && open.is_answered);
        self.open.retain(|open| open.id != id);
        let is_asked = self.dialog.as_ref().is_some_and(|dialog| dialog.id() == id);
        if is_asked {
            self.dialog = None;
        }
        if !was_answered && is_asked {
            self.restore_terminal();
            match settled.by {
                SettledBy::Client => self.screen.remark("answered by another client"),
                // The time for an answer ran out.
                SettledBy::Gateway => self.denied |= settled.outcome == RequestOutcome::Denied,
                SettledBy::Policy | SettledBy::Agent => {}
            }
        }
    }

    /// The reply to a command arrived.
    pub(super) fn replied(&mut self, reply: CommandReply) {
        let (Some(id), Err(error)) = (reply.request, reply.result) else { return };
        match error.code {
            // The event shows the outcome.
            ErrorCode::RequestSettled | ErrorCode::RequestNotFound => {}
            // The next answer would fail too.
            ErrorCode::Forbidden | ErrorCode::Unauthorized | ErrorCode::SessionNotFound => {
                self.screen.remark(&error.message);
                self.drop_question();
                self.ask_next();
            }
            _ if self.dialog.as_ref().is_some_and(|dialog| dialog.id() == id) => {
                self.screen.remark(&error.message);
                self.mark(&id, false);
                self.dialog = None;
                self.ask_next();
            }
            _ => self.screen.remark(&error.message),
        }
    }

    /// Stops asking; the request is settled in another way.
    pub(super) fn drop_question(&mut self) {
        if let Some(dialog) = self.dialog.take() {
            self.mark(&dialog.id(), true);
            self.restore_terminal();
        }
    }

    /// Whether the answer to the current question was sent.
    pub(super) fn is_answered(&self) -> bool {
        self.dialog.as_ref().is_some_and(|dialog| {
            let id = dialog.id();
            self.open.iter().any(|open| open.id == id && open.is_answered)
        })
    }

    fn show_prompt(&mut self) {
        let Some(dialog) = &self.dialog else { return };
        match dialog.reading() {
            Reading::Keys => self.screen.bottom(dialog.prompt()),
            Reading::Line | Reading::Secret => self.screen.ask(dialog.prompt()),
        }
    }

    /// Restores the keyboard.
    fn restore_terminal(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.rest();
        }
        self.screen.clear();
    }

    fn refuse(&mut self, id: &str, why: &str) {
        self.denied = true;
        self.settle(Settlement::deny(id, why));
    }

    fn settle(&mut self, settlement: Settlement) {
        let id = settlement.request_id.as_str().to_owned();
        self.mark(&id, true);
        self.command(Command::Settle(settlement), Some(id));
    }

    fn mark(&mut self, id: &str, is_answered: bool) {
        for open in self.open.iter_mut().filter(|open| open.id == id) {
            open.is_answered = is_answered;
        }
    }

    fn show_waiting(&mut self, id: &str) {
        let Some(open) = self.open.iter().find(|open| open.id == id) else { return };
        self.screen.aside(|page, directory| {
            let about = crate::view::about(&open.request, directory);
            page.line(&[
                (Ink::Yellow, "? "),
                (Ink::Plain, &about),
                (Ink::Dim, "  waiting for an answer"),
            ]);
        });
    }
}
