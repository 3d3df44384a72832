//! Claude Code, and Claude as a third-party ACP agent.

use serde_json::json;

use super::{Agent, Broken, Call, KEY, Login, Words, remove, variables};
use crate::packages::{CLAUDE, CLAUDE_ACP, CLAUDE_BEFORE};
use crate::trouble::unset;

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
            ("ANTHROPIC_API_KEY", KEY),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "3"),
            ("IS_SANDBOX", "1"),
        ])
    },
    words: WORDS,
    question_mode: None,
    has_deltas: true,
    forget: |home| remove(&home.join(".claude/projects")),
    structured: |answer| format!("[[tool StructuredOutput {answer}]] [[say done]]"),
    login: Login::Variable,
    sign_out: |_, _, variables| unset(variables, "ANTHROPIC_API_KEY"),
    retry: |_, _, variables| unset(variables, "CLAUDE_CODE_MAX_RETRIES"),
    broken: Some(Broken {
        set_up: |_, _, _| {},
        settings: Some("[agents.claude]\nargs = ['--no-such-flag']\n"),
        says: "unknown option '--no-such-flag'",
    }),
    cannot: &[
        ("trusted project", "it does not add to a list of trusted projects by itself"),
        ("launcher", "the program is one process"),
        ("endless text", NO_LIMIT),
        ("resume, another opened", "it refuses an id that it does not know"),
        ("exit codes", ONE_PROCESS),
        ("web search", "a search is a tool like others"),
        ("changed input refused", "it takes another input"),
    ],
};

const RUNS_READING: &str = "it does not ask about commands that it takes for reading, and over ACP it shows no call before it runs";
const NO_LIMIT: &str = "it lets the model repeat itself";
const ONE_PROCESS: &str = "its turns do not end with an exit code";

pub(super) const BEFORE: Agent = Agent {
    name: "claude, older",
    package: CLAUDE_BEFORE,
    cannot: &[
        ("trusted project", "it does not add to a list of trusted projects by itself"),
        ("launcher", "the program is one process"),
        ("endless text", NO_LIMIT),
        ("resume, another opened", "it refuses an id that it does not know"),
        ("exit codes", ONE_PROCESS),
        ("web search", "a search is a tool like others"),
        ("changed input refused", "it takes another input"),
        ("planted Git settings", "it runs `git status` by itself when it starts"),
    ],
    ..NOW
};

pub(super) const OVER_ACP: Agent = Agent {
    name: "claude-agent-acp",
    kind: "acp",
    driver: "acp",
    package: CLAUDE_ACP,
    variable: "AGENTWIRE_ACP_BIN",
    model: "sonnet",
    other_model: "haiku",
    login: Login::Untold,
    environment: |home, url| {
        let mut all = (NOW.environment)(home, url);
        // The newest models do not get the task list tools.
        all.extend(variables([("ANTHROPIC_DEFAULT_SONNET_MODEL", NOW.model)]));
        all
    },
    structured: |answer| format!("[[say {answer}]]"),
    broken: None,
    cannot: &[
        ("changed input", "an answer over ACP carries no input"),
        ("flag or settings refused", "it starts with any flags and settings"),
        ("background turn", "over ACP a turn begins with a prompt"),
        ("planted Git settings", RUNS_READING),
        ("links that lead outside", RUNS_READING),
        ("`/clear`", "over ACP it has no such command"),
        ("retries reported", "it does not report retries"),
        ("trusted project", "it does not add to a list of trusted projects by itself"),
        ("endless text", NO_LIMIT),
        ("resume, another opened", "it refuses an id that it does not know"),
        ("exit codes", ONE_PROCESS),
        ("sandbox missing", "ACP has no option for a sandbox"),
        (
            "secrets, command line",
            "it puts MCP servers on the command line of the program that it starts",
        ),
        ("web search", "a search is a tool like others"),
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
        let task = |subject: &str| json!({ "subject": subject, "description": subject });
        format!("[[tools TaskCreate {} ;; TaskCreate {}]]", task(first), task(second))
    },
    server_tool: |server, tool, arguments| Call::new(format!("mcp__{server}__{tool}"), arguments),
};
