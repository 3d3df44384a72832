//! What a hook is told, in this wire's names: snake case, where Claude's rules have camel case.

use std::collections::BTreeMap;

use agentwire_protocol::Json;

use crate::hooks::suggestions;

/// What a hook is told, for the client. Its names are the same on both sides, but in rules.
pub(super) fn hook_input(input: Json<'static>) -> Json<'static> {
    const RULES: &str = "permission_suggestions";
    let Ok(mut fields) = input.read::<BTreeMap<String, Json<'static>>>() else { return input };
    let Some(rules) = fields.get(RULES).map(suggestions) else { return input };
    fields.insert(RULES.to_owned(), rules);
    Json::of(&fields)
}
