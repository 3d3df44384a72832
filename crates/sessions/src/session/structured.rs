//! Structured output for agents that do not support it themselves. The schema is added to each prompt, the
//! answer is checked, and if it does not match, the agent is asked once more in the same turn.

mod answer;
mod bounds;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;

use agentwire_dialects::agent::Capabilities;
use agentwire_protocol::event::TurnCompleted;
use agentwire_protocol::usage::{ModelUsage, plus_cost};
use agentwire_protocol::{ErrorCode, GatewayError, Json, Prompt, SessionConfig, TokenUsage};
use jsonschema::Validator;
use tokio::sync::oneshot;

use self::answer::{CheckResult, cut};
use super::pending_prompt::{PendingPrompt, edit, place};
use crate::blocking::blocking;

/// The name of the failure, as clients of Claude know it.
pub(super) const FAILED: &str = "error_max_structured_output_retries";

/// The longest answer that is checked, in bytes.
const ANSWER_LIMIT: usize = 1 << 20;

/// How many bytes of prompts may wait for the turn to end.
const WAITING_BYTES: usize = 64 << 20;

/// The schema of a session, and the state of its turn.
#[derive(Debug)]
pub(crate) struct Structured {
    validator: Arc<Validator>,
    weight: bounds::Weight,
    schema: Json<'static>,
    /// What the main agent has sent since its last tool call.
    answer: String,
    /// It sent more than is kept.
    is_overlong: bool,
    stage: Stage,
    /// The end of the turn waits until its answer is checked.
    checking: Option<Checking>,
    /// How many of the agent's turns were parts of another turn.
    merged: u64,
    /// Prompts that wait until the turn has ended. The agent must not start the next one before.
    waiting: VecDeque<PendingPrompt>,
}

#[derive(Debug)]
enum Stage {
    /// No answer was rejected.
    First,
    /// The agent must be asked again, for this reason.
    Refused { spent: Box<FirstAnswerUsage>, error: String },
    /// It was asked again, but has not started yet.
    Asked(Box<FirstAnswerUsage>),
    /// It works on its second answer.
    Again(Box<FirstAnswerUsage>),
}

#[derive(Debug)]
enum Checking {
    Runs {
        turn: Box<TurnCompleted<'static>>,
        outcome: oneshot::Receiver<CheckResult>,
    },
    /// The result is no longer needed.
    Dropped,
}

/// What the first part of a turn used.
#[derive(Clone, Debug, Default)]
struct FirstAnswerUsage {
    turn_number: u64,
    usage: TokenUsage,
    cost_usd: Option<f64>,
    duration_ms: Option<u64>,
    models: Vec<ModelUsage>,
}

impl Structured {
    /// The format that the gateway must enforce; `None` if no format is requested or the agent enforces it.
    pub(crate) fn new(
        capabilities: Capabilities,
        config: &SessionConfig,
    ) -> Result<Option<Self>, GatewayError> {
        let Some(format) = config.output_format.as_ref() else { return Ok(None) };
        if capabilities.structured_output {
            return Ok(None);
        }
        let invalid = |why: String| {
            let message = format!("outputFormat: {why}");
            GatewayError::new(ErrorCode::InvalidMessage, message)
        };
        if format.kind != "json_schema" {
            return Err(invalid(format!("type is {:?}; it must be json_schema", format.kind)));
        }
        let schema: serde_json::Value =
            format.schema.read().map_err(|error| invalid(format!("schema: {error}")))?;
        // A short schema may have patterns that take long to compile.
        let (weight, validator) = blocking(|| {
            let weight = bounds::check(format.schema.get(), &schema)
                .map_err(|why| invalid(format!("schema {why}")))?;
            let patterns = bounds::patterns(bounds::LARGEST_PATTERN);
            let options = jsonschema::options().offline().with_pattern_options(patterns);
            let validator = options.build(&schema).map_err(|error| {
                let why = cut(&error.to_string());
                invalid(format!("schema is not a valid JSON Schema: {why}"))
            })?;
            Ok::<_, GatewayError>((weight, validator))
        })?;
        Ok(Some(Self {
            validator: Arc::new(validator),
            weight,
            schema: format.schema.clone(),
            answer: String::new(),
            is_overlong: false,
            stage: Stage::First,
            checking: None,
            merged: 0,
            waiting: VecDeque::new(),
        }))
    }

    /// The text after each prompt.
    pub(super) fn request(&self) -> String {
        format!(
            "Your final answer must be one JSON value that matches the JSON Schema below, with no \
             other text and no code fence. (agentwire added this paragraph and the schema.)\n\n{}",
            self.schema.get()
        )
    }

    /// The prompt that the agent gets when its answer is rejected.
    fn retry(&self, error: &str) -> String {
        format!("Your last answer was not accepted: {error}.\n\n{}", self.request())
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &String> {
        self.waiting.iter().filter_map(|pending| pending.prompt.message_id.as_ref())
    }

    pub(super) fn waiting_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.waiting.iter().map(|pending| &pending.prompt)
    }

    /// Drops a prompt that waits. Returns whether it did wait.
    pub(super) fn drop_prompt(&mut self, id: &str) -> bool {
        place(self.waiting.iter(), id).and_then(|at| self.waiting.remove(at)).is_some()
    }

    pub(super) fn edit_prompt(&mut self, id: &str, text: &str) -> Result<bool, GatewayError> {
        edit(self.waiting.make_contiguous(), id, text, WAITING_BYTES)
    }
}

impl FirstAnswerUsage {
    /// Adds what another part of the turn used.
    fn plus(
        &self,
        usage: TokenUsage,
        cost_usd: Option<f64>,
        duration_ms: Option<u64>,
        models: &[ModelUsage],
    ) -> Self {
        let either = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(plus_cost(one, other)),
            (Some(one), None) | (None, Some(one)) => Some(one),
            (None, None) => None,
        };
        let mut all = self.models.clone();
        for model in models {
            match all.iter_mut().find(|known| known.model == model.model) {
                Some(known) => {
                    known.usage = known.usage.plus(&model.usage);
                    known.cost_usd = either(known.cost_usd, model.cost_usd);
                }
                None => all.push(model.clone()),
            }
        }
        Self {
            turn_number: self.turn_number,
            usage: self.usage.plus(&usage),
            cost_usd: either(self.cost_usd, cost_usd),
            duration_ms: match (self.duration_ms, duration_ms) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            },
            models: all,
        }
    }
}
