//! The drop-in in a project that nobody trusts yet: the client is asked, if it can be.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::claude::client::{Client, Place};

/// A place where Claude is a program that writes down how it was started, in a project with a hook.
fn place() -> Place {
    let place = Place::new();
    // The demo agent knows nothing of this flag.
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> ../argv.log\n\
         for word do shift; [ \"$word\" = --strict-mcp-config ] || set -- \"$@\" \"$word\"; done\n\
         exec {} demo-agent --state-dir=../demo \"$@\"\n",
        env!("CARGO_BIN_EXE_agentwire")
    );
    let program = place.path("real-claude");
    fs::write(&program, script).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    fs::create_dir(place.path("work/.claude")).expect("a directory");
    fs::write(place.path("work/.claude/settings.json"), r#"{"apiKeyHelper":"evil"}"#)
        .expect("a file");
    place
}

fn client(place: &Place, more: &[&str]) -> Client {
    let program = place.path("real-claude").display().to_string();
    place.client_with(more, &[("AGENTWIRE_AGENT", "claude"), ("AGENTWIRE_CLAUDE_BIN", &program)])
}

fn start(place: &Place) -> String {
    let log = fs::read_to_string(place.path("argv.log")).expect("a start");
    log.lines().last().expect("a start").to_owned()
}

#[test]
fn a_client_that_can_answer_is_asked() {
    for (behavior, is_trusted) in [("deny", false), ("allow", true)] {
        let place = place();
        let mut client = client(&place, &["--permission-prompt-tool", "stdio"]);
        // As the SDKs do: the answer to this comes once the agent runs.
        client.say(
            br#"{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}"#,
        );
        client.prompt("/say hello");
        let asked = client.until("control_request");
        assert_eq!(asked["request"]["subtype"], "can_use_tool", "{asked}");
        assert_eq!(asked["request"]["tool_name"], "TrustDirectory", "{asked}");
        let input = &asked["request"]["input"];
        assert_eq!(input["files"][0]["runs"][0], "apiKeyHelper: evil", "{asked}");
        assert!(!place.path("argv.log").exists());
        // The SDKs send back the input that they were shown.
        let answer = match is_trusted {
            true => json!({ "behavior": behavior, "updatedInput": input }),
            false => json!({ "behavior": behavior, "message": "no" }),
        };
        let response =
            json!({ "subtype": "success", "request_id": asked["request_id"], "response": answer });
        let line = json!({ "type": "control_response", "response": response });
        client.say(line.to_string().as_bytes());
        let started = client.until("control_response");
        assert_eq!(started["response"]["request_id"], "i", "{started}");
        assert_eq!(started["response"]["subtype"], "success", "{started}");
        let result = client.until("result");
        assert_eq!(result["result"], "hello", "{result}");
        assert_eq!(client.rest().1, Some(0));
        assert_eq!(!start(&place).contains("--setting-sources=user"), is_trusted);
    }
}

/// As `claude -p` would have no dialog: the agent works, without the project's settings.
#[test]
fn a_client_that_cannot_answer_works_without_project_settings() {
    let place = place();
    let mut client = client(&place, &[]);
    client.prompt("/say hello");
    let (said, code) = client.rest();
    assert!(said.iter().any(|it| it["result"] == "hello"), "{said:?}");
    assert_eq!(code, Some(0));
    assert!(start(&place).contains("--setting-sources=user"), "{}", start(&place));
}

/// The process that starts the program is the operator. It trusts the project by naming its settings.
#[test]
fn setting_sources_that_name_the_project_are_an_answer() {
    let place = place();
    for sources in ["user,project,local", "project", ""] {
        let mut client = client(&place, &["--setting-sources", sources]);
        client.prompt("/say hello");
        let (said, code) = client.rest();
        assert!(said.iter().any(|it| it["result"] == "hello"), "{said:?}");
        assert_eq!(code, Some(0));
        assert!(start(&place).contains(&format!("--setting-sources={sources}")));
        assert!(!start(&place).contains("--strict-mcp-config"));
    }
}
