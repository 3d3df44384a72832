//! Claude Code, and Claude behind a foreign ACP agent.

use serde_json::json;

use super::{Agent, Call, Words, remove, variables};
use crate::packages::{CLAUDE, CLAUDE_ACP, CLAUDE_BEFORE};

pub(super) const NOW: Agent = Agent {
    name: "claude",
    kind: "claude",
    driver: "stream-json",
    package: CLAUDE,
    variable: "AGENTWIRE_CLAUDE_BIN",
    model: "claude-sonnet-4-5",
    other_model: "claude-opus-4-5",
    set_up: |_, _| {},
    environment: |_, url| {
        variables([
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_API_KEY", "made-up"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "3"),
            ("IS_SANDBOX", "1"),
        ])
    },
    words: WORDS,
    has_deltas: true,
    forget: |home| remove(&home.join(".claude/projects")),
    structured: |answer| format!("[[tool StructuredOutput {answer}]] [[say done]]"),
    cannot: &[("plan", NO_TODO)],
};

const NO_TODO: &str = "it has no to-do tool when it runs without a terminal";

pub(super) const BEFORE: Agent = Agent { name: "claude, older", package: CLAUDE_BEFORE, ..NOW };

pub(super) const OVER_ACP: Agent = Agent {
    name: "claude-agent-acp",
    kind: "acp",
    driver: "acp",
    package: CLAUDE_ACP,
    variable: "AGENTWIRE_ACP_BIN",
    model: "sonnet",
    other_model: "haiku",
    cannot: &[
        ("changed input", "an answer over ACP carries no input"),
        ("structured output", "ACP has no form of answers"),
        ("plan", NO_TODO),
        ("usage", "it tells no tokens"),
        ("subagent", "over ACP a subagent is a tool call like others"),
        (
            "question",
            "it asks with a form (`elicitation`), whose fields are answered, not with a question",
        ),
    ],
    ..NOW
};

const WORDS: Words = Words {
    shell: |command| Call::new("Bash", json!({ "command": command, "description": "A command" })),
    write: |path, text| Call::new("Write", json!({ "file_path": path, "content": text })),
    edit: |path, old, new| {
        Call::new("Edit", json!({ "file_path": path, "old_string": old, "new_string": new }))
    },
    read: |path| Call::new("Read", json!({ "file_path": path })),
    question: |question, options| {
        let options = options.map(|label| json!({ "label": label, "description": label }));
        let question = json!({
            "question": question, "header": "Choice", "options": options, "multiSelect": false,
        });
        Call::new("AskUserQuestion", json!({ "questions": [question] }))
    },
    subagent: |prompt| {
        Call::new(
            "Agent",
            json!({
                "description": "A part", "prompt": prompt, "subagent_type": "general-purpose",
                "run_in_background": false,
            }),
        )
    },
    plan: |first, second| {
        Call::new(
            "TodoWrite",
            json!({ "todos": [
                { "content": first, "status": "in_progress", "activeForm": first },
                { "content": second, "status": "pending", "activeForm": second },
            ] }),
        )
    },
    server_tool: |server, tool, arguments| Call::new(format!("mcp__{server}__{tool}"), arguments),
};
