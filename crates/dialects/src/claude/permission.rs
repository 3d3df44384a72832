//! How other agents' requests are put to a client of Claude, and what its answers mean. The same on every
//! wire that uses Claude's terms.

use std::collections::BTreeMap;

use agentwire_protocol::Json;
use agentwire_protocol::event::Question;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::permission_updates::{PermissionRule, PermissionUpdate};

/// The tool with which Claude asks its user.
pub(crate) const QUESTIONS: &str = "AskUserQuestion";

/// What an answer changes beyond this one call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Updates {
    /// Calls like this one are allowed from now on.
    pub(crate) remember: bool,
    pub(crate) mode: Option<String>,
}

/// The rule that allows this call and no other, by its command or its file. Of an MCP tool, the gateway
/// keeps the whole tool, whatever its input calls a command or a path.
fn rule_of(tool: &str, input: &Json<'_>) -> PermissionRule {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct RuleInput {
        command: Option<String>,
        #[serde(alias = "notebook_path", alias = "path")]
        file_path: Option<String>,
    }
    let shown: RuleInput = match tool.starts_with("mcp__") {
        true => RuleInput::default(),
        false => input.read().unwrap_or_default(),
    };
    // Claude writes // before an absolute path.
    let file = shown.file_path.map(|path| match path.starts_with('/') {
        true => format!("/{path}"),
        false => path,
    });
    PermissionRule { tool_name: tool.to_owned(), rule_content: shown.command.or(file) }
}

/// What "from now on" would mean, as one of Claude's rules: clients read no other form.
pub(crate) fn suggestions(tool: &str, input: &Json<'_>) -> Json<'static> {
    PermissionUpdate::allowing(vec![rule_of(tool, input)])
}

/// Reads the `updatedPermissions` of an answer about this tool with this input. Only the suggested rule can
/// be remembered, and a mode can be set; anything else is refused by name.
pub(crate) fn updates(
    given: &Json<'_>,
    (tool, input): (&str, &Json<'_>),
) -> Result<Updates, String> {
    let mut updates = Updates::default();
    for update in PermissionUpdate::list(given).map_err(|error| error.message)? {
        match (update.kind(), update.mode()) {
            _ if update.allows() => {
                let suggested = rule_of(tool, input);
                let rules = update.rules();
                if rules.is_empty() || rules.iter().any(|rule| *rule != suggested) {
                    let why = "only the suggested rule can be remembered for this agent";
                    return Err(format!("addRules is not supported: {why}"));
                }
                updates.remember = true;
            }
            ("setMode", Some(mode)) => updates.mode = Some(mode.to_owned()),
            (kind, _) => {
                let behavior = update.behavior().map(|word| format!(" ({word})"));
                let behavior = behavior.unwrap_or_default();
                return Err(format!("{kind}{behavior} is not supported for this agent"));
            }
        }
    }
    Ok(updates)
}

/// The modes set by the `updatedPermissions` of an answer.
pub(crate) fn modes(given: &Json<'_>) -> Vec<String> {
    let list = PermissionUpdate::list(given).unwrap_or_default();
    list.iter().filter_map(|update| update.mode().map(str::to_owned)).collect()
}

/// Any agent's questions, as the input of Claude's question tool.
pub(crate) fn questions(questions: &[Question<'_>]) -> Json<'static> {
    let list = questions.iter().map(|question| {
        let options = question.options.iter().map(|option| {
            let description = option.description.as_ref().map(|words| words.decode());
            json!({ "label": option.label.decode(), "description": description.unwrap_or_default() })
        });
        json!({
            "question": question.question.decode(),
            "header": question.header.as_ref().map(|words| words.decode()).unwrap_or_default(),
            "options": options.collect::<Vec<_>>(),
            "multiSelect": question.multi_select,
        })
    });
    Json::of(&json!({ "questions": list.collect::<Vec<_>>() }))
}

/// The text of each question, and the key of its answer.
pub(crate) fn keys(questions: &[Question<'_>]) -> Vec<(String, String)> {
    let key = |question: &Question<'_>| {
        let words = question.question.to_string();
        let key = question.id.as_ref().map_or_else(|| words.clone(), ToString::to_string);
        (words, key)
    };
    questions.iter().map(key).collect()
}

/// The answers by key. A client names each by the text of its question, or by the key.
pub(crate) fn answers(
    questions: &[(String, String)],
    input: Option<&Json<'_>>,
) -> Result<BTreeMap<String, Json<'static>>, String> {
    #[derive(Deserialize)]
    struct Input {
        answers: BTreeMap<String, Json<'static>>,
    }
    let Some(Ok(Input { answers })) = input.map(Json::read) else {
        return Err("a question needs answers in the updated input".to_owned());
    };
    let keyed = answers.into_iter().map(|(words, answer)| {
        match questions.iter().find(|(asked, key)| *asked == words || *key == words) {
            Some((_, key)) => Ok((key.clone(), answer)),
            None => Err(format!("there is no question `{words}`")),
        }
    });
    keyed.collect()
}

/// Clients of Claude send back the input that they allow. To an agent that accepts no changes, it must not
/// look like one.
pub(crate) fn is_same(one: &Json<'_>, other: &Json<'_>) -> bool {
    match (one.read::<Value>(), other.read::<Value>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
