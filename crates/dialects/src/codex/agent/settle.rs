//! Answers to requests of the app server.

use std::collections::BTreeMap;

use agentwire_protocol::{Answer, ErrorCode, GatewayError, Json, JsonObject, Settlement};
use serde_json::{Map, Value, json};

use super::Translator;
use super::requests::AnswerFormat;
use crate::tape::Out;

enum Response {
    Result(String),
    Refusal(String),
}

impl Translator {
    /// Answers a request. The session reports it to the other clients.
    pub(super) fn settle(
        &mut self,
        settlement: &Settlement,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let id = settlement.request_id.as_str();
        let Some(request) = self.ledger.requests.get(id) else {
            let message = format!("there is no open request {id}");
            return Err(GatewayError::new(ErrorCode::RequestNotFound, message));
        };
        let answer = settlement.answer()?;
        let reply = reply(&request.memo.what, &answer)?;
        let wire_id = request.memo.id.clone();
        let tool = request.memo.tool.clone();
        // `cancel` ends the turn by itself; no other answer does.
        let cancels = matches!(request.memo.what, AnswerFormat::Approval | AnswerFormat::Legacy);
        let interrupt = matches!(answer, Answer::Deny { interrupt: true, .. }) && !cancels;
        let closed = self.ledger.requests.close(id);
        if let (Some(request), Answer::Deny { .. }) = (closed, &answer) {
            self.refuse(request.memo.tool.as_deref(), request.memo.server());
        }
        // Codex reports that a call was declined, but not with which message.
        if let (Some(tool), Answer::Deny { message, .. }) = (tool, &answer)
            && let Some(tool) = self.ledger.tools.get(&tool)
        {
            tool.memo.denial = message.clone().filter(|message| !message.is_empty());
        }
        let line = JsonObject::new().raw("id", &Json::trusted(wire_id));
        let line = match reply {
            Response::Result(result) => line.raw("result", &Json::trusted(result)),
            Response::Refusal(message) => {
                line.raw("error", &Json::of(&json!({ "code": -32000, "message": message })))
            }
        };
        out.write(line.finish().into_text());
        if interrupt {
            self.stopping = true;
            self.interrupt(out);
        }
        Ok(())
    }
}

fn reply(what: &AnswerFormat, answer: &Answer) -> Result<Response, GatewayError> {
    // An answer in the agent's own format is passed on unchanged, whatever was asked.
    if let Answer::HookOutput(output) = answer {
        return match output.read::<Map<String, Value>>() {
            Ok(_) => Ok(Response::Result(output.get().to_owned())),
            Err(_) => Err(GatewayError::invalid("hookOutput must be a JSON object")),
        };
    }
    let result = match what {
        AnswerFormat::Approval => {
            json!({ "decision": by_behavior(answer, ["accept", "decline", "cancel"])? })
        }
        AnswerFormat::Legacy => {
            json!({ "decision": by_behavior(answer, ["approved", "denied", "abort"])? })
        }
        AnswerFormat::Permissions(wanted) => return permissions(wanted, answer),
        AnswerFormat::McpCall(_) => {
            let action = by_behavior(answer, ["accept", "decline", "cancel"])?;
            json!({ "action": action, "content": null, "_meta": null })
        }
        AnswerFormat::Elicitation => elicitation(answer)?,
        AnswerFormat::Questions(questions) => json!({ "answers": answers(questions, answer)? }),
        AnswerFormat::Tool => match answer {
            Answer::Deny { message, .. } => {
                let text = message.as_deref().unwrap_or("the tool did not run");
                let items = json!([{ "type": "inputText", "text": text }]);
                json!({ "contentItems": items, "success": false })
            }
            _ => return Err(needs("hookOutput with contentItems and success")),
        },
        AnswerFormat::Other => match answer {
            Answer::Deny { message, .. } => {
                let message = message.as_deref().unwrap_or("the client refused");
                return Ok(Response::Refusal(message.to_owned()));
            }
            _ => return Err(needs("hookOutput with the result")),
        },
    };
    Ok(Response::Result(result.to_string()))
}

/// One of these three, for an answer that only allows, denies, or denies and ends the turn. Codex is only
/// ever told "once". The gateway has its own rule for what is allowed from now on, and that rule is what was
/// shown. Nothing that Codex would store is ever sent.
fn by_behavior<'a>(
    answer: &Answer,
    [allow, deny, cancel]: [&'a str; 3],
) -> Result<&'a str, GatewayError> {
    match answer {
        Answer::Allow { updated_input: Some(_), .. } => {
            Err(GatewayError::unsupported("codex", "updatedInput"))
        }
        Answer::Allow { updated_permissions: Some(_), .. } => Err(updated_permissions()),
        Answer::Allow { .. } => Ok(allow),
        Answer::Deny { interrupt: true, .. } => Ok(cancel),
        Answer::Deny { .. } => Ok(deny),
        Answer::Answers(_) | Answer::HookOutput(_) => Err(needs("behavior")),
    }
}

/// Grants exactly what was requested, for this turn, or nothing.
fn permissions(wanted: &str, answer: &Answer) -> Result<Response, GatewayError> {
    let granted = by_behavior(answer, [wanted, "{}", "{}"])?;
    let result = JsonObject::new().raw("permissions", &Json::trusted(granted));
    Ok(Response::Result(result.text("scope", "turn").finish().into_text()))
}

fn elicitation(answer: &Answer) -> Result<Value, GatewayError> {
    let (action, content) = match answer {
        Answer::Allow { updated_permissions: Some(_), .. } => return Err(updated_permissions()),
        Answer::Allow { updated_input, .. } => {
            let content = updated_input.as_ref().and_then(|content| content.read().ok());
            ("accept", content.unwrap_or_else(|| json!({})))
        }
        Answer::Answers(answers) => {
            let fields = answers
                .iter()
                .map(|(name, value)| (name.clone(), value.read().unwrap_or(Value::Null)));
            ("accept", Value::Object(fields.collect::<Map<_, _>>()))
        }
        Answer::Deny { interrupt: true, .. } => ("cancel", Value::Null),
        Answer::Deny { .. } => ("decline", Value::Null),
        Answer::HookOutput(_) => return Err(needs("answers")),
    };
    Ok(json!({ "action": action, "content": content, "_meta": null }))
}

/// Answers by the id of the question; a client may also use its text.
fn answers(
    questions: &[(String, String)],
    answer: &Answer,
) -> Result<BTreeMap<String, Value>, GatewayError> {
    let given = match answer {
        Answer::Answers(given) => given,
        Answer::Deny { .. } => return Ok(BTreeMap::new()),
        Answer::Allow { .. } | Answer::HookOutput(_) => return Err(needs("answers")),
    };
    let read = |(key, value): (&String, &Json<'static>)| {
        let question = questions.iter().find(|(id, words)| id == key || words == key);
        let Some((id, _)) = question else {
            return Err(GatewayError::invalid(format!("there is no question `{key}`")));
        };
        let chosen = match value.read().unwrap_or(Value::Null) {
            Value::String(text) => vec![text],
            Value::Array(texts) => {
                texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            other => vec![other.to_string()],
        };
        Ok((id.clone(), json!({ "answers": chosen })))
    };
    given.iter().map(read).collect()
}

fn updated_permissions() -> GatewayError {
    let what = "updatedPermissions, which it would store; answer with `remember: session`, and \
                agentwire allows the same again";
    GatewayError::unsupported("codex", what)
}

fn needs(what: &str) -> GatewayError {
    GatewayError::invalid(format!("answer this request with {what}"))
}
