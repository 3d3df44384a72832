//! Claude's names and the backend's: camel case there, snake case here. Only what the protocol itself
//! names is renamed; what belongs to a tool keeps its names.

use agentwire_protocol::{GatewayError, Json};

use super::{Object, read_object};

/// The fields of a rule: in the backend's words, and in Claude's.
const RULE: [(&str, &str); 2] = [("tool_name", "toolName"), ("rule_content", "ruleContent")];

/// A hook's output in camel case, whichever it was in.
pub(super) fn camel_case(output: &Json<'_>) -> Result<Json<'static>, GatewayError> {
    let renamed = camel_keys(read_object(output)?, |name, value| match name {
        "hookSpecificOutput" => inside(value, |name, value| match name {
            "decision" => inside(value, |name, value| match name {
                "updatedPermissions" => permissions(&value),
                _ => value,
            }),
            _ => value,
        }),
        _ => value,
    });
    Ok(Json::of(&renamed))
}

fn inside(
    value: Json<'static>,
    each: impl Fn(&str, Json<'static>) -> Json<'static>,
) -> Json<'static> {
    match value.read::<Object>() {
        Ok(fields) => Json::of(&camel_keys(fields, each)),
        Err(_) => value,
    }
}

fn camel_keys(fields: Object, each: impl Fn(&str, Json<'static>) -> Json<'static>) -> Object {
    let renamed = fields.into_iter().map(|(name, value)| {
        let name = camel(&name);
        let value = each(&name, value);
        (name, value)
    });
    renamed.collect()
}

/// `snake_case` as `snakeCase`; a name in camel case stays. One name Claude writes otherwise.
pub(crate) fn camel(name: &str) -> String {
    if name == "updated_mcp_tool_output" {
        return "updatedMCPToolOutput".to_owned();
    }
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// Rules that a client gives, for the agent.
pub(crate) fn permissions(rules: &Json<'_>) -> Json<'static> {
    updates(rules, |name| RULE.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| *theirs))
}

/// Renames the fields of the rules in a list of updates.
fn updates(list: &Json<'_>, rename: impl Fn(&str) -> Option<&'static str>) -> Json<'static> {
    let Ok(mut updates) = list.read::<Vec<Json<'static>>>() else {
        return list.clone().into_owned();
    };
    for update in &mut updates {
        let Ok(mut fields) = update.read::<Object>() else { continue };
        let Some(rules) = fields.get("rules").and_then(|rules| rules.read::<Vec<Object>>().ok())
        else {
            continue;
        };
        let rules = rules.into_iter().map(|rule| {
            let fields = rule.into_iter();
            let renamed = |name: String| rename(&name).map_or(name, str::to_owned);
            fields.map(|(name, value)| (renamed(name), value)).collect::<Object>()
        });
        fields.insert("rules".to_owned(), Json::of(&rules.collect::<Vec<_>>()));
        *update = Json::of(&fields);
    }
    Json::of(&updates)
}
