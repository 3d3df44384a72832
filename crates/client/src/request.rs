//! What an agent asks and waits for, and the answers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use agentwire_protocol::command::Remember;
use agentwire_protocol::event::{Question, RequestKind};
use agentwire_protocol::{AgentType, Command, ErrorCode, Json, OpenRequest, RequestId, Settlement};
use serde::Serialize;

use crate::client::AgentClient;
use crate::error::AgentError;

/// What an agent asks and waits for, with the means to answer. An answer holds for exactly what was asked.
///
/// The first answer counts, whoever gives it: a rule of the session, this program or another client. Each
/// method that answers gives whether its answer was the one; where it was not, the event `requestSettled`
/// tells which was.
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
    /// May this tool run?
    Permission(PermissionRequest),
    /// A question to the user.
    Question(QuestionRequest),
    /// A hook that the client registered.
    Hook(CallbackRequest),
    /// A message for an MCP server that the client hosts.
    Mcp(CallbackRequest),
    /// Anything else that waits for an answer.
    Other(CallbackRequest),
}

/// A tool that wants to run.
#[derive(Clone)]
pub struct PermissionRequest(Asked);

/// Questions to the user.
#[derive(Clone)]
pub struct QuestionRequest(Asked);

/// What is for the program that drives the session, not for people.
#[derive(Clone)]
pub struct CallbackRequest(Asked);

#[derive(Clone)]
struct Asked {
    client: AgentClient,
    /// Whose session it is, where that is known.
    agent: Option<AgentType>,
    open: OpenRequest,
}

impl Request {
    pub(crate) fn new(client: AgentClient, agent: Option<AgentType>, open: OpenRequest) -> Self {
        let kind = open.request.kind;
        let asked = Asked { client, agent, open };
        match kind {
            RequestKind::Permission if asked.open.request.questions.is_empty() => {
                Self::Permission(PermissionRequest(asked))
            }
            RequestKind::Permission | RequestKind::Question => {
                Self::Question(QuestionRequest(asked))
            }
            RequestKind::Hook => Self::Hook(CallbackRequest(asked)),
            RequestKind::Mcp => Self::Mcp(CallbackRequest(asked)),
            RequestKind::Other => Self::Other(CallbackRequest(asked)),
        }
    }

    fn asked(&self) -> &Asked {
        match self {
            Self::Permission(PermissionRequest(asked))
            | Self::Question(QuestionRequest(asked))
            | Self::Hook(CallbackRequest(asked))
            | Self::Mcp(CallbackRequest(asked))
            | Self::Other(CallbackRequest(asked)) => asked,
        }
    }

    /// Denies it, whatever it is; the agent is told why.
    pub async fn deny(&self, message: impl Into<String>) -> Result<bool, AgentError> {
        self.asked().deny(message.into()).await
    }

    /// Answers it in any form.
    pub async fn settle(&self, settlement: Settlement) -> Result<bool, AgentError> {
        self.asked().settle(settlement).await
    }

    /// As it was asked.
    pub fn into_open(self) -> OpenRequest {
        match self {
            Self::Permission(PermissionRequest(asked))
            | Self::Question(QuestionRequest(asked))
            | Self::Hook(CallbackRequest(asked))
            | Self::Mcp(CallbackRequest(asked))
            | Self::Other(CallbackRequest(asked)) => asked.open,
        }
    }
}

impl Deref for Request {
    type Target = OpenRequest;

    fn deref(&self) -> &OpenRequest {
        &self.asked().open
    }
}

impl PermissionRequest {
    /// The tool, where it has a name.
    pub fn tool_name(&self) -> Option<String> {
        self.request.tool_name.as_ref().map(ToString::to_string)
    }

    /// What it wants to run with.
    pub fn input(&self) -> Option<&Json<'static>> {
        self.request.input.as_ref()
    }

    /// It may run.
    pub async fn allow(&self) -> Result<bool, AgentError> {
        self.0.settle(Settlement::allow(self.0.id())).await
    }

    /// Whether [`Self::allow_always`] can keep anything of this call; where not, it is [`Self::allow`].
    pub fn can_be_kept(&self) -> bool {
        !self.request.allow_is_once
    }

    /// It may run, and its like from now on, in this session.
    pub async fn allow_always(&self) -> Result<bool, AgentError> {
        let remember = Some(Remember::Session);
        self.0.settle(Settlement { remember, ..Settlement::allow(self.0.id()) }).await
    }

    /// It may run with this in place of what it asked for: an object, as the tool takes it.
    pub async fn allow_with(&self, input: &impl Serialize) -> Result<bool, AgentError> {
        let input = written(input)?;
        // Nothing in its place would allow what was asked.
        if !input.get().starts_with('{') {
            return Err(AgentError::invalid("the input of a tool must be an object"));
        }
        let updated_input = Some(input);
        self.0.settle(Settlement { updated_input, ..Settlement::allow(self.0.id()) }).await
    }

    /// It may not run; the agent is told why.
    pub async fn deny(&self, message: impl Into<String>) -> Result<bool, AgentError> {
        self.0.deny(message.into()).await
    }
}

impl QuestionRequest {
    /// The questions.
    pub fn questions(&self) -> &[Question<'static>] {
        &self.request.questions
    }

    /// Answers each question, in their order: the label of an option, or words.
    pub async fn answer<A: Into<String>>(
        &self,
        answers: impl IntoIterator<Item = A>,
    ) -> Result<bool, AgentError> {
        let answers: Vec<String> = answers.into_iter().map(Into::into).collect();
        let questions = self.questions();
        if questions.len() != answers.len() {
            return Err(AgentError::invalid(format!(
                "it asks {} questions, and {} answers came",
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

    /// Answers questions by their ids, or by their words where they have none. Where several options may
    /// be chosen, the answer is a list.
    pub async fn answer_with(
        &self,
        answers: BTreeMap<String, Json<'static>>,
    ) -> Result<bool, AgentError> {
        let answers = Some(answers);
        let settlement = Settlement { behavior: None, answers, ..Settlement::allow(self.0.id()) };
        self.0.settle(settlement).await
    }

    /// There is no answer; the agent is told why.
    pub async fn deny(&self, message: impl Into<String>) -> Result<bool, AgentError> {
        self.0.deny(message.into()).await
    }
}

impl CallbackRequest {
    /// Answers in the agent's own form.
    pub async fn respond(&self, output: &impl Serialize) -> Result<bool, AgentError> {
        self.0.settle(Settlement::output(self.0.id(), written(output)?)).await
    }

    /// There is no answer: a hook is passed over, anything else is denied.
    pub async fn fail(&self, error: impl Into<String>) -> Result<bool, AgentError> {
        self.0.settle(Settlement::error(self.0.id(), error)).await
    }
}

impl Asked {
    fn id(&self) -> RequestId {
        RequestId::from(self.open.request.request_id.to_string())
    }

    async fn deny(&self, message: String) -> Result<bool, AgentError> {
        self.settle(Settlement::deny(self.id(), message)).await
    }

    /// The answer is for what was asked and for nothing else. Gives whether it counts.
    async fn settle(&self, settlement: Settlement) -> Result<bool, AgentError> {
        let digest = self.open.request.input_digest.clone();
        let input_digest = settlement.input_digest.or(Some(digest));
        let settlement = Settlement { request_id: self.id(), input_digest, ..settlement };
        let told = self.client.send(&self.open.session_id, Command::Settle(settlement)).await;
        let Err(error) = told else { return Ok(true) };
        match (error.code(), self.agent) {
            (Some(ErrorCode::RequestSettled | ErrorCode::RequestNotFound), _) => Ok(false),
            (_, Some(agent)) => Err(error.with_agent(agent)),
            (_, None) => Err(error),
        }
    }
}

fn written(value: &impl Serialize) -> Result<Json<'static>, AgentError> {
    let failed = |error| AgentError::invalid(format!("failed to write the answer: {error}"));
    let text = serde_json::to_string(value).map_err(failed)?;
    Ok(Json::parse(&text).map_err(failed)?.into_owned())
}

macro_rules! shown {
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

shown!(PermissionRequest, QuestionRequest, CallbackRequest);
