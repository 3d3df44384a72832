//! Which sessions a list shows, and in which order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reply::SessionList;
use crate::session::AgentType;
use crate::summary::SessionState;

/// Which sessions to list, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ListQuery {
    /// Only sessions that have not ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// The `next` of the previous page. The other fields must be the same as for that page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The maximum page size; 50 by default. A number outside the range is clamped to it.
    #[serde(deserialize_with = "clamped", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = SessionList::LIMIT))]
    pub limit: Option<usize>,
    /// Only sessions in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<SessionState>,
    /// Only sessions of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentType>,
    /// Only sessions that work in this directory or below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Only sessions with all of these words in the title, the start of the first prompt, the directory or
    /// the tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// The order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort: Option<SessionSort>,
}

/// Reads a page size: any whole number, however far outside the range.
fn clamped<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<usize>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(field)? else { return Ok(None) };
    let limit = number.as_u64().map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let limit = limit.or_else(|| number.as_i64().map(|_| 1));
    let limit = limit.ok_or_else(|| serde::de::Error::custom("it must be a whole number"))?;
    Ok(Some(limit.clamp(1, SessionList::LIMIT)))
}

/// The order of a list of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionSort {
    /// The last active first. The default.
    #[default]
    Activity,
    /// The last started first.
    Created,
    /// Pinned sessions first, then as `activity`.
    Pinned,
}

impl SessionSort {
    /// All names on the wire.
    pub const NAMES: [&'static str; 3] = ["activity", "created", "pinned"];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Activity => "activity",
            Self::Created => "created",
            Self::Pinned => "pinned",
        }
    }
}
