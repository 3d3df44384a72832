//! We drive Codex: its lines become events, commands become its lines.

mod blocks;
mod calls;
mod changes;
mod commands;
mod exec;
mod exec_tools;
mod items;
mod notices;
mod replies;
mod requests;
mod settle;
mod threads;
mod tools;

use agentwire_protocol::event::{SessionEndReason, TurnFailure};
use agentwire_protocol::{Call, Command, GatewayError, Json, SessionConfig, Text};

use super::Driver;
use super::app_wire::Line;
use crate::agent::{AgentTranslator, Exit, Setup};
use crate::json::Value;
use crate::ledger::Ledger;
use crate::recent::Recent;
use crate::tape::Out;
use blocks::Blocks;
use calls::Wire;
use exec::Exec;
use requests::Asked;
use threads::Threads;
use tools::Called;

/// What is known of one session, over all its processes.
pub(super) struct Translator {
    driver: Driver,
    config: SessionConfig,
    /// The thread that the next process must go on with.
    resume: Option<String>,
    ledger: Ledger<Called, Asked>,
    seen: Recent,
    blocks: Blocks,
    threads: Threads,
    exec: Exec,
    wire: Wire,
    /// The message of the user that was told last.
    prompted: Option<String>,
    /// The last message of the main agent in its JSON form, where it must follow a schema.
    answer: Option<String>,
    /// The last error that no end of a turn followed.
    last_error: Option<String>,
    /// How a recording ends, if it ends now.
    ending: Option<String>,
    /// Somebody wants the turn or the process to end.
    stopping: bool,
}

impl Translator {
    pub(super) fn new(driver: Driver, setup: &Setup) -> Self {
        Self {
            driver,
            config: setup.config.clone(),
            resume: setup.resume.clone(),
            ledger: Ledger::default(),
            seen: Recent::default(),
            blocks: Blocks::default(),
            threads: Threads::default(),
            exec: Exec::default(),
            wire: Wire::default(),
            prompted: None,
            answer: None,
            last_error: None,
            ending: None,
            stopping: false,
        }
    }
}

impl AgentTranslator for Translator {
    fn on_start(&mut self, out: &mut Out<'_>) {
        self.stopping = false;
        if self.driver == Driver::AppServer {
            self.open_wire(out);
        }
    }

    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>) {
        let Some(line) = message.to::<Line<'_>>() else { return };
        match (line.kind, line.method, line.id) {
            (Some(kind), _, _) => self.exec_line(&kind, message, out),
            (None, Some(method), Some(id)) => self.server_request(&method, id, line.params, out),
            (None, Some(method), None) => {
                if let Some(params) = line.params {
                    self.notification(&method, params, out);
                }
            }
            (None, None, Some(id)) => self.response(id, line.result, line.error, out),
            (None, None, None) => {}
        }
    }

    fn on_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match self.driver {
            Driver::AppServer => self.app_command(call, command, out),
            Driver::Exec => self.exec_command(call, command, out),
        }
    }

    fn on_exit(&mut self, exit: Exit, out: &mut Out<'_>) {
        self.close_wire(out);
        self.blocks.close(out, None);
        self.threads.end(out);
        self.exec.end();
        let last_error = self.last_error.take();
        let interrupted = self.stopping || matches!(exit, Exit::Signal(2 | 15));
        if self.ledger.turn_is_open() {
            let (failure, reason, error) = if interrupted {
                let error = "the run was interrupted".to_owned();
                (TurnFailure::Interrupted, SessionEndReason::Cancelled, error)
            } else {
                let error = last_error.unwrap_or("the output ended in mid-turn".to_owned());
                (TurnFailure::Died, SessionEndReason::Failed, error)
            };
            self.ledger.fail_turn(out, failure, Text::from(error.as_str()));
            self.ledger.close_all(out, &error);
            self.drop_waiting(out, &error);
            out.end(reason, Some(Text::from(error)));
            return;
        }
        self.ledger.close_all(out, "the process ended");
        self.drop_waiting(out, "the process ended");
        if let Some(error) = self.ending.take().or(last_error) {
            out.end(SessionEndReason::Failed, Some(Text::from(error)));
        }
    }
}

impl Translator {
    /// The last message of the turn, if it is what the session's schema asks for.
    fn structured_output(&mut self) -> Option<Json<'static>> {
        let answer = self.answer.take()?;
        let text = Text::quoted(&answer);
        Json::parse(&text.decode()).ok().map(Json::into_owned)
    }
}

/// An object of those fields of `value` that are there, with their exact values.
fn pick(value: Value<'_>, names: &[&str]) -> Option<Json<'static>> {
    let mut object = String::new();
    for name in names {
        if let Some(field) = value.get(name) {
            object.push(if object.is_empty() { '{' } else { ',' });
            object.push_str(&format!("\"{name}\":{}", field.json().get()));
        }
    }
    (!object.is_empty()).then(|| Json::checked(object + "}"))
}
