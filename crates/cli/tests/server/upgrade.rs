//! The program's file is replaced or removed while the server runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::shared::{AGENTWIRE, Server};

/// Starts the copy instead of the program. Its name may also be that of an agent.
const COPY: &str = "copy=$0; shift; exec \"$copy\" \"$@\"";

fn runs_on(name: &str, change: impl FnOnce(&Path)) {
    let place = tempfile::tempdir().expect("a directory");
    let copy = place.path().join(name);
    fs::copy(AGENTWIRE, &copy).expect("a copy");
    let server = Server::launched(&["sh", "-c", COPY, copy.to_str().expect("UTF-8")], &[]);
    let session = server.session("/say before");
    server.until(&session, "turnCompleted");
    change(&copy);
    let session = server.session("/bash echo after\n/say {result}");
    server.until_open(&session);
    let asked = server.until(&session, "requestRaised");
    let id = asked.last().expect("an event")["requestId"].as_str().expect("an id").to_owned();
    let allow = json!({ "behavior": "allow" });
    server.post(&format!("/v1/sessions/{session}/requests/{id}"), &allow);
    let events = server.until(&session, "turnCompleted");
    assert!(json!(events).to_string().contains("after"), "{events:?}");
    let name = fs::read_to_string(format!("/proc/{}/comm", server.pid())).expect("a name");
    assert_eq!(name.trim(), "agentwire");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn sessions_start_after_the_program_was_removed() {
    runs_on("agentwire", |copy| fs::remove_file(copy).expect("removed"));
}

/// The version that runs is the server's, never the file that is there now.
#[test]
fn sessions_start_after_the_program_was_replaced() {
    runs_on("agentwire", |copy| {
        let other = copy.with_extension("new");
        fs::write(&other, "#!/bin/sh\nexit 7\n").expect("a file");
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("a program");
        fs::rename(&other, copy).expect("replaced");
    });
}
