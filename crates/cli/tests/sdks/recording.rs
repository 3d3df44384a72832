//! Fixtures hold what an agent wrote. Here its client is put back in, for `agentwire play`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Turns of `codex app-server`.
pub(crate) fn codex(fixture: &str) -> String {
    woven("codex", fixture, &["thread/start", "turn/start"])
}

/// Turns of an ACP agent.
pub(crate) fn acp(fixture: &str) -> String {
    woven("acp", fixture, &["session/new", "session/prompt"])
}

/// The client asks for the next thing at once when it has the answer to the last, and answers what it is
/// asked. Further turns it begins where the agent answers for them.
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
    // Recorded with another policy than the one that agentwire asks for and insists on.
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
