//! The messages of the insights front: each has all of its fields, and no others.

use serde_json::Value;

/// The type of a field; `?` means that or null.
type Fields = &'static [(&'static str, &'static str)];

const USAGE: Fields = &[
    ("input_tokens", "integer"),
    ("output_tokens", "integer"),
    ("cache_read_tokens", "integer"),
    ("cache_creation_tokens", "integer"),
    ("cost_usd", "number"),
];

const MESSAGES: &[(&str, Fields)] = &[
    ("session.created", &[("session_id", "string")]),
    (
        "agent.spawned",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("parent_id", "string?"),
            ("label", "string"),
            ("task_description", "string?"),
        ],
    ),
    (
        "agent.output",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("content", "string"),
            ("content_type", "text|thinking"),
        ],
    ),
    (
        "agent.tool_use",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("tool_name", "string"),
            ("tool_input", "object"),
            ("tool_use_id", "string"),
            ("model", "string?"),
        ],
    ),
    (
        "agent.tool_result",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("tool_use_id", "string"),
            ("result", "string"),
            ("is_error", "boolean"),
        ],
    ),
    (
        "agent.question",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("question_id", "string"),
            ("question", "string"),
            ("options", "options"),
        ],
    ),
    (
        "agent.completed",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("result", "string?"),
            ("usage", "usage"),
        ],
    ),
    (
        "agent.status",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("status", "working|waiting_tool|waiting_user|completed|error"),
        ],
    ),
    ("session.completed", &[("session_id", "string"), ("total_usage", "usage")]),
    ("permission_mode.changed", &[("session_id", "string"), ("permission_mode", "string")]),
    (
        "permission.request",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("permission_id", "string"),
            ("tool_name", "string"),
            ("tool_input", "object"),
            ("tool_use_id", "string"),
        ],
    ),
    (
        "error",
        &[
            ("session_id", "string?"),
            ("agent_id", "string?"),
            ("message", "string"),
            (
                "code",
                "INVALID_JSON|INVALID_MESSAGE|HANDLER_ERROR|SESSION_CREATE_FAILED|SESSION_NOT_FOUND|\
                 INPUT_FAILED|INTERRUPT_FAILED|PERMISSION_MODE_CHANGE_FAILED|\
                 PERMISSION_RESPONSE_FAILED",
            ),
        ],
    ),
];

/// Fails on a message that is not in the specification.
pub fn check(frame: &Value) {
    let kind = frame["type"].as_str().expect("a type");
    let known = MESSAGES.iter().find(|(name, _)| *name == kind);
    let (_, fields) = known.unwrap_or_else(|| panic!("{frame}"));
    let names: Vec<&String> = frame.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["payload", "type"], "{frame}");
    has(&frame["payload"], fields, frame);
}

fn has(value: &Value, fields: Fields, frame: &Value) {
    let object = value.as_object().unwrap_or_else(|| panic!("{frame}"));
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(object.keys().collect::<Vec<_>>(), names, "{frame}");
    for (name, kind) in fields {
        let value = &object[*name];
        let fits = match *kind {
            "string" => value.is_string(),
            "string?" => value.is_string() || value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            "number" => value.is_number(),
            "object" => value.is_object(),
            "usage" => {
                has(value, USAGE, frame);
                true
            }
            "options" => value.as_array().is_some_and(|options| {
                let option: Fields = &[("label", "string"), ("description", "string?")];
                options.iter().for_each(|value| has(value, option, frame));
                true
            }),
            words => value.as_str().is_some_and(|value| words.split('|').any(|word| word == value)),
        };
        assert!(fits, "{name}: {frame}");
    }
}
