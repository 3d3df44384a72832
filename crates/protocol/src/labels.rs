//! What people call a session: a title, a pin and tags. They belong to no agent and can be changed at any
//! time, whichever process runs the session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::{Configure, given, or_null};
use crate::error::GatewayError;
use crate::id::SessionId;
use crate::session::ApprovalMode;
use crate::summary::SessionSummary;

/// The longest title that a client may give, in characters.
pub const TITLE_LIMIT: usize = 200;
/// The most tags of a session.
pub const TAGS_LIMIT: usize = 16;
/// The longest tag, in characters.
pub const TAG_LIMIT: usize = 48;

/// What people call a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Labels {
    /// Takes precedence over the title that comes from the prompt or the agent.
    pub title: Option<String>,
    /// The session is pinned.
    pub pinned: bool,
    /// The tags, in the order in which they were given.
    pub tags: Vec<String>,
}

impl Labels {
    /// Shows these labels in a summary.
    pub fn put_on(&self, summary: &mut SessionSummary) {
        if let Some(title) = &self.title {
            summary.title = Some(title.clone());
        }
        summary.pinned = self.pinned;
        summary.tags.clone_from(&self.tags);
    }
}

/// A change of a session's labels. Omitted fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LabelChange {
    /// The title, at most 200 characters; `null` restores the one from the first prompt or the agent.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<String>")]
    pub title: Option<Option<String>>,
    /// Whether the session is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// All tags: at most 16 of at most 48 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl LabelChange {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Puts texts on one line each, and refuses what is empty or too long.
    pub fn checked(self) -> Result<Self, GatewayError> {
        let title = self
            .title
            .map(|title| title.map(|title| one_line("title", &title, TITLE_LIMIT)).transpose());
        let mut tags = None;
        if let Some(given) = self.tags {
            let known: &mut Vec<String> = tags.insert(Vec::new());
            for tag in given {
                let tag = one_line("tags", &tag, TAG_LIMIT)?;
                if !known.contains(&tag) {
                    known.push(tag);
                }
                if known.len() > TAGS_LIMIT {
                    let message = format!("tags: a session has at most {TAGS_LIMIT} tags");
                    return Err(GatewayError::invalid(message));
                }
            }
        }
        Ok(Self { title: title.transpose()?, pinned: self.pinned, tags })
    }

    /// Makes the change.
    pub fn apply(self, labels: &mut Labels) {
        if let Some(title) = self.title {
            labels.title = title;
        }
        if let Some(pinned) = self.pinned {
            labels.pinned = pinned;
        }
        if let Some(tags) = self.tags {
            labels.tags = tags;
        }
    }
}

fn one_line(field: &str, text: &str, limit: usize) -> Result<String, GatewayError> {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(shown).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.chars().count() {
        0 => Err(GatewayError::invalid(format!("{field}: a text must not be empty"))),
        count if count > limit => {
            let message = format!("{field}: {count} characters; at most {limit} are allowed");
            Err(GatewayError::invalid(message))
        }
        _ => Ok(text),
    }
}

/// A change of a session, as `PATCH` takes it: of its labels, of its model and mode, or of both. Omitted
/// fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SessionChange {
    /// The title, at most 200 characters; `null` restores the one from the first prompt or the agent.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<String>")]
    pub title: Option<Option<String>>,
    /// Whether the session is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// All tags: at most 16 of at most 48 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The model; `null` restores the one that the session was started with.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<String>")]
    pub model: Option<Option<String>>,
    /// When to ask for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// The agent's own name for a permission mode; takes precedence over `approvalMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Limit on reasoning tokens per step; `null` restores the value that the session was started with.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<u32>")]
    pub max_thinking_tokens: Option<Option<u32>>,
}

impl SessionChange {
    /// The change of the labels, and the one for the agent.
    pub fn split(self) -> (LabelChange, Configure) {
        let Self { title, pinned, tags, model, approval_mode, permission_mode, .. } = self;
        let configure = Configure {
            model,
            approval_mode,
            permission_mode,
            max_thinking_tokens: self.max_thinking_tokens,
        };
        (LabelChange { title, pinned, tags }, configure)
    }
}

/// The fields of the command `label`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LabelFields {
    /// The session.
    pub(crate) session_id: SessionId,
    /// The title, at most 200 characters; `null` restores the one from the first prompt or the agent.
    #[serde(default, deserialize_with = "given")]
    #[schemars(schema_with = "or_null::<String>")]
    pub(crate) title: Option<Option<String>>,
    /// Whether the session is pinned.
    #[serde(default)]
    pub(crate) pinned: Option<bool>,
    /// All tags: at most 16 of at most 48 characters.
    #[serde(default)]
    pub(crate) tags: Option<Vec<String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded_and_on_one_line() {
        let change = |title: &str, tags: &[&str]| {
            let tags = Some(tags.iter().map(|tag| (*tag).to_owned()).collect());
            LabelChange { title: Some(Some(title.to_owned())), pinned: None, tags }.checked()
        };
        let checked =
            change(" a\n b\t\u{1b}c ", &["x", " x ", "y z"]).map(|it| (it.title, it.tags));
        let tags = Some(vec!["x".to_owned(), "y z".to_owned()]);
        assert_eq!(checked, Ok((Some(Some("a b c".to_owned())), tags)));
        assert!(change(&"x".repeat(TITLE_LIMIT), &[]).is_ok());
        assert!(change(&"x".repeat(TITLE_LIMIT + 1), &[]).is_err());
        assert!(change(" \n", &[]).is_err());
        assert!(change("t", &[&"x".repeat(TAG_LIMIT + 1)]).is_err());
        let many: Vec<String> = (0..=TAGS_LIMIT).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(change("t", &many).is_err());
        assert!(change("t", &many[1..]).is_ok());
    }
}
