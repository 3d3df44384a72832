//! The policy file that makes Gemini ask: the gateway alone decides what runs.
//!
//! It replaces the user's own policy files (`--policy`). Its rules override every setting that allows a
//! tool, but not those that exclude one: on this scale `tools.exclude` is 400, and allowing is below.

use std::fmt::Write as _;

pub(crate) const FILE: &str = "ask.toml";

/// Modes in which Gemini would run something by itself. Plan mode itself forbids that.
const MODES: &str = r#"["default", "autoEdit", "yolo"]"#;

/// Tools that Gemini runs without asking in every mode: they read, or maintain its own lists.
const UNASKED: &str = r#"["read_file", "list_directory", "glob", "grep_search", "google_web_search", "generalist", "codebase_investigator", "cli_help", "get_internal_docs", "update_topic", "complete_task", "tracker_create_task", "tracker_update_task", "tracker_get_task", "tracker_list_tasks", "tracker_add_dependency", "tracker_visualize"]"#;

/// Names in rules about tools that always ask.
const ALWAYS_ASKED: &[&str] = &[
    "Bash",
    "run_shell_command",
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "write_file",
    "replace",
    "web_fetch",
    "save_memory",
];

/// The policy file for a session with these rules in `blockedTools`.
pub(crate) fn file(blocked: &[String]) -> String {
    let mut file = String::from("# agentwire decides what runs: Gemini asks it.\n");
    let alone = "denyMessage = \"A subagent cannot ask here. Leave that to the main agent.\"";
    // Of several rules that match, the first with the highest priority counts.
    let asks_all = !blocked.iter().all(|rule| is_always_asked(rule));
    if !asks_all {
        rule(&mut file, UNASKED, "allow", 399, MODES, "");
        // Over ACP, Gemini cannot ask for a subagent, which would wait forever.
        let generalist = format!("subagent = \"generalist\"\n{alone}");
        rule(&mut file, r#""*""#, "deny", 399, MODES, &generalist);
    }
    // With a pattern for the arguments, Gemini asks even about commands that it considers safe.
    rule(&mut file, r#""run_shell_command""#, "ask_user", 399, MODES, r#"argsPattern = ".""#);
    // Otherwise plans are written without asking.
    let plans = r#"argsPattern = "\\.md\"""#;
    rule(&mut file, r#"["write_file", "replace"]"#, "ask_user", 398, r#"["plan"]"#, plans);
    rule(&mut file, r#""*""#, "ask_user", 398, MODES, "");
    let resources = r#"["read_mcp_resource", "list_mcp_resources"]"#;
    rule(&mut file, resources, "ask_user", 398, r#"["plan"]"#, "");
    if asks_all {
        rule(&mut file, UNASKED, "ask_user", 398, r#"["plan"]"#, "");
        let all_modes = r#"["default", "autoEdit", "yolo", "plan"]"#;
        rule(&mut file, r#""invoke_agent""#, "deny", 399, all_modes, alone);
    }
    file
}

/// Whether every tool that the rule may be about always asks.
fn is_always_asked(rule: &str) -> bool {
    let name = rule.split('(').next().unwrap_or_default();
    name.starts_with("mcp__") || ALWAYS_ASKED.contains(&name)
}

fn rule(file: &mut String, tools: &str, decision: &str, priority: u16, modes: &str, more: &str) {
    // Writing to memory cannot fail.
    let _ = write!(
        file,
        "\n[[rule]]\ntoolName = {tools}\ndecision = \"{decision}\"\npriority = {priority}\n\
         modes = {modes}\n{more}\n"
    );
}
