//! Our requests to the app server, and the handling of its responses.

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::event::{
    AgentInfo, ErrorEvent, Status, StatusChanged, TurnFailed, TurnFailure, TurnOrigin,
};
use agentwire_protocol::reply::PromptResult;
use agentwire_protocol::{Call, ErrorCode, GatewayError, Json, Prompt, Text};
use serde_json::{Map, json};

use super::super::app_wire::{InitializeResult, ThreadResult, Turn};
use super::super::{launch, policy};
use super::replies::{Shape, refusal};
use super::{Driver, Translator};
use crate::agent::report_cancelled;
use crate::json::Value;
use crate::ledger::{TurnInput, failed_turn};
use crate::prompt_queue;
use crate::tape::{Action, Out};

/// How many responses may be awaited at once.
const PENDING_LIMIT: usize = 1024;
/// How many bytes of prompts may wait for their turn.
const WAITING_LIMIT: usize = 64 << 20;

/// The wire to one process.
#[derive(Debug, Default)]
pub(super) struct AppServer {
    last_id: u64,
    pending: BTreeMap<u64, Pending>,
    stage: Stage,
    /// Lines that must wait for the end of the handshake.
    held: Vec<String>,
    /// Prompts that wait for the thread or for the running turn.
    waiting: VecDeque<Prompt>,
    /// A turn was requested and has not started yet.
    starting: bool,
    /// An interrupt that waits for the id of its turn.
    interrupt: bool,
    /// The model changed; the next turn must set it.
    pub(super) new_model: bool,
    /// The mode changed; the next turn must set it.
    pub(super) new_mode: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Closed,
    Initializing,
    Opening,
    Open,
    /// There is no thread to work in. The process was asked to end, which may take a while.
    Failed,
}

#[derive(Debug)]
pub(super) enum Pending {
    Initialize,
    Open,
    Turn,
    /// A prompt that is to join the turn.
    Steer(Call, Box<Prompt>),
    Query(Call, Shape),
    Nobody,
}

impl Translator {
    /// Starts the handshake with a new process.
    pub(super) fn open_wire(&mut self, out: &mut Out<'_>) {
        self.wire.stage = Stage::Initializing;
        self.wire.starting = false;
        self.wire.interrupt = false;
        let params = json!({
            "clientInfo": {
                "name": "agentwire",
                "title": "agentwire",
                "version": env!("CARGO_PKG_VERSION"),
            },
            // Without `experimentalApi`, a command that outlives its turn cannot be ended.
            "capabilities": {
                "experimentalApi": true,
                "optOutNotificationMethods": launch::unwanted(&self.config),
            },
        });
        self.call(Pending::Initialize, "initialize", &params, out);
    }

    /// The process has ended: fails the calls that still wait for an answer.
    pub(super) fn close_wire(&mut self, out: &mut Out<'_>) {
        self.wire.stage = Stage::Closed;
        self.wire.held.clear();
        for pending in std::mem::take(&mut self.wire.pending).into_values() {
            if let Pending::Steer(call, _) | Pending::Query(call, _) = pending {
                let message = "codex ended before it answered";
                out.reply(call, Err(GatewayError::new(ErrorCode::AgentFailed, message)));
            }
        }
        if std::mem::take(&mut self.wire.starting) {
            self.ledger.ensure_turn(out);
        }
    }

    /// Reports each waiting prompt as a failed turn.
    pub(super) fn drop_waiting(
        &mut self,
        out: &mut Out<'_>,
        failure: TurnFailure,
        error: &str,
        error_type: Option<&str>,
    ) {
        for prompt in std::mem::take(&mut self.wire.waiting) {
            self.ledger.start_turn(out, Some(TurnInput::from(&prompt)), TurnOrigin::Prompt);
            let error_type = error_type.map(Text::from);
            let failed = TurnFailed { error_type, ..failed_turn(failure, Text::from(error)) };
            self.ledger.fail_turn_with(out, failed);
        }
    }

    pub(super) fn cancel_waiting(&mut self, out: &mut Out<'_>) {
        for prompt in std::mem::take(&mut self.wire.waiting) {
            prompt.message_id.iter().for_each(|id| report_cancelled(id, out));
        }
    }

    pub(super) fn cancel_prompt(
        &mut self,
        message_id: &str,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let was_next = prompt_queue::cancel(&mut self.wire.waiting, message_id, out)?;
        // An interrupt that no turn has taken yet was for it, not for the prompt after it.
        if was_next && !self.turn_is_wanted() {
            self.wire.interrupt = false;
        }
        Ok(())
    }

    pub(super) fn edit_prompt(&mut self, message_id: &str, text: &str) -> Result<(), GatewayError> {
        prompt_queue::edit(&mut self.wire.waiting, message_id, text)
    }

    /// Sends a request, or holds it until the handshake is done.
    pub(super) fn call(
        &mut self,
        pending: Pending,
        method: &str,
        params: &serde_json::Value,
        out: &mut Out<'_>,
    ) {
        self.wire.last_id += 1;
        let id = self.wire.last_id;
        let line = json!({ "id": id, "method": method, "params": params }).to_string();
        let early = matches!(pending, Pending::Initialize);
        self.wire.pending.insert(id, pending);
        match self.wire.stage {
            Stage::Closed | Stage::Initializing if !early => self.wire.held.push(line),
            Stage::Closed | Stage::Initializing | Stage::Opening | Stage::Open | Stage::Failed => {
                out.write(line);
            }
        }
    }

    /// Refuses a call that would let a table grow without bound.
    pub(super) fn has_room(&self) -> Result<(), GatewayError> {
        if self.wire.pending.len() < PENDING_LIMIT {
            return Ok(());
        }
        Err(GatewayError::new(ErrorCode::Overloaded, "too many calls wait for codex to answer"))
    }

    /// Queues a prompt, last or first.
    pub(super) fn wait(&mut self, prompt: &Prompt, first: bool) -> Result<(), GatewayError> {
        if self.wire.stage == Stage::Failed {
            let message = self.last_error.as_deref().unwrap_or("codex did not open a thread");
            return Err(GatewayError::new(ErrorCode::StartFailed, message));
        }
        let size = |prompt: &Prompt| {
            64 + prompt.text.len()
                + prompt.images.iter().map(|image| image.data.len()).sum::<usize>()
        };
        if self.wire.waiting.iter().map(size).sum::<usize>() + size(prompt) > WAITING_LIMIT {
            return Err(GatewayError::new(ErrorCode::Overloaded, "too many prompts wait"));
        }
        if first {
            self.wire.waiting.push_front(prompt.clone());
        } else {
            self.wire.waiting.push_back(prompt.clone());
        }
        Ok(())
    }

    /// Sends the next waiting prompt, if the thread is free.
    pub(super) fn next_turn(&mut self, out: &mut Out<'_>) {
        if self.wire.stage != Stage::Open || self.turn_is_wanted() {
            return;
        }
        let Some(prompt) = self.wire.waiting.pop_front() else { return };
        let mut params = Map::new();
        let mut put = |name: &str, value| drop(params.insert(name.to_owned(), value));
        put("threadId", json!(self.threads.main_id()));
        put("input", input(&prompt));
        if let Some(format) = &self.config.output_format {
            put("outputSchema", json!(format.schema));
        }
        if let (true, Some(model)) = (std::mem::take(&mut self.wire.new_model), &self.config.model)
        {
            put("model", json!(model));
        }
        // What the mode does not change stays as the user's own settings define it.
        if std::mem::take(&mut self.wire.new_mode)
            && let Ok(sandbox) = policy::of(Driver::AppServer, &self.config)
        {
            put("approvalPolicy", json!(policy::APPROVAL));
            put("sandboxPolicy", sandbox.policy(&self.config));
        }
        if let Some(mode) = self.planning.change(self.plans(), self.model()) {
            put("collaborationMode", mode);
        }
        self.ledger.prompt_sent(&prompt);
        self.wire.starting = true;
        self.stopping = false;
        self.call(Pending::Turn, "turn/start", &json!(params), out);
    }

    /// Interrupts the running turn, now or as soon as its id is known, or one that waits for the thread.
    pub(super) fn interrupt(&mut self, out: &mut Out<'_>) {
        let turn = self.threads.main().turn.clone().filter(|_| self.ledger.turn_is_open());
        match turn {
            Some(turn) => {
                let params = json!({ "threadId": self.threads.main_id(), "turnId": turn });
                self.call(Pending::Nobody, "turn/interrupt", &params, out);
            }
            None => self.wire.interrupt = self.wire.starting || !self.wire.waiting.is_empty(),
        }
    }

    pub(super) fn turn_is_wanted(&self) -> bool {
        self.wire.starting || self.ledger.turn_is_open()
    }

    /// The requested turn has started.
    pub(super) fn turn_is_known(&mut self, out: &mut Out<'_>) {
        self.wire.starting = false;
        if std::mem::take(&mut self.wire.interrupt) {
            self.interrupt(out);
        }
    }

    /// The running or requested turn has ended, so a pending interrupt is dropped.
    pub(super) fn turn_has_ended(&mut self) {
        self.wire.starting = false;
        self.wire.interrupt = false;
    }

    /// Ends the commands that an interrupted turn left running.
    pub(super) fn clean_up(&mut self, out: &mut Out<'_>) {
        if self.wire.stage == Stage::Open {
            let params = json!({ "threadId": self.threads.main_id() });
            self.call(Pending::Nobody, "thread/backgroundTerminals/clean", &params, out);
        }
    }

    pub(super) fn response(
        &mut self,
        id: Value<'_>,
        result: Option<Value<'_>>,
        error: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        let pending = id.to::<u64>().and_then(|id| self.wire.pending.remove(&id));
        let result = match error {
            None => Ok(result),
            Some(error) => Err(refusal(error)),
        };
        match (pending, result) {
            (Some(Pending::Initialize), Ok(_)) => {
                out.write(json!({ "method": "initialized" }).to_string());
                self.wire.stage = Stage::Opening;
                std::mem::take(&mut self.wire.held).into_iter().for_each(|line| out.write(line));
                self.open_thread(out);
            }
            (Some(Pending::Open), Ok(Some(result))) => self.opened(result, out),
            (Some(Pending::Open), Ok(None)) => {
                self.fail_open("codex did not open a thread".to_owned(), out);
            }
            (Some(Pending::Initialize | Pending::Open), Err(error)) => {
                self.fail_open(error.message, out);
            }
            (Some(Pending::Turn), Ok(result)) => {
                let turn = result.and_then(|result| result.get("turn")?.to::<Turn<'_>>());
                if let Some(id) = turn.and_then(|turn| turn.id) {
                    self.threads.main().turn = Some(id.into_owned());
                }
            }
            (Some(Pending::Turn), Err(error)) => {
                self.turn_has_ended();
                let turn = failed_turn(TurnFailure::Error, Text::from(error.message));
                self.ledger.fail_turn_with(out, turn);
                self.next_turn(out);
            }
            (Some(Pending::Steer(call, prompt)), steered) => {
                self.steered(call, &prompt, steered.err(), out);
            }
            (Some(Pending::Query(call, shape)), Ok(result)) => {
                out.reply(call, Ok(shape.of(result)));
            }
            (Some(Pending::Query(call, _)), Err(error)) => out.reply(call, Err(error)),
            (Some(Pending::Nobody), _) => {}
            (None, Ok(result)) => self.overheard(result, out),
            (None, Err(error)) => {
                let details = error.details;
                out.emit(ErrorEvent { details, ..ErrorEvent::new(error.message) });
            }
        }
    }

    /// A prompt joined the turn. One that came too late starts the next turn: it was accepted, and must not
    /// be lost.
    fn steered(
        &mut self,
        call: Call,
        prompt: &Prompt,
        refused: Option<GatewayError>,
        out: &mut Out<'_>,
    ) {
        let is_late = refused.is_some();
        if let Some(error) = refused.filter(|_| self.wait(prompt, false).is_err()) {
            return out.reply(call, Err(error));
        }
        let message_id = prompt.message_id.clone().unwrap_or_default();
        out.reply(call, Ok(Json::of(&PromptResult { message_id, repeated: false })));
        if is_late {
            self.next_turn(out);
        }
    }

    /// A recording contains responses, but not our requests.
    fn overheard(&mut self, result: Option<Value<'_>>, out: &mut Out<'_>) {
        let Some(result) = result.filter(|_| out.is_recording()) else { return };
        if result.get("thread").is_some() && result.get("approvalPolicy").is_some() {
            let opened: ThreadResult<'_> = result.to().unwrap_or_default();
            self.ready(opened, out);
        } else if result.get("codexHome").is_some() {
            let agent = result.to::<InitializeResult<'_>>().and_then(|result| result.user_agent);
            let version = agent.as_deref().and_then(|agent| agent.split(['/', ' ']).nth(1));
            let agent_version = version.map(Text::from);
            out.ready(AgentInfo { agent_version, ..AgentInfo::default() });
        }
    }

    fn open_thread(&mut self, out: &mut Out<'_>) {
        let mut params = match launch::thread_params(&self.config) {
            Ok(params) => params,
            Err(error) => return self.fail_open(error.message, out),
        };
        (self.wire.new_model, self.wire.new_mode) = (false, false);
        let resume = self.resume.clone();
        let method = match resume {
            Some(thread) => {
                params.insert("threadId".to_owned(), json!(thread));
                params.insert("excludeTurns".to_owned(), json!(true));
                if self.fork { "thread/fork" } else { "thread/resume" }
            }
            None => "thread/start",
        };
        self.call(Pending::Open, method, &json!(params), out);
    }

    fn opened(&mut self, result: Value<'_>, out: &mut Out<'_>) {
        let opened: ThreadResult<'_> = result.to().unwrap_or_default();
        let id = opened.thread.as_ref().and_then(|thread| thread.id.as_deref()).map(str::to_owned);
        let Some(id) = id else {
            return self.fail_open("codex did not open a thread".to_owned(), out);
        };
        let origin = result.get("thread").and_then(|thread| thread.get("forkedFromId")?.string());
        if let Some(error) = self.mistaken(&id, origin.as_deref()) {
            return self.fail_open(error, out);
        }
        if let Some(error) = unasking(result) {
            return self.fail_open(error, out);
        }
        self.threads.main().id.clone_from(&id);
        self.continue_thread(id);
        self.wire.stage = Stage::Open;
        self.ready(opened, out);
        self.next_turn(out);
    }

    fn ready(&mut self, opened: ThreadResult<'_>, out: &mut Out<'_>) {
        let thread = opened.thread.unwrap_or_default();
        if self.config.working_directory.is_none() {
            self.config.working_directory = opened.cwd.as_ref().map(Text::to_string);
        }
        let id = thread.id.clone();
        // A model that was changed before the thread was open is not the first.
        if self.first_model.is_none() && self.config.model.is_none() {
            let model = opened.model.as_ref().or(thread.model.as_ref());
            self.first_model = model.map(Text::to_string);
        }
        self.planning.told(opened.effort, opened.collaboration);
        let own = self.mode().map(str::to_owned);
        let mode = own.map(Text::from).or(opened.approval_policy);
        let info = AgentInfo {
            native_session_id: thread.id.map(Text::new),
            agent_version: thread.cli_version,
            model: opened.model.or(thread.model),
            mode,
            working_directory: opened.cwd.or(thread.cwd),
            ..AgentInfo::default()
        };
        match id.as_deref().map(|id| self.threads.root(id)) {
            // A recording may open more than one thread (`real-app-resume-3-archived`).
            Some(other) if other.is_sub() => {
                other.show(out);
                out.emit_as(&other.agent(), StatusChanged::new(Status::Ready).info(info));
            }
            _ => out.ready(info),
        }
    }

    /// No thread opened: fails the waiting prompts and ends the process.
    fn fail_open(&mut self, error: String, out: &mut Out<'_>) {
        let name = ErrorCode::StartFailed.as_str();
        let code = Some(Text::from(name));
        out.emit(ErrorEvent { code, ..ErrorEvent::new(error.as_str()) });
        self.wire.stage = Stage::Failed;
        self.drop_waiting(out, TurnFailure::Error, &error, Some(name));
        self.last_error = Some(error);
        out.act(Action::CloseStdin);
    }
}

/// The error if Codex does not ask in a thread as requested: machine-wide settings override those of a
/// client.
fn unasking(opened: Value<'_>) -> Option<String> {
    let wanted = [("approvalPolicy", policy::APPROVAL), ("approvalsReviewer", policy::REVIEWER)];
    let other = |(name, wanted): (&'static str, &str)| {
        let value = opened.get(name).map(Value::json).filter(|value| value.get() != "null")?;
        let is_wanted = value.read::<String>().is_ok_and(|value| value == wanted);
        (!is_wanted).then(|| (name, value.get().to_owned()))
    };
    let (name, value) = wanted.into_iter().find_map(other)?;
    Some(format!(
        "codex runs with {name} {value} and would not ask agentwire: this machine's \
         settings override agentwire's; see /etc/codex/managed_config.toml and \
         /etc/codex/requirements.toml"
    ))
}

/// A prompt in the format of `turn/start` and `turn/steer`.
pub(super) fn input(prompt: &Prompt) -> serde_json::Value {
    let text = json!({ "type": "text", "text": prompt.text });
    let images = prompt.images.iter().map(|image| {
        let url = format!("data:{};base64,{}", image.media_type, image.data);
        json!({ "type": "image", "url": url })
    });
    std::iter::once(text).chain(images).collect()
}
