//! Fixtures contain what an agent wrote. This adds the client's side, for `agentwire play`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(crate) fn codex(fixture: &str) -> String {
    woven("codex", fixture, &["thread/start", "turn/start"])
}

pub(crate) fn acp(fixture: &str) -> String {
    woven("acp", fixture, &["session/new", "session/prompt"])
}

/// The client sends its next call as soon as the last one is answered, and answers the agent's requests. It
/// starts further turns where the agent answers them.
fn woven(dialect: &str, fixture: &str, [open, prompt]: &[&str; 2]) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures");
    let agent =
        fs::read_to_string(fixtures.join(dialect).join(fixture).join("agent.jsonl")).unwrap();
    let lines: Vec<(&str, Value)> =
        agent.lines().map(|line| (line, serde_json::from_str(line).unwrap())).collect();
    let answers: Vec<&Value> =
        lines.iter().filter(|(_, line)| is_answer(line)).map(|(_, line)| &line["id"]).collect();
    let client = |line: &Value| format!("{{\"dir\":\"in\",\"line\":{line}}}\n");
    let request =
        |number: usize, method: &str| client(&json!({ "id": answers[number], "method": method }));
    // Replaces the recorded approval policy with the one that agentwire requires.
    let asking = |text: &str| {
        text.replace(r#""approvalPolicy":"on-request""#, r#""approvalPolicy":"untrusted""#)
    };
    let mut transcript = request(0, "initialize");
    let mut answered = 0;
    for (text, line) in &lines {
        if is_answer(line) && answered > 2 {
            transcript.push_str(&request(answered, prompt));
        }
        let text = asking(text);
        transcript.push_str(&format!("{{\"dir\":\"out\",\"line\":{text}}}\n"));
        if is_answer(line) {
            answered += 1;
            match answered {
                1 => transcript.push_str(&request(1, open)),
                2 => transcript.push_str(&request(2, prompt)),
                _ => {}
            }
        } else if let Some(id) = line.get("id") {
            transcript.push_str(&client(&json!({ "id": id, "result": {} })));
        }
    }
    transcript
}

fn is_answer(line: &Value) -> bool {
    line.get("method").is_none()
}
