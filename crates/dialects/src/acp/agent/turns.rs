//! Prompts and turns: what waits, what runs, and how it ends.

use agentwire_protocol::event::{
    Other, Status, StatusChanged, TextChunk, ThinkingChunk, TurnCompleted, TurnFailed, TurnFailure,
    TurnOrigin,
};
use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{ErrorCode, GatewayError, Prompt, Text, TokenUsage};
use serde_json::json;

use super::super::wire::{self, Failure, PromptResult, Quota, Tokens};
use super::handshake::Stage;
use super::{SentRequest, Translator, message_and_code};
use crate::agent::report_cancelled;
use crate::json::Value;
use crate::ledger::{TurnInput, completed_turn, failed_turn};
use crate::tape::{Agent, Out};

/// How many bytes of prompts may wait.
const QUEUE_LIMIT: usize = 64 << 20;

pub(super) struct OpenBlock {
    pub(super) agent: Agent<'static>,
    pub(super) is_thought: bool,
    pub(super) message_id: Option<String>,
}

impl Translator {
    /// Queues a prompt. It runs once the session is open and no turn runs.
    pub(super) fn enqueue(
        &mut self,
        prompt: &Prompt,
        is_next: bool,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if let Stage::Failed(error) = &self.stage {
            return Err(error.clone());
        }
        let is_known = !matches!(self.stage, Stage::Starting);
        if is_known && !prompt.images.is_empty() && !self.accepts_images() {
            return Err(self.unsupported("images in a prompt"));
        }
        let waiting: usize = self.queue.iter().chain([prompt]).map(size).sum();
        if waiting > QUEUE_LIMIT && !self.queue.is_empty() {
            let message = "too many prompts are queued; wait for the turn to end";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        }
        if is_next {
            self.queue.push_front(prompt.clone());
        } else {
            self.queue.push_back(prompt.clone());
        }
        self.pump(out);
        Ok(())
    }

    fn accepts_images(&self) -> bool {
        self.announces("promptCapabilities.image")
    }

    /// Sends the next prompt if the agent can accept one. A second prompt in a running turn would cancel
    /// that turn (fixture real-concurrent-same-session).
    pub(super) fn pump(&mut self, out: &mut Out<'_>) {
        while matches!(self.stage, Stage::Ready) && !self.replaying && !self.ledger.turn_is_open() {
            let Some(mut prompt) = self.queue.pop_front() else { return };
            // One of the agent's own commands must come first in its prompt.
            if !prompt.text.trim_start().starts_with(['/', '$'])
                && let Some(preface) = self.preface.take()
            {
                prompt.text.insert_str(0, &preface);
            }
            self.advance(out);
            self.ledger.start_turn(out, Some(TurnInput::from(&prompt)), TurnOrigin::Prompt);
            let sent = if prompt.images.is_empty() || self.accepts_images() {
                let params = json!({ "sessionId": self.session, "prompt": content(&prompt) });
                self.send("session/prompt", &params, SentRequest::Prompt, out)
            } else {
                Err(self.unsupported("images in a prompt"))
            };
            if let Err(error) = sent {
                self.ledger.fail_turn(out, TurnFailure::Error, Text::from(error.message));
            }
        }
    }

    /// Stops the running turn, or drops the waiting prompts. Gemini ends a cancelled turn only when its
    /// open requests are answered (fixture real-cancel-permission-unanswered).
    pub(super) fn interrupt(&mut self, out: &mut Out<'_>) {
        if self.ledger.turn_is_open() {
            self.interrupted = true;
            out.write(wire::notification("session/cancel", &json!({ "sessionId": self.session })));
        } else {
            self.fail_queue(TurnFailure::Interrupted, "interrupted before it was sent", None, out);
        }
        self.cancel_requests(out);
    }

    /// Reports each waiting prompt as a failed turn.
    pub(super) fn fail_queue(
        &mut self,
        reason: TurnFailure,
        error: &str,
        error_type: Option<&str>,
        out: &mut Out<'_>,
    ) {
        for prompt in std::mem::take(&mut self.queue) {
            self.ledger.start_turn(out, Some(TurnInput::from(&prompt)), TurnOrigin::Prompt);
            let error_type = error_type.map(Text::from);
            let failed = TurnFailed { error_type, ..failed_turn(reason, Text::from(error)) };
            self.ledger.fail_turn_with(out, failed);
        }
    }

    pub(super) fn cancel_queue(&mut self, out: &mut Out<'_>) {
        for prompt in std::mem::take(&mut self.queue) {
            prompt.message_id.iter().for_each(|id| report_cancelled(id, out));
        }
    }

    /// Content of a turn arrived. A recording does not contain prompts, so there the content starts the
    /// turn.
    pub(super) fn in_turn(&mut self, out: &mut Out<'_>) {
        if out.is_recording() {
            self.ledger.ensure_turn(out);
        }
    }

    pub(super) fn finish_turn(&mut self, result: Option<Value<'_>>, out: &mut Out<'_>) {
        if std::mem::take(&mut self.other_spoke) && self.has_other_session && out.is_recording() {
            // The result does not name its session: it belongs to the one that spoke last.
            return out.emit(Other::named("otherSession"));
        }
        let read: PromptResult<'_> = result.and_then(Value::to).unwrap_or_default();
        let quota = read.meta.and_then(|meta| meta.read::<Quota<'_>>("quota"));
        let models = quota.as_ref().and_then(|quota| quota.models.as_deref()).unwrap_or_default();
        let models: Vec<_> = models.iter().filter_map(model_usage).collect();
        let tokens = quota.as_ref().and_then(|quota| quota.tokens.as_ref());
        let tokens = read.usage.as_ref().or(tokens);
        let stop = read.stop_reason.as_deref().unwrap_or_default();
        self.end_turn(out, stop == "cancelled");
        let cost_usd = self.turn_cost();
        let failure = match stop {
            "cancelled" => Some((TurnFailure::Interrupted, "cancelled")),
            "refusal" => Some((TurnFailure::Refused, "the model refused to continue")),
            "max_turn_requests" => {
                Some((TurnFailure::MaxTurns, "the turn reached its limit of requests"))
            }
            _ => None,
        };
        if let Some((reason, error)) = failure {
            let failed = TurnFailed {
                error_type: Some(Text::from(stop)),
                usage: tokens.map(usage),
                cost_usd,
                models,
                ..failed_turn(reason, Text::from(error))
            };
            self.ledger.fail_turn_with(out, failed);
        } else {
            self.ledger.ensure_turn(out);
            if !self.has_output {
                // Gemini ends a turn this way after an empty, malformed or blocked answer (fixture
                // real-errors).
                let message = Text::from("the turn ended without an answer");
                out.emit(StatusChanged::new(Status::Warning).message(message));
            }
            let completed = TurnCompleted {
                stop_reason: read.stop_reason.map(Text::new),
                cost_usd,
                models,
                ..completed_turn(tokens.map(usage).unwrap_or_default())
            };
            self.ledger.complete_turn(out, completed);
        }
        self.has_output = false;
        self.pump(out);
    }

    pub(super) fn fail_prompt(&mut self, failure: &Failure<'_>, out: &mut Out<'_>) {
        const REQUEST_CANCELLED: i64 = -32800;
        let (error, error_type) = message_and_code(failure);
        if let Some(data) = failure.data {
            data.carried();
        }
        let is_cancelled = failure.code == Some(REQUEST_CANCELLED);
        self.end_turn(out, is_cancelled);
        let reason = if is_cancelled { TurnFailure::Interrupted } else { TurnFailure::Error };
        let failed = TurnFailed {
            error_type: error_type.map(Text::from),
            cost_usd: self.turn_cost(),
            ..failed_turn(reason, Text::from(error))
        };
        self.ledger.fail_turn_with(out, failed);
        self.has_output = false;
        self.pump(out);
    }

    fn end_turn(&mut self, out: &mut Out<'_>, is_cancelled: bool) {
        self.interrupted = false;
        // A turn has ended, so any replay has too: what follows is new.
        self.replaying = false;
        self.advance(out);
        if out.is_recording() && !is_cancelled {
            self.settle_unseen(out);
        }
        self.end_agents(false, out);
    }

    /// This turn's share of the running total.
    fn turn_cost(&mut self) -> Option<f64> {
        let total = self.cost.take()?;
        let cost = total - std::mem::replace(&mut self.cost_before, total);
        // A total that decreased has started over.
        let cost = if cost < 0.0 { total } else { cost };
        Some(cost).filter(|cost| cost.is_finite() && *cost >= 0.0)
    }

    pub(super) fn text(
        &mut self,
        agent: Agent<'static>,
        is_thought: bool,
        content: Text<'_>,
        message_id: Option<&str>,
        out: &mut Out<'_>,
    ) {
        let same = self.block.as_ref().is_some_and(|block| {
            block.agent.id == agent.id
                && block.is_thought == is_thought
                && block.message_id.as_deref() == message_id
        });
        if !same {
            self.advance(out);
        }
        chunk(&agent, is_thought, content, false, message_id, out);
        if !same {
            let message_id = message_id.map(str::to_owned);
            self.block = Some(OpenBlock { agent, is_thought, message_id });
        }
    }

    /// Closes the open block and starts the held calls without their arguments, because what arrives now
    /// comes after them.
    pub(super) fn advance(&mut self, out: &mut Out<'_>) {
        self.close_block(out);
        self.start_waiting(out);
    }

    pub(super) fn close_block(&mut self, out: &mut Out<'_>) {
        if let Some(block) = self.block.take() {
            let message_id = block.message_id.as_deref();
            chunk(&block.agent, block.is_thought, Text::from(""), true, message_id, out);
        }
    }
}

fn chunk(
    agent: &Agent<'_>,
    is_thought: bool,
    content: Text<'_>,
    is_complete: bool,
    message_id: Option<&str>,
    out: &mut Out<'_>,
) {
    let block_id = message_id.map(Text::from);
    if is_thought {
        out.emit_as(agent, ThinkingChunk { content, is_complete, block_id, signature: None });
    } else {
        out.emit_as(agent, TextChunk { content, is_complete, block_id });
    }
}

fn content(prompt: &Prompt) -> Vec<serde_json::Value> {
    let images = prompt
        .images
        .iter()
        .map(|image| json!({ "type": "image", "mimeType": image.media_type, "data": image.data }));
    [json!({ "type": "text", "text": prompt.text })].into_iter().chain(images).collect()
}

fn size(prompt: &Prompt) -> usize {
    prompt.text.len() + prompt.images.iter().map(|image| image.data.len()).sum::<usize>()
}

fn usage(tokens: &Tokens<'_>) -> TokenUsage {
    let input_tokens = tokens.input.or(tokens.gemini_input).unwrap_or(0);
    let output_tokens = tokens.output.or(tokens.gemini_output).unwrap_or(0);
    let total_tokens = tokens.total.unwrap_or(input_tokens.saturating_add(output_tokens));
    TokenUsage {
        input_tokens,
        output_tokens,
        cached_tokens: tokens.cache_read.or(tokens.cached_input),
        cache_creation_tokens: tokens.cache_written,
        reasoning_tokens: tokens.thought.or(tokens.reasoning),
        total_tokens,
    }
}

fn model_usage(quota: &Quota<'_>) -> Option<ModelUsage> {
    let model = quota.model.as_ref()?.to_string();
    Some(ModelUsage { model, usage: usage(quota.tokens.as_ref()?), cost_usd: None })
}
