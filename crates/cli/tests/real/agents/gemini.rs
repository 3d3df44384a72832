//! Gemini CLI, over both of its protocols.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{Agent, Broken, Call, KEY, Login, Words, remove, variables};
use crate::packages::GEMINI;
use crate::trouble::{rewrite, unset};

const FEW_ATTEMPTS: &str = ",\"maxAttempts\":3";

pub(super) const ACP: Agent = Agent {
    name: "gemini",
    kind: "gemini",
    driver: "acp",
    package: GEMINI,
    variable: "AGENTWIRE_GEMINI_BIN",
    model: "gemini-2.5-pro",
    other_model: "gemini-2.5-flash",
    set_up: configure,
    environment: |_, url| {
        variables([("GEMINI_API_KEY", KEY), ("GOOGLE_GEMINI_BASE_URL", url), ("NO_COLOR", "1")])
    },
    words: WORDS,
    question_mode: None,
    has_deltas: true,
    forget: |home| remove(&home.join(".gemini/tmp")),
    structured: |answer| format!("[[say {answer}]]"),
    login: Login::Untold,
    sign_out: |_, _, variables| unset(variables, "GEMINI_API_KEY"),
    retry: |home, _, _| {
        rewrite(&home.join(".gemini/settings.json"), |text| text.replace(FEW_ATTEMPTS, ""));
    },
    broken: Some(Broken {
        set_up: |home, _, _| {
            rewrite(&home.join(".gemini/settings.json"), |_| "{\"broken\": ".to_owned());
        },
        settings: None,
        says: "settings.json",
    }),
    cannot: &[
        ("changed input", "an answer over ACP carries no input"),
        ("plan", "over ACP it tells how many entries a to-do list has, not which"),
        ("question", "over ACP it has no tool to ask with"),
        ("fork", NO_COPY),
        ("resume, another opened", "it refuses an id that it does not know"),
        ("sandbox missing", OTHER_SANDBOX),
        ("broken stream", NO_RETRY),
        ("retries reported", "over ACP it does not report retries"),
        ("background turn", NO_BACKGROUND),
        ("`/clear`", NO_CLEAR),
        ("web search", NO_SEARCH),
        ("trusted project", NO_TRUST),
        ("exit codes", "its turns do not end with an exit code"),
    ],
};

const NO_BACKGROUND: &str = "the end of a background task starts no turn";
const NO_CLEAR: &str = "it has no such command without a terminal";
const NO_SEARCH: &str = "a search is a tool like others";
const NO_TRUST: &str = "it does not add to a list of trusted projects by itself";

const OWN_SERVERS: &str =
    "it takes servers from its own settings files only; over ACP it takes others";
const NO_COPY: &str = "it cannot copy a session";
const NO_RETRY: &str = "it does not try again when a stream breaks: the turn fails, and says so";

pub(super) const HEADLESS: Agent = Agent {
    name: "gemini -p",
    driver: "stream-json",
    cannot: &[
        ("thinking", "its output leaves thoughts out"),
        ("allow", NEVER_ASKS),
        ("changed input", NEVER_ASKS),
        ("changed input refused", NEVER_ASKS),
        ("system prompt, more", "it can only put another prompt in the place of its own"),
        ("deny", NEVER_ASKS),
        ("question", NEVER_ASKS),
        ("interrupt, asking", NEVER_ASKS),
        ("nobody to ask", NEVER_ASKS),
        ("protected files", NEVER_ASKS),
        ("always is exact", NEVER_ASKS),
        ("always, every kind of call", NEVER_ASKS),
        ("secrets, command line", "it takes MCP servers from its own settings files only"),
        ("mode change", NEVER_ASKS),
        ("MCP server", OWN_SERVERS),
        ("client's MCP server", OWN_SERVERS),
        ("fork", NO_COPY),
        ("resume, another opened", "it refuses an id that it does not know"),
        ("sandbox missing", OTHER_SANDBOX),
        ("broken stream", NO_RETRY),
        ("malformed line", "it reads one prompt, which is plain text"),
        ("background turn", NO_BACKGROUND),
        ("`/clear`", NO_CLEAR),
        ("web search", NO_SEARCH),
        ("trusted project", NO_TRUST),
    ],
    ..ACP
};

const NEVER_ASKS: &str = "`gemini -p` never asks";
const OTHER_SANDBOX: &str = "the row is about the sandbox of Claude";

/// Settings with a key, and nothing that calls home.
fn configure(home: &Path, _url: &str) {
    let directory = home.join(".gemini");
    fs::create_dir(&directory).expect("a directory");
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 3 },
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "tools": { "shell": { "enableInteractiveShell": false } },
    });
    fs::write(directory.join("settings.json"), settings.to_string()).expect("a file");
}

const WORDS: Words = Words {
    shell: |command| {
        Call::new("run_shell_command", json!({ "command": command, "description": "A command" }))
    },
    write: |path, text| Call::new("write_file", json!({ "file_path": path, "content": text })),
    edit: |path, old, new| {
        Call::new(
            "replace",
            json!({
                "file_path": path, "instruction": "Change it.", "old_string": old, "new_string": new,
            }),
        )
    },
    read: |path| Call::new("read_file", json!({ "file_path": path })),
    question: |question, options| {
        let options = options.map(|label| json!({ "label": label, "description": label }));
        let question = json!({
            "question": question, "header": "Choice", "type": "choice", "options": options,
        });
        Call::new("ask_user", json!({ "questions": [question] }))
    },
    subagent: |prompt| {
        Call::new("invoke_agent", json!({ "agent_name": "generalist", "prompt": prompt }))
    },
    plan: |first, second| {
        Call::new(
            "write_todos",
            json!({ "todos": [
                { "description": first, "status": "in_progress" },
                { "description": second, "status": "pending" },
            ] }),
        )
        .step()
    },
    server_tool: |server, tool, arguments| Call::new(format!("mcp_{server}_{tool}"), arguments),
};
