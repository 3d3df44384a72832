//! Changes to the permission rules that come with an answer: Claude's `updatedPermissions`.
//!
//! The one type that reads and writes them, for fronts, dialects and the session. An unreadable list is an
//! error, so that a misspelt change does not count as none.

use agentwire_protocol::command::Behavior;
use agentwire_protocol::{GatewayError, Json, Settlement};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hooks::{Object, put};

/// The fields of a rule: the backend's name, and Claude's.
const RULE: [(&str, &str); 2] = [("tool_name", "toolName"), ("rule_content", "ruleContent")];

const ADD_RULES: &str = "addRules";
const SET_MODE: &str = "setMode";
const SESSION: &str = "session";

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Json<'static>")]
pub struct PermissionUpdate {
    fields: Fields,
    given: Json<'static>,
}

/// The fields, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    behavior: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directories: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Vec<PermissionRule>>,
    #[serde(rename = "type")]
    kind: String,
    /// Unknown fields.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// A tool, and which of its calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PermissionRule {
    /// `None` means all calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
    pub tool_name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionChange<'u> {
    /// Adds rules for this session.
    AddRules {
        /// Such as `allow`.
        behavior: Option<&'u str>,
        rules: &'u [PermissionRule],
    },
    SetMode(Option<&'u str>),
    /// Anything else: rules in a settings file, directories.
    Other,
}

impl PermissionRule {
    /// The rule as a policy reads it.
    pub fn text(&self) -> String {
        match &self.rule_content {
            Some(content) => format!("{}({content})", self.tool_name),
            None => self.tool_name.clone(),
        }
    }
}

impl TryFrom<Json<'static>> for PermissionUpdate {
    type Error = serde_json::Error;

    fn try_from(given: Json<'static>) -> Result<Self, Self::Error> {
        // Serde would read a list as the fields in order.
        let object: Object = given.read()?;
        drop(object);
        Ok(Self { fields: given.read()?, given })
    }
}

impl PermissionUpdate {
    /// Reads a list of changes, with names in either case.
    pub fn list(updates: &Json<'_>) -> Result<Vec<Self>, GatewayError> {
        camel_case(updates)?.read().map_err(|error| {
            GatewayError::invalid(format!("failed to read updatedPermissions: {error}"))
        })
    }

    /// A list that adds these rules as allowed, for this session.
    pub fn allowing(rules: Vec<PermissionRule>) -> Json<'static> {
        Json::of(&[Fields {
            kind: ADD_RULES.to_owned(),
            behavior: Some("allow".to_owned()),
            destination: Some(SESSION.to_owned()),
            rules: Some(rules),
            ..Fields::default()
        }])
    }

    /// Without a destination, the change is for this session.
    pub fn change(&self) -> PermissionChange<'_> {
        let is_here = self.fields.destination.as_deref().is_none_or(|to| to == SESSION);
        match self.fields.kind.as_str() {
            ADD_RULES if is_here => {
                PermissionChange::AddRules { behavior: self.behavior(), rules: self.rules() }
            }
            SET_MODE => PermissionChange::SetMode(self.fields.mode.as_deref()),
            _ => PermissionChange::Other,
        }
    }

    /// Such as `addRules`.
    pub fn kind(&self) -> &str {
        &self.fields.kind
    }

    /// Such as `allow`.
    pub fn behavior(&self) -> Option<&str> {
        self.fields.behavior.as_deref()
    }

    pub fn rules(&self) -> &[PermissionRule] {
        self.fields.rules.as_deref().unwrap_or_default()
    }

    pub fn mode(&self) -> Option<&str> {
        self.fields.mode.as_deref()
    }

    /// Whether it adds allow rules, in any destination.
    pub fn allows(&self) -> bool {
        self.kind() == ADD_RULES && self.behavior() == Some("allow")
    }

    /// The text that it was read from, with names in camel case.
    pub fn given(&self) -> &Json<'static> {
        &self.given
    }

    /// Refuses unknown fields: the agent may act on them.
    pub fn check_fields(&self) -> Result<(), GatewayError> {
        let Some(name) = self.fields.others.keys().next() else { return Ok(()) };
        let message = format!("failed to read updatedPermissions: unknown field `{name}`");
        Err(GatewayError::invalid(message))
    }

    /// Whether it adds some of these rules for this session, and does nothing else.
    pub fn only_adds(&self, suggested: &[PermissionRule]) -> bool {
        let Fields { behavior, destination, directories, mode, rules: _, kind, others } =
            &self.fields;
        kind == ADD_RULES
            && destination.as_deref() == Some(SESSION)
            && matches!(behavior.as_deref(), Some("allow" | "deny"))
            && (directories, mode) == (&None, &None)
            && others.is_empty()
            && !self.rules().is_empty()
            && self.rules().iter().all(|rule| suggested.contains(rule))
    }
}

/// The rules in these suggestions. An unreadable list suggests nothing.
pub fn suggested_rules(suggestions: &Json<'_>) -> Vec<PermissionRule> {
    let updates = PermissionUpdate::list(suggestions).unwrap_or_default();
    updates.into_iter().flat_map(|update| update.fields.rules.unwrap_or_default()).collect()
}

/// A list of changes with the rules' field names in camel case, as the agent reads them. Refuses a name
/// that is given in both cases.
pub fn camel_case(updates: &Json<'_>) -> Result<Json<'static>, GatewayError> {
    let Ok(mut list) = updates.read::<Vec<Json<'static>>>() else {
        return Ok(updates.clone().into_owned());
    };
    for update in &mut list {
        let Ok(mut fields) = update.read::<Object>() else { continue };
        let Some(rules) = fields.get("rules").and_then(|rules| rules.read::<Vec<Object>>().ok())
        else {
            continue;
        };
        let rules = rules.into_iter().map(|rule| {
            let mut renamed = Object::new();
            for (name, value) in rule {
                let camel = RULE.iter().find(|(snake, _)| *snake == name);
                put(&mut renamed, camel.map_or(name, |(_, camel)| (*camel).to_owned()), value)?;
            }
            Ok(renamed)
        });
        let rules = rules.collect::<Result<Vec<_>, GatewayError>>()?;
        fields.insert("rules".to_owned(), Json::of(&rules));
        *update = Json::of(&fields);
    }
    Ok(Json::of(&list))
}

/// The answer to a permission in Claude's own form. Unknown fields are refused.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClaudeAnswer {
    behavior: Behavior,
    updated_input: Option<Json<'static>>,
    updated_permissions: Option<Json<'static>>,
    message: Option<String>,
    interrupt: Option<bool>,
    #[serde(default, rename = "toolUseID")]
    _tool_use_id: Option<String>,
    #[serde(default, rename = "decisionClassification")]
    _classification: Option<String>,
}

/// Converts an answer to a permission from Claude's own form, in `own`, to the protocol's fields.
pub fn plain_answer(own: &Json<'_>, settlement: &Settlement) -> Result<Settlement, GatewayError> {
    let own: ClaudeAnswer = own.read().map_err(|error| {
        GatewayError::invalid(format!("failed to read the answer to a permission: {error}"))
    })?;
    Ok(Settlement {
        behavior: Some(own.behavior),
        updated_input: own.updated_input,
        updated_permissions: own.updated_permissions.as_ref().map(camel_case).transpose()?,
        message: own.message.or_else(|| settlement.message.clone()),
        interrupt: own.interrupt.or(settlement.interrupt),
        hook_output: None,
        ..settlement.clone()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn update(value: Value) -> PermissionUpdate {
        PermissionUpdate::list(&Json::of(&[value])).expect("a list").remove(0)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let rule = PermissionRule {
            tool_name: "Bash".to_owned(),
            rule_content: Some("git status".to_owned()),
        };
        let any = PermissionRule { tool_name: "Edit".to_owned(), rule_content: None };
        let written = PermissionUpdate::allowing(vec![rule.clone(), any.clone()]);
        assert_eq!(
            written.get(),
            r#"[{"behavior":"allow","destination":"session","rules":[{"ruleContent":"git status","toolName":"Bash"},{"toolName":"Edit"}],"type":"addRules"}]"#
        );
        assert_eq!(suggested_rules(&written), [rule.clone(), any.clone()]);
        assert_eq!(rule.text(), "Bash(git status)");
        assert_eq!(any.text(), "Edit");
        let [read] = &PermissionUpdate::list(&written).expect("a list")[..] else { panic!("one") };
        assert!(read.allows() && read.only_adds(&[any, rule.clone()]) && !read.only_adds(&[rule]));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused() {
        for list in [
            json!({}),
            json!(["rm"]),
            json!([["addRules"]]),
            json!([{ "rules": [] }]),
            json!([{ "type": "addRules", "rules": [{ "toolName": "Bash", "more": 1 }] }]),
            json!([{ "type": "addRules", "rules": [{ "toolName": "Bash", "tool_name": "Edit" }] }]),
            json!([{ "type": "setMode", "mode": 1 }]),
        ] {
            assert!(PermissionUpdate::list(&Json::of(&list)).is_err(), "{list}");
            assert!(suggested_rules(&Json::of(&list)).is_empty(), "{list}");
        }
        let twice = Json::parse(r#"[{"type":"setMode","type":"addRules"}]"#).expect("JSON");
        assert!(PermissionUpdate::list(&twice).is_err());
    }

    #[test]
    fn what_it_does_is_read_with_where_it_is_kept() {
        let rules = json!([{ "tool_name": "Bash" }]);
        let here = update(json!({ "type": "addRules", "behavior": "deny", "rules": rules }));
        let PermissionChange::AddRules { behavior: Some("deny"), rules: [rule] } = here.change()
        else {
            panic!("{here:?}")
        };
        assert_eq!(rule.text(), "Bash");
        let mode =
            update(json!({ "type": "setMode", "mode": "plan", "destination": "userSettings" }));
        assert_eq!(mode.change(), PermissionChange::SetMode(Some("plan")));
        for other in [
            json!({ "type": "addRules", "behavior": "allow", "destination": "userSettings" }),
            json!({ "type": "addDirectories", "directories": ["/"], "destination": "session" }),
        ] {
            assert_eq!(update(other).change(), PermissionChange::Other);
        }
        let unknown = update(json!({ "type": "addRules", "new": 1 }));
        assert!(unknown.check_fields().is_err_and(|error| error.message.contains("`new`")));
        assert!(here.check_fields().is_ok());
    }
}
