//! Goldens: recordings of real agents as the view shows them, and hostile text.

use std::path::Path;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Draft, Stamp, Tape};
use agentwire_protocol::Event;

use super::{Lens, Style, View};

/// The recordings; each has something that the others lack.
const CASES: [&str; 18] = [
    "acp/real-replace-fs-allow",
    "acp/seed-plan",
    "claude/edge-nested-subagents-three-deep",
    "claude/edge-parallel-tools-results-in-one-message",
    "claude/real-c13-bash-fails",
    "claude/real-c3-bash-permission-deny",
    "claude/real-c8-write-permission",
    "claude/real-d1-ask-user-question",
    "claude/real-e2-interrupt-mid-tool",
    "claude/real-i3-subagent-background-default",
    "claude/real-l1-api-error-400",
    "claude/edge-stream-thinking-and-signature",
    "codex/real-app-command-big-output",
    "codex/real-app-file-change-approval-accept",
    "codex/real-app-mcp-tool-call",
    "codex/real-app-collab-spawn",
    "codex/real-exec-error-500",
    "gemini/real-two",
];

/// The events of a recording, a tenth of a second apart.
fn events(case: &str) -> Vec<Event<'static>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures").join(case);
    let bytes = std::fs::read(folder.join("agent.jsonl")).expect("a fixture");
    let name = case.split('/').next().unwrap_or_default();
    let mut tape = Tape::recording(agentwire_dialects::agent(name).expect("a dialect"));
    let mut events = Vec::new();
    let sink = &mut |draft: Draft<'_>| events.push(stamped(draft, events.len() as u64 + 1));
    tape.feed(&bytes, sink);
    tape.end(Exit::Code(0), sink);
    events
}

fn stamped(draft: Draft<'_>, seq: u64) -> Event<'static> {
    let timestamp = format!("2026-01-01T00:00:{:02}.{}00Z", seq / 10 % 60, seq % 10);
    let stamp = Stamp { id: "e", session_id: "s", seq, timestamp: &timestamp };
    draft.stamp(stamp, |event| {
        let mut line = Vec::new();
        event.write_line(&mut line).expect("an event can be written");
        Event::from_json(std::str::from_utf8(&line).expect("UTF-8")).expect("an event")
    })
}

fn shown(events: Vec<Event<'static>>, mut view: View) -> String {
    let mut text = Vec::new();
    for event in events {
        view.event(event, &mut text).expect("memory can be written");
    }
    view.rest(&mut text).expect("memory can be written");
    String::from_utf8(text).expect("UTF-8")
}

fn check(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name.replace('/', "-"), text);
    });
}

#[test]
fn recordings_are_shown_whole() {
    for case in CASES {
        let view = View::new(Style::default(), Lens::Whole).with_prompts();
        check(case, &shown(events(case), view));
    }
}

#[test]
fn colours_only_add_escapes() {
    for case in CASES {
        let coloured = shown(events(case), View::new(Style { color: true }, Lens::Whole));
        let plain = shown(events(case), View::new(Style::default(), Lens::Whole));
        let mut bare = coloured.clone();
        for code in ["0", "1", "2", "31", "32", "33", "36"] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(bare, plain, "{case}");
    }
    let case = "codex/real-app-file-change-approval-accept";
    let coloured = shown(events(case), View::new(Style { color: true }, Lens::Whole));
    check("coloured", &coloured.replace('\x1b', "␛"));
}

/// stdout and stderr together show everything.
#[test]
fn the_answer_is_the_text_of_the_main_agent() {
    let case = "claude/edge-nested-subagents-three-deep";
    let of = |lens| shown(events(case), View::new(Style::default(), lens));
    check("answer", &of(Lens::Answer));
    check("progress", &of(Lens::Progress));
    check("notes", &of(Lens::Notes));
    assert_eq!(
        shown(
            events("claude/real-c3-bash-permission-deny"),
            View::new(Style::default(), Lens::Notes)
        ),
        "agentwire: denied: Bash  touch probe.txt && ls\n"
    );
}

/// No field of any agent's line can send a control character.
#[test]
fn no_recording_drives_the_terminal() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures");
    let mut count = 0;
    for dialect in ["acp", "claude", "codex", "gemini"] {
        for folder in std::fs::read_dir(root.join(dialect)).expect("fixtures") {
            let name = folder.expect("a case").file_name().to_string_lossy().into_owned();
            let case = format!("{dialect}/{name}");
            for lens in [Lens::Whole, Lens::Answer, Lens::Progress, Lens::Notes] {
                let text = shown(events(&case), View::new(Style::default(), lens));
                let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
                assert!(!text.contains(harmful), "{case}");
                assert!(text.is_empty() || text.ends_with('\n'), "{case}");
                count += 1;
            }
        }
    }
    assert!(count > 400, "the fixtures are missing");
}

#[test]
fn hostile_words_are_shown_escaped() {
    let event = |kind: &str| {
        let text = format!(
            r#"{{"id":"e","sessionId":"s","seq":1,"timestamp":"2026-01-01T00:00:00Z",{kind},"agentId":"main"}}"#
        );
        Event::from_json(&text).expect("an event")
    };
    let evil = r"\u001b[2J\u202e\u0007\u009b";
    let events = vec![
        event(&format!(
            r#""type":"toolStarted","toolId":"t","toolName":"B{evil}","arguments":{{"command":"ls\n{evil}"}}"#
        )),
        event(&format!(r#""type":"toolCompleted","toolId":"t","success":false,"error":"{evil}""#)),
        event(&format!(
            r#""type":"fileChanged","filePath":"a{evil}","changeType":"modified","diff":"@@ -1 +1 @@\n-{evil}\n+{evil}\n""#
        )),
        event(&format!(r#""type":"textChunk","content":"x{evil}\ry""#)),
        event(&format!(
            r#""type":"planUpdated","entries":[{{"content":"{evil}","status":"pending"}}]"#
        )),
        event(&format!(r#""type":"error","message":"{evil}""#)),
    ];
    check("hostile", &shown(events, View::new(Style::default(), Lens::Whole)));
}

/// A word at a time or all at once, the output is the same.
#[test]
fn chunks_do_not_show() {
    let chunk = |text: &str, complete: bool| {
        let text = serde_json::json!({"id":"e","sessionId":"s","seq":1,"timestamp":"2026-01-01T00:00:00Z",
            "type":"textChunk","content":text,"isComplete":complete,"blockId":"b","agentId":"main"});
        Event::from_json(&text.to_string()).expect("an event")
    };
    let text = "Two lines,\nand a blank one:\n\nend";
    let pieces: Vec<_> = text.split_inclusive(' ').map(|piece| chunk(piece, false)).collect();
    let pieces = pieces.into_iter().chain([chunk("", true)]).collect();
    let view = || View::new(Style::default(), Lens::Answer);
    assert_eq!(shown(pieces, view()), format!("{text}\n"));
    assert_eq!(shown(vec![chunk(text, true)], view()), format!("{text}\n"));
}
