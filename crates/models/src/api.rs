//! What an API must be able to do, and the table of all.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

use crate::anthropic::Anthropic;
use crate::conversation::Conversation;
use crate::gemini::Gemini;
use crate::openai::OpenAi;
use crate::plan::{Failure, Plan};
use crate::play::Frame;
use crate::usage::Usage;

/// A model API: reads requests, writes plans.
pub(crate) trait Api: Sync {
    /// How records name it.
    fn name(&self) -> &'static str;

    /// A line of shell that starts the API's program with the server at this address.
    fn program(&self, url: &str) -> String;

    /// Whether the request is for this API, also at an address that it does not know.
    fn owns(&self, request: &Request) -> bool;

    /// What the request asks for. A failure is the answer to a malformed request.
    fn read(&self, request: &Request) -> Result<Ask, Failure>;

    /// A response as a stream of events. `End::Hang` and `End::Cut` need no frame.
    fn stream(&self, plan: &Plan) -> Vec<Frame>;

    /// A response as one value.
    fn whole(&self, plan: &Plan) -> Value;

    /// The error of a model that there is not.
    fn no_model(&self, model: &str) -> Failure;

    /// The body of an error.
    fn failure(&self, failure: &Failure, id: &str) -> Value;

    /// Headers of every answer; `failure` if it is an error.
    fn headers(&self, id: &str, failure: Option<&Failure>) -> Vec<(String, String)>;

    /// The usage as the API's words can tell it.
    fn told(&self, usage: Usage) -> Usage {
        usage
    }
}

/// All APIs. The first that owns a request answers it.
pub(crate) fn apis() -> [&'static dyn Api; 3] {
    [&Anthropic, &Gemini, &OpenAi]
}

/// Lines of shell that start each API's program with the server at this address.
pub fn programs(url: &str) -> Vec<String> {
    apis().map(|api| api.program(url)).to_vec()
}

/// A request, whole.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Ask {
    /// A response of the model.
    Turn(Box<Conversation>),
    /// What can be answered at once.
    Value(Value),
    /// What the program asks for itself and no text can answer, as a stream. It tells no usage.
    Stream(Vec<Frame>),
    /// Nothing that the API knows.
    Unknown,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, if it is a JSON object.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        match serde_json::from_slice(&self.body) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err(Failure::new(400, "failed to read the body: it is no JSON object")),
            Err(error) => Err(Failure::new(400, format!("failed to read the body: {error}"))),
        }
    }
}
