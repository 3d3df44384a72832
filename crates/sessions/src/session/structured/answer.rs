//! The agent's answer: which part of it counts, and whether it matches the schema.

use std::sync::Arc;

use agentwire_protocol::Json;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use super::bounds::Cost;
use super::{ANSWER_LIMIT, Structured};

/// How many mistakes are reported at once.
const MISTAKES: usize = 5;

/// The longest description of a mistake, in characters.
const MISTAKE_LENGTH: usize = 400;

/// Held while a large answer is checked. A parsed value takes many times the memory of its text, so only
/// one session at a time may use that much.
pub(super) static LARGE: Semaphore = Semaphore::const_new(1);

/// The answer, or why it is rejected.
pub(super) type CheckResult = Result<Json<'static>, String>;

/// What is known about an answer immediately.
#[derive(Debug)]
pub(super) enum AnswerCheck {
    Done(CheckResult),
    /// It takes long to find out.
    Large(Check),
}

#[derive(Debug)]
pub(super) struct Check {
    validator: Arc<Validator>,
    answer: Json<'static>,
    cost: Cost,
}

impl Check {
    fn run(self) -> CheckResult {
        let value: Value = self.answer.read().map_err(|error| not_json(&error))?;
        check(&self.validator, &value, self.cost)?;
        Ok(self.answer)
    }

    /// Runs the check outside the session, one at a time. It does not start if the result is no longer
    /// needed.
    pub(super) fn start(self) -> oneshot::Receiver<CheckResult> {
        let (done, outcome) = oneshot::channel();
        tokio::spawn(async move {
            let Ok(turn) = LARGE.acquire().await else { return };
            if !done.is_closed() {
                tokio::task::spawn_blocking(move || {
                    let judged = self.run();
                    drop(turn);
                    let _ = done.send(judged);
                });
            }
        });
        outcome
    }
}

impl Structured {
    /// Adds text from the main agent.
    pub(super) fn add_text(&mut self, text: &str) {
        if self.answer.len() + text.len() > ANSWER_LIMIT {
            self.is_overlong = true;
        } else if !self.is_overlong {
            self.answer.push_str(text);
        }
    }

    /// Earlier text is not part of the answer.
    pub(super) fn forget(&mut self) {
        self.answer.clear();
        self.is_overlong = false;
    }

    /// Examines the answer. `repeated` is the answer if the agent repeats it.
    pub(super) fn check_answer(&self, repeated: Option<&str>) -> AnswerCheck {
        match self.prepare(repeated) {
            Ok(check) if !check.cost.is_small => AnswerCheck::Large(check),
            Ok(check) => AnswerCheck::Done(check.run()),
            Err(why) => AnswerCheck::Done(Err(why)),
        }
    }

    fn prepare(&self, repeated: Option<&str>) -> Result<Check, String> {
        if self.is_overlong || repeated.is_some_and(|repeated| repeated.len() > ANSWER_LIMIT) {
            return Err(format!("it is longer than {ANSWER_LIMIT} bytes"));
        }
        let text = bare(repeated.unwrap_or(&self.answer));
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let answer = Json::parse(text).map_err(|error| not_json(&error))?.into_owned();
        let cost = self.weight.cost(text)?;
        Ok(Check { validator: Arc::clone(&self.validator), answer, cost })
    }
}

fn not_json(error: &serde_json::Error) -> String {
    format!("it is not JSON: {error}")
}

/// Finds what is wrong, as far as bounded memory allows.
fn check(validator: &Validator, value: &Value, cost: Cost) -> Result<(), String> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let mistakes: Vec<String> = if cost.can_tell_all {
        validator.iter_errors(value).take(MISTAKES).map(|error| describe_mistake(&error)).collect()
    } else if cost.can_tell_first {
        validator.validate(value).err().iter().map(describe_mistake).collect()
    } else {
        vec!["it is too large to say where".to_owned()]
    };
    Err(format!("it does not match the schema: {}", mistakes.join("; ")))
}

fn describe_mistake(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = if place.is_empty() { "the whole".to_owned() } else { place };
    cut(&format!("{place}: {error}"))
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(MISTAKE_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The text without a code fence around all of it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let inner = text.strip_prefix("```")?.strip_suffix("```")?;
        let (language, inner) = inner.split_once('\n')?;
        let is_word = language.trim().chars().all(|letter| letter.is_ascii_alphanumeric());
        (is_word && !inner.contains("```")).then(|| inner.trim())
    };
    inner().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use agentwire_dialects::agent::Capabilities;
    use agentwire_protocol::{ErrorCode, SessionConfig};
    use serde_json::{Value, json};

    use super::*;

    impl Structured {
        fn judge(&self, repeated: Option<&str>) -> CheckResult {
            match self.check_answer(repeated) {
                AnswerCheck::Done(judged) => judged,
                AnswerCheck::Large(check) => check.run(),
            }
        }
    }

    fn of(schema: &Value) -> Result<Option<Structured>, agentwire_protocol::GatewayError> {
        let config = json!({ "outputFormat": { "type": "json_schema", "schema": schema } });
        let config: SessionConfig = serde_json::from_value(config).unwrap();
        Structured::new(Capabilities::default(), &config)
    }

    fn judge(text: &str) -> Result<String, String> {
        let schema = json!({
            "type": "object",
            "properties": { "answer": { "type": "integer" }, "name": { "pattern": "^(a+)+$" } },
            "required": ["answer"],
            "additionalProperties": false,
        });
        let mut structured = of(&schema).unwrap().unwrap();
        structured.add_text(text);
        structured.judge(None).map(|answer| answer.get().to_owned())
    }

    #[test]
    fn an_answer_is_json_alone_or_alone_in_a_fence() {
        for good in [
            r#"{"answer":42}"#,
            " {\"answer\":42}\n",
            "```json\n{\"answer\":42}\n```",
            "```\n{\"answer\":42}\n```\n",
        ] {
            assert_eq!(judge(good).as_deref(), Ok(r#"{"answer":42}"#), "{good}");
        }
        for bad in [
            "",
            "```json\n```",
            "Here it is: {\"answer\":42}",
            "```json\n{\"answer\":42}\n```\nDone.",
            "```json\n{\"answer\":42}\n```\n```json\n{\"answer\":43}\n```",
            "{\"answer\":42} {\"answer\":43}",
            "{\"answer\":\"42\"}",
            "{\"answer\":42,\"more\":1}",
            "{}",
            "[]",
        ] {
            assert!(judge(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_short() {
        let error = judge(r#"{"answer":"many"}"#).unwrap_err();
        assert!(error.contains("/answer"), "{error}");
        let long = json!({ "answer": "x".repeat(100_000) }).to_string();
        assert!(judge(&long).unwrap_err().len() < 1000);
    }

    #[test]
    fn a_large_answer_is_refused_with_bounded_words_and_work() {
        let judge = |schema: &Value, text: &str| {
            let error = of(schema).unwrap().unwrap().judge(Some(text)).unwrap_err();
            assert!(error.len() < 1000, "{error}");
            error
        };
        let ones = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        let strings = json!({ "type": "array", "items": { "type": "string" } });
        assert!(judge(&strings, &ones(2_000_000)).contains("longer than"));
        assert!(judge(&strings, &ones(400_000)).contains("more than 100000 values"));
        // For a large answer, only the first mistake is reported.
        assert!(judge(&strings, &ones(90_000)).contains("/0: "));
        let either = json!({ "anyOf": [strings, { "type": "null" }] });
        assert!(judge(&either, &ones(90_000)).contains("too large to say where"));
        assert!(judge(&either, &ones(10)).contains("the whole: "));
        let objects = json!({ "items": { "required": ["a", "b", "c", "d"] } });
        assert!(judge(&objects, &format!("[{}{{}}]", "{},".repeat(40_000))).contains("/0: "));
        // A matching answer is accepted.
        let numbers = json!({ "items": { "type": "number" } });
        assert!(of(&numbers).unwrap().unwrap().judge(Some(&ones(90_000))).is_ok());
    }

    #[test]
    fn a_pattern_cannot_hold_the_session_up() {
        let hostile = json!({ "answer": 1, "name": format!("{}!", "a".repeat(2000)) });
        assert!(judge(&hostile.to_string()).is_err());
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let structured = of(&json!(true)).unwrap().unwrap();
        let text = "[1.10,123456789012345678901234567890]";
        assert_eq!(structured.judge(Some(text)).unwrap().get(), text);
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_kept() {
        let mut structured = of(&json!(true)).unwrap().unwrap();
        structured.add_text("[");
        (0..5).for_each(|_| structured.add_text(&" ".repeat(1 << 20)));
        assert!(structured.judge(None).unwrap_err().contains("longer"));
        structured.forget();
        structured.add_text("1");
        assert_eq!(structured.judge(None).unwrap().get(), "1");
    }

    #[test]
    fn a_schema_that_is_none_is_refused_by_name() {
        for schema in [
            json!({ "type": "strang" }),
            json!({ "properties": 1 }),
            json!("text"),
            json!({ "pattern": "(" }),
            json!({ "pattern": "^(?:(a|aa)+\\1?)+$" }),
            json!({ "$ref": "https://schemas.invalid/one.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
        ] {
            let error = of(&schema).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidMessage, "{schema}");
            assert!(error.message.starts_with("outputFormat: "), "{}", error.message);
        }
        let own = Capabilities { structured_output: true, ..Capabilities::default() };
        let config = json!({ "outputFormat": { "type": "json_schema", "schema": {} } });
        let config: SessionConfig = serde_json::from_value(config).unwrap();
        assert!(Structured::new(own, &config).unwrap().is_none());
    }
}
