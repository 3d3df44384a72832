//! The `options` of a session, in our spelling or the NDJSON backend's.

use std::collections::BTreeMap;

use agentwire_protocol::{Fields, Json, SessionConfig, strict};

use crate::hooks::{self, camel};

/// An error names the option that is wrong.
pub(super) fn read(options: &Json<'_>) -> Result<SessionConfig, String> {
    let given: Fields =
        options.read().map_err(|_| "`options` must be an object without duplicate names")?;
    let mut fields = Fields::default();
    for (name, value) in given {
        let field = match camel(&name).as_str() {
            "disallowedTools" => "blockedTools".to_owned(),
            field => field.to_owned(),
        };
        if !SessionConfig::FIELDS.contains(&field.as_str()) {
            return Err(format!("unknown option `{name}`"));
        }
        // The nesting depth of names that are ours; within it, these options have no user-defined names
        // with a `_`.
        let value = match field.as_str() {
            "sandbox" => renamed(&value, 2),
            "hooks" => renamed(&value, 3),
            _ => value,
        };
        let alone = Json::of(&BTreeMap::from([(&field, &value)]));
        strict::whole::<SessionConfig>(&alone)
            .map_err(|what| format!("option `{name}` is invalid: {what}"))?;
        if fields.insert(field, value).is_some() {
            return Err(format!("option `{name}` is given twice"));
        }
    }
    let config: SessionConfig = strict::read(Json::of(&fields).get())?;
    config.check()?;
    hooks::check_events(&config)?;
    Ok(config)
}

/// Converts the names down to that many levels.
fn renamed(value: &Json<'static>, levels: usize) -> Json<'static> {
    let Some(levels) = levels.checked_sub(1) else { return value.clone() };
    if let Ok(fields) = value.read::<Fields>() {
        let fields = fields.iter().map(|(name, value)| (camel(name), renamed(value, levels)));
        return Json::of(&fields.collect::<Fields>());
    }
    match value.read::<Vec<Json<'static>>>() {
        Ok(items) => Json::of(&items.iter().map(|item| renamed(item, levels)).collect::<Vec<_>>()),
        Err(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let read = |text: &str| read(&Json::parse(text).unwrap());
        let snake = read(
            r#"{"max_turns":3,"disallowed_tools":["Bash"],
                "sandbox":{"excluded_commands":["a_b"],"network":{"allow_local_binding":true}},
                "hooks":{"PreToolUse":[{"matcher":"a_b","on_failure":"block"}]},
                "env":{"A_B":"c_d"},"mcp_servers":{"my_server":{"command":"x"}}}"#,
        );
        let camel = read(
            r#"{"maxTurns":3,"blockedTools":["Bash"],
                "sandbox":{"excludedCommands":["a_b"],"network":{"allowLocalBinding":true}},
                "hooks":{"PreToolUse":[{"matcher":"a_b","onFailure":"block"}]},
                "env":{"A_B":"c_d"},"mcpServers":{"my_server":{"command":"x"}}}"#,
        );
        assert_eq!(snake, camel);
        assert!(snake.unwrap().sandbox.unwrap().network.is_some());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |text: &str| read(&Json::parse(text).unwrap()).unwrap_err();
        assert_eq!(wrong(r#"{"modle":"x"}"#), "unknown option `modle`");
        assert!(wrong(r#"{"max_turns":"x"}"#).starts_with("option `max_turns` is invalid:"));
        assert!(wrong(r#"{"maxTurns":1,"max_turns":2}"#).ends_with("is given twice"));
        assert!(wrong(r#"{"maxTurns":1,"maxTurns":2}"#).contains("duplicate"));
        assert!(wrong(r#"{"maxTurns":0}"#).contains("1 to 1000"));
        assert!(wrong("[]").contains("must be an object"));
        assert!(wrong(r#"{"sandbox":{"enabeld":true}}"#).contains("sandbox.enabeld"));
        assert!(wrong(r#"{"hooks":{"OnLunch":[{}]}}"#).contains("OnLunch"));
    }

    #[test]
    fn what_is_too_deep_is_refused() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for option in ["hooks", "sandbox", "mcp_servers", "agents"] {
            let options = format!(r#"{{"{option}":{deep}}}"#);
            assert!(read(&Json::parse(&options).unwrap()).unwrap_err().contains(option));
            let inside = format!(r#"{{"{option}":{{"a":{deep}}}}}"#);
            assert!(read(&Json::parse(&inside).unwrap()).unwrap_err().contains(option));
        }
    }
}
