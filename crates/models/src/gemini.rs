//! The Gemini API, as Gemini CLI calls it.
//!
//! `POST …/models/MODEL:streamGenerateContent?alt=sse`, `:generateContent` and `:countTokens`; `GET
//! …/models` and `…/models/MODEL`. The path before `models` does not matter: `/v1beta`, a prefix of the
//! base URL, a Vertex AI project.

mod gemini_cli;
mod read;
mod write;

use serde_json::{Value, json};

use crate::api::{Api, ApiCall, ApiRequest};
use crate::response_plan::{Failure, ResponsePlan};
use crate::stream_body::Frame;
use crate::usage::Usage;

pub(crate) struct Gemini;

impl Api for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn program(&self, url: &str) -> String {
        format!(
            "GEMINI_API_KEY=any GOOGLE_GEMINI_BASE_URL={url} gemini --skip-trust -p '[[say hello]]'"
        )
    }

    fn owns(&self, request: &ApiRequest) -> bool {
        request.path.starts_with("/v1beta")
            || request.header("x-goog-api-key").is_some()
            || gemini_cli::is_gemini_cli(request)
    }

    fn read(&self, request: &ApiRequest) -> Result<ApiCall, Failure> {
        match (request.method.as_str(), target(&request.path)) {
            ("POST", Some((model, "streamGenerateContent"))) => {
                if !request.query.split('&').any(|pair| pair == "alt=sse") {
                    let advice = "add ?alt=sse: streams are only served as server-sent events";
                    return Err(Failure::new(400, advice));
                }
                turn(request, model, true)
            }
            ("POST", Some((model, "generateContent"))) => turn(request, model, false),
            ("POST", Some((_, "countTokens"))) => {
                request.json()?;
                Ok(ApiCall::Value(json!({"totalTokens": (request.body.len() / 4).max(1)})))
            }
            ("GET", Some((name, ""))) => Ok(ApiCall::Value(model(name))),
            ("GET", None) if request.path.ends_with("/models") => {
                Ok(ApiCall::Value(json!({"models": [model("gemini-scripted")]})))
            }
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
        Failure::new(404, format!("models/{model} is not found; ask for the list of models"))
    }

    fn failure(&self, failure: &Failure, _id: &str) -> Value {
        write::failure(failure)
    }

    fn headers(&self, _id: &str, _failure: Option<&Failure>) -> Vec<(String, String)> {
        Vec::new()
    }

    /// This API does not report cache writes; they count as normal input.
    fn reported_usage(&self, usage: Usage) -> Usage {
        Usage { input: usage.input.saturating_add(usage.cache_create), cache_create: 0, ..usage }
    }
}

/// The model and the method in a path.
fn target(path: &str) -> Option<(&str, &str)> {
    let (_, last) = path.rsplit_once("/models/")?;
    let (model, method) = last.split_once(':').unwrap_or((last, ""));
    (!model.is_empty() && !last.contains('/')).then_some((model, method))
}

fn turn(request: &ApiRequest, model: &str, stream: bool) -> Result<ApiCall, Failure> {
    let mut conversation = read::conversation(&request.json()?, model, stream)?;
    if gemini_cli::is_gemini_cli(request) {
        conversation.side = gemini_cli::side_answer(&conversation);
    }
    if gemini_cli::has_one_prompt(request) {
        conversation.entries = gemini_cli::mark_abandoned(conversation.entries);
    }
    Ok(ApiCall::Turn(Box::new(conversation)))
}

/// Every model name is accepted.
fn model(name: &str) -> Value {
    json!({
        "name": format!("models/{name}"),
        "version": "1",
        "displayName": "Scripted",
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}
