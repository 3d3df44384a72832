//! `agentwire claude` in an untrusted project: the client is asked, if it can answer.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::claude::client::ClaudeHome;
use crate::shared::{AGENTWIRE, ClaudeClient, Home, write_program};

/// Sets up a `real-claude` that logs its arguments, and a project whose settings run a command. Returns the
/// program.
pub(crate) fn project(home: &Home) -> PathBuf {
    // The demo agent does not know this flag.
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> ../argv.log\n\
         for word do shift; [ \"$word\" = --strict-mcp-config ] || set -- \"$@\" \"$word\"; done\n\
         exec {AGENTWIRE} demo-agent --state-dir=../demo \"$@\"\n"
    );
    let program = home.path("real-claude");
    write_program(&program, &script);
    fs::create_dir(home.path("work/.claude")).expect("a directory");
    fs::write(home.path("work/.claude/settings.json"), r#"{"apiKeyHelper":"evil"}"#)
        .expect("a file");
    program
}

fn claude_home() -> ClaudeHome {
    let home = ClaudeHome::new();
    project(&home);
    home
}

fn client(home: &ClaudeHome, more: &[&str]) -> ClaudeClient {
    let program = home.path("real-claude").display().to_string();
    home.client_with(more, &[("AGENTWIRE_AGENT", "claude"), ("AGENTWIRE_CLAUDE_BIN", &program)])
}

/// The arguments of the last start.
pub(crate) fn start(home: &Home) -> String {
    let log = fs::read_to_string(home.path("argv.log")).expect("a start");
    log.lines().last().expect("a start").to_owned()
}

#[test]
fn a_client_that_can_answer_is_asked() {
    for (behavior, is_trusted) in [("deny", false), ("allow", true)] {
        let home = claude_home();
        let mut client = client(&home, &["--permission-prompt-tool", "stdio"]);
        // As the SDKs do. The answer arrives once the agent runs.
        client.send_raw(
            r#"{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}"#,
        );
        client.prompt("/say hello");
        let asked = client.until_type("control_request");
        assert_eq!(asked["request"]["subtype"], "can_use_tool", "{asked}");
        assert_eq!(asked["request"]["tool_name"], "TrustDirectory", "{asked}");
        let input = &asked["request"]["input"];
        assert_eq!(input["files"][0]["runs"][0], "apiKeyHelper: evil", "{asked}");
        assert!(!home.path("argv.log").exists());
        // The SDKs send back the input they were shown.
        let answer = match is_trusted {
            true => json!({ "behavior": behavior, "updatedInput": input }),
            false => json!({ "behavior": behavior, "message": "no" }),
        };
        let response =
            json!({ "subtype": "success", "request_id": asked["request_id"], "response": answer });
        let line = json!({ "type": "control_response", "response": response });
        client.send(&line);
        let started = client.until_type("control_response");
        assert_eq!(started["response"]["request_id"], "i", "{started}");
        assert_eq!(started["response"]["subtype"], "success", "{started}");
        let result = client.until_type("result");
        assert_eq!(result["result"], "hello", "{result}");
        assert_eq!(client.rest().1, Some(0));
        assert_eq!(!start(&home).contains("--setting-sources=user"), is_trusted);
    }
}

/// `claude -p` would show no dialog either: the agent works without the project's settings.
#[test]
fn a_client_that_cannot_answer_works_without_project_settings() {
    let home = claude_home();
    let mut client = client(&home, &[]);
    client.prompt("/say hello");
    let (said, code) = client.rest();
    assert!(said.iter().any(|it| it["result"] == "hello"), "{said:?}");
    assert_eq!(code, Some(0));
    assert!(start(&home).contains("--setting-sources=user"), "{}", start(&home));
}

/// The process that starts the program is the operator. It trusts the project by naming its settings.
#[test]
fn setting_sources_that_name_the_project_are_an_answer() {
    let home = claude_home();
    for sources in ["user,project,local", "project", ""] {
        let mut client = client(&home, &["--setting-sources", sources]);
        client.prompt("/say hello");
        let (said, code) = client.rest();
        assert!(said.iter().any(|it| it["result"] == "hello"), "{said:?}");
        assert_eq!(code, Some(0));
        assert!(start(&home).contains(&format!("--setting-sources={sources}")));
        assert!(!start(&home).contains("--strict-mcp-config"));
    }
}
