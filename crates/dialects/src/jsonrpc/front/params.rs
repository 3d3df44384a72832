//! The methods and their parameters.

use std::collections::BTreeMap;

use agentwire_protocol::command::{Delivery, given};
use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Configure, ErrorCode, GatewayError, Image, Json, Prompt,
    SessionConfig, SessionId, Settlement,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{options, prompt};

/// How many sessions a list has, unless the client says otherwise.
const LIST: usize = 100;

/// How many events a page has, unless the client says otherwise.
const PAGE: usize = 1000;

/// The largest page and the longest list.
const LARGEST: usize = 10_000;

/// What a client wants.
#[derive(Debug)]
pub(super) enum Request {
    /// `run` and `session/create`
    Open(Box<Open>),
    Attach(Attach),
    Command(SessionId, Command),
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

/// A session that is to be begun or gone on with.
#[derive(Debug)]
pub(super) struct Open {
    /// Whether the reply is the turn's result.
    pub(super) is_run: bool,
    pub(super) prompt: Option<Prompt>,
    pub(super) session: Option<SessionId>,
    pub(super) agent: Option<AgentType>,
    pub(super) config: SessionConfig,
    pub(super) events: bool,
    /// Why a session that is watched did not take the prompt.
    pub(super) refused: Option<GatewayError>,
}

impl Open {
    /// Whether a session that runs can take it.
    pub(super) fn changes_nothing(&self) -> bool {
        self.agent.is_none() && self.config == SessionConfig::default()
    }
}

/// A session that is to be shown.
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
    session_id: Option<SessionId>,
    agent: Option<AgentType>,
    cwd: Option<String>,
    options: Option<Json<'static>>,
    #[serde(default)]
    events: bool,
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
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InterruptParams {
    session_id: SessionId,
    #[serde(default)]
    cancel_queued: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionParams {
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

/// A control request of Claude's.
#[derive(Deserialize)]
struct ControlRequest {
    subtype: String,
    model: Option<String>,
    mode: Option<String>,
    user_message_id: Option<String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    cancel_queued: bool,
}

const SETTLEMENT: &[&str] = &[
    "answers",
    "behavior",
    "error",
    "hookOutput",
    "inputDigest",
    "interrupt",
    "message",
    "remember",
    "requestId",
    "updatedInput",
    "updatedPermissions",
];

impl Request {
    /// Reads the parameters of that method.
    pub(super) fn read(method: &str, params: &Json<'_>) -> Result<Self, GatewayError> {
        match method {
            "run" => Self::open(params, true),
            "session/create" => Self::open(params, false),
            "session/send" => send(params),
            "session/interrupt" => {
                let InterruptParams { session_id, cancel_queued } = read(params)?;
                Ok(Self::Command(session_id, Command::Interrupt { cancel_queued }))
            }
            "session/kill" => {
                read(params).map(|params: SessionParams| Self::Kill(params.session_id))
            }
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
                control(&request).map(|command| Self::Command(session_id, command))
            }
            unknown => Err(GatewayError::new(
                ErrorCode::UnknownMethod,
                format!("there is no method `{unknown}`"),
            )),
        }
    }

    /// The session that it names.
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Open(open) => open.session.as_ref(),
            Self::Attach(attach) => Some(&attach.session),
            Self::Command(session, _) | Self::Kill(session) | Self::Events { session, .. } => {
                Some(session)
            }
            Self::List { .. } => None,
        }
    }

    /// Whether it lets others come to their end: it is taken however many calls are open.
    pub(super) fn is_relief(&self) -> bool {
        match self {
            Self::Kill(_) | Self::Command(_, Command::Interrupt { .. } | Command::Settle(_)) => {
                true
            }
            Self::Open(_)
            | Self::Attach(_)
            | Self::Command(..)
            | Self::List { .. }
            | Self::Events { .. } => false,
        }
    }

    fn open(params: &Json<'_>, is_run: bool) -> Result<Self, GatewayError> {
        let OpenParams { prompt, images, message, session_id, agent, cwd, options, events } =
            read(params)?;
        let prompt = prompt::read(prompt, images, message).map_err(invalid)?;
        if is_run && prompt.is_none() {
            return Err(invalid("a run needs a `prompt` or a `message`"));
        }
        // An id sent twice counts once, but a run always waits for its turn.
        let prompt = prompt.map(|prompt| Prompt { message_id: None, ..prompt });
        let mut config = match options {
            Some(options) => options::read(&options).map_err(invalid)?,
            None => SessionConfig::default(),
        };
        let named = config.agent_type.take().map(|name| Json::of(&name).read());
        let named =
            named.transpose().map_err(|_| invalid("there is no agent of that `agentType`"))?;
        config.working_directory = cwd.or(config.working_directory);
        let agent = agent.or(named);
        let open =
            Open { is_run, prompt, session: session_id, agent, config, events, refused: None };
        Ok(Self::Open(Box::new(open)))
    }
}

fn send(params: &Json<'_>) -> Result<Request, GatewayError> {
    let SendParams { session_id, prompt, images, message, message_id, delivery } = read(params)?;
    let prompt = prompt::read(prompt, images, message).map_err(invalid)?;
    let prompt = prompt.ok_or_else(|| invalid("give a `prompt` or a `message`"))?;
    let message_id = message_id.or(prompt.message_id);
    let prompt = Prompt { message_id, delivery, ..prompt };
    Ok(Request::Command(session_id, Command::Prompt(prompt)))
}

fn configure(params: ConfigureParams) -> Request {
    let ConfigureParams { session_id, model, approval_mode, permission_mode, max_thinking_tokens } =
        params;
    let change = Configure { model, approval_mode, permission_mode, max_thinking_tokens };
    Request::Command(session_id, Command::Configure(change))
}

fn settle(params: &Json<'_>) -> Result<Request, GatewayError> {
    let mut fields: BTreeMap<String, Json<'static>> = read(params)?;
    let session = fields.remove("sessionId").and_then(|session| session.read().ok());
    let session: String = session.ok_or_else(|| invalid("`sessionId` must be a string"))?;
    if let Some(unknown) = fields.keys().find(|name| !SETTLEMENT.contains(&name.as_str())) {
        return Err(invalid(format!("an answer has no `{unknown}`")));
    }
    let settlement: Settlement = read(&Json::of(&fields))?;
    Ok(Request::Command(SessionId::from(session), Command::Settle(settlement)))
}

fn control(raw: &Json<'static>) -> Result<Command, GatewayError> {
    let request: ControlRequest = read(raw)?;
    let missing = |what: &str| invalid(format!("the control request has no `{what}`"));
    match request.subtype.as_str() {
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
        "initialize" => Err(GatewayError::new(
            ErrorCode::Unsupported,
            "a session is initialized when it is created; give `hooks` and the rest in `options`",
        )),
        // Whoever speaks Claude's own wire knows what is meant.
        _ => Ok(Command::Query { method: "control".to_owned(), args: vec![raw.clone()] }),
    }
}

fn bounded(given: Option<usize>, usual: usize) -> Result<usize, GatewayError> {
    match given.unwrap_or(usual) {
        limit @ 1..=LARGEST => Ok(limit),
        limit => Err(invalid(format!("`limit` is {limit}, it must be from 1 to {LARGEST}"))),
    }
}

fn read<T: DeserializeOwned>(params: &Json<'_>) -> Result<T, GatewayError> {
    if params.get().starts_with('[') {
        return Err(invalid("`params` must be an object: parameters are given by name"));
    }
    params.read().map_err(|error| {
        let error = error.to_string();
        // Where it stands in a text that the client never saw is of no use to it.
        let what = error.split(" at line ").next().unwrap_or_default();
        invalid(format!("failed to read the parameters: {what}"))
    })
}

fn invalid(message: impl Into<String>) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_settlement_is_taken() {
        let mut fields: BTreeMap<&str, Json<'static>> =
            SETTLEMENT.iter().map(|name| (*name, Json::of(&"x"))).collect();
        fields.insert("behavior", Json::of(&"deny"));
        fields.insert("remember", Json::of(&"once"));
        fields.insert("interrupt", Json::of(&true));
        fields.insert("answers", Json::checked(r#"{"q":"a"}"#));
        fields.insert("sessionId", Json::of(&"s"));
        let Ok(Request::Command(_, Command::Settle(settlement))) =
            Request::read("request/settle", &Json::of(&fields))
        else {
            panic!("the answer is not taken");
        };
        let kept: BTreeMap<String, Json<'static>> = Json::of(&settlement).read().unwrap();
        assert_eq!(kept.keys().map(String::as_str).collect::<Vec<_>>(), SETTLEMENT);
    }
}
