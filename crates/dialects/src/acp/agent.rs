//! Drives an ACP agent: the state of its session, and the dispatch of each line.

mod call_effects;
mod commands;
mod elicitation;
mod handshake;
mod requests;
mod settings;
mod settle;
mod subagents;
mod tool_content;
mod tools;
mod turns;
mod updates;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;

use agentwire_protocol::event::{ErrorEvent, Other, SessionEndReason, TurnFailure};
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, Json, MAIN_AGENT, Prompt, Text};

use self::handshake::Stage;
use self::requests::PendingRequest;
use self::settings::SettingChoices;
use self::subagents::SubAgents;
use self::tools::{ToolState, WaitingCall};
use self::turns::OpenBlock;
use super::wire::{self, Failure, Message};
use super::{AgentQuirks, launch, quirks};
use crate::agent::{AgentTranslator, Exit, Setup};
use crate::json::Value;
use crate::ledger::Ledger;
use crate::recent_ids::RecentIds;
use crate::tape::Out;

/// How many of our requests may wait for a response.
const SENT_LIMIT: usize = 1024;

/// The state of one session, across its processes.
#[derive(Default)]
pub(super) struct Translator {
    setup: Setup,
    /// The quirks that were known when the agent was started.
    launch_quirks: Option<&'static AgentQuirks>,
    /// The model that the session was started with; otherwise the one that the agent first reported.
    first_model: Option<String>,
    launch_model: Option<String>,
    /// Queries that wait for the session to open.
    inquiries: Vec<(Call, &'static str)>,
    /// The quirks in effect: `launch_quirks`, or those of the name that the agent reported.
    quirks: Option<&'static AgentQuirks>,
    ledger: Ledger<ToolState, PendingRequest>,
    /// The agent's id for the session.
    session: Option<String>,
    stage: Stage,
    /// Incoming content repeats what an earlier process sent.
    replaying: bool,
    capabilities: serde_json::Value,
    auth_methods: Option<Json<'static>>,
    mode: SettingChoices,
    model: SettingChoices,
    /// The gateway mode, as the client named it; shown while the agent is in the mode that asks.
    shown_mode: Option<String>,
    /// The mode last reported to clients.
    told_mode: Option<String>,
    commands: Option<Json<'static>>,
    /// The open block of text or thought. The wire does not mark its end.
    block: Option<OpenBlock>,
    /// Calls that wait for their arguments, oldest first.
    waiting_calls: Vec<WaitingCall>,
    agents: SubAgents,
    /// Whether the turn has produced output.
    has_output: bool,
    /// An interrupt was sent to the running turn.
    interrupted: bool,
    /// Whether the process has another session, and whether that session sent the latest content.
    has_other_session: bool,
    other_spoke: bool,
    /// The session's total cost: as last reported, and at the end of the last turn.
    cost: Option<f64>,
    cost_before: f64,
    /// Tool calls that have started, so that a late update does not reopen them.
    started_tools: RecentIds,
    /// Requests that were raised. The agent may reuse an id.
    raised_requests: RecentIds,
    preface: Option<String>,
    /// Prompts that wait for the session to open or the turn to end.
    queue: VecDeque<Prompt>,
    sent: BTreeMap<u64, SentRequest>,
    next_id: u64,
}

enum SentRequest {
    Initialize,
    /// `session/new`, `session/load`, `session/resume` or `session/fork`.
    Open {
        replays: bool,
    },
    Prompt,
    Setting {
        setting: Setting,
        value: String,
        /// The name that clients see instead of the mode.
        shown: Option<String>,
        waiter: Waiter,
    },
    /// A client's query; the result becomes its reply.
    Query {
        method: &'static str,
        call: Option<Call>,
    },
}

/// Who waits for the agent to accept a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// The session is not ready until then.
    Opening,
    Call(Call),
    /// The call has already failed.
    Nobody,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    Mode,
    Model,
}

impl Translator {
    pub(super) fn new(setup: Setup, quirks: Option<&'static AgentQuirks>) -> Self {
        Self {
            first_model: setup.config.model.clone(),
            launch_model: setup.config.model.clone(),
            setup,
            launch_quirks: quirks,
            quirks,
            ..Self::default()
        }
    }

    /// The agent's name in error messages.
    fn name(&self) -> &'static str {
        launch::name(self.launch_quirks)
    }

    fn unsupported(&self, what: impl Display) -> GatewayError {
        GatewayError::unsupported(self.name(), what)
    }

    fn has(&self, quirk: impl FnOnce(&AgentQuirks) -> bool) -> bool {
        self.quirks.is_some_and(quirk)
    }

    fn send(
        &mut self,
        method: &str,
        params: &serde_json::Value,
        sent: SentRequest,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if self.sent.len() >= SENT_LIMIT {
            return Err(self.overloaded());
        }
        out.write(wire::request(self.next_id, method, params));
        self.sent.insert(self.next_id, sent);
        self.next_id += 1;
        Ok(())
    }

    fn overloaded(&self) -> GatewayError {
        let message = format!("{} has too many unanswered requests", self.name());
        GatewayError::new(ErrorCode::Overloaded, message)
    }

    fn response(
        &mut self,
        id: Value<'_>,
        result: Option<Value<'_>>,
        error: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        let known = id.to::<u64>().and_then(|id| self.sent.remove(&id));
        id.carried();
        let failure = error.map(|error| error.to().unwrap_or_default());
        // A recording does not contain our requests, so recognise the response by its shape.
        let sent = match known {
            Some(sent) => sent,
            None if !out.is_recording() => return,
            None => match self.recognise(result, failure.as_ref()) {
                Some(sent) => sent,
                None => {
                    return failure.into_iter().for_each(|failure| out.emit(error_event(&failure)));
                }
            },
        };
        match (sent, failure) {
            (SentRequest::Initialize, None) => self.initialized(result, out),
            (SentRequest::Open { replays }, None) => self.opened(result, replays, out),
            (SentRequest::Prompt, None) => self.finish_turn(result, out),
            (SentRequest::Prompt, Some(failure)) => self.fail_prompt(&failure, out),
            (SentRequest::Setting { setting, value, shown, waiter }, None) => {
                self.setting_accepted(setting, (&value, shown), waiter, result, out);
            }
            (SentRequest::Query { method, call }, None) => {
                if let Some(call) = call {
                    let reply = result.map(|result| result.json().into_owned());
                    out.reply(call, Ok(reply.unwrap_or(Json::EMPTY)));
                }
                match result.and_then(|result| result.get("configOptions")) {
                    Some(options) => self.options_changed(options, out),
                    None => out.emit(Other::named(method)),
                }
                self.retry_opening(method, out);
            }
            (sent, Some(failure)) => {
                let error = gateway_error(&failure);
                out.emit(error_event(&failure));
                match sent {
                    SentRequest::Setting { waiter: Waiter::Call(call), .. } => {
                        self.fail_call(call, error, out);
                    }
                    SentRequest::Setting { waiter: Waiter::Opening, .. } => {
                        self.fail_opening(error, out);
                    }
                    SentRequest::Query { call: Some(call), .. } => out.reply(call, Err(error)),
                    SentRequest::Setting { waiter: Waiter::Nobody, .. }
                    | SentRequest::Query { call: None, .. } => {}
                    SentRequest::Initialize | SentRequest::Open { .. } | SentRequest::Prompt => {
                        let (_, name) = message_and_code(&failure);
                        self.refuse_opening(error, name.as_deref(), out);
                    }
                }
            }
        }
    }

    fn recognise(
        &self,
        result: Option<Value<'_>>,
        failure: Option<&Failure<'_>>,
    ) -> Option<SentRequest> {
        let is_opening = matches!(self.stage, Stage::Opening | Stage::Failed(_));
        if let Some(failure) = failure {
            let of_turn = failure.code.is_some_and(|code| match self.ledger.turn_is_open() {
                true => may_fail_a_prompt(code),
                // A positive code is the HTTP status of a failed model call.
                false => code > 0,
            });
            return match of_turn {
                true => Some(SentRequest::Prompt),
                false => is_opening.then_some(SentRequest::Open { replays: false }),
            };
        }
        let has = |name: &str| result.is_some_and(|result| result.get(name).is_some());
        if has("stopReason") {
            Some(SentRequest::Prompt)
        } else if has("protocolVersion") || has("agentCapabilities") {
            Some(SentRequest::Initialize)
        } else if has("sessionId") {
            Some(SentRequest::Open { replays: false })
        } else if has("sessions") {
            Some(SentRequest::Query { method: "session/list", call: None })
        } else if is_opening || has("modes") {
            // The result of `session/load` and `session/resume` may be empty or null.
            Some(SentRequest::Open { replays: true })
        } else {
            None
        }
    }
}

impl AgentTranslator for Translator {
    fn on_start(&mut self, out: &mut Out<'_>) {
        self.initialize(out);
    }

    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>) {
        let Some(message) = message.to::<Message<'_>>() else { return };
        if let Some(version) = message.jsonrpc {
            version.carried();
        }
        match (message.method.as_deref(), message.id) {
            (Some("session/update"), _) => self.update(message.params, out),
            (Some(method), Some(id)) => self.request(method, id, message.params, out),
            (Some(method), None) => self.notification(method, message.params, out),
            (None, Some(id)) => self.response(id, message.result, message.error, out),
            // An error about a line that the agent could not read has no id.
            (None, None) => {
                let failure = message.error.and_then(Value::to);
                failure.into_iter().for_each(|failure| out.emit(error_event(&failure)));
            }
        }
    }

    fn on_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        self.command(call, command, out)
    }

    fn on_exit(&mut self, _exit: Exit, out: &mut Out<'_>) {
        const ENDED: &str = "the agent ended before the turn did";
        self.advance(out);
        self.end_agents(true, out);
        self.ledger.close_agent(out, MAIN_AGENT, "the agent ended");
        let was_open = self.ledger.turn_is_open();
        if self.interrupted && was_open {
            self.ledger.fail_turn(out, TurnFailure::Interrupted, Text::from("interrupted"));
        }
        self.ledger.close_all(out, ENDED);
        let error = "the agent ended before the prompt was sent";
        self.fail_queue(TurnFailure::Died, error, None, out);
        self.refuse_inquiries(
            &GatewayError::new(ErrorCode::AgentFailed, "the agent ended before it answered"),
            out,
        );
        let mut replied = BTreeSet::new();
        for (_, sent) in std::mem::take(&mut self.sent) {
            let call = match sent {
                SentRequest::Setting { waiter: Waiter::Call(call), .. } => Some(call),
                SentRequest::Query { call, .. } => call,
                SentRequest::Initialize
                | SentRequest::Open { .. }
                | SentRequest::Prompt
                | SentRequest::Setting { .. } => None,
            };
            // A call that waits for two responses gets one reply.
            if let Some(call) = call.filter(|call| replied.insert(*call)) {
                out.reply(call, Err(GatewayError::new(ErrorCode::AgentFailed, "the agent ended")));
            }
        }
        if was_open {
            out.end(SessionEndReason::Failed, Some(Text::from(ENDED)));
        } else if let Stage::Failed(error) = &self.stage {
            out.end(SessionEndReason::Failed, Some(Text::from(error.message.as_str())));
        }
        self.forget_process();
    }
}

/// Whether a prompt can fail with this code. Of the codes that JSON-RPC reserves, only internal error and
/// auth required count: the others, such as a malformed request or a missing method, belong to another
/// request that was sent meanwhile.
fn may_fail_a_prompt(code: i64) -> bool {
    const INTERNAL_ERROR: i64 = -32603;
    const AUTH_REQUIRED: i64 = -32000;
    !(-32768..=-32000).contains(&code) || matches!(code, INTERNAL_ERROR | AUTH_REQUIRED)
}

/// The failure's message, and the agent's name for it.
fn message_and_code(failure: &Failure<'_>) -> (String, Option<String>) {
    let message = failure.message.as_deref().unwrap_or("an error without a message");
    let code = failure.code.map(|code| code.to_string());
    if let Some((message, status)) = quirks::api_error(message) {
        return (message, status.or(code));
    }
    let details = failure.data.and_then(|data| data.get("details").unwrap_or(data).string());
    match details {
        Some(details) => (format!("{message}: {details}"), code),
        None => (message.to_owned(), code),
    }
}

fn error_event<'d>(failure: &Failure<'d>) -> ErrorEvent<'d> {
    let (message, code) = message_and_code(failure);
    ErrorEvent {
        code: code.map(Text::from),
        details: failure.data.map(Value::json),
        ..ErrorEvent::new(message)
    }
}

fn gateway_error(failure: &Failure<'_>) -> GatewayError {
    let (message, _) = message_and_code(failure);
    let details = failure.data.map(|data| data.json().into_owned());
    GatewayError { details, ..GatewayError::new(ErrorCode::AgentFailed, message) }
}
