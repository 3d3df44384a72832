//! What a hook returns, read by its fields.

use agentwire_protocol::command::Behavior;
use agentwire_protocol::{ErrorCode, GatewayError, Json};
use serde::Deserialize;

use super::Object;
use super::names::camel_case;

/// What a hook returns, its fields read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Output {
    /// `false` ends the turn.
    #[serde(rename = "continue")]
    pub goes_on: Option<bool>,
    /// Why it ends.
    pub stop_reason: Option<String>,
    /// The old word for a decision.
    pub decision: Option<Block>,
    /// Why it was decided so.
    pub reason: Option<String>,
    /// Something for the user to know.
    pub system_message: Option<String>,
    /// What only its event has.
    #[serde(rename = "hookSpecificOutput", deserialize_with = "object")]
    pub specific: Option<Specific>,
}

/// The part of an output that only its event has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Specific {
    /// Of `PreToolUse`: whether the tool may run.
    pub permission_decision: Option<Permission>,
    /// Why it was decided so.
    pub permission_decision_reason: Option<String>,
    /// What the tool is to run with.
    #[serde(deserialize_with = "input")]
    pub updated_input: Option<Json<'static>>,
    /// Something for the agent to know.
    pub additional_context: Option<String>,
    /// Of `PostToolUse`: what the agent is to see in place of what an MCP tool gave.
    #[serde(rename = "updatedMCPToolOutput")]
    pub updated_mcp_tool_output: Option<Json<'static>>,
    /// Of `PermissionRequest`: whether the tool may run.
    #[serde(deserialize_with = "object")]
    pub decision: Option<Decision>,
}

/// Lets it pass, or blocks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    /// It passes.
    Approve,
    /// It does not.
    Block,
}

/// Whether a tool may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// It may.
    Allow,
    /// It may not.
    Deny,
    /// Somebody is asked.
    Ask,
    /// It does not run now: Claude ends its turn and leaves the call open.
    Defer,
}

/// What a `PermissionRequest` hook decides.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Allow or deny.
    pub behavior: Behavior,
    /// What the agent is told of a denial.
    #[serde(default)]
    pub message: Option<String>,
    /// What the tool is to run with.
    #[serde(default, deserialize_with = "input")]
    pub updated_input: Option<Json<'static>>,
    /// Rules to add.
    #[serde(default)]
    pub updated_permissions: Option<Vec<Update>>,
    /// A denial ends the turn as well.
    #[serde(default)]
    pub interrupt: Option<bool>,
}

/// A change of the rules.
#[derive(Clone, Debug, Deserialize)]
pub struct Update {
    /// Such as `addRules`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the rules say.
    #[serde(default)]
    pub behavior: Option<String>,
}

impl Output {
    /// Reads an output in camel case. What cannot be read is refused, so that a misspelt denial is not
    /// taken for no opinion.
    pub fn read(output: &Json<'_>) -> Result<Self, GatewayError> {
        output.read().map_err(|error| {
            let message = format!("failed to read the hook's output: {error}");
            GatewayError::new(ErrorCode::InvalidMessage, message)
        })
    }

    /// Whether it says that the tool does not run.
    pub fn denies(&self) -> bool {
        let specific = self.specific.as_ref();
        let decided = specific.and_then(|specific| specific.permission_decision);
        let answered = specific.and_then(|specific| specific.decision.as_ref());
        decided == Some(Permission::Deny)
            || self.decision == Some(Block::Block)
            || answered.is_some_and(|decision| decision.behavior == Behavior::Deny)
    }

    /// Whether an output in either case can be read.
    pub(crate) fn check(output: &Json<'_>) -> Result<(), GatewayError> {
        Self::read(&camel_case(output)?).map(drop)
    }
}

/// An object and nothing else: a list would be taken for its fields in order.
fn object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let fields: Option<Object> = Deserialize::deserialize(deserializer)?;
    fields.map(|fields| Json::of(&fields).read().map_err(serde::de::Error::custom)).transpose()
}

fn input<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Json<'static>>, D::Error> {
    let input: Option<Json<'static>> = Deserialize::deserialize(from)?;
    match input {
        Some(input) if !input.get().starts_with('{') => {
            Err(serde::de::Error::custom("updatedInput must be an object"))
        }
        input => Ok(input),
    }
}
