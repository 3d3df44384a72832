//! Answers to the agent's requests, in Claude's format.

use std::collections::BTreeMap;

use agentwire_protocol::{Answer, Call, ErrorCode, GatewayError, Json, Settlement};
use serde::Serialize;
use serde_json::json;

use super::Translator;
use super::calls::{acknowledge, write_line};
use super::requests::{AnswerFormat, PendingRequest, RequestChannel};
use crate::hooks::{self, DENIED, Object, read_object};
use crate::mcp;
use crate::tape::Out;

enum Response {
    Success(Json<'static>),
    /// The agent treats an error as an empty answer to a hook, and as a denial otherwise.
    Error(String),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "control_response")]
pub(super) struct ControlResponse<'r> {
    pub(super) response: ResponseBody<'r>,
}

#[derive(Serialize)]
#[serde(tag = "subtype", rename_all = "lowercase")]
pub(super) enum ResponseBody<'r> {
    Success { request_id: &'r str, response: Json<'static> },
    Error { request_id: &'r str, error: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "callback.response")]
struct CallbackResponse<'r> {
    id: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    payload: Json<'static>,
}

impl Translator {
    pub(super) fn settle(
        &mut self,
        call: Call,
        settlement: &Settlement,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if let Some(judged) = self.judged(call, settlement, out) {
            return judged;
        }
        let id = settlement.request_id.as_str();
        let answer = settlement.answer()?;
        let Some(request) = self.ledger.requests.get(id) else {
            let message = format!("no request {id} is open");
            return Err(GatewayError::new(ErrorCode::RequestNotFound, message));
        };
        let ask = request.memo.clone();
        let denied = matches!(answer, Answer::Deny { .. });
        // The answer to a permission carries the interrupt itself; no other answer can.
        let says_it = matches!(
            (&ask.wire, ask.sort),
            (RequestChannel::Control, AnswerFormat::Tool | AnswerFormat::Question)
        );
        let interrupts = matches!(answer, Answer::Deny { interrupt: true, .. }) && !says_it;
        let reply = match &settlement.error {
            Some(error) => Response::Error(error.clone()),
            None => reply(self.name(), &ask, answer)?,
        };
        respond(id, &ask, reply, out)?;
        if interrupts {
            self.calls.tell(&json!({ "subtype": "interrupt" }), out);
        }
        self.ledger.requests.close(id);
        if let Some(tool) = ask.tool_use_id.filter(|_| denied && ask.sort != AnswerFormat::Hook) {
            self.mark_denied(&tool);
        }
        acknowledge(call, out);
        Ok(())
    }

    /// Denies a request that was never raised, so that the agent does not wait for an answer.
    pub(super) fn turn_down(
        &mut self,
        id: &str,
        ask: &PendingRequest,
        reason: &str,
        out: &mut Out<'_>,
    ) {
        let message = Some(reason.to_owned());
        let reply =
            reply(self.name(), ask, Answer::Deny { message, interrupt: false, always: false });
        let reply = reply.unwrap_or_else(|error| Response::Error(error.message));
        if respond(id, ask, reply, out).is_ok()
            && let Some(tool) =
                ask.tool_use_id.as_deref().filter(|_| ask.sort != AnswerFormat::Hook)
        {
            self.mark_denied(tool);
        }
    }
}

fn respond(
    id: &str,
    ask: &PendingRequest,
    reply: Response,
    out: &mut Out<'_>,
) -> Result<(), GatewayError> {
    match &ask.wire {
        RequestChannel::Control => {
            let response = match reply {
                Response::Success(response) => ResponseBody::Success { request_id: id, response },
                Response::Error(error) => ResponseBody::Error { request_id: id, error },
            };
            write_line(&ControlResponse { response }, out);
        }
        RequestChannel::Callback(session_id) => {
            let payload = match reply {
                Response::Success(payload) => snake_case(&payload)?,
                Response::Error(reason) => Json::of(&json!({ "reason": reason })),
            };
            let session_id = session_id.clone();
            write_line(&CallbackResponse { id, session_id, payload }, out);
        }
    }
    Ok(())
}

fn reply(agent: &str, ask: &PendingRequest, answer: Answer) -> Result<Response, GatewayError> {
    match ask.sort {
        AnswerFormat::Tool | AnswerFormat::Question => permission(ask, answer),
        AnswerFormat::Hook => hook(agent, ask, answer),
        AnswerFormat::Mcp => mcp(ask, answer),
        AnswerFormat::Elicitation => elicitation(without_rules(agent, answer, "an elicitation")?),
        AnswerFormat::Other => other(without_rules(agent, answer, "this request")?),
    }
}

fn permission(ask: &PendingRequest, answer: Answer) -> Result<Response, GatewayError> {
    let mut response = Object::new();
    let mut put = |key: &str, value: Json<'static>| response.insert(key.to_owned(), value);
    if let Some(id) = &ask.tool_use_id {
        put("toolUseID", Json::of(id));
    }
    match answer {
        // The gateway remembers "always"; the agent gets "once".
        Answer::Allow { updated_input, updated_permissions, always: _ } => {
            put("behavior", Json::of(&"allow"));
            // Old versions refuse an answer without it.
            if let Some(input) = updated_input.or_else(|| ask.input.clone()) {
                put("updatedInput", input);
            }
            if let Some(rules) = updated_permissions {
                put("updatedPermissions", rules);
            }
        }
        Answer::Deny { message, interrupt, .. } => {
            put("behavior", Json::of(&"deny"));
            put("message", Json::of(&message.unwrap_or_else(|| DENIED.to_owned())));
            if interrupt {
                put("interrupt", Json::of(&true));
            }
        }
        Answer::Answers(answers) if ask.sort == AnswerFormat::Question => {
            let mut input: Object =
                ask.input.as_ref().and_then(|input| input.read().ok()).unwrap_or_default();
            let answers: BTreeMap<_, _> = answers
                .into_iter()
                .map(|(question, answer)| (question, answer_text(&answer)))
                .collect();
            input.insert("answers".to_owned(), Json::of(&answers));
            put("behavior", Json::of(&"allow"));
            put("updatedInput", Json::of(&input));
        }
        Answer::Answers(_) => return Err(unfit("answers", "a permission")),
        Answer::HookOutput(own) => return Ok(Response::Success(object(own)?)),
    }
    Ok(Response::Success(Json::of(&response)))
}

/// The agent expects one text for each question.
fn answer_text(answer: &Json<'_>) -> String {
    if let Ok(text) = answer.read::<String>() {
        return text;
    }
    match answer.read::<Vec<Json<'_>>>() {
        Ok(list) => list.iter().map(answer_text).collect::<Vec<_>>().join(", "),
        Err(_) => answer.get().to_owned(),
    }
}

fn hook(agent: &str, ask: &PendingRequest, answer: Answer) -> Result<Response, GatewayError> {
    Ok(match hooks::read_answer(agent, ask.name.as_deref(), answer)? {
        hooks::HookAnswer::Output(output) => {
            // Claude treats an unknown word as no opinion, and runs the tool.
            hooks::Output::read(&output)?;
            Response::Success(output)
        }
        hooks::HookAnswer::Failure(reason) => Response::Error(reason),
    })
}

/// Notifications need an answer too, or the server never gets its next message.
fn mcp(ask: &PendingRequest, answer: Answer) -> Result<Response, GatewayError> {
    let reply = mcp::reply(ask.input.as_ref(), answer)?;
    Ok(Response::Success(Json::of(&BTreeMap::from([("mcp_response", reply)]))))
}

fn elicitation(answer: Answer) -> Result<Response, GatewayError> {
    let accept = |content: Option<Json<'static>>| {
        let mut response = BTreeMap::from([("action", Json::of(&"accept"))]);
        response.extend(content.map(|content| ("content", content)));
        Json::of(&response)
    };
    Ok(Response::Success(match answer {
        Answer::Allow { updated_input, .. } => accept(updated_input),
        Answer::Answers(answers) => accept(Some(Json::of(&answers))),
        Answer::Deny { .. } => Json::of(&json!({ "action": "decline" })),
        Answer::HookOutput(own) => object(own)?,
    }))
}

fn other(answer: Answer) -> Result<Response, GatewayError> {
    Ok(match answer {
        Answer::Allow { updated_input, .. } => {
            Response::Success(updated_input.unwrap_or(Json::EMPTY))
        }
        Answer::HookOutput(own) => Response::Success(object(own)?),
        Answer::Deny { message, .. } => {
            Response::Error(message.unwrap_or_else(|| DENIED.to_owned()))
        }
        Answer::Answers(_) => return Err(unfit("answers", "this request")),
    })
}

/// Refuses rules in the answer: only permissions have them.
fn without_rules(agent: &str, answer: Answer, request: &str) -> Result<Answer, GatewayError> {
    match answer {
        Answer::Allow { updated_permissions: Some(_), .. } => Err(GatewayError::unsupported(
            agent,
            format!("updatedPermissions as the answer to {request}"),
        )),
        Answer::Allow { always: true, .. } => Err(GatewayError::unsupported(
            agent,
            format!("remember session as the answer to {request}"),
        )),
        fit => Ok(fit),
    }
}

fn unfit(answer: &str, request: &str) -> GatewayError {
    let message = format!("{answer} are not an answer to {request}; give behavior or hookOutput");
    GatewayError::invalid(message)
}

fn object(own: Json<'static>) -> Result<Json<'static>, GatewayError> {
    read_object(&own)?;
    Ok(own)
}

/// `callback.response` is in snake case throughout, and identifies the call by the request's id alone.
fn snake_case(payload: &Json<'_>) -> Result<Json<'static>, GatewayError> {
    let mut fields = read_object(payload)?;
    fields.remove("toolUseID");
    let renamed: Object =
        fields.into_iter().map(|(name, value)| (hooks::snake(&name), value)).collect();
    Ok(Json::of(&renamed))
}
