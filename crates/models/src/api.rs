//! The trait that every API implements, and the list of all.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::anthropic::Anthropic;
use crate::conversation::Conversation;
use crate::gemini::Gemini;
use crate::openai::OpenAi;
use crate::response_plan::{Failure, ResponsePlan};
use crate::stream_body::Frame;
use crate::usage::Usage;

/// A model API: reads requests and writes responses.
pub(crate) trait Api: Sync {
    /// The name used in records.
    fn name(&self) -> &'static str;

    /// A shell command that starts the API's program with the server at this address.
    fn program(&self, url: &str) -> String;

    /// Whether the request is for this API, even if the API does not know its path.
    fn owns(&self, request: &ApiRequest) -> bool;

    /// Parses the request. A failure is the answer to a malformed one.
    fn read(&self, request: &ApiRequest) -> Result<ApiCall, Failure>;

    /// The events of a streamed response. `End::Hang` and `End::Cut` need no frame.
    fn stream(&self, plan: &ResponsePlan) -> Vec<Frame>;

    /// A response that is not streamed.
    fn whole(&self, plan: &ResponsePlan) -> Value;

    /// The error for an unknown model.
    fn no_model(&self, model: &str) -> Failure;

    /// The body of an error.
    fn failure(&self, failure: &Failure, id: &str) -> Value;

    /// The headers of every answer; `failure` is set if it is an error.
    fn headers(&self, id: &str, failure: Option<&Failure>) -> Vec<(String, String)>;

    /// The usage as this API can report it.
    fn reported_usage(&self, usage: Usage) -> Usage {
        usage
    }
}

/// All APIs. The first one that owns a request answers it.
pub(crate) fn apis() -> [&'static dyn Api; 3] {
    [&Anthropic, &Gemini, &OpenAi]
}

/// Shell commands that start each API's program with the server at this address.
pub fn programs(url: &str) -> Vec<String> {
    apis().map(|api| api.program(url)).to_vec()
}

/// A complete request.
#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// Without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum ApiCall {
    /// A turn of the model.
    Turn(Box<Conversation>),
    /// A value to answer with at once.
    Value(Value),
    /// A stream for a call on the program's own behalf that plain text cannot answer. It reports no usage.
    Stream(Vec<Frame>),
    /// The API does not know the request.
    Unknown,
}

impl ApiRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, if it is a JSON object.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        match serde_json::from_slice(&self.body) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err(Failure::new(400, "failed to read the body: it is not a JSON object")),
            Err(error) => Err(Failure::new(400, format!("failed to read the body: {error}"))),
        }
    }
}
