//! Sessions: the agents, and the request for a session.

mod config;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::config::{
    AgentDefinition, ApprovalMode, HookMatcher, McpServer, OnLimit, OutputFormat, SandboxMode,
    SandboxNetwork, SandboxSettings, SandboxViolations, SessionConfig, SystemPrompt,
    SystemPromptPreset, check_variables,
};
use crate::command::Prompt;
use crate::error::{ErrorCode, GatewayError};
use crate::id::SessionId;
use crate::json::Json;
use crate::strict;

/// The longest prompt of a [`SessionRequest`], in characters.
pub const PROMPT_LIMIT: usize = 100_000;

/// The agents that agentwire drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentType {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Any agent that supports the Agent Client Protocol.
    Acp,
    /// The agent built into agentwire.
    Demo,
}

impl AgentType {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Acp => "acp",
            Self::Demo => "demo",
        }
    }

    /// Every agent, in order of preference.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Acp, Self::Demo];

    /// The type for an agent that agentwire does not know by name.
    pub const ANY: Self = Self::Acp;

    /// Every name, in the same order.
    pub const NAMES: [&'static str; 5] = {
        let [first, second, third, fourth, fifth] = Self::ALL;
        [first.as_str(), second.as_str(), third.as_str(), fourth.as_str(), fifth.as_str()]
    };

    /// The agent type in a `core` event: the specification only has three.
    pub fn core(self) -> Self {
        match self {
            Self::Demo => Self::Claude,
            Self::Acp => Self::Gemini,
            Self::Claude | Self::Codex | Self::Gemini => self,
        }
    }
}

impl fmt::Display for AgentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses the name on the wire.
impl FromStr for AgentType {
    type Err = GatewayError;

    fn from_str(name: &str) -> Result<Self, GatewayError> {
        Self::ALL.into_iter().find(|agent| agent.as_str() == name).ok_or_else(|| {
            let names = Self::NAMES.join(", ");
            let message = format!("unknown agent {name}; use one of {names}");
            GatewayError::invalid(message)
        })
    }
}

/// A request for a session, from any front.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSession {
    /// The agent.
    pub agent: AgentType,
    /// The first prompt.
    pub prompt: Option<Prompt>,
    /// The session to resume or fork.
    pub resume: Option<SessionId>,
    /// Copy the conversation of the resumed session into a new session.
    pub fork: bool,
    /// The agent's own id of a session to resume that is not in agentwire's log.
    pub native_resume: Option<String>,
    /// The id of the session; a new one if omitted.
    pub id: Option<SessionId>,
    /// The config. When a session is resumed or forked, omitted fields stay as they were.
    pub config: SessionConfig,
    /// `config` is complete: a resumed or forked session keeps nothing except its directory.
    pub replaces_config: bool,
    /// An idempotency key: a request sent twice counts once.
    pub key: Option<String>,
    /// A name that no other client has, for the client that starts the session. Not on the wire: the server
    /// knows it from the client's token.
    pub client: Option<String>,
    /// The client that starts the session does not have full rights, so it cannot resume an operator's
    /// session without the operator's guards. Not on the wire: the server knows it from the client's token.
    pub is_limited: bool,
    /// The hooks have the agent's own names. An unknown name is passed on, not refused.
    pub has_native_hooks: bool,
}

impl NewSession {
    /// A request with only an agent.
    pub fn of(agent: AgentType) -> Self {
        Self {
            agent,
            prompt: None,
            resume: None,
            fork: false,
            native_resume: None,
            id: None,
            config: SessionConfig::default(),
            replaces_config: false,
            key: None,
            client: None,
            is_limited: false,
            has_native_hooks: false,
        }
    }

    /// The longest key, in characters.
    pub const KEY_LIMIT: usize = 255;

    /// Whether a client may use this text as its key.
    pub fn is_key(text: &str) -> bool {
        (1..=Self::KEY_LIMIT).contains(&text.chars().count())
    }

    /// Whether this continues an existing session under the same id.
    pub fn goes_on(&self) -> bool {
        self.resume.is_some() && !self.fork
    }
}

impl From<SessionRequest> for NewSession {
    fn from(request: SessionRequest) -> Self {
        Self {
            prompt: (!request.prompt.is_empty()).then(|| Prompt::text(request.prompt)),
            resume: request.session_id.map(SessionId::from),
            fork: request.fork,
            config: request.config.unwrap_or_default(),
            ..Self::of(request.agent_type)
        }
    }
}

/// Reads a text; `null` means the same as absence.
fn or_empty<'de, D: serde::Deserializer<'de>>(field: D) -> Result<String, D::Error> {
    Option::deserialize(field).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct GivenConfig {
    #[serde(default)]
    config: Option<strict::Fields>,
}

/// The specification's request for a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct SessionRequest {
    /// The agent.
    pub agent_type: AgentType,
    /// The first prompt. Without it, or if it is empty, the session waits for one.
    #[serde(default, deserialize_with = "or_empty", skip_serializing_if = "String::is_empty")]
    #[schemars(with = "Option<String>", length(max = 100_000))]
    pub prompt: String,
    /// The session to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Copy the conversation of `sessionId` into a new session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fork: bool,
    /// The config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<SessionConfig>,
}

impl SessionRequest {
    /// A request with an agent and a prompt.
    pub fn new(agent_type: AgentType, prompt: impl Into<String>) -> Self {
        Self { agent_type, prompt: prompt.into(), session_id: None, fork: false, config: None }
    }

    /// Sets the config.
    pub fn with_config(mut self, config: SessionConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Reads a request and checks its limits. An unknown field is refused; the error names it.
    pub fn from_json(text: &str) -> Result<Self, GatewayError> {
        let failed =
            |why: &dyn std::fmt::Display| format!("failed to read the session request: {why}");
        let json = Json::parse(text)
            .map_err(|error| GatewayError::new(ErrorCode::InvalidJson, failed(&error)))?;
        let invalid = |why: String| GatewayError::invalid(failed(&why));
        let mut fields: strict::Fields = strict::read(json.get()).map_err(invalid)?;
        // `false` means the same as absence.
        if fields.get("fork").is_some_and(|fork| fork.get() == "false") {
            fields.remove("fork");
        }
        // So does an empty prompt.
        if fields.get("prompt").is_some_and(|prompt| matches!(prompt.get(), "\"\"" | "null")) {
            fields.remove("prompt");
        }
        let json = Json::of(&fields);
        let request: Self = strict::whole(&json).map_err(|why| {
            let is_misplaced = |name: &&String| {
                SessionConfig::FIELDS.contains(&name.as_str()) && why.ends_with(&format!(" {name}"))
            };
            match fields.keys().find(is_misplaced) {
                Some(name) => invalid(format!("{why}; did you mean config.{name}?")),
                None => invalid(why),
            }
        })?;
        // `whole` ignores unknown fields that are empty, so the names are checked too.
        let given: GivenConfig = strict::read(json.get()).map_err(invalid)?;
        let given = given.config.unwrap_or_default();
        let is_unknown = |name: &&String| !SessionConfig::FIELDS.contains(&name.as_str());
        if let Some(name) = given.keys().find(is_unknown) {
            return Err(invalid(format!("there is no field config.{name}")));
        }
        request.check()?;
        Ok(request)
    }

    /// Checks the limits that the types cannot express.
    pub fn check(&self) -> Result<(), GatewayError> {
        let invalid = |message: String| Err(GatewayError::invalid(message));
        let length = self.prompt.chars().count();
        if length > PROMPT_LIMIT {
            return invalid(format!("prompt has {length} characters; the limit is {PROMPT_LIMIT}"));
        }
        if self.fork && self.session_id.is_none() {
            return invalid("a fork needs the sessionId of the session to fork".into());
        }
        let Some(config) = &self.config else { return Ok(()) };
        let agent = self.agent_type.as_str();
        if let Some(other) = config.agent_type.as_deref().filter(|other| *other != agent) {
            return invalid(format!("agentType is {agent}, but config.agentType is {other}"));
        }
        config.check().or_else(invalid)
    }
}
