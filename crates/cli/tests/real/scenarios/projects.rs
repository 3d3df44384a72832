//! What the files of a project can run: nothing before somebody trusts them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Place;
use crate::mcp;
use crate::talk::Talk;

/// A project file that makes a program touch a trace file.
struct Plant {
    name: &'static str,
    path: &'static str,
    text: fn(touch: &str) -> String,
}

/// A command that leaves a trace, then becomes an MCP server.
fn server(touch: &str) -> Value {
    let own = std::env::current_exe().expect("a program");
    let words = format!("{touch}; exec {} {}", own.display(), mcp::VERB);
    json!({ "command": "sh", "args": ["-c", words] })
}

fn hook(touch: &str) -> Value {
    json!([{ "hooks": [{ "type": "command", "command": touch }] }])
}

const CLAUDE: &[Plant] = &[
    Plant {
        name: "hook",
        path: ".claude/settings.json",
        text: |touch| json!({ "hooks": { "SessionStart": hook(touch) } }).to_string(),
    },
    Plant {
        name: "key",
        path: ".claude/settings.json",
        text: |touch| json!({ "apiKeyHelper": format!("{touch}; echo made-up") }).to_string(),
    },
    Plant {
        name: "local",
        path: ".claude/settings.local.json",
        text: |touch| json!({ "hooks": { "UserPromptSubmit": hook(touch) } }).to_string(),
    },
    Plant {
        name: "server",
        path: ".mcp.json",
        text: |touch| json!({ "mcpServers": { "planted": server(touch) } }).to_string(),
    },
];

const CODEX: &[Plant] = &[
    Plant {
        name: "server",
        path: ".codex/config.toml",
        text: |touch| {
            let server = server(touch);
            format!(
                "[mcp_servers.planted]\ncommand = {}\nargs = {}\n",
                server["command"], server["args"]
            )
        },
    },
    Plant {
        name: "notify",
        path: ".codex/config.toml",
        text: |touch| format!("notify = {}\n", json!(["sh", "-c", touch])),
    },
];

const GEMINI: &[Plant] = &[
    Plant {
        name: "server",
        path: ".gemini/settings.json",
        text: |touch| json!({ "mcpServers": { "planted": server(touch) } }).to_string(),
    },
    Plant {
        name: "hook",
        path: ".gemini/settings.json",
        text: |touch| {
            let hook = json!([{ "matcher": "*", "hooks": [
                { "type": "command", "name": "planted", "command": touch }] }]);
            json!({ "hooks": { "SessionStart": hook, "BeforeAgent": hook } }).to_string()
        },
    },
];

/// The plants for this program, and whether each runs once it is trusted.
fn plants(place: &Place) -> Vec<(&'static Plant, bool)> {
    let (plants, unheeded): (_, &[&str]) = match (place.agent.kind, place.agent.driver) {
        ("claude", _) => (CLAUDE, &[]),
        // It reads `notify` only from the user's settings.
        ("codex", _) => (CODEX, &["notify"]),
        ("gemini", _) => (GEMINI, &[]),
        (_, _) => (CLAUDE, &[]),
    };
    plants.iter().map(|plant| (plant, !unheeded.contains(&plant.name))).collect()
}

fn planted(place: &Place, plant: &Plant) -> (PathBuf, PathBuf) {
    let work = place.workspace();
    let trace = work.with_extension("trace");
    let path = work.join(plant.path);
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, (plant.text)(&format!("touch {}", trace.display()))).expect("a file");
    (work, trace)
}

/// How the working directory relates to its parent, which contains the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Around {
    Same,
    Nested,
    NoRepository,
}

/// Plants the file in the parent of the working directory.
fn planted_above(place: &Place, plant: &Plant, around: Around) -> (PathBuf, PathBuf) {
    let (work, trace) = planted(place, plant);
    let inner = work.join("inner");
    fs::create_dir(&inner).expect("a directory");
    match around {
        Around::Same => {}
        Around::Nested => {
            let _ = Command::new("git").args(["init", "-q"]).current_dir(&inner).status();
        }
        Around::NoRepository => fs::remove_dir_all(work.join(".git")).expect("a repository"),
    }
    (inner, trace)
}

fn asked(talk: &mut Talk<'_>, plant: &Plant, trace: &Path) -> String {
    let (request, id) = talk.asked();
    assert_eq!(request["toolName"], "TrustDirectory", "{request}");
    assert_eq!(request["input"]["files"][0]["path"], plant.path, "{request}");
    assert!(request["input"]["files"][0]["runs"].to_string().contains("touch "), "{request}");
    assert!(!trace.exists(), "{}: it ran before it was trusted", plant.name);
    id
}

/// Nothing runs before it is trusted; without trust nothing runs at all.
pub(crate) fn distrusted(place: &mut Place) {
    // These do not start without project settings.
    let starts = place.agent.kind != "acp" && place.agent.name != "gemini -p";
    for (plant, _) in plants(place) {
        let (work, trace) = planted(place, plant);
        let mut talk = place.session(&work, "[[say done]]", json!({}));
        let id = asked(&mut talk, plant, &trace);
        talk.settle(&id, &json!({ "behavior": "deny", "message": "no" }));
        if starts {
            talk.completed();
            assert_eq!(talk.text().trim(), "done", "{}", talk.digest());
            talk.stop();
        } else {
            let end = talk.next("sessionEnded");
            assert_eq!(end["reason"], "failed", "{end}");
        }
        assert!(!trace.exists(), "{}: it ran although it was not trusted", plant.name);
        // The same if there is nobody to ask.
        let said = place.run(&work, &[], "[[say done]]");
        let errors = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(4), "{errors}");
        assert!(!trace.exists(), "{}: it ran although nobody was asked", plant.name);
    }
}

/// Wherever the program looks for its files, nothing runs that nobody was asked about.
pub(crate) fn above(place: &mut Place) {
    let all = [Around::Same, Around::Nested, Around::NoRepository];
    for (plant, around) in
        plants(place).iter().flat_map(|(plant, _)| all.map(|around| (plant, around)))
    {
        let (work, trace) = planted_above(place, plant, around);
        let mut talk = place.session(&work, "[[say done]]", json!({}));
        let first = talk.until("question or end", |event| {
            let kind = event["type"].as_str().unwrap_or_default();
            matches!(kind, "requestRaised" | "turnCompleted" | "turnFailed")
        });
        if first["type"] == "requestRaised" {
            let id = first["requestId"].as_str().expect("an id");
            talk.settle(id, &json!({ "behavior": "deny", "message": "no" }));
            talk.until("end", |event| {
                let kind = event["type"].as_str().unwrap_or_default();
                matches!(kind, "turnCompleted" | "turnFailed" | "sessionEnded")
            });
        }
        let (name, digest) = (plant.name, talk.digest());
        assert!(!trace.exists(), "{name}, {around:?}: it ran unasked: {digest}");
    }
}

/// What is trusted runs, and is not asked about again until it changes.
pub(crate) fn trusted(place: &mut Place) {
    for (plant, runs) in plants(place) {
        let (work, trace) = planted(place, plant);
        let mut talk = place.session(&work, "[[say done]]", json!({}));
        let id = asked(&mut talk, plant, &trace);
        talk.settle(&id, &json!({ "behavior": "allow" }));
        talk.completed();
        talk.stop();
        assert!(!runs || trace.exists(), "{}: it did not run: {}", plant.name, talk.digest());
        let mut talk = place.session(&work, "[[say again]]", json!({}));
        talk.completed();
        assert!(talk.of("requestRaised").is_empty(), "{}", talk.digest());
        talk.stop();
        fs::write(work.join(plant.path), (plant.text)("touch another")).expect("a file");
        let mut talk = place.session(&work, "[[say changed]]", json!({}));
        let (request, _) = talk.asked();
        assert_eq!(request["toolName"], "TrustDirectory", "{request}");
        talk.stop();
        // The operator's own start needs no request.
        let said = place.run(&work, &["--trust"], "[[say done]]");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
}
