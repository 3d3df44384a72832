//! `export`.

use std::os::unix::fs::PermissionsExt as _;

use agentwire_protocol::{Command, Event, SessionId, SessionState, Settlement};

use crate::shared::error;
use crate::verbs::harness::{EngineHome, code};

const EVERYTHING: &str = "\
/think a thought
/say Hello,\\nworld ```x```
/write made.txt new text
/bash true
/read absent.txt
/plan one | two
/task helper
/say from below
/end
/usage 10 20 30 40";

/// The log as it is in the store.
fn kept(home: &EngineHome, id: &SessionId) -> Vec<u8> {
    let hub = home.hub();
    home.runtime.block_on(async {
        let mut cursor = hub.events(id, 0).await.expect("a cursor");
        let mut bytes = Vec::new();
        while let Some(batch) = cursor.next().await.expect("events") {
            bytes.extend_from_slice(&batch.lines);
        }
        hub.shutdown().await;
        bytes
    })
}

#[test]
fn jsonl_is_the_log_byte_for_byte() {
    let home = EngineHome::new();
    let id =
        home.ended("/say one\n/raw {\"odd\": \"\\ud83d\", \"odd\": 1e400}\n/raw \u{feff}no json");
    let output = home.run(&["export", &id.as_str()[..8]]);
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(output.stdout, kept(&home, &id));
    assert_eq!(error(&output), "");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for (number, line) in (1..).zip(text.lines()) {
        assert_eq!(Event::from_json(line).expect("an event").seq, number);
    }
}

#[test]
fn what_runs_is_written_as_far_as_it_is() {
    let home = EngineHome::new();
    let hub = home.hub();
    let live = home.start(&hub, "/say first\n/bash true");
    home.runtime.block_on(live.until(|now| now.state == SessionState::WaitingPermission));
    let text = home.told(&["export", live.id().as_str()]);
    assert!(text.contains("requestRaised") && !text.contains("sessionEnded"), "{text}");
    home.runtime.block_on(hub.shutdown());
}

#[test]
fn a_transcript_reads_well() {
    let home = EngineHome::new();
    let hub = home.hub();
    let session = home.start(&hub, EVERYTHING);
    home.runtime.block_on(async {
        while session
            .until(|now| now.open_requests > 0 || now.state == SessionState::Idle)
            .await
            .state
            != SessionState::Idle
        {
            let record = hub.record(session.id()).await.expect("a record");
            for request in record.open.requests.keys() {
                let deny = Settlement::deny(request.as_str(), "not now");
                // It may be settled already.
                let _ = session.send(Command::Settle(deny)).await;
            }
        }
        hub.shutdown().await;
    });
    let id = session.id().as_str();

    let text = home.told(&["export", id, "--format", "text"]);
    for part in [
        "--- turn 1 ---",
        "> /think a thought",
        "[Thinking]",
        "Hello,\nworld ```x```\n",
        "/work/made.txt\n",
        "[Asked] Write: denied by client",
        "- [ ] two\n",
        "    from below\n",
        "10 in, 20 out, 30 from cache, 40 to cache",
        "[Session ended]",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    let markdown = home.told(&["export", id, "--format", "markdown"]);
    for part in ["# /think a thought", "## Turn 1", "**Bash** `true`", "> from below\n", "*Done:*"]
    {
        assert!(markdown.contains(part), "{part:?} is missing in\n{markdown}");
    }
}

#[test]
fn a_file_is_its_owners_alone_and_comes_only_with_a_session() {
    let home = EngineHome::new();
    let id = home.ended("/say hi");
    let file = home.path("out.jsonl");
    let name = file.to_str().expect("UTF-8");

    let output = home.run(&["export", "beef0000", "-o", name]);
    assert_eq!(code(&output), Some(2));
    assert!(!file.exists());

    assert_eq!(home.told(&["export", id.as_str(), "-o", name]), "");
    assert_eq!(std::fs::read(&file).expect("the file"), kept(&home, &id));
    let mode = file.metadata().expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let output = home.run(&["export", id.as_str(), "-o", "/nowhere/at/all"]);
    assert_eq!(code(&output), Some(1));
    assert!(error(&output).contains("failed to write /nowhere/at/all"), "{}", error(&output));
}
