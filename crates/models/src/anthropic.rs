//! The Anthropic Messages API, as Claude Code calls it.
//!
//! `POST /v1/messages`, streamed or whole; `POST /v1/messages/count_tokens`; `GET /v1/models`.

mod claude_code;
mod read;
mod write;

use serde_json::{Value, json};

use crate::api::{Api, ApiCall, ApiRequest};
use crate::response_plan::{Failure, ResponsePlan};
use crate::stream_body::Frame;

pub(crate) struct Anthropic;

impl Api for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn program(&self, url: &str) -> String {
        format!("ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=any claude -p '[[say hello]]'")
    }

    fn owns(&self, request: &ApiRequest) -> bool {
        request.path == "/v1/messages"
            || request.path.starts_with("/v1/messages/")
            || request.header("anthropic-version").is_some()
            || request.header("user-agent").is_some_and(|agent| agent.starts_with("claude"))
    }

    fn read(&self, request: &ApiRequest) -> Result<ApiCall, Failure> {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v1/messages") => {
                let body = request.json()?;
                let ids = ["x-claude-code-session-id", "x-claude-code-agent-id"];
                let ids = ids.map(|name| request.header(name).unwrap_or_default());
                Ok(ApiCall::Turn(Box::new(read::conversation(&body, ids.join(" "))?)))
            }
            ("POST", "/v1/messages/count_tokens") => {
                let body = request.json()?;
                read::check(&body)?;
                Ok(ApiCall::Value(json!({"input_tokens": (request.body.len() / 4).max(1)})))
            }
            ("GET", "/v1/models") => Ok(ApiCall::Value(models())),
            _ => Ok(ApiCall::Unknown),
        }
    }

    fn stream(&self, plan: &ResponsePlan) -> Vec<Frame> {
        write::stream(plan)
    }

    fn whole(&self, plan: &ResponsePlan) -> Value {
        write::whole(plan)
    }

    fn no_model(&self, model: &str) -> Failure {
        Failure::new(404, format!("model: {model}"))
    }

    fn failure(&self, failure: &Failure, id: &str) -> Value {
        let mut body = write::failure(failure);
        if let Some(body) = body.as_object_mut() {
            body.insert("request_id".to_owned(), format!("req_{id}").into());
        }
        body
    }

    fn headers(&self, id: &str, failure: Option<&Failure>) -> Vec<(String, String)> {
        write::headers(id, failure)
    }
}

fn models() -> Value {
    let model = |id: &str, name: &str| json!({"type": "model", "id": id, "display_name": name, "created_at": "2026-01-01T00:00:00Z"});
    json!({
        "data": [model("claude-scripted", "Scripted")],
        "first_id": "claude-scripted",
        "last_id": "claude-scripted",
        "has_more": false,
    })
}
