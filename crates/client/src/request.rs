//! Requests of an agent, and the methods to answer them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use agentwire_protocol::command::Remember;
use agentwire_protocol::event::{Question, RequestKind};
use agentwire_protocol::{AgentType, Command, ErrorCode, Json, OpenRequest, RequestId, Settlement};
use serde::Serialize;

use crate::client::AgentClient;
use crate::error::AgentError;

/// A request that an agent waits on, with methods to answer it. An answer is valid for exactly the input
/// that the request showed.
///
/// The first answer counts: it may come from a rule of the session, this program or another client. Each
/// method that answers returns whether its answer was the first; if not, the event `requestSettled` shows
/// the one that was.
///
/// ```rust,standalone_crate
/// # use agentwire_client::{AgentType, EventKind, Request, SessionRequest};
/// # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
/// # let gateway = agentwire_client::InProcessTransport::with_settings(trial.settings()).await?;
/// # let client = agentwire_client::AgentClient::over(gateway);
/// let prompt = "/bash rm -rf build\n/ask Which colour? | red | green";
/// let session = client.create(SessionRequest::new(AgentType::Demo, prompt)).await?;
/// let mut events = session.events();
/// let mut outcomes = Vec::new();
/// while let Some(event) = events.try_next().await? {
///     if let Some(request) = event.request() {
///         match request {
///             Request::Permission(asked) => asked.deny("not here").await?,
///             Request::Question(asked) => asked.answer(["green"]).await?,
///             other => other.deny("nobody is there to answer").await?,
///         };
///     }
///     if let EventKind::RequestSettled(settled) = &event.kind {
///         outcomes.push(settled.outcome.as_str());
///     }
///     if event.ends_turn() {
///         break;
///     }
/// }
/// assert_eq!(outcomes, ["denied", "answered"]);
/// # client.close().await;
/// # Ok::<_, agentwire_client::AgentError>(()) }) }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Request {
    /// A tool asks for permission to run.
    Permission(PermissionRequest),
    /// The agent asks the user questions.
    Question(QuestionRequest),
    /// A hook that the client registered is called.
    Hook(CallbackRequest),
    /// A message for an MCP server that the client hosts.
    Mcp(CallbackRequest),
    /// Any other request that waits for an answer.
    Other(CallbackRequest),
}

/// A tool that asks for permission to run.
#[derive(Clone)]
pub struct PermissionRequest(RequestHandle);

/// Questions to the user.
#[derive(Clone)]
pub struct QuestionRequest(RequestHandle);

/// A request to the program that drives the session, not to a person.
#[derive(Clone)]
pub struct CallbackRequest(RequestHandle);

#[derive(Clone)]
struct RequestHandle {
    client: AgentClient,
    /// The session's agent, where it is known.
    agent: Option<AgentType>,
    open: OpenRequest,
}

impl Request {
    pub(crate) fn new(client: AgentClient, agent: Option<AgentType>, open: OpenRequest) -> Self {
        let kind = open.request.kind;
        let handle = RequestHandle { client, agent, open };
        match kind {
            RequestKind::Permission if handle.open.request.questions.is_empty() => {
                Self::Permission(PermissionRequest(handle))
            }
            RequestKind::Permission | RequestKind::Question => {
                Self::Question(QuestionRequest(handle))
            }
            RequestKind::Hook => Self::Hook(CallbackRequest(handle)),
            RequestKind::Mcp => Self::Mcp(CallbackRequest(handle)),
            RequestKind::Other => Self::Other(CallbackRequest(handle)),
        }
    }

    fn handle(&self) -> &RequestHandle {
        match self {
            Self::Permission(PermissionRequest(handle))
            | Self::Question(QuestionRequest(handle))
            | Self::Hook(CallbackRequest(handle))
            | Self::Mcp(CallbackRequest(handle))
            | Self::Other(CallbackRequest(handle)) => handle,
        }
    }

    /// Denies the request, whatever its kind. The agent receives the message.
    pub async fn deny(&self, message: impl Into<String>) -> Result<bool, AgentError> {
        self.handle().deny(message.into()).await
    }

    /// Answers the request with any settlement.
    pub async fn settle(&self, settlement: Settlement) -> Result<bool, AgentError> {
        self.handle().settle(settlement).await
    }

    /// The request as the protocol describes it.
    pub fn into_open(self) -> OpenRequest {
        match self {
            Self::Permission(PermissionRequest(handle))
            | Self::Question(QuestionRequest(handle))
            | Self::Hook(CallbackRequest(handle))
            | Self::Mcp(CallbackRequest(handle))
            | Self::Other(CallbackRequest(handle)) => handle.open,
        }
    }
}

impl Deref for Request {
    type Target = OpenRequest;

    fn deref(&self) -> &OpenRequest {
        &self.handle().open
    }
}

impl PermissionRequest {
    /// The name of the tool, if it has one.
    pub fn tool_name(&self) -> Option<String> {
        self.request.tool_name.as_ref().map(ToString::to_string)
    }

    /// The input that the tool would run with.
    pub fn input(&self) -> Option<&Json<'static>> {
        self.request.input.as_ref()
    }

    /// Allows the tool to run.
    pub async fn allow(&self) -> Result<bool, AgentError> {
        self.0.settle(Settlement::allow(self.0.id())).await
    }

    /// Whether [`Self::allow_always`] can remember anything about this call. If not, it does the same as
    /// [`Self::allow`].
    pub fn can_be_kept(&self) -> bool {
        !self.request.allow_is_once
    }

    /// Allows the tool to run, and similar calls for the rest of this session.
    pub async fn allow_always(&self) -> Result<bool, AgentError> {
        let remember = Some(Remember::Session);
        self.0.settle(Settlement { remember, ..Settlement::allow(self.0.id()) }).await
    }

    /// Allows the tool to run with this input instead: an object in the form that the tool expects.
    pub async fn allow_with(&self, input: &impl Serialize) -> Result<bool, AgentError> {
        let input = to_json(input)?;
        // A missing replacement would allow the original input.
        if !input.get().starts_with('{') {
            return Err(AgentError::invalid("the input of a tool must be a JSON object"));
        }
        let updated_input = Some(input);
        self.0.settle(Settlement { updated_input, ..Settlement::allow(self.0.id()) }).await
    }

    /// Denies the tool. The agent receives the message.
    pub async fn deny(&self, message: impl Into<String>) -> Result<bool, AgentError> {
        self.0.deny(message.into()).await
    }
}

impl QuestionRequest {
    /// The questions to answer.
    pub fn questions(&self) -> &[Question<'static>] {
        &self.request.questions
    }

    /// Answers each question, in order: with the label of an option, or with free text.
    pub async fn answer<A: Into<String>>(
        &self,
        answers: impl IntoIterator<Item = A>,
    ) -> Result<bool, AgentError> {
        let answers: Vec<String> = answers.into_iter().map(Into::into).collect();
        let questions = self.questions();
        if questions.len() != answers.len() {
            return Err(AgentError::invalid(format!(
                "expected {} answers, got {}",
                questions.len(),
                answers.len()
            )));
        }
        let answers = questions.iter().zip(answers).map(|(question, answer)| {
            let answer = match question.multi_select {
                true => Json::of(&[answer]),
                false => Json::of(&answer),
            };
            (question.id.as_ref().unwrap_or(&question.question).to_string(), answer)
        });
        self.answer_with(answers.collect()).await
    }

    /// Answers questions by id, or by their text if they have no id. The answer to a question that allows
    /// several options is a list.
    pub async fn answer_with(
        &self,
        answers: BTreeMap<String, Json<'static>>,
    ) -> Result<bool, AgentError> {
        let answers = Some(answers);
        let settlement = Settlement { behavior: None, answers, ..Settlement::allow(self.0.id()) };
        self.0.settle(settlement).await
    }

    /// Declines to answer. The agent receives the message.
    pub async fn deny(&self, message: impl Into<String>) -> Result<bool, AgentError> {
        self.0.deny(message.into()).await
    }
}

impl CallbackRequest {
    /// Answers with this value, in the agent's own format.
    pub async fn respond(&self, output: &impl Serialize) -> Result<bool, AgentError> {
        self.0.settle(Settlement::output(self.0.id(), to_json(output)?)).await
    }

    /// Declines to answer: a hook is skipped, anything else is denied.
    pub async fn fail(&self, error: impl Into<String>) -> Result<bool, AgentError> {
        self.0.settle(Settlement::error(self.0.id(), error)).await
    }
}

impl RequestHandle {
    fn id(&self) -> RequestId {
        RequestId::from(self.open.request.request_id.to_string())
    }

    async fn deny(&self, message: String) -> Result<bool, AgentError> {
        self.settle(Settlement::deny(self.id(), message)).await
    }

    /// Settles this request with the digest of the input that was shown. Returns whether this answer
    /// counts.
    async fn settle(&self, settlement: Settlement) -> Result<bool, AgentError> {
        let digest = self.open.request.input_digest.clone();
        let input_digest = settlement.input_digest.or(Some(digest));
        let settlement = Settlement { request_id: self.id(), input_digest, ..settlement };
        let sent = self.client.send(&self.open.session_id, Command::Settle(settlement)).await;
        let Err(error) = sent else { return Ok(true) };
        match (error.code(), self.agent) {
            (Some(ErrorCode::RequestSettled | ErrorCode::RequestNotFound), _) => Ok(false),
            (_, Some(agent)) => Err(error.with_agent(agent)),
            (_, None) => Err(error),
        }
    }
}

fn to_json(value: &impl Serialize) -> Result<Json<'static>, AgentError> {
    let failed = |error| AgentError::invalid(format!("failed to write the answer: {error}"));
    let text = serde_json::to_string(value).map_err(failed)?;
    Ok(Json::parse(&text).map_err(failed)?.into_owned())
}

macro_rules! impl_deref_and_debug {
    ($($name:ident),*) => {$(
        impl Deref for $name {
            type Target = OpenRequest;

            fn deref(&self) -> &OpenRequest {
                &self.0.open
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0.open, f)
            }
        }
    )*};
}

impl_deref_and_debug!(PermissionRequest, QuestionRequest, CallbackRequest);
