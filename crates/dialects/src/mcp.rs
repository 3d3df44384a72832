//! Messages to MCP servers that the client hosts: JSON-RPC 2.0 on any wire.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentwire_protocol::event::{Question, QuestionOption};
use agentwire_protocol::{Answer, GatewayError, Json, Text};
use serde::Deserialize;
use serde_json::json;

use crate::hooks::{DENIED, Object};
use crate::json::Value;

/// The method with which a sender says that it no longer waits.
const CANCELLED: &str = "\"notifications/cancelled\"";

const LISTING: &str = "\"tools/list\"";

/// The bare JSON-RPC message in a client's answer. `hookOutput` is that message, or has it as
/// `mcp_response`, as the Claude SDKs do.
pub fn reply(message: Option<&Json<'_>>, answer: Answer) -> Result<Json<'static>, GatewayError> {
    let unsupported = |what: &str| Err(GatewayError::unsupported("an MCP server", what));
    let message = message.map(fields).unwrap_or_default();
    let id = message.get("id").cloned().unwrap_or(Json::trusted("0"));
    match answer {
        Answer::HookOutput(reply) => {
            let fields: Object = reply
                .read()
                .map_err(|_| GatewayError::invalid("hookOutput must be a JSON object"))?;
            Ok(fields.get("mcp_response").cloned().unwrap_or(reply))
        }
        Answer::Allow { updated_permissions: Some(_), .. } => unsupported("updatedPermissions"),
        Answer::Allow { always: true, .. } => unsupported("remember session"),
        Answer::Allow { updated_input, .. } => {
            Ok(json_rpc(id, "result", updated_input.unwrap_or(Json::EMPTY)))
        }
        Answer::Deny { message, .. } => {
            Ok(failure(id, -32000, message.as_deref().unwrap_or(DENIED)))
        }
        Answer::Answers(_) => Err(GatewayError::invalid(
            "answers are not an answer to an MCP message; give behavior or hookOutput",
        )),
    }
}

/// The same, as the sender of `message` must get it: with the id it gave, and a result or an error. `None`
/// if it expects no reply.
pub fn response(
    message: Option<&Json<'_>>,
    answer: Answer,
) -> Result<Option<Json<'static>>, GatewayError> {
    let said = reply(message, answer)?;
    let Some(id) = message.and_then(awaited) else { return Ok(None) };
    let mut reply = fields(&said);
    if reply.contains_key("result") == reply.contains_key("error") {
        let message = "the answer to an MCP message must have either a result or an error";
        return Err(GatewayError::invalid(message));
    }
    reply.insert("jsonrpc".to_owned(), Json::of(&"2.0"));
    reply.insert("id".to_owned(), id);
    Ok(Some(Json::of(&reply)))
}

pub fn failure(id: Json<'static>, code: i32, message: &str) -> Json<'static> {
    json_rpc(id, "error", Json::of(&json!({ "code": code, "message": message })))
}

/// The id under which the message's sender waits for a reply: `None` for a notification and for a reply.
pub fn awaited(message: &Json<'_>) -> Option<Json<'static>> {
    let mut message = fields(message);
    message.contains_key("method").then(|| message.remove("id"))?.filter(|id| id.get() != "null")
}

/// The part of a message that answering it needs: `jsonrpc`, `id` and `method`.
pub fn head(message: &Json<'_>) -> Json<'static> {
    let mut fields = fields(message);
    fields.retain(|name, _| matches!(name.as_str(), "jsonrpc" | "id" | "method"));
    Json::of(&fields)
}

/// The tool names in this response, if `message` asked a server for its tools.
pub fn listed(message: Option<&Json<'_>>, response: &Json<'_>) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Tool {
        name: String,
    }
    #[derive(Deserialize)]
    struct Listed {
        tools: Vec<Tool>,
    }
    let message = message.map(fields)?;
    message.get("method").filter(|method| method.get() == LISTING)?;
    let listed: Listed = fields(response).get("result")?.read().ok()?;
    Some(listed.tools.into_iter().map(|tool| tool.name).collect())
}

/// The id of the message that this one cancels.
pub fn cancelled(message: &Json<'_>) -> Option<Json<'static>> {
    let message = fields(message);
    message.get("method").filter(|method| method.get() == CANCELLED)?;
    fields(message.get("params")?).remove("requestId")
}

/// The question for one field of a form that a server wants filled in.
pub(crate) fn form_question<'d>(
    name: Cow<'d, str>,
    field: Value<'d>,
    header: Option<Text<'d>>,
) -> Question<'d> {
    let words = field.read("description").or_else(|| field.read("title"));
    let labels = field.get("enum").into_iter().flat_map(Value::items).filter_map(Value::to);
    Question {
        question: words.unwrap_or_else(|| Text::new(name.clone())),
        id: Some(Text::new(name)),
        header,
        options: labels.map(|label| QuestionOption { label, description: None }).collect(),
        multi_select: false,
        is_secret: false,
    }
}

fn fields(message: &Json<'_>) -> Object {
    message.read().unwrap_or_default()
}

fn json_rpc(id: Json<'static>, outcome: &str, value: Json<'static>) -> Json<'static> {
    Json::of(&BTreeMap::from([("jsonrpc", Json::of(&"2.0")), ("id", id), (outcome, value)]))
}

#[cfg(test)]
mod tests {
    use agentwire_protocol::ErrorCode;

    use super::*;

    fn output(text: &str) -> Answer {
        Answer::HookOutput(Json::parse(text).expect("JSON").into_owned())
    }

    fn sent(message: &str, answer: Answer) -> Option<String> {
        let reply = response(Some(&Json::trusted(message)), answer).expect("an answer that fits");
        reply.map(|reply| reply.get().to_owned())
    }

    #[test]
    fn a_reply_has_the_id_of_its_message() {
        let message = r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#;
        let wanted = r#"{"id":"a","jsonrpc":"2.0","result":{"n":1e400}}"#;
        for reply in [
            r#"{"mcp_response":{"jsonrpc":"2.0","id":7,"result":{"n":1e400}}}"#,
            r#"{"id":"a","result":{"n":1e400}}"#,
            r#"{"result":{"n":1e400}}"#,
        ] {
            assert_eq!(sent(message, output(reply)).as_deref(), Some(wanted), "{reply}");
        }
        let denied = Answer::Deny { message: Some("no".into()), interrupt: false, always: false };
        let wanted = r#"{"error":{"code":-32000,"message":"no"},"id":"a","jsonrpc":"2.0"}"#;
        assert_eq!(sent(message, denied).as_deref(), Some(wanted));
    }

    #[test]
    fn tools_are_those_of_a_listing() {
        let message = Json::trusted(r#"{"id":1,"method":"tools/list"}"#);
        let other = Json::trusted(r#"{"id":1,"method":"tools/call"}"#);
        let response =
            Json::trusted(r#"{"id":1,"result":{"tools":[{"name":"add"},{"name":"b"}]}}"#);
        let failure = Json::trusted(r#"{"id":1,"error":{"code":1,"message":"no"}}"#);
        let names = vec!["add".to_owned(), "b".to_owned()];
        assert_eq!(listed(Some(&message), &response), Some(names));
        assert_eq!(listed(Some(&message), &failure), None);
        assert_eq!(listed(Some(&other), &response), None);
    }

    #[test]
    fn what_waits_for_nothing_gets_nothing() {
        for message in [
            r#"{"method":"notifications/initialized"}"#,
            r#"{"method":"x","id":null}"#,
            r#"{"id":1,"result":{}}"#,
        ] {
            assert_eq!(sent(message, output(r#"{"result":{}}"#)), None, "{message}");
        }
    }

    #[test]
    fn an_answer_that_is_none_is_refused() {
        let message = Json::trusted(r#"{"id":1,"method":"x"}"#);
        for reply in ["[]", "{}", r#"{"mcp_response":3}"#, r#"{"result":1,"error":{}}"#] {
            let error = response(Some(&message), output(reply)).expect_err("a refusal");
            assert_eq!(error.code, ErrorCode::InvalidMessage, "{reply}");
        }
    }

    #[test]
    fn a_cancellation_names_its_message() {
        let names = |text: &str| cancelled(&Json::trusted(text)).map(|id| id.get().to_owned());
        let message = r#"{"method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        assert_eq!(names(message).as_deref(), Some("\"a\""));
        assert_eq!(names(r#"{"method":"tools/call","params":{"requestId":"a"}}"#), None);
    }
}
