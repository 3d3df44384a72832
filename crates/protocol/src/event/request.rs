//! Requests: the agent asks something and waits, under whatever name its wire uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::json::{Json, Text};

/// The start of the `reason` when the gateway denies a request because nobody answered in time.
pub const UNANSWERED: &str = "nobody answered within";

/// The tool name of the gateway's own question, asked before an agent starts: are the project files that
/// can make the agent run something trusted?
pub const TRUST_DIRECTORY: &str = "TrustDirectory";

/// The agent asks something and waits for the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestRaised<'a> {
    /// The id to settle it with.
    pub request_id: Text<'a>,
    /// The kind of request.
    pub kind: RequestKind,
    /// SHA-256 of the exact text of `input`, in hex. An answer that names it applies only to the input that
    /// was shown.
    pub input_digest: String,
    /// The tool that wants to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Text<'a>>,
    /// The input of the tool. For a hook or an MCP message, the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json<'a>>,
    /// The tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<Text<'a>>,
    /// The questions for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question<'a>>,
    /// Rules that "always allow" could add, as the agent proposes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Json<'a>>,
    /// The answers that the agent offers, if it names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<RequestOption<'a>>,
    /// A title to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text<'a>>,
    /// Why the agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
    /// The hook event, the MCP server, or the native method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
    /// For a hook, the client's id of the callback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_id: Option<Text<'a>>,
    /// The JSON Schema that the answer must follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Json<'a>>,
    /// The path that caused the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_path: Option<Text<'a>>,
    /// A warning from the agent itself. No mode except `autoAll`, and no rule with a pattern, allows such a
    /// call without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<Text<'a>>,
    /// The agent runs the call with the input that is shown, or not at all. An allow with `updatedInput` is
    /// refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub input_is_fixed: bool,
    /// An allow applies to this call only, even with `remember`: either no rule could allow exactly what is
    /// shown, or the agent warns about the call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_is_once: bool,
}

impl<'a> RequestRaised<'a> {
    /// A request with only these fields.
    pub fn new(
        request_id: impl Into<Text<'a>>,
        kind: RequestKind,
        input: Option<Json<'a>>,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            kind,
            input_digest: input_digest(input.as_ref()),
            tool_name: None,
            input,
            tool_use_id: None,
            questions: Vec::new(),
            suggestions: None,
            options: Vec::new(),
            title: None,
            message: None,
            name: None,
            callback_id: None,
            schema: None,
            blocked_path: None,
            warning: None,
            input_is_fixed: false,
            allow_is_once: false,
        }
    }
}

impl RequestRaised<'_> {
    /// An owned copy.
    pub fn into_owned(self) -> RequestRaised<'static> {
        let text = |text: Option<Text<'_>>| text.map(Text::into_owned);
        let json = |json: Option<Json<'_>>| json.map(Json::into_owned);
        RequestRaised {
            request_id: self.request_id.into_owned(),
            kind: self.kind,
            input_digest: self.input_digest,
            tool_name: text(self.tool_name),
            input: json(self.input),
            tool_use_id: text(self.tool_use_id),
            questions: self.questions.into_iter().map(Question::into_owned).collect(),
            suggestions: json(self.suggestions),
            options: self.options.into_iter().map(RequestOption::into_owned).collect(),
            title: text(self.title),
            message: text(self.message),
            name: text(self.name),
            callback_id: text(self.callback_id),
            schema: json(self.schema),
            blocked_path: text(self.blocked_path),
            warning: text(self.warning),
            input_is_fixed: self.input_is_fixed,
            allow_is_once: self.allow_is_once,
        }
    }
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequestKind {
    /// Asks whether a tool may run.
    Permission,
    /// A question to the user.
    Question,
    /// A hook that the client registered.
    Hook,
    /// A message for an MCP server that the client hosts.
    Mcp,
    /// Anything else that waits for an answer.
    Other,
}

impl RequestKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Hook => "hook",
            Self::Mcp => "mcp",
            Self::Other => "other",
        }
    }
}

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question<'a> {
    /// The question text; also the key of its answer, unless it has an `id`.
    pub question: Text<'a>,
    /// The key of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<'a>>,
    /// A title of one or two words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<Text<'a>>,
    /// The answers to choose from; free text is also allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption<'a>>,
    /// Whether several answers may be chosen.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multi_select: bool,
    /// Whether the answer must not be shown.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_secret: bool,
}

impl Question<'_> {
    fn into_owned(self) -> Question<'static> {
        let option = |option: QuestionOption<'_>| QuestionOption {
            label: option.label.into_owned(),
            description: option.description.map(Text::into_owned),
        };
        Question {
            question: self.question.into_owned(),
            id: self.id.map(Text::into_owned),
            header: self.header.map(Text::into_owned),
            options: self.options.into_iter().map(option).collect(),
            multi_select: self.multi_select,
            is_secret: self.is_secret,
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

/// One answer to choose from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption<'a> {
    /// The value to choose.
    pub label: Text<'a>,
    /// What the choice means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text<'a>>,
}

/// One answer that the agent offers for a permission request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestOption<'a> {
    /// The agent's id for the answer.
    pub id: Text<'a>,
    /// The text to show.
    pub label: Text<'a>,
    /// What it does.
    pub kind: RequestOptionKind,
}

impl RequestOption<'_> {
    fn into_owned(self) -> RequestOption<'static> {
        RequestOption { id: self.id.into_owned(), label: self.label.into_owned(), kind: self.kind }
    }
}

/// What an offered answer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequestOptionKind {
    /// Allows this call.
    AllowOnce,
    /// Allows this call and similar ones from now on.
    AllowAlways,
    /// Refuses this call.
    RejectOnce,
    /// Refuses this call and similar ones from now on.
    RejectAlways,
    /// The agent did not say.
    Unknown,
}

/// A request was answered or withdrawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestSettled<'a> {
    /// The request.
    pub request_id: Text<'a>,
    /// How it ended.
    pub outcome: RequestOutcome,
    /// Who settled it.
    pub by: SettledBy,
    /// The client of a server that answered: the name of its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Text<'a>>,
    /// The reason, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// The input that the tool runs with, instead of the input that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Json<'a>>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequestOutcome {
    /// Allowed.
    Allowed,
    /// Denied.
    Denied,
    /// Answered.
    Answered,
    /// The agent no longer waits for an answer.
    Withdrawn,
    /// The agent reports that it is settled, but not how.
    Resolved,
}

impl RequestOutcome {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Answered => "answered",
            Self::Withdrawn => "withdrawn",
            Self::Resolved => "resolved",
        }
    }
}

/// Who settled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SettledBy {
    /// A client.
    Client,
    /// A rule of the policy.
    Policy,
    /// The agent itself.
    Agent,
    /// The gateway, because there was no answer.
    Gateway,
}

impl SettledBy {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Policy => "policy",
            Self::Agent => "agent",
            Self::Gateway => "gateway",
        }
    }
}

/// SHA-256 of the exact text of a request's input, in hex. A request without input has the digest of the
/// empty string.
pub fn input_digest(input: Option<&Json<'_>>) -> String {
    let digest = Sha256::digest(input.map_or("", Json::get).as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        for nibble in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        hex
    })
}
