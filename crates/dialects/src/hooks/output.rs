//! A hook's output, parsed.

use agentwire_protocol::command::Behavior;
use agentwire_protocol::{GatewayError, Json};
use serde::Deserialize;

use super::Object;
use super::names::camel_case;
use super::read_object;
use crate::permission_updates::PermissionUpdate;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Output {
    /// `false` ends the turn.
    #[serde(rename = "continue")]
    pub goes_on: Option<bool>,
    pub stop_reason: Option<String>,
    /// The old form of a decision.
    pub decision: Option<Block>,
    pub reason: Option<String>,
    pub system_message: Option<String>,
    /// Fields that only its event has.
    #[serde(rename = "hookSpecificOutput", deserialize_with = "object")]
    pub specific: Option<SpecificOutput>,
}

/// Fields that only one event has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpecificOutput {
    /// For `PreToolUse`: whether the tool may run.
    pub permission_decision: Option<Permission>,
    pub permission_decision_reason: Option<String>,
    /// The input that the tool runs with.
    #[serde(deserialize_with = "input")]
    pub updated_input: Option<Json<'static>>,
    /// A message for the agent.
    pub additional_context: Option<String>,
    /// For `PostToolUse`: what the agent sees instead of an MCP tool's result.
    #[serde(rename = "updatedMCPToolOutput")]
    pub updated_mcp_tool_output: Option<Json<'static>>,
    /// For `PermissionRequest`: whether the tool may run.
    #[serde(deserialize_with = "object")]
    pub decision: Option<Decision>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Block {
    Approve,
    Block,
}

/// Whether a tool may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    Allow,
    Deny,
    Ask,
    /// It does not run now: Claude ends its turn and leaves the call open.
    Defer,
}

impl From<Behavior> for Permission {
    fn from(behavior: Behavior) -> Self {
        match behavior {
            Behavior::Allow => Self::Allow,
            Behavior::Deny => Self::Deny,
        }
    }
}

impl From<Block> for Permission {
    fn from(block: Block) -> Self {
        match block {
            Block::Approve => Self::Allow,
            Block::Block => Self::Deny,
        }
    }
}

/// What a `PermissionRequest` hook decides.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub behavior: Behavior,
    /// What the agent sees of a denial.
    pub message: Option<String>,
    /// The input that the tool runs with.
    #[serde(default, deserialize_with = "input")]
    pub updated_input: Option<Json<'static>>,
    /// Rules to add.
    pub updated_permissions: Option<Vec<PermissionUpdate>>,
    /// A denial also ends the turn.
    pub interrupt: Option<bool>,
}

impl Output {
    /// Reads an output in camel case. An unreadable output is refused, so that a misspelt denial does not
    /// count as no opinion.
    pub fn read(output: &Json<'_>) -> Result<Self, GatewayError> {
        output.read().map_err(|error| {
            GatewayError::invalid(format!("failed to read the hook's output: {error}"))
        })
    }

    /// Its decision about a tool call, in every form that it has. The event's own field takes precedence
    /// over the old form.
    fn decisions(&self) -> impl Iterator<Item = Permission> {
        let specific = self.specific.as_ref();
        let own = specific.and_then(|specific| specific.permission_decision);
        let answered = specific.and_then(|specific| Some(specific.decision.as_ref()?.behavior));
        let old = self.decision.map(Permission::from);
        own.into_iter().chain(answered.map(Permission::from)).chain(old)
    }

    /// What it decides about a tool call.
    pub fn decides(&self) -> Option<Permission> {
        self.decisions().next()
    }

    /// Whether any form of its decision allows: agents differ in which one they read.
    pub fn may_allow(&self) -> bool {
        self.decisions().any(|decision| decision == Permission::Allow)
    }

    /// The input that the tool runs with.
    pub fn updated_input(&self) -> Option<&Json<'static>> {
        let specific = self.specific.as_ref()?;
        let decided = || specific.decision.as_ref()?.updated_input.as_ref();
        specific.updated_input.as_ref().or_else(decided)
    }

    /// The rule changes that come with its decision.
    pub fn updates(&self) -> Option<&[PermissionUpdate]> {
        let decision = self.specific.as_ref()?.decision.as_ref()?;
        decision.updated_permissions.as_deref()
    }

    /// An output in camel case with these rule changes instead of its own, or with none.
    pub fn with_updates(
        output: &Json<'_>,
        updates: Option<Json<'static>>,
    ) -> Result<Json<'static>, GatewayError> {
        let mut fields = read_object(output)?;
        let mut specific = fields.remove("hookSpecificOutput").as_ref().map(read_object);
        if let Some(Ok(specific)) = &mut specific
            && let Some(Ok(mut decision)) = specific.get("decision").map(read_object)
        {
            decision.remove("updatedPermissions");
            decision.extend(updates.map(|list| ("updatedPermissions".to_owned(), list)));
            specific.insert("decision".to_owned(), Json::of(&decision));
        }
        if let Some(specific) = specific {
            fields.insert("hookSpecificOutput".to_owned(), Json::of(&specific?));
        }
        Ok(Json::of(&fields))
    }

    /// Whether any form of its decision denies the tool.
    pub fn denies(&self) -> bool {
        self.decisions().any(|decision| decision == Permission::Deny)
    }

    /// Whether an output in either case can be read.
    pub(crate) fn check(output: &Json<'_>) -> Result<(), GatewayError> {
        Self::read(&camel_case(output)?).map(drop)
    }
}

/// Accepts only an object: serde would read a list as the fields in order.
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
