//! Claude's names and this wire's: camel case there, snake case here. Only what the protocol itself
//! names is renamed; what belongs to a tool keeps its names.

use std::collections::BTreeMap;

use agentwire_protocol::Json;

type Object = BTreeMap<String, Json<'static>>;

/// The fields of a rule: here, and in Claude's words.
const RULE: [(&str, &str); 2] = [("tool_name", "toolName"), ("rule_content", "ruleContent")];

/// Rules that Claude suggests, for the client. Those of other agents have other fields, and stay.
pub(super) fn suggestions(rules: &Json<'_>) -> Json<'static> {
    updates(rules, |name| {
        RULE.iter().find(|(_, theirs)| *theirs == name).map(|(ours, _)| (*ours).to_owned())
    })
}

/// Rules that the client gives, for the agent.
pub(super) fn permissions(rules: &Json<'_>) -> Json<'static> {
    updates(rules, |name| {
        RULE.iter().find(|(ours, _)| *ours == name).map(|(_, theirs)| (*theirs).to_owned())
    })
}

/// What a hook is told, for the client. Its names are the same on both sides, but in rules.
pub(super) fn hook_input(input: Json<'static>) -> Json<'static> {
    const RULES: &str = "permission_suggestions";
    let rules =
        input.read::<Object>().ok().and_then(|fields| Some(suggestions(fields.get(RULES)?)));
    match (rules, input.read::<Object>()) {
        (Some(rules), Ok(mut fields)) => {
            fields.insert(RULES.to_owned(), rules);
            Json::of(&fields)
        }
        _ => input,
    }
}

/// What a hook returns, for the agent.
pub(super) fn hook_output(output: Object) -> Json<'static> {
    Json::of(&camel_fields(output, &|name, value| match name {
        "hookSpecificOutput" => inside(value, &|name, value| match name {
            "decision" => inside(value, &|name, value| match name {
                "updatedPermissions" => permissions(&value),
                _ => value,
            }),
            _ => value,
        }),
        _ => value,
    }))
}

type Rename<'r> = &'r dyn Fn(&str, Json<'static>) -> Json<'static>;

fn inside(value: Json<'static>, each: Rename<'_>) -> Json<'static> {
    match value.read::<Object>() {
        Ok(fields) => Json::of(&camel_fields(fields, each)),
        Err(_) => value,
    }
}

fn camel_fields(fields: Object, each: Rename<'_>) -> Object {
    let renamed = fields.into_iter().map(|(name, value)| {
        let name = camel(&name);
        let value = each(&name, value);
        (name, value)
    });
    renamed.collect()
}

/// `snake_case` as `snakeCase`; a name in camel case stays.
pub(super) fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// Renames the fields of the rules in a list of updates.
fn updates(list: &Json<'_>, rename: impl Fn(&str) -> Option<String>) -> Json<'static> {
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
            fields.map(|(name, value)| (rename(&name).unwrap_or(name), value)).collect::<Object>()
        });
        fields.insert("rules".to_owned(), Json::of(&rules.collect::<Vec<_>>()));
        *update = Json::of(&fields);
    }
    Json::of(&updates)
}
