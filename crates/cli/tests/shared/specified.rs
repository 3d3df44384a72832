//! What servers may send to pages according to the specifications: the insights wire and the board.

use serde_json::Value;

const USAGE: &str = "cache_creation_tokens cache_read_tokens cost_usd input_tokens output_tokens";

/// The specification's messages: all their fields, and those that may be null.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("session.created", "session_id", ""),
    (
        "agent.spawned",
        "agent_id label parent_id session_id task_description",
        "parent_id task_description",
    ),
    ("agent.output", "agent_id content content_type session_id", ""),
    ("agent.tool_use", "agent_id model session_id tool_input tool_name tool_use_id", "model"),
    ("agent.tool_result", "agent_id is_error result session_id tool_use_id", ""),
    ("agent.question", "agent_id options question question_id session_id", ""),
    ("agent.completed", "agent_id result session_id usage", "result"),
    ("agent.status", "agent_id session_id status", ""),
    ("session.completed", "session_id total_usage", ""),
    ("permission_mode.changed", "permission_mode session_id", ""),
    (
        "permission.request",
        "agent_id permission_id session_id tool_input tool_name tool_use_id",
        "",
    ),
    ("error", "agent_id code message session_id", "agent_id session_id"),
];

/// Panics on a frame that the specification of the insights wire does not allow.
pub(crate) fn insights(frame: &Value) {
    let names = |value: &Value| {
        let names: Vec<&str> =
            value.as_object().expect("an object").keys().map(String::as_str).collect();
        names.join(" ")
    };
    // The client's id is not repeated.
    assert_eq!(names(frame), "payload type", "{frame}");
    let known = MESSAGES.iter().find(|(kind, ..)| frame["type"] == *kind);
    let (_, fields, nullable) = known.unwrap_or_else(|| panic!("{frame}"));
    let payload = &frame["payload"];
    assert_eq!(names(payload), *fields, "{frame}");
    for (name, value) in payload.as_object().expect("an object") {
        assert!(!value.is_null() || nullable.split(' ').any(|it| it == name), "{frame}");
        match name.as_str() {
            "usage" | "total_usage" => assert_eq!(names(value), USAGE, "{frame}"),
            "options" => value.as_array().expect("options").iter().for_each(|option| {
                assert_eq!(names(option), "description label", "{frame}");
            }),
            "tool_input" => assert!(value.is_object(), "{frame}"),
            _ => {}
        }
    }
}

/// Panics on anything that is not an event of the board (§3.3, §3.4).
pub(crate) fn board(event: &Value, session: &str) {
    let names: Vec<&String> = event.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["id", "payload", "sessionId", "timestamp", "type"], "{event}");
    assert_eq!(event["sessionId"], session);
    assert!(is_uuid(event["id"].as_str().expect("an id")), "{event}");
    let names: Vec<&String> = event["payload"].as_object().expect("an object").keys().collect();
    let wanted: &[&str] = match event["type"].as_str().expect("a type") {
        "plan" | "error" => &["message"],
        "log" => &["line"],
        "diff" => &["diff", "file"],
        "action" => &["args", "tool"],
        "toolResult" => &["output", "success", "tool"],
        "cancelled" => &[],
        _ => panic!("{event}"),
    };
    assert_eq!(names, wanted, "{event}");
}

pub(crate) fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.chars().all(|it| it == '-' || it.is_ascii_hexdigit())
}
