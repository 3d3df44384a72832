//! Drives Codex: turns its lines into events, and commands into its lines.

mod call_effects;
mod calls;
mod commands;
mod exec;
mod exec_tools;
mod files;
mod items;
mod notifications;
mod plan_mode;
mod replies;
mod requests;
mod settle;
mod text;
mod threads;
mod tools;

use agentwire_protocol::event::{SessionEndReason, TurnFailure, TurnOrigin};
use agentwire_protocol::{Call, Command, GatewayError, Json, JsonObject, SessionConfig, Text};

use super::Driver;
use super::app_wire::Line;
use crate::agent::{AgentTranslator, Exit, Setup};
use crate::json::Value;
use crate::ledger::Ledger;
use crate::recent_ids::RecentIds;
use crate::tape::Out;
use calls::AppServer;
use exec::Exec;
use plan_mode::PlanMode;
use requests::PendingRequest;
use text::Blocks;
use threads::Threads;
use tools::ToolState;

/// The state of one session, across all its processes.
#[derive(Default)]
pub(super) struct Translator {
    driver: Driver,
    config: SessionConfig,
    /// The model that the session was started with; otherwise the one that Codex chose.
    first_model: Option<String>,
    /// The thread that the next process must resume.
    resume: Option<String>,
    /// The next process must continue in a copy of that thread.
    fork: bool,
    ledger: Ledger<ToolState, PendingRequest>,
    seen: RecentIds,
    /// What calls were seen to do, by digest, so that each is judged once.
    judged: RecentIds,
    blocks: Blocks,
    threads: Threads,
    exec: Exec,
    wire: AppServer,
    planning: PlanMode,
    /// The last user message that was reported.
    prompted: Option<String>,
    /// The main agent's last message as a JSON string, if it must follow a schema.
    answer: Option<String>,
    /// The last error that was not followed by the end of a turn.
    last_error: Option<String>,
    /// How a recording ends, if it ends now.
    ending: Option<String>,
    /// Somebody asked for the turn or the process to end.
    stopping: bool,
}

impl Translator {
    pub(super) fn new(driver: Driver, setup: &Setup) -> Self {
        Self {
            driver,
            config: setup.config.clone(),
            first_model: setup.config.model.clone(),
            resume: setup.resume.clone(),
            fork: setup.fork,
            exec: Exec::new(setup.resume.is_some() && !setup.recording),
            ..Self::default()
        }
    }
}

impl AgentTranslator for Translator {
    fn on_start(&mut self, out: &mut Out<'_>) {
        self.exec.is_running = true;
        self.stopping |= std::mem::take(&mut self.exec.stops_next);
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
        let begun = self.exec.begun;
        self.exec.end();
        let last_error = self.last_error.take();
        let interrupted =
            std::mem::take(&mut self.stopping) || matches!(exit, Exit::Signal(2 | 15));
        let (failure, reason) = if interrupted {
            (TurnFailure::Interrupted, SessionEndReason::Cancelled)
        } else {
            (TurnFailure::Died, SessionEndReason::Failed)
        };
        if self.ledger.turn_is_open() {
            let error = match last_error {
                _ if interrupted => "the run was interrupted".to_owned(),
                None => "the output ended in mid-turn".to_owned(),
                Some(error) => error,
            };
            self.ledger.fail_turn(out, failure, Text::from(error.as_str()));
            self.ledger.close_all(out, &error);
            self.drop_waiting(out, failure, &error, None);
            out.end(reason, Some(Text::from(error)));
            return;
        }
        let error = self.ending.take().or(last_error);
        let words = error.as_deref().unwrap_or("the process ended");
        self.ledger.close_all(out, "the process ended");
        self.drop_waiting(out, failure, words, None);
        if self.driver == Driver::Exec && !begun {
            self.fail_unstarted(out, failure, words);
        }
        if let Some(error) = error {
            out.end(SessionEndReason::Failed, Some(Text::from(error)));
        }
    }
}

impl Translator {
    /// The error if that thread is not the requested one; `origin` is the thread that it says it is a copy
    /// of.
    fn mistaken(&self, id: &str, origin: Option<&str>) -> Option<String> {
        let asked = self.resume.as_deref()?;
        match self.fork {
            false if id != asked => {
                Some(format!("codex opened the thread {id} instead of the one to resume"))
            }
            true if id == asked => {
                Some(format!("codex continued the thread {id} itself instead of a copy of it"))
            }
            true if origin.is_some_and(|origin| origin != asked) => {
                Some(format!("codex opened the thread {id}, not a copy of the one to fork"))
            }
            true | false => None,
        }
    }

    /// From now on the session is that thread.
    fn continue_thread(&mut self, id: String) {
        self.resume = Some(id);
        self.fork = false;
    }

    /// Fails the prompt of an exec process that ended before it reported its turn. Later prompts have their
    /// own processes.
    fn fail_unstarted(&mut self, out: &mut Out<'_>, failure: TurnFailure, error: &str) {
        let Some(prompt) = self.ledger.next_prompt() else { return };
        self.ledger.start_turn(out, Some(prompt), TurnOrigin::Prompt);
        self.ledger.fail_turn(out, failure, Text::from(error));
    }

    /// The last message of the turn, if it is JSON, as the session's schema requires.
    fn structured_output(&mut self) -> Option<Json<'static>> {
        let answer = self.answer.take()?;
        let text = Text::quoted(&answer);
        Json::parse(&text.decode()).ok().map(Json::into_owned)
    }
}

/// An object of the named fields that `value` has, with their exact values.
fn pick(value: Value<'_>, names: &[&str]) -> Option<Json<'static>> {
    let mut object = JsonObject::new();
    for name in names {
        if let Some(field) = value.get(name) {
            object.add(name, &field.json());
        }
    }
    object.unless_empty()
}
