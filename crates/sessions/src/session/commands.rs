//! Carries out the commands of clients.

use std::collections::BTreeSet;
use std::time::Duration;

use agentwire_dialects::agent::{AgentDialect, Exit};
use agentwire_protocol::event::{
    RequestKind, SessionEndReason, Status, StatusChanged, TurnFailure,
};
use agentwire_protocol::reply::{InterruptResult, PromptResult};
use agentwire_protocol::session::PROMPT_LIMIT;
use agentwire_protocol::{
    AgentType, Call, Command, Configure, ErrorCode, GatewayError, Json, Prompt, SessionId, Text,
};
use tokio::time::Instant;
use uuid::Uuid;

use super::actor::Actor;
use super::callers::NOBODY;
use super::client_mcp::MCP_MESSAGE;
use super::commit::storage;
use super::core::Effect;
use super::hooks::add;
use super::pending_prompt::PendingPrompt;
use super::pending_request::PendingRequest;
use super::phase::{Phase, Stop};
use super::prompts::GivenPrompt;
use super::structured::Structured;
use crate::process::TreeSignal;

/// How many bytes may wait to be written to an agent that does not read.
const OUTGOING_LIMIT: usize = 64 << 20;

impl Actor {
    /// Carries out a command. An error is the reply; otherwise the reply follows as an effect.
    pub(super) fn command(&mut self, call: Call, command: Command) -> Result<(), GatewayError> {
        if self.supervisor.process().is_some_and(|process| process.waiting() > OUTGOING_LIMIT)
            && !matches!(
                command,
                Command::Interrupt { .. }
                    | Command::Stop
                    | Command::Finish
                    | Command::Queue
                    | Command::Cancel { .. }
            )
        {
            let message = "the agent does not read its input; interrupt or stop it";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        }
        let command = as_change(command)?;
        match command {
            Command::Prompt(prompt) => self.prompt(call, prompt),
            Command::Interrupt { cancel_queued } => self.interrupt(call, cancel_queued),
            Command::Stop => self.stop(call),
            Command::Finish => self.finish(call),
            Command::Settle(settlement) => self.settle(call, &settlement),
            Command::Query { method, args } if self.bridge.is_some() && method == MCP_MESSAGE => {
                self.server_says(call, &args)
            }
            // Nothing changes, so the agent need not be asked.
            Command::Configure(change) if change == Configure::default() => {
                self.core.answer(call, Ok(Json::EMPTY));
                Ok(())
            }
            // The next minute is too far away to wait for an answer.
            Command::Query { .. } | Command::Rewind { .. }
                if self.trust_gate.rests_until().is_some() =>
            {
                let agent = self.plan.agent.as_str();
                let message = format!("{agent} has not started yet; it starts in the next minute");
                Err(GatewayError::new(ErrorCode::Conflict, message))
            }
            Command::Configure(_) | Command::Query { .. } | Command::Rewind { .. }
                if self.trust_gate.is_waiting() =>
            {
                self.wait_for_trust(call, command)
            }
            Command::Configure(change) => self.configure(call, change),
            Command::Query { .. } | Command::Rewind { .. } => {
                self.needs_process()?;
                self.tape.command(call, &command, &mut self.core)
            }
            Command::Queue => {
                self.list_queue(call);
                Ok(())
            }
            Command::Cancel { message_id } => self.cancel_prompt(call, &message_id),
            Command::Edit { message_id, text } => self.edit_prompt(call, &message_id, &text),
            Command::Start(_) | Command::Attach { .. } => Err(GatewayError::new(
                ErrorCode::InvalidMessage,
                format!("the command {} does not apply to a running session", command.name()),
            )),
        }
    }

    /// Accepts a prompt. While a turn runs, the prompt waits for its end, unless `delivery` says otherwise.
    pub(super) fn prompt(&mut self, call: Call, mut prompt: Prompt) -> Result<(), GatewayError> {
        if let Some(id) = prompt.message_id.as_ref().filter(|id| self.prompts.was_accepted(id)) {
            let reply = PromptResult { message_id: id.clone(), repeated: true };
            self.core.answer(call, Ok(Json::of(&reply)));
            return Ok(());
        }
        if !self.phase.is_live() {
            return Err(GatewayError::new(ErrorCode::Conflict, "the session is ending"));
        }
        check_prompt(&prompt, self.plan.agent, self.plan.dialect)?;
        let id = prompt.message_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        prompt.message_id = Some(id.clone());
        if self.trust_gate.is_waiting() {
            self.wait_for_trust(call, Command::Prompt(prompt))?;
        } else {
            self.accept_prompt(call, PendingPrompt::from(prompt))?;
        }
        // Only here, because the key must be new.
        self.outbox.store_key((self.prompt_key(&id), String::new()));
        self.prompts.take(id, self.outbox.undurable());
        Ok(())
    }

    /// Gives a prompt to the agent, unless a limit is reached.
    pub(super) fn accept_prompt(
        &mut self,
        call: Call,
        pending: PendingPrompt,
    ) -> Result<(), GatewayError> {
        let reached = self
            .limits
            .reached(&self.core.state)
            .filter(|_| self.core.state.record.open.turn.is_none() && !self.core.state.is_busy());
        match reached {
            Some(reached) => self.hold(call, pending, reached),
            None => self.offer(call, pending),
        }
    }

    /// Gives a prompt to the agent, once no answer is pending that may be rejected.
    pub(super) fn deliver(
        &mut self,
        call: Call,
        pending: PendingPrompt,
    ) -> Result<(), GatewayError> {
        match self.answers_first() {
            true => self.wait_for_turn(call, pending),
            false => self.deliver_now(call, pending),
        }
    }

    /// Gives a prompt to the agent, with the text that the gateway adds.
    pub(super) fn deliver_now(
        &mut self,
        call: Call,
        pending: PendingPrompt,
    ) -> Result<(), GatewayError> {
        let given = GivenPrompt::new(&pending);
        let PendingPrompt { mut prompt, is_queued, .. } = pending;
        let text = prompt.text.clone();
        if let Some(structured) = &self.core.structured {
            add(&mut prompt, None, Some(structured.request()));
        }
        check_size(&prompt, self.plan.dialect)?;
        let capabilities = self.plan.dialect.capabilities();
        let per_turn = capabilities.process_per_turn;
        if per_turn {
            self.prompts.check_room(&prompt)?;
        }
        let kept = per_turn.then(|| prompt.clone());
        let id = prompt.message_id.clone().unwrap_or_default();
        // If the agent has one queue for everything, such a prompt may just as well start the next turn.
        let steers = prompt.delivery == Some(agentwire_protocol::command::Delivery::Steer)
            && self.core.state.record.open.turn.is_some()
            && !capabilities.folds_prompts;
        let waits = self.core.state.is_busy();
        // The turn may start within the command, and then keeps the promise.
        if !steers {
            self.core.state.promise(&id);
        }
        let title = self.core.state.record.summary.title.clone();
        // Set it before the turn starts, so that text added to the prompt does not become the title.
        if !steers {
            self.core.state.entitle(&text);
        }
        self.core.accept_with(call, taken(&id));
        let done = self.tape.command(call, &Command::Prompt(prompt), &mut self.core);
        if done.is_err() {
            self.core.forget_acceptance(call);
        }
        if done.is_err() && !steers {
            self.core.state.keep_promise(&id);
            self.core.state.record.summary.title = title;
        }
        done?;
        if !steers {
            let waiting: BTreeSet<&String> = self.core.state.waiting().collect();
            self.prompts.give(given, |id| waiting.contains(id));
        }
        self.touch();
        if waits && !is_queued {
            self.queued(&id);
        }
        if let Some(prompt) = kept {
            self.prompts.queue(prompt);
            self.core.effects.push(Effect::Start(self.prompts.change()));
        }
        Ok(())
    }

    pub(super) fn queued(&mut self, id: &str) {
        let status = StatusChanged::new(Status::Queue).message(Text::from("queued"));
        self.core.emit(status.details(taken(id)));
    }

    /// Asks the store, on a thread that may block, whether a prompt with this id was accepted before.
    pub(super) async fn recall(&mut self, id: Option<&str>) -> Result<(), GatewayError> {
        let Some(id) = id.filter(|id| !self.phase.is_ended() && !self.prompts.was_accepted(id))
        else {
            return Ok(());
        };
        let key = self.prompt_key(id);
        let found = self.outbox.log().read_store(move |store| store.remembered(&key)).await;
        self.prompts.recall(found.map_err(|error| storage(&error))?.map(|_| id.to_owned()));
        Ok(())
    }

    fn prompt_key(&self, id: &str) -> String {
        prompt_key(&self.core.state.record.summary.id, id)
    }

    /// Stops the turn. Its pending requests are denied first, because an agent may ignore the interrupt
    /// until then.
    fn interrupt(&mut self, call: Call, cancel_queued: bool) -> Result<(), GatewayError> {
        self.interrupt_hooks("the turn was interrupted");
        self.fail_waiting(TurnFailure::Interrupted, "the turn was interrupted");
        self.deny_all("the turn was interrupted");
        self.unpause();
        let ours = self.core.structured.iter().flat_map(Structured::waiting);
        let waiting: Vec<String> = self.core.state.waiting().chain(ours).cloned().collect();
        let starting = self.starting_prompt();
        // A denied limit has already cut the turn off.
        let is_cut = self.core.cut().is_some() && !cancel_queued;
        if !self.interrupt_answer("the turn was interrupted")
            && self.core.state.is_busy()
            && !is_cut
        {
            self.tape.command(NOBODY, &Command::Interrupt { cancel_queued }, &mut self.core)?;
            self.escalate();
        }
        let mut result = InterruptResult { still_queued: waiting, cancelled: None };
        if cancel_queued {
            self.prompts.clear_queue();
            self.cancel_waiting();
            // An agent with its own queue reports later what it has dropped.
            let is_asked = self.plan.dialect.capabilities().folds_prompts;
            let still = |id: &String| self.core.state.waiting().any(|waiting| waiting == id);
            let (cancelled, queued): (Vec<_>, Vec<_>) =
                result.still_queued.into_iter().partition(|id| is_asked || !still(id));
            result = InterruptResult { still_queued: queued, cancelled: Some(cancelled) };
        }
        result.still_queued.retain(|id| starting.as_ref() != Some(id));
        self.core.answer(call, Ok(Json::of(&result)));
        Ok(())
    }

    /// With one process per turn: the prompt whose turn is about to start, and which an interrupt ends.
    fn starting_prompt(&self) -> Option<String> {
        let state = &self.core.state;
        let is_starting =
            self.plan.dialect.capabilities().process_per_turn && state.record.open.turn.is_none();
        state.waiting().next().filter(|_| is_starting).cloned()
    }

    /// Ends the session, including work and requests in the background.
    fn stop(&mut self, call: Call) -> Result<(), GatewayError> {
        let asks = |raised: &PendingRequest| {
            matches!(raised.kind, RequestKind::Permission | RequestKind::Question)
        };
        let state = &mut self.core.state;
        // A session that a client stops has ended for good. One that the gateway stops may continue later.
        if self.callers.current().name.is_some() {
            state.record.client = None;
        }
        let is_cut = !state.record.open.agents.is_empty() || state.requests.values().any(asks);
        self.stop_as(call, is_cut)
    }

    fn stop_as(&mut self, call: Call, is_cut: bool) -> Result<(), GatewayError> {
        let waits = self.core.hooks.hold_prompts();
        self.end_hooks(TurnFailure::Interrupted, "the session was stopped");
        self.deny_all("the session was stopped");
        self.deny_messages("the session was stopped");
        self.unpause();
        self.prompts.clear_queue();
        let reason = if self.core.state.is_busy() || waits || is_cut {
            SessionEndReason::Cancelled
        } else {
            SessionEndReason::Completed
        };
        if self.core.checks_answer() {
            self.core.give_up_answer(TurnFailure::Interrupted, "the session was stopped");
        }
        if !self.supervisor.has_process() {
            self.tape.end(Exit::Unknown, &mut self.core);
            self.core.answer(call, Ok(Json::EMPTY));
            self.end(reason, None);
            return Ok(());
        }
        let escalation = match self.phase.stop(reason) {
            Stop::First => Some((self.plan.settings.timing.stop, TreeSignal::Terminate)),
            // Its stdin is closed, so it reacts only to signals.
            Stop::Ending => Some((Duration::ZERO, TreeSignal::Interrupt)),
            Stop::Repeated => None,
        };
        if let Some((grace, signal)) = escalation {
            self.supervisor.end_by(Instant::now() + grace, signal);
        }
        self.tape.command(call, &Command::Stop, &mut self.core)
    }

    /// Ends the session once its work is done. Until then, rules answer the agent's requests.
    fn finish(&mut self, call: Call) -> Result<(), GatewayError> {
        self.phase.finish();
        self.deny_alone();
        self.core.answer(call, Ok(Json::EMPTY));
        Ok(())
    }

    /// Ends the session if no more work can come and all its work is done.
    pub(super) fn end_if_done(&mut self) {
        let answers = self.core.structured.as_ref().is_some_and(Structured::has_waiting);
        let waits = self.prompts.has_queued()
            || self.limits.hold_prompts()
            || self.trust_gate.has_prompt()
            || answers;
        let is_done = !self.core.state.is_busy() && !waits && !self.core.hooks.hold_something();
        if self.phase != Phase::Finishing || !is_done {
            return;
        }
        // An agent that starts its own turns may have more to do than it was given, such as waiting for a
        // background task. It ends by itself.
        if self.supervisor.has_process() && self.plan.dialect.capabilities().folds_prompts {
            self.phase.complete();
            let _ = self.tape.command(NOBODY, &Command::Finish, &mut self.core);
        } else {
            let _ = self.stop_as(NOBODY, false);
        }
    }

    pub(super) fn configure(&mut self, call: Call, change: Configure) -> Result<(), GatewayError> {
        let command = Command::Configure(change.clone());
        self.core.ask_change(call, change);
        let asked = self.tape.command(call, &command, &mut self.core);
        if asked.is_err() {
            self.core.forget_change(call);
        }
        asked?;
        self.take_changes();
        Ok(())
    }

    pub(super) fn take_changes(&mut self) {
        while let Some(change) = self.core.take_change() {
            self.changed(&change);
        }
    }

    fn changed(&mut self, change: &Configure) {
        if let Some(mode) = change.approval_mode {
            self.core.policy.set_mode(mode);
            self.config.approval_mode = Some(mode);
        }
        if let Some(mode) = &change.permission_mode {
            self.core.policy.set_own_mode(mode);
        }
        if change.permission_mode.is_some() || change.approval_mode.is_some() {
            self.config.permission_mode.clone_from(&change.permission_mode);
            self.warn_of_machine();
        }
        if let Some(model) = &change.model {
            self.config.model = model.clone().or_else(|| self.first.model.clone());
        }
        if let Some(tokens) = change.max_thinking_tokens {
            self.config.max_thinking_tokens = tokens.or(self.first.max_thinking_tokens);
        }
        let record = &mut self.core.state.record;
        record.config = self.config.kept();
        record.summary.approval_mode = match &self.config.permission_mode {
            Some(_) => Some(self.core.policy.mode()),
            None => self.config.approval_mode,
        };
        // Without a name, the agent may know better which model it returns to.
        if let Some(model) = change.model.clone().flatten() {
            record.summary.model = Some(model);
        }
        self.core.state.changed = true;
    }

    fn needs_process(&self) -> Result<(), GatewayError> {
        if self.supervisor.has_process() {
            return Ok(());
        }
        let agent = self.plan.agent.as_str();
        let message =
            format!("{agent} runs only while it works on a prompt; try again during a turn");
        Err(GatewayError::new(ErrorCode::Conflict, message))
    }
}

/// The key under which the store remembers that a session accepted a prompt.
pub(crate) fn prompt_key(session: &SessionId, message: &str) -> String {
    format!("{session}/prompt/{message}")
}

/// Whether content asks for something. A tool result alone does not start a turn.
fn asks(content: Option<&Json<'_>>) -> bool {
    #[derive(serde::Deserialize)]
    struct Block {
        r#type: String,
    }
    let blocks = content.and_then(|content| content.read::<Vec<Block>>().ok());
    blocks.is_some_and(|blocks| blocks.iter().any(|block| block.r#type != "tool_result"))
}

/// Refuses a prompt that is empty, too long, or not supported by this agent.
pub(crate) fn check_prompt(
    prompt: &Prompt,
    agent: AgentType,
    dialect: &dyn AgentDialect,
) -> Result<(), GatewayError> {
    if prompt.text.is_empty() && prompt.images.is_empty() && !asks(prompt.content.as_ref()) {
        return Err(GatewayError::new(ErrorCode::InvalidMessage, "the prompt is empty"));
    }
    if prompt.text.len() > 4 * PROMPT_LIMIT * 64 {
        let message = format!("the prompt is too long: {} bytes", prompt.text.len());
        return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
    }
    check_size(prompt, dialect)?;
    if prompt.content.is_some() && !dialect.capabilities().content_blocks {
        let what = "content blocks other than text and images in base64";
        return Err(GatewayError::unsupported(agent.as_str(), what));
    }
    if !prompt.wants_answer() && !dialect.capabilities().content_blocks {
        return Err(GatewayError::unsupported(agent.as_str(), "shouldQuery: false"));
    }
    Ok(())
}

/// Refuses a prompt that is longer than the agent accepts. It would be cut, or fail later with another
/// message.
fn check_size(prompt: &Prompt, dialect: &dyn AgentDialect) -> Result<(), GatewayError> {
    let Some(limit) = dialect.prompt_limit() else { return Ok(()) };
    let size = limit.unit.count(&prompt.text);
    if size <= limit.most {
        return Ok(());
    }
    let (name, most, unit) = (dialect.agent_type().as_str(), limit.most, limit.unit.as_str());
    let message = format!("the prompt has {size} {unit}; {name} accepts at most {most}");
    let details = serde_json::json!({ "limit": most, "unit": unit, "size": size });
    let details = Some(Json::of(&details));
    Err(GatewayError { details, ..GatewayError::new(ErrorCode::InvalidMessage, message) })
}

pub(super) fn taken(id: &str) -> Json<'static> {
    Json::of(&PromptResult { message_id: id.to_owned(), repeated: false })
}

/// Turns the query that changes the mode into a configuration change, because the gateway acts on the mode
/// too.
fn as_change(command: Command) -> Result<Command, GatewayError> {
    let Command::Query { method, args } = &command else { return Ok(command) };
    if method != "setPermissionMode" {
        return Ok(command);
    }
    let Some(mode) = args.first().and_then(|mode| mode.read::<String>().ok()) else {
        let message = "setPermissionMode needs the name of a mode";
        return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
    };
    Ok(Command::Configure(Configure { permission_mode: Some(mode), ..Configure::default() }))
}
