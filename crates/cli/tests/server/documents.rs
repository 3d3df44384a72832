//! The commands in the documents do what the documents say.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::shared::{AGENTWIRE, Home, Server};

/// The first block of commands after this heading.
fn block(document: &str, heading: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = std::fs::read_to_string(path).expect("the document");
    let rest = text.split_once(heading).expect("the heading").1;
    rest.split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a block")
        .to_owned()
}

/// Runs the block in a new home. Returns its output and the home.
fn paste(block: &str, number: u32) -> (String, Home) {
    // A loopback address of its own, because the ports are those of the document.
    let own = std::process::id() * 4 + number;
    let address = format!("127.{}.{}.{}", 1 + (own >> 16) % 250, (own >> 8) & 255, 1 + own % 250);
    let settings = format!("[server]\nhttp = '{address}:8080'\ninsights = '{address}:8765'\n");
    let home = Server::home_with(&settings);
    let programs = Path::new(AGENTWIRE).parent().expect("a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("{block}\nkill $!\nwait\n").replace("127.0.0.1", &address);
    let mut shell = Command::new("sh");
    Server::settle(&home, &mut shell);
    let output = shell
        .args(["-c", &script])
        .env("PATH", format!("{programs}:{path}"))
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("\"http\":\"http://{address}:8080\"")), "{said}");
    (String::from_utf8(output.stdout).expect("UTF-8"), home)
}

#[test]
fn the_readme_serves_a_session_and_answers_it() {
    let (told, home) = paste(&block("README.md", "## Serve it"), 0);
    assert!(told.starts_with("ok\n") && told.contains("\n{\"events\":[{"), "{told}");
    for kind in ["sessionStarted", "requestRaised", "requestSettled", "turnCompleted"] {
        assert!(told.contains(&format!("\"type\":\"{kind}\"")), "{kind}: {told}");
    }
    let written = std::fs::read_to_string(home.path("work/hello.txt")).expect("it was allowed");
    assert_eq!(written.trim_end(), "hi");
}

#[test]
fn the_page_on_the_server_reads_a_session_from_its_end() {
    let (told, _home) = paste(&block("docs/server.md", "`profile` says how much"), 2);
    let values: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&told)
        .into_iter()
        .map(|value| value.expect("JSON"))
        .collect();
    assert!(values[0]["messageId"].is_string(), "{told}");
    assert_eq!(values[2]["events"].as_array().map(Vec::len), Some(2), "{told}");
    assert_eq!(values[2]["events"][0].get("native"), None, "{told}");
    assert_eq!(values[3]["type"], "sessionStarted", "{told}");
    assert_eq!((&values[4]["reset"], &values[4]["ready"]), (&true.into(), &true.into()), "{told}");
}

#[test]
fn the_page_on_the_server_begins_a_session() {
    let (told, _home) = paste(&block("docs/server.md", "# The server"), 1);
    let session: serde_json::Value = serde_json::from_str(&told).expect("one answer");
    assert_eq!(session["agentType"], "demo", "{told}");
}
