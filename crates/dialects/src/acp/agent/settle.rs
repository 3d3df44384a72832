//! Answers to the agent's requests, in its format.

use std::collections::BTreeMap;

use agentwire_protocol::command::Answer;
use agentwire_protocol::event::{RequestOption, RequestOptionKind, SettledBy, ToolFailure};
use agentwire_protocol::{ErrorCode, GatewayError, Json, Settlement};
use serde::Deserialize;
use serde_json::json;

use super::super::wire;
use super::Translator;
use super::requests::{AnswerFormat, FormField, PendingRequest};
use crate::tape::{Ending, Out};

/// The code of our refusals; nearby codes have other meanings.
const REFUSED: i64 = -32603;

struct PreparedResponse {
    line: String,
    refused_tool: Option<String>,
}

impl Translator {
    pub(super) fn settle(
        &mut self,
        settlement: &Settlement,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let id = settlement.request_id.as_str();
        let name = self.name();
        let Some(request) = self.ledger.requests.get(id) else {
            let message = format!("there is no open request {id}");
            return Err(GatewayError::new(ErrorCode::RequestNotFound, message));
        };
        let answer = settlement.answer()?;
        let interrupts = matches!(answer, Answer::Deny { interrupt: true, .. });
        let ready = respond(&request.memo, answer, name)?;
        self.ledger.requests.close(id);
        out.write(ready.line);
        if let Some(tool) = ready.refused_tool {
            // The agent may send no further update of it; Gemini does not.
            let error = settlement.message.as_deref().unwrap_or("permission was refused");
            self.fail_tool(&tool, ToolFailure::Denied, error, out);
        }
        if interrupts {
            self.interrupt(out);
        }
        Ok(())
    }

    /// Cancels all open requests and tells the agent.
    pub(super) fn cancel_requests(&mut self, out: &mut Out<'_>) {
        let open: Vec<_> =
            self.ledger.requests.iter().map(|request| cancelled(&request.memo)).collect();
        open.into_iter().for_each(|line| out.write(line));
        let denied = Ending::denied(SettledBy::Gateway);
        self.settle_where(denied, Some("interrupted"), out, |_| true);
    }
}

fn respond(
    request: &PendingRequest,
    answer: Answer,
    agent: &str,
) -> Result<PreparedResponse, GatewayError> {
    let unsupported = |what: &str| Err(GatewayError::unsupported(agent, what));
    let line = match (&request.format, answer) {
        (AnswerFormat::Permission { tool, options, .. }, answer) => {
            let chosen = choose(options, answer, agent)?;
            let refused_tool = if chosen.is_refusal { tool.clone() } else { None };
            let outcome = match chosen.option {
                Some(id) => json!({ "outcome": "selected", "optionId": id }),
                None => json!({ "outcome": "cancelled" }),
            };
            let line = wire::response(&request.wire_id, &json!({ "outcome": outcome }));
            return Ok(PreparedResponse { line, refused_tool });
        }
        (_, Answer::Allow { updated_permissions: Some(_), .. }) => {
            return unsupported("updatedPermissions");
        }
        (_, Answer::Allow { always: true, .. }) => return unsupported("remember session"),
        (
            AnswerFormat::Form { .. } | AnswerFormat::Link { .. },
            Answer::Deny { interrupt: true, .. },
        ) => cancelled(request),
        (AnswerFormat::Form { .. } | AnswerFormat::Link { .. }, Answer::Deny { .. }) => {
            wire::response(&request.wire_id, &json!({ "action": "decline" }))
        }
        (AnswerFormat::Form { .. }, Answer::Allow { updated_input: Some(content), .. }) => {
            accept(request, &content)
        }
        (AnswerFormat::Form { fields }, Answer::Answers(answers)) => {
            accept(request, &Json::of(&content(fields, &answers)?))
        }
        (AnswerFormat::Form { .. }, Answer::Allow { .. }) => {
            return invalid("a form needs answers");
        }
        (
            AnswerFormat::Link { .. },
            Answer::Allow { updated_input: None, .. } | Answer::Answers(_),
        ) => wire::response(&request.wire_id, &json!({ "action": "accept" })),
        (AnswerFormat::Link { .. }, Answer::Allow { .. }) => return unsupported("updatedInput"),
        (
            AnswerFormat::Form { .. } | AnswerFormat::Link { .. } | AnswerFormat::Other { .. },
            Answer::HookOutput(output),
        ) => wire::response(&request.wire_id, &output),
        (AnswerFormat::Other { .. }, Answer::Deny { message, .. }) => {
            let message = message.unwrap_or_else(|| "refused".to_owned());
            wire::refusal(&request.wire_id, REFUSED, &message)
        }
        (AnswerFormat::Other { method }, Answer::Allow { .. } | Answer::Answers(_)) => {
            return invalid(&format!("{method} needs its result as hookOutput"));
        }
    };
    Ok(PreparedResponse { line, refused_tool: None })
}

struct ChosenOption {
    /// `None` cancels the request.
    option: Option<String>,
    is_refusal: bool,
}

/// The agent is only ever told "once": the gateway itself remembers what is allowed from now on, exactly as
/// it was shown.
fn choose(
    options: &[RequestOption<'static>],
    answer: Answer,
    agent: &str,
) -> Result<ChosenOption, GatewayError> {
    use RequestOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce, Unknown};
    let of_kind = |wanted| {
        options.iter().find(|option| option.kind == wanted).map(|option| option.id.to_string())
    };
    let unsupported = |what: &str| Err(GatewayError::unsupported(agent, what));
    let allowed = |option| Ok(ChosenOption { option: Some(option), is_refusal: false });
    match answer {
        Answer::Allow { updated_input: Some(_), .. } => unsupported("updatedInput"),
        Answer::Allow { updated_permissions: Some(_), .. } => unsupported("updatedPermissions"),
        Answer::Allow { .. } => match of_kind(AllowOnce) {
            Some(option) => allowed(option),
            None => unsupported("behavior allow: it offers no option that allows only once"),
        },
        // Denying always works: a cancelled request does not run.
        Answer::Deny { interrupt, .. } => {
            let option = of_kind(RejectOnce).filter(|_| !interrupt);
            Ok(ChosenOption { option, is_refusal: true })
        }
        Answer::HookOutput(output) => {
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Choice {
                option_id: String,
            }
            let wanted = output.read::<Choice>().ok().map(|choice| choice.option_id);
            let chosen = wanted.and_then(|id| options.iter().find(|option| option.id == *id));
            match chosen.map(|option| (option.id.to_string(), option.kind)) {
                Some((option, AllowOnce)) => allowed(option),
                Some((option, RejectOnce)) => {
                    Ok(ChosenOption { option: Some(option), is_refusal: true })
                }
                // An answer that denies is never refused.
                Some((_, RejectAlways)) => {
                    Ok(ChosenOption { option: of_kind(RejectOnce), is_refusal: true })
                }
                Some((option, AllowAlways | Unknown)) => unsupported(&format!(
                    "the option {option}, which may apply beyond this call; answer with behavior \
                     allow and remember session, and agentwire stores the exact rule"
                )),
                None => invalid("hookOutput must be {\"optionId\": one of the request's options}"),
            }
        }
        Answer::Answers(_) => unsupported("answers to a permission request"),
    }
}

fn cancelled(request: &PendingRequest) -> String {
    match &request.format {
        AnswerFormat::Permission { .. } => {
            let outcome = json!({ "outcome": { "outcome": "cancelled" } });
            wire::response(&request.wire_id, &outcome)
        }
        AnswerFormat::Form { .. } | AnswerFormat::Link { .. } => {
            wire::response(&request.wire_id, &json!({ "action": "cancel" }))
        }
        AnswerFormat::Other { .. } => wire::refusal(&request.wire_id, REFUSED, "interrupted"),
    }
}

fn accept(request: &PendingRequest, content: &Json<'_>) -> String {
    #[derive(serde::Serialize)]
    struct Accept<'a> {
        action: &'static str,
        content: &'a Json<'a>,
    }
    wire::response(&request.wire_id, &Accept { action: "accept", content })
}

/// The form's content. Text is converted to the field's type.
fn content(
    fields: &[FormField],
    answers: &BTreeMap<String, Json<'static>>,
) -> Result<BTreeMap<String, Json<'static>>, GatewayError> {
    let mut content = BTreeMap::new();
    for (key, answer) in answers {
        let field = fields.iter().find(|field| field.id == *key);
        let Some(field) = field.or_else(|| fields.iter().find(|field| field.question == *key))
        else {
            return invalid(&format!("the form has no field {key}"));
        };
        let word = answer.read::<String>().ok();
        if let Some(other) = &field.other {
            let words = word.map_or_else(|| answer.read::<Vec<String>>(), |word| Ok(vec![word]));
            let Ok(words) = words else { return invalid(&format!("{key} must be text")) };
            // An answer that is not among the choices goes into the other field.
            let (chosen, own): (Vec<_>, Vec<_>) =
                words.into_iter().partition(|word| field.choices.contains(word));
            if !own.is_empty() {
                content.insert(other.clone(), Json::of(&own.join(", ")));
            }
            let value = match (field.kind.as_str(), chosen.as_slice()) {
                (_, []) => continue,
                ("array", chosen) => Json::of(&chosen),
                (_, [one]) => Json::of(one),
                (_, _) => return invalid(&format!("{key} takes one answer")),
            };
            content.insert(field.id.clone(), value);
            continue;
        }
        let value = match (field.kind.as_str(), word) {
            ("boolean" | "number" | "integer", Some(word)) => match Json::parse(word.trim()) {
                Ok(value) => value.into_owned(),
                Err(_) => return invalid(&format!("{key} must be a {}", field.kind)),
            },
            ("array", Some(word)) => Json::of(&[word]),
            _ => answer.clone(),
        };
        content.insert(field.id.clone(), value);
    }
    Ok(content)
}

fn invalid<T>(message: &str) -> Result<T, GatewayError> {
    Err(GatewayError::invalid(message))
}
