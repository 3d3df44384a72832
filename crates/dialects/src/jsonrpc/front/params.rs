//! The methods and their parameters.

use agentwire_protocol::command::{Delivery, InterruptFields, given};
use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Configure, ErrorCode, Fields, GatewayError, Image, Json,
    NewSession, Prompt, SessionConfig, SessionId, Settlement, strict,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{options, prompt};

/// The default length of a session list.
const LIST: usize = 100;

/// The default number of events in a page.
const PAGE: usize = 1000;

/// The largest page and the longest list.
const LARGEST: usize = 10_000;

#[derive(Debug)]
pub(super) enum ClientCall {
    /// `run` and `session/create`.
    Open(Box<Open>),
    Attach(Attach),
    Command(SessionId, Command),
    /// What the agent has reported about itself.
    Greet(SessionId),
    Kill(SessionId),
    List {
        limit: usize,
    },
    Events {
        session: SessionId,
        after: u64,
        limit: usize,
    },
}

/// A session to start or to continue.
#[derive(Debug)]
pub(super) struct Open {
    /// Whether the reply is the turn's result.
    pub(super) is_run: bool,
    pub(super) prompt: Option<Prompt>,
    pub(super) session: Option<SessionId>,
    pub(super) agent: Option<AgentType>,
    pub(super) config: SessionConfig,
    pub(super) events: bool,
    /// Sent twice, it starts one session.
    pub(super) key: Option<String>,
    /// Why a watched session refused the prompt.
    pub(super) refused: Option<GatewayError>,
    /// Whether the session is watched for this call alone.
    pub(super) is_first: bool,
}

impl Open {
    /// Whether a running session can accept it.
    pub(super) fn changes_nothing(&self) -> bool {
        self.agent.is_none() && self.config == SessionConfig::default()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Attach {
    #[serde(rename = "sessionId")]
    pub(super) session: SessionId,
    #[serde(default)]
    pub(super) after: u64,
    #[serde(default)]
    pub(super) events: bool,
    #[serde(default)]
    pub(super) include_partial_messages: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OpenParams {
    prompt: Option<String>,
    #[serde(default)]
    images: Vec<Image>,
    message: Option<Json<'static>>,
    message_id: Option<String>,
    session_id: Option<SessionId>,
    agent: Option<AgentType>,
    cwd: Option<String>,
    options: Option<Json<'static>>,
    #[serde(default)]
    events: bool,
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SendParams {
    session_id: SessionId,
    prompt: Option<String>,
    #[serde(default)]
    images: Vec<Image>,
    message: Option<Json<'static>>,
    message_id: Option<String>,
    delivery: Option<Delivery>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StopParams {
    session_id: SessionId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListParams {
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventsParams {
    session_id: SessionId,
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigureParams {
    session_id: SessionId,
    #[serde(default, deserialize_with = "given")]
    model: Option<Option<String>>,
    approval_mode: Option<ApprovalMode>,
    permission_mode: Option<String>,
    #[serde(default, deserialize_with = "given")]
    max_thinking_tokens: Option<Option<u32>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QueryParams {
    session_id: SessionId,
    method: String,
    #[serde(default)]
    args: Vec<Json<'static>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ControlParams {
    session_id: SessionId,
    request: Json<'static>,
}

/// One of Claude's control requests.
#[derive(Deserialize)]
struct ControlRequest {
    subtype: String,
    model: Option<String>,
    mode: Option<String>,
    hooks: Option<Json<'static>>,
    user_message_id: Option<String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    cancel_queued: bool,
}

impl ClientCall {
    pub(super) fn read(method: &str, params: &Json<'_>) -> Result<Self, GatewayError> {
        match method {
            "run" => Self::open(params, true),
            "session/create" => Self::open(params, false),
            "session/send" => send(params),
            // A call that stops something is never refused for its form.
            "session/interrupt" => {
                let StopParams { session_id } = read(params)?;
                let InterruptFields { cancel_queued } = read(params)?;
                Ok(Self::Command(session_id, Command::Interrupt { cancel_queued }))
            }
            "session/kill" => read(params).map(|params: StopParams| Self::Kill(params.session_id)),
            "session/list" => {
                let ListParams { limit } = read(params)?;
                Ok(Self::List { limit: bounded(limit, LIST)? })
            }
            "session/events" => {
                let EventsParams { session_id: session, after, limit } = read(params)?;
                Ok(Self::Events { session, after, limit: bounded(limit, PAGE)? })
            }
            "session/attach" => read(params).map(Self::Attach),
            "session/configure" => Ok(configure(read(params)?)),
            "request/settle" => settle(params),
            "query" => {
                let QueryParams { session_id, method, args } = read(params)?;
                Ok(Self::Command(session_id, Command::Query { method, args }))
            }
            "control" => {
                let ControlParams { session_id, request } = read(params)?;
                control(session_id, &request)
            }
            unknown => Err(GatewayError::new(
                ErrorCode::UnknownMethod,
                format!("unknown method `{unknown}`"),
            )),
        }
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Open(open) => open.session.as_ref(),
            Self::Attach(attach) => Some(&attach.session),
            Self::Command(session, _)
            | Self::Greet(session)
            | Self::Kill(session)
            | Self::Events { session, .. } => Some(session),
            Self::List { .. } => None,
        }
    }

    /// Whether it lets other calls finish: it has its own, higher limit of open calls.
    pub(super) fn is_relief(&self) -> bool {
        match self {
            Self::Kill(_) | Self::Command(_, Command::Interrupt { .. } | Command::Settle(_)) => {
                true
            }
            Self::Open(_)
            | Self::Attach(_)
            | Self::Greet(_)
            | Self::Command(..)
            | Self::List { .. }
            | Self::Events { .. } => false,
        }
    }

    fn open(params: &Json<'_>, is_run: bool) -> Result<Self, GatewayError> {
        let given: OpenParams = read(params)?;
        let prompt = prompt::read(given.prompt, given.images, given.message).map_err(invalid)?;
        if is_run && prompt.is_none() {
            return Err(invalid("a run needs a `prompt` or a `message`"));
        }
        let key = given.idempotency_key;
        if key.is_some() && (is_run || given.session_id.is_some()) {
            let why = "`idempotencyKey` is for session/create without a `sessionId`; a prompt counts \
                       once by its `messageId`";
            return Err(invalid(why));
        }
        if key.as_ref().is_some_and(|key| !NewSession::is_key(key)) {
            let most = NewSession::KEY_LIMIT;
            return Err(invalid(format!("`idempotencyKey` must have 1 to {most} characters")));
        }
        let message_id = given.message_id;
        let prompt = prompt.map(|prompt| Prompt {
            message_id: message_id.or(prompt.message_id.clone()),
            ..prompt
        });
        let mut config = match given.options {
            Some(options) => options::read(&options).map_err(invalid)?,
            None => SessionConfig::default(),
        };
        let named = config.agent_type.take().map(|name| Json::of(&name).read());
        let named = named.transpose().map_err(|_| invalid("unknown `agentType`"))?;
        if given.agent.is_some() && named.is_some() && given.agent != named {
            return Err(invalid("`agent` and `options.agentType` name two agents; give one"));
        }
        config.working_directory = given.cwd.or(config.working_directory);
        Ok(Self::Open(Box::new(Open {
            is_run,
            prompt,
            session: given.session_id,
            agent: given.agent.or(named),
            config,
            events: given.events,
            key,
            refused: None,
            is_first: false,
        })))
    }
}

fn send(params: &Json<'_>) -> Result<ClientCall, GatewayError> {
    let SendParams { session_id, prompt, images, message, message_id, delivery } = read(params)?;
    let prompt = prompt::read(prompt, images, message).map_err(invalid)?;
    let prompt = prompt.ok_or_else(|| invalid("give a `prompt` or a `message`"))?;
    let message_id = message_id.or(prompt.message_id);
    let prompt = Prompt { message_id, delivery, ..prompt };
    Ok(ClientCall::Command(session_id, Command::Prompt(prompt)))
}

fn configure(params: ConfigureParams) -> ClientCall {
    let ConfigureParams { session_id, model, approval_mode, permission_mode, max_thinking_tokens } =
        params;
    let change = Configure { model, approval_mode, permission_mode, max_thinking_tokens };
    ClientCall::Command(session_id, Command::Configure(change))
}

fn settle(params: &Json<'_>) -> Result<ClientCall, GatewayError> {
    let mut fields: Fields = read(params)?;
    let session = fields.remove("sessionId").and_then(|session| session.read().ok());
    let session: String = session.ok_or_else(|| invalid("`sessionId` must be a string"))?;
    let settlement = Settlement::from_fields(fields)?;
    Ok(ClientCall::Command(SessionId::from(session), Command::Settle(settlement)))
}

fn control(session: SessionId, raw: &Json<'static>) -> Result<ClientCall, GatewayError> {
    let request: ControlRequest = read(raw)?;
    let missing = |what: &str| invalid(format!("the control request has no `{what}`"));
    let command = match request.subtype.as_str() {
        "interrupt" => Ok(Command::Interrupt { cancel_queued: request.cancel_queued }),
        "set_model" => {
            let model = Some(request.model.filter(|model| model != "default"));
            Ok(Command::Configure(Configure { model, ..Configure::default() }))
        }
        "set_permission_mode" => {
            let permission_mode = Some(request.mode.ok_or_else(|| missing("mode"))?);
            Ok(Command::Configure(Configure { permission_mode, ..Configure::default() }))
        }
        "rewind_files" => {
            let message_id = request.user_message_id.ok_or_else(|| missing("user_message_id"))?;
            Ok(Command::Rewind { message_id, dry_run: request.dry_run })
        }
        "initialize" if request.hooks.is_none_or(|hooks| hooks.get() == "{}") => {
            return Ok(ClientCall::Greet(session));
        }
        "initialize" => Err(GatewayError::new(
            ErrorCode::Unsupported,
            "hooks can be set only when a session is created; give them in `options`",
        )),
        // An agent that speaks Claude's own wire understands it.
        _ => Ok(Command::Query { method: "control".to_owned(), args: vec![raw.clone()] }),
    };
    command.map(|command| ClientCall::Command(session, command))
}

fn bounded(given: Option<usize>, usual: usize) -> Result<usize, GatewayError> {
    match given.unwrap_or(usual) {
        limit @ 1..=LARGEST => Ok(limit),
        limit => Err(invalid(format!("`limit` is {limit}; it must be from 1 to {LARGEST}"))),
    }
}

fn read<T: DeserializeOwned>(params: &Json<'_>) -> Result<T, GatewayError> {
    if params.get().starts_with('[') {
        return Err(invalid("`params` must be an object: parameters are given by name"));
    }
    strict::read(params.get())
        .map_err(|what| invalid(format!("failed to read the parameters: {what}")))
}

fn invalid(message: impl Into<String>) -> GatewayError {
    GatewayError::invalid(message)
}
