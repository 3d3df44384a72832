//! Codex CLI, over both of its protocols.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{Agent, Broken, Call, KEY, Login, Words, remove, variables};
use crate::packages::CODEX;
use crate::trouble::rewrite;

pub(super) const APP_SERVER: Agent = Agent {
    name: "codex",
    kind: "codex",
    driver: "app-server",
    package: CODEX,
    variable: "AGENTWIRE_CODEX_BIN",
    model: "gpt-5.5",
    other_model: "gpt-5.4",
    set_up: configure,
    environment: |home, _| {
        let home = home.join(".codex").display().to_string();
        variables([("CODEX_HOME", &home), ("FAKE_KEY", KEY)])
    },
    words: WORDS,
    question_mode: Some("plan"),
    has_deltas: true,
    forget: |home| remove(&home.join(".codex/sessions")),
    structured: |answer| format!("[[say {answer}]]"),
    login: Login::Command(&["login", "--with-api-key"]),
    sign_out: |home, url, _| {
        // Its own provider at our address, to which nobody has signed in.
        rewrite(&home.join(".codex/config.toml"), |text| {
            let own = format!("openai_base_url = \"{url}/v1\"");
            text.replace("model_provider = \"fake\"", &own)
        });
    },
    retry: |home, _, _| {
        rewrite(&home.join(".codex/config.toml"), |text| {
            let lines = text.lines().filter(|line| !line.contains("_retries"));
            lines.map(|line| format!("{line}\n")).collect()
        });
    },
    // Not through its settings: without them the app-server continues with its defaults, which call home.
    broken: Some(Broken {
        set_up: |_, _, _| {},
        settings: Some("[agents.codex]\nargs = ['--no-such-flag']\n"),
        says: "unexpected argument '--no-such-flag'",
    }),
    cannot: &[
        ("changed input", "an approval carries no other command"),
        ("resume, another opened", "it refuses an id that it does not know"),
        ("sandbox missing", OTHER_SANDBOX),
        ("background turn", NO_BACKGROUND),
        ("`/clear`", NO_CLEAR),
        ("endless text", NO_LIMIT),
        ("exit codes", "its turns do not end with an exit code"),
    ],
};

pub(super) const EXEC: Agent = Agent {
    name: "codex exec",
    driver: "exec",
    has_deltas: false,
    cannot: &[
        ("allow", NEVER_ASKS),
        ("changed input", NEVER_ASKS),
        ("changed input refused", NEVER_ASKS),
        ("system prompt, more", "other users could read it on its command line"),
        ("deny", NEVER_ASKS),
        ("question", NEVER_ASKS),
        ("interrupt, asking", NEVER_ASKS),
        ("nobody to ask", NEVER_ASKS),
        ("protected files", NEVER_ASKS),
        ("`askDangerous` changes nothing", NEVER_ASKS),
        ("always is exact", NEVER_ASKS),
        ("always, every kind of call", NEVER_ASKS),
        ("planted Git settings", NEVER_ASKS),
        ("links that lead outside", NEVER_ASKS),
        ("relative path after `cd`", NEVER_ASKS),
        ("mode change", NEVER_ASKS),
        ("malformed line", "it reads one prompt, which is plain text"),
        ("background turn", NO_BACKGROUND),
        ("`/clear`", NO_CLEAR),
        ("endless text", NO_LIMIT),
        ("exit codes", "its exit code says no more than its last line"),
        ("sandbox missing", OTHER_SANDBOX),
    ],
    ..APP_SERVER
};

const NO_BACKGROUND: &str = "the end of a background task starts no turn";
const NO_CLEAR: &str = "it has no such command without a terminal";
const NO_LIMIT: &str = "it lets the model repeat itself";
const NEVER_ASKS: &str = "`codex exec` never asks";
const OTHER_SANDBOX: &str = "the row is about the sandbox of Claude";

/// Settings with our model server, and nothing that calls home.
fn configure(home: &Path, url: &str) {
    let directory = home.join(".codex");
    fs::create_dir(&directory).expect("a directory");
    let config = format!(
        r#"model = "gpt-5.5"
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
[analytics]
enabled = false
[features]
plugins = false
remote_plugin = false
apps = false
plugin_discovery_prefetch = false
unbounded_connection_retries = false
[tools.update_plan]
enabled = true
"#
    );
    fs::write(directory.join("config.toml"), config).expect("a file");
}

const WORDS: Words = Words {
    shell: |command| Call::new("exec_command", json!({ "cmd": command })),
    write: |path, text| {
        let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
        let path = path.display();
        Call::new(
            "apply_patch",
            json!(format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch")),
        )
    },
    edit: |path, old, new| {
        let path = path.display();
        Call::new(
            "apply_patch",
            json!(format!(
                "*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
            )),
        )
    },
    read: |path| Call::new("exec_command", json!({ "cmd": format!("cat {}", path.display()) })),
    question: |question, options| {
        let options = options.map(|label| json!({ "label": label, "description": label }));
        let question =
            json!({ "id": "q1", "header": "Choice", "question": question, "options": options });
        Call::new("request_user_input", json!({ "questions": [question] }))
    },
    subagent: |prompt| Call::new("multi_agent_v1.spawn_agent", json!({ "message": prompt })),
    plan: |first, second| {
        Call::new(
            "update_plan",
            json!({ "plan": [
                { "step": first, "status": "in_progress" }, { "step": second, "status": "pending" },
            ] }),
        )
        .step()
    },
    server_tool: |server, tool, arguments| Call::new(format!("mcp__{server}.{tool}"), arguments),
};
