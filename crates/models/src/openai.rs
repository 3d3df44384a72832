//! The OpenAI Responses API, as Codex calls it.
//!
//! `POST /v1/responses`, streamed or whole; `GET /v1/models`. A WebSocket is refused with the status that
//! makes Codex switch to HTTP at once.
//!
//! How script steps look in this API:
//!
//! ```text
//! [[tool exec_command {"cmd":"ls"}]]            a function_call
//! [[tool apply_patch "*** Begin Patch\n…"]]     a custom_tool_call, if the tool is offered so
//! [[tool mcp__server.echo {"text":"hi"}]]       NAMESPACE.NAME
//! [[tool web_search {"action":{…}}]]            the fields of a web_search_call; the API runs it,
//!                                               so the response continues
//! [[stop max_tokens]] [[stop REASON]]           response.incomplete
//! [[fail 429 usage_limit_reached]]              the code of the error, or its type
//! ```

mod codex;
mod events;
mod read;
mod write;

use serde_json::{Value, json};

use crate::api::{Api, ApiCall, ApiRequest};
use crate::response_plan::{Failure, ResponsePlan};
use crate::stream_body::Frame;

pub(crate) struct OpenAi;

impl Api for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn program(&self, url: &str) -> String {
        format!(
            "CODEX_API_KEY=any codex exec --skip-git-repo-check -c openai_base_url={url}/v1 '[[say hello]]'"
        )
    }

    fn owns(&self, request: &ApiRequest) -> bool {
        let path = request.path.as_str();
        ["/v1/responses", "/v1/models"].iter().any(|own| {
            path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }) || request.header("originator").is_some()
    }

    fn read(&self, request: &ApiRequest) -> Result<ApiCall, Failure> {
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/v1/responses") => {
                let body = request.json()?;
                let conversation = read::conversation(&body, request.header("thread-id"))?;
                Ok(if codex::wants_compaction(&body) {
                    let summary = codex::summary(&conversation);
                    ApiCall::Stream(events::compaction(&conversation.model, &summary))
                } else {
                    ApiCall::Turn(Box::new(conversation))
                })
            }
            ("GET", "/v1/responses") if request.header("upgrade").is_some() => {
                Err(Failure::new(426, "WebSockets are not supported; post to /v1/responses"))
            }
            ("GET", "/v1/models") => Ok(ApiCall::Value(models())),
            _ => Ok(ApiCall::Unknown),
        }
    }

    fn stream(&self, plan: &ResponsePlan) -> Vec<Frame> {
        events::stream(plan)
    }

    fn whole(&self, plan: &ResponsePlan) -> Value {
        write::whole(plan)
    }

    fn no_model(&self, model: &str) -> Failure {
        let kind = Some("model_not_found".to_owned());
        Failure { kind, ..Failure::new(404, format!("there is no model `{model}` for this key")) }
    }

    fn failure(&self, failure: &Failure, _id: &str) -> Value {
        write::failure(failure)
    }

    fn headers(&self, id: &str, failure: Option<&Failure>) -> Vec<(String, String)> {
        write::headers(id, failure)
    }
}

/// `data` is for all clients; `models` is for Codex, which then uses its built-in list.
fn models() -> Value {
    let model = json!({
        "id": "gpt-scripted", "object": "model", "created": 1_767_225_600, "owned_by": "agentwire",
    });
    json!({"object": "list", "data": [model], "models": []})
}
