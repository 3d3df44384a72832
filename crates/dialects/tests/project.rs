//! How agents start in a trusted or untrusted project, and which files they read.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use agentwire_dialects::agent::{AgentDialect, Launch, Start};
use agentwire_dialects::{acp, claude, codex, demo, driver, gemini};
use agentwire_protocol::{AgentType, SessionConfig};
use serde_json::{Value, json};

fn config(fields: Value) -> SessionConfig {
    let mut fields = fields;
    fields["workingDirectory"] = json!("/home/me/my project");
    serde_json::from_value(fields).expect("a config")
}

fn launch(dialect: &dyn AgentDialect, fields: Value) -> Launch {
    let config = config(fields);
    let start =
        Start { config: &config, resume: None, fork: false, native_session_id: None, prompt: None };
    dialect.launch(&start).expect("a launch")
}

fn has(launch: &Launch, word: &str) -> bool {
    launch.shown_args().iter().any(|arg| arg == word)
}

#[test]
fn claude_leaves_the_sources_of_the_project_out() {
    for (fields, sources, is_strict) in [
        (json!({}), None, false),
        (json!({ "trust": true }), None, false),
        (json!({ "trust": true, "settingSources": ["project"] }), Some("project"), false),
        (json!({ "trust": false }), Some("user"), true),
        (
            json!({ "trust": false, "settingSources": ["user", "project", "local"] }),
            Some("user"),
            true,
        ),
        (json!({ "trust": false, "settingSources": ["project"] }), Some(""), true),
        (json!({ "trust": false, "settingSources": [] }), Some(""), true),
    ] {
        let launch = launch(&claude::CLAUDE, fields.clone());
        let given = launch
            .shown_args()
            .into_iter()
            .find_map(|arg| arg.strip_prefix("--setting-sources=").map(str::to_owned));
        assert_eq!(given.as_deref(), sources, "{fields}");
        assert_eq!(has(&launch, "--strict-mcp-config"), is_strict, "{fields}");
    }
}

#[test]
fn codex_is_told_whether_it_may_read_the_project() {
    for dialect in [&codex::CODEX as &dyn AgentDialect, &codex::CODEX_EXEC] {
        assert!(!format!("{:?}", launch(dialect, json!({})).args).contains("trust_level"));
        for (trust, level) in [(true, "trusted"), (false, "untrusted")] {
            let launch = launch(dialect, json!({ "trust": trust }));
            let given = launch
                .shown_args()
                .into_iter()
                .find_map(|arg| arg.strip_prefix("--config=projects=").map(str::to_owned));
            let table = format!("projects = {}", given.expect("the setting"));
            let table: toml::Table = toml::from_str(&table).expect("TOML");
            for path in ["/home/me/my project", "/home/me", "/home", "/"] {
                assert_eq!(table["projects"][path]["trust_level"].as_str(), Some(level), "{path}");
            }
        }
    }
}

#[test]
fn gemini_trusts_what_the_gateway_trusts() {
    const TRUST: &str = "GEMINI_CLI_TRUST_WORKSPACE";
    for dialect in [&gemini::OVER_ACP as &dyn AgentDialect, &gemini::Gemini] {
        for (fields, skips, variable) in [
            (json!({}), true, None),
            (json!({ "trust": true }), true, Some("true")),
            (json!({ "trust": false }), false, Some("false")),
            (json!({ "trust": false, "env": { TRUST: "true" } }), false, Some("false")),
        ] {
            let launch = launch(dialect, fields.clone());
            assert_eq!(has(&launch, "--skip-trust"), skips, "{fields}");
            assert_eq!(launch.env.get(TRUST).map(String::as_str), variable, "{fields}");
        }
    }
}

#[test]
fn agents_that_cannot_do_without_the_project_say_so() {
    for (dialect, can) in [
        (&claude::CLAUDE as &dyn AgentDialect, true),
        (&demo::DEMO, true),
        (&codex::CODEX, true),
        (&codex::CODEX_EXEC, true),
        (&gemini::OVER_ACP, true),
        (&gemini::Gemini, false),
        (&acp::ACP, false),
    ] {
        assert_eq!(dialect.starts_without_project(), can, "{}", dialect.name());
    }
}

#[test]
fn setting_sources_say_which_files_claude_reads() {
    let reads = |sources: Value, path: &str| {
        let config = config(json!({ "settingSources": sources }));
        claude::CLAUDE.project_files(&config).iter().any(|file| file.path == path)
    };
    for (sources, project, local) in [
        (Value::Null, true, true),
        (json!([]), false, false),
        (json!(["user"]), false, false),
        (json!(["project"]), true, false),
        (json!(["user", "local"]), false, true),
    ] {
        assert_eq!(reads(sources.clone(), ".claude/settings.json"), project, "{sources}");
        assert_eq!(reads(sources.clone(), ".mcp.json"), project, "{sources}");
        assert_eq!(reads(sources.clone(), ".claude/settings.local.json"), local, "{sources}");
    }
    for agent in AgentType::ALL {
        let dialect = driver(agent, None).expect("a driver");
        let has_none = dialect.project_files(&config(json!({}))).is_empty();
        assert_eq!(has_none, agent == AgentType::Demo, "{agent}");
    }
}
