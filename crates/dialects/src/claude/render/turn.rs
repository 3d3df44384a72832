//! How a turn ends: the `result`, and what comes before it if the turn failed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentwire_protocol::event::{TurnCompleted, TurnFailed, TurnFailure};
use agentwire_protocol::usage::{ModelUsage, plus_cost};
use agentwire_protocol::{Json, MAIN_AGENT, TokenUsage};

use super::frames::{Assistant, Block, Denial, Message, ModelTotals, Outcome, UserBlock};
use super::output::MessageWriter;
use super::session::Session;
use super::tools::{OpenCall, user};

/// How many models are counted separately.
const MODEL_LIMIT: usize = 64;

/// The result of a turn in which no answer had the requested form.
const UNSTRUCTURED: &str = "error_max_structured_output_retries";

/// How many refused calls of a turn are listed.
const DENIAL_LIMIT: usize = 1024;

/// Beyond this many bytes of refused calls, their input is left out.
const DENIAL_BYTES: usize = 1 << 20;

/// The running turn, if any.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// It has started, and `system/init` waits for the tools of the client's servers.
    pub(super) is_due: bool,
    /// `system/init` was written.
    pub(super) is_begun: bool,
    /// Claude itself wrote the `result`.
    pub(super) has_result: bool,
    /// A tool call was cut off and nothing came after it.
    pub(super) cut_tool: bool,
    /// How often a model call was retried.
    pub(super) retries: u64,
    started_ms: Option<u64>,
    denials: Vec<String>,
}

impl Turn {
    pub(super) fn started(&mut self, timestamp: &str) {
        self.started_ms = milliseconds(timestamp);
    }

    /// Lists a refused call.
    pub(super) fn denied(&mut self, tool: &OpenCall) {
        if self.denials.len() >= DENIAL_LIMIT {
            return;
        }
        let (name, id) = (&*tool.name, &*tool.id);
        let listed: usize = self.denials.iter().map(String::len).sum();
        let input = tool.shown().input;
        let fits = listed + input.get().len() <= DENIAL_BYTES;
        let input = if fits { input } else { Json::EMPTY };
        let denial = Denial { tool_name: name, tool_use_id: id, tool_input: &input };
        self.denials.push(Json::of(&denial).get().to_owned());
    }

    /// How long it took, by the timestamps of the log.
    fn lasted(&self, timestamp: &str) -> u64 {
        let ended = milliseconds(timestamp);
        ended.zip(self.started_ms).map_or(0, |(end, start)| end.saturating_sub(start))
    }
}

/// What all turns together used.
#[derive(Debug, Default)]
pub(super) struct Totals {
    cost_usd: f64,
    models: BTreeMap<String, ModelTotals>,
}

/// How a turn ended, whichever event reported it.
#[derive(Default)]
pub(super) struct Ending<'e> {
    failure: Option<TurnFailure>,
    /// The answer, or what went wrong.
    words: Cow<'e, str>,
    error_type: Option<Cow<'e, str>>,
    stop_reason: Option<Cow<'e, str>>,
    usage: TokenUsage,
    duration_ms: Option<u64>,
    cost_usd: Option<f64>,
    models: &'e [ModelUsage],
    structured_output: Option<&'e Json<'e>>,
    denials: Option<&'e Json<'e>>,
}

impl<'e> Ending<'e> {
    /// It ended well; `last_text` is the answer if the agent does not repeat it.
    pub(super) fn completed(turn: &'e TurnCompleted<'e>, last_text: &'e str) -> Self {
        let result = turn.result.as_ref();
        let stop_reason = turn.stop_reason.as_ref().map_or("end_turn".into(), |why| why.decode());
        Self {
            words: result.map_or(Cow::Borrowed(last_text), |result| result.decode()),
            stop_reason: Some(stop_reason),
            usage: turn.usage,
            duration_ms: turn.duration_ms,
            cost_usd: turn.cost_usd,
            models: &turn.models,
            structured_output: turn.structured_output.as_ref(),
            denials: turn.denials.as_ref(),
            ..Self::default()
        }
    }

    pub(super) fn failed(turn: &'e TurnFailed<'e>) -> Self {
        Self {
            failure: Some(turn.reason),
            words: turn.error.decode(),
            error_type: turn.error_type.as_ref().map(|name| name.decode()),
            usage: turn.usage.unwrap_or_default(),
            duration_ms: turn.duration_ms,
            cost_usd: turn.cost_usd,
            models: &turn.models,
            denials: turn.denials.as_ref(),
            ..Self::default()
        }
    }

    /// Whether no answer had the requested form.
    fn is_unstructured(&self) -> bool {
        self.error_type.as_deref() == Some(UNSTRUCTURED)
    }

    /// It never started.
    pub(super) fn refused(why: &'e str) -> Self {
        Self {
            failure: Some(TurnFailure::Died),
            words: Cow::Borrowed(why),
            duration_ms: Some(0),
            ..Self::default()
        }
    }
}

impl Totals {
    /// Writes how the turn ended, and returns whether that is an error. `messages` is how many messages the
    /// model sent in it.
    pub(super) fn end(
        &mut self,
        (turn, timestamp): (&Turn, &str),
        ending: &Ending<'_>,
        messages: u64,
        session: &Session,
        writer: &mut MessageWriter<'_>,
    ) -> bool {
        self.add(ending, session);
        let words = &*ending.words;
        let (subtype, terminal_reason, stop_reason) = match ending.failure {
            None => ("success", "completed", ending.stop_reason.as_deref()),
            Some(TurnFailure::Error) if ending.is_unstructured() => {
                (UNSTRUCTURED, "structured_output_retry_exhausted", None)
            }
            Some(TurnFailure::Error) => {
                ("error_during_execution", "api_error", Some("stop_sequence"))
            }
            Some(TurnFailure::Refused) => ("error_during_execution", "api_error", Some("refusal")),
            Some(TurnFailure::MaxTurns) => ("error_max_turns", "max_turns", None),
            Some(TurnFailure::Budget) => ("error_max_budget_usd", "budget_exhausted", None),
            Some(TurnFailure::Interrupted | TurnFailure::Died) => {
                let why = if turn.cut_tool { "aborted_tools" } else { "aborted_streaming" };
                ("error_during_execution", why, None)
            }
        };
        match ending.failure {
            Some(TurnFailure::Interrupted) => interrupted(turn.cut_tool, writer),
            Some(TurnFailure::Error) if ending.is_unstructured() => {}
            Some(TurnFailure::Error | TurnFailure::Refused) => {
                synthetic(words, ending, stop_reason, writer);
            }
            Some(TurnFailure::MaxTurns | TurnFailure::Budget | TurnFailure::Died) | None => {}
        }
        let listed = Json::trusted(format!("[{}]", turn.denials.join(",")));
        let is_error = ending.failure.is_some();
        let uuid = writer.uuid();
        let session_id = writer.session_id;
        writer.frame(&Outcome {
            subtype,
            is_error,
            duration_ms: ending.duration_ms.unwrap_or_else(|| turn.lasted(timestamp)),
            duration_api_ms: 0,
            num_turns: messages.max(1),
            result: (subtype == "success").then_some(words),
            errors: (subtype != "success").then_some([words]),
            stop_reason,
            session_id,
            total_cost_usd: self.cost_usd,
            usage: session.usage(&ending.usage),
            model_usage: &self.models,
            permission_denials: ending.denials.unwrap_or(&listed),
            terminal_reason,
            structured_output: ending.structured_output,
            uuid,
        });
        is_error
    }

    /// Adds what the turn used.
    pub(super) fn add(&mut self, ending: &Ending<'_>, session: &Session) {
        let sum = ending.models.iter().filter_map(|model| model.cost_usd).fold(0.0, plus_cost);
        let cost = ending.cost_usd.unwrap_or(sum);
        self.cost_usd = plus_cost(self.cost_usd, cost);
        if ending.models.is_empty() && ending.usage.total_tokens > 0 {
            self.add_model(session.model(), &ending.usage, cost, session);
        }
        for model in ending.models {
            self.add_model(&model.model, &model.usage, model.cost_usd.unwrap_or(0.0), session);
        }
    }

    fn add_model(&mut self, name: &str, usage: &TokenUsage, cost_usd: f64, session: &Session) {
        if self.models.len() >= MODEL_LIMIT && !self.models.contains_key(name) {
            return;
        }
        let usage = session.usage(usage);
        let totals = self.models.entry(name.to_owned()).or_default();
        for (sum, more) in [
            (&mut totals.input_tokens, usage.input_tokens),
            (&mut totals.output_tokens, usage.output_tokens),
            (&mut totals.cache_read_input_tokens, usage.cache_read_input_tokens),
            (&mut totals.cache_creation_input_tokens, usage.cache_creation_input_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
        totals.cost_usd = plus_cost(totals.cost_usd, cost_usd);
        totals.context_window = session.context_size;
    }
}

/// Writes that the user interrupted the model, as Claude does.
fn interrupted(cut_tool: bool, writer: &mut MessageWriter<'_>) {
    let text = match cut_tool {
        true => "[Request interrupted by user for tool use]",
        false => "[Request interrupted by user]",
    };
    user(UserBlock::Text { text }, MAIN_AGENT, None, writer);
}

/// Writes the failure as a message of no model, as Claude does.
fn synthetic(
    text: &str,
    ending: &Ending<'_>,
    stop_reason: Option<&str>,
    writer: &mut MessageWriter<'_>,
) {
    let (id, uuid) = (writer.uuid(), writer.uuid());
    let session_id = writer.session_id;
    writer.frame(&Assistant {
        message: Message {
            stop_reason,
            stop_sequence: Some(""),
            ..Message::new(&id, "<synthetic>", &[Block::Text { text }])
        },
        parent_tool_use_id: None,
        session_id,
        uuid,
        error: Some(match ending.failure {
            Some(TurnFailure::Refused) => "invalid_request",
            _ => claude_error(ending.error_type.as_deref().unwrap_or_default()),
        }),
        is_api_error_message: true,
    });
}

/// Claude's name for an error, by the words in the agent's own name.
fn claude_error(name: &str) -> &'static str {
    let words = words(name);
    let speaks_of = |known: &[&str]| words.iter().any(|word| known.contains(&&**word));
    if speaks_of(&["auth", "authentication", "authorization", "unauthorized", "unauthenticated"])
        || speaks_of(&["oauth", "credential", "credentials", "permission", "401", "403"])
    {
        "authentication_failed"
    } else if speaks_of(&["billing", "quota", "usage", "budget"]) {
        "billing_error"
    } else if speaks_of(&["rate", "ratelimit", "ratelimited", "exhausted", "429"]) {
        "rate_limit"
    } else if speaks_of(&["server", "overload", "overloaded", "unavailable", "connection"])
        || speaks_of(&["internal", "disconnected", "500", "502", "503", "529"])
    {
        "server_error"
    } else if speaks_of(&["invalid", "bad", "context", "400", "404"]) {
        "invalid_request"
    } else {
        "unknown"
    }
}

/// The words of a name in any case: `rateLimited`, `RATE_LIMITED`, `rate-limited`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words
}

/// A UTC timestamp, `2026-01-31T23:59:59.123Z`, in milliseconds since 1970.
fn milliseconds(timestamp: &str) -> Option<u64> {
    let (date, time) = timestamp.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let hour: u64 = time.next()?.parse().ok()?;
    let minute: u64 = time.next()?.parse().ok()?;
    let (second, fraction) = time.next().map(|s| s.split_once('.').unwrap_or((s, "0")))?;
    let second: u64 = second.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day <= 31;
    if !is_date || hour > 24 || minute > 60 || second > 60 {
        return None;
    }
    // Years that start in March end with the leap day; each five months of them have 153 days.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    let since = days.checked_sub(719_469)?;
    Some((((since * 24 + hour) * 60 + minute) * 60 + second) * 1000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_whole_words() {
        for (name, known) in [
            ("RATE_LIMITED", "rate_limit"),
            ("rateLimitExceeded", "rate_limit"),
            ("generate_failed", "unknown"),
            ("author_missing", "unknown"),
            ("usageLimitExceeded", "billing_error"),
            ("unauthorized", "authentication_failed"),
            ("contextWindowExceeded", "invalid_request"),
            ("serverOverloaded", "server_error"),
        ] {
            assert_eq!(claude_error(name), known, "{name}");
        }
    }

    #[test]
    fn timestamps_are_read() {
        assert_eq!(milliseconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(milliseconds("2000-02-29T12:00:00.5Z"), Some(951_825_600_500));
        assert_eq!(milliseconds("2026-01-01T00:00:00.123456Z"), Some(1_767_225_600_123));
        for wrong in ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00"] {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
    }
}
