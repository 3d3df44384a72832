//! A recording replaces the agent.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::shared::{Home, Program};

struct Player(Program);

impl Player {
    fn start(recording: &Recording, flags: &[&str]) -> Self {
        let mut command = recording.home.command(&["play"]);
        Self(Program::start(&recording.home, command.arg(&recording.file).args(flags)))
    }

    fn send(&mut self, line: &Value) {
        self.0.say(line);
    }

    fn line(&mut self) -> String {
        self.0.line().expect("one more line")
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Closes stdin. Returns the rest of its output and the exit code.
    fn end(&mut self) -> (Vec<String>, Option<i32>) {
        self.0.hang_up();
        let rest = std::iter::from_fn(|| self.0.line()).collect();
        (rest, self.0.end().code)
    }
}

fn output(file: &Path, flags: &[&str]) -> Output {
    Home::new().command(&["play"]).arg(file).args(flags).output().unwrap()
}

struct Recording {
    file: PathBuf,
    home: Home,
}

fn recording(lines: &[&str]) -> Recording {
    let home = Home::new();
    let file = home.path("recording.jsonl");
    std::fs::write(&file, lines.concat()).unwrap();
    Recording { file, home }
}

#[test]
fn what_an_agent_wrote_comes_out_byte_for_byte() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures");
    let hostile = fixtures.join("claude/hostile-lines/agent.jsonl");
    let played = output(&hostile, &[]);
    assert_eq!(played.status.code(), Some(0));
    assert!(played.stdout == std::fs::read(hostile).unwrap());
    let odd = recording(&["\n", "not json\r\n", "half a line"]);
    assert_eq!(output(&odd.file, &[]).stdout, b"\nnot json\r\nhalf a line");
}

#[test]
fn json_rpc_answers_bear_the_live_ids() {
    let recorded = recording(&[
        "{\"dir\":\"in\",\"t_ms\":1,\"line\":{\"id\":1,\"method\":\"initialize\"}}\n",
        "{\"dir\":\"out\",\"t_ms\":2,\"line\":{\"id\": 1,\"result\":{\"id\":1}}}\n",
        "{\"dir\":\"in\",\"t_ms\":3,\"line\":{\"method\":\"initialized\"}}\n",
        "{\"dir\":\"in\",\"t_ms\":3,\"line\":{\"id\":2,\"method\":\"thread/resume\",\"params\":{\"threadId\":\"aaaaaaaa-aaaa-4aaa\"}}}\n",
        "{\"dir\":\"out\",\"t_ms\":4,\"line\":{\"method\":\"note\",\"params\":{\"threadId\":\"aaaaaaaa-aaaa-4aaa\",\"id\":2}}}\n",
        "{\"dir\":\"out\",\"t_ms\":4,\"line\":{\"id\":2,\"method\":\"may/i\",\"params\":{}}}\n",
        "{\"dir\":\"in\",\"t_ms\":5,\"line\":{\"id\":2,\"result\":{\"decision\":\"accept\"}}}\n",
        "{\"dir\":\"out\",\"t_ms\":5,\"line\":{\"id\":2,\"result\":{}}}\n",
    ]);
    let mut player = Player::start(&recorded, &["--speed=max"]);
    player.send(&json!({ "id": "live-1", "method": "initialize", "params": { "more": true } }));
    assert_eq!(player.line(), "{\"id\": \"live-1\",\"result\":{\"id\":1}}");
    // Not in the recording, and not in its order.
    player.send(&json!({ "id": 77, "method": "model/list" }));
    assert_eq!(player.next()["error"]["code"], -32601);
    player.send(&json!({ "id": 78, "method": "thread/resume", "params": { "threadId": "bbbbbbbb-bbbb-4bbb" } }));
    player.send(&json!({ "method": "initialized" }));
    assert_eq!(
        player.line(),
        "{\"method\":\"note\",\"params\":{\"threadId\":\"bbbbbbbb-bbbb-4bbb\",\"id\":2}}"
    );
    assert_eq!(player.line(), "{\"id\":2,\"method\":\"may/i\",\"params\":{}}");
    player.send(&json!({ "id": 2, "result": { "decision": "decline" } }));
    assert_eq!(player.line(), "{\"id\":78,\"result\":{}}");
    assert_eq!(player.end(), (vec![], Some(0)));
}

#[test]
fn claude_answers_bear_the_live_ids() {
    let recorded = recording(&[
        "{\"dir\":\"in\",\"t_ms\":1,\"line\":{\"type\":\"control_request\",\"request_id\":\"then\",\"request\":{\"subtype\":\"initialize\"}}}\n",
        "{\"dir\":\"out\",\"t_ms\":9,\"line\":{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"then\",\"response\":{}}}}\n",
        "{\"dir\":\"in\",\"t_ms\":9,\"line\":{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}}\n",
        "{\"dir\":\"out\",\"t_ms\":9,\"line\":{\"type\":\"control_request\",\"request_id\":\"agent-1\",\"request\":{\"subtype\":\"can_use_tool\"}}}\n",
        "{\"dir\":\"in\",\"t_ms\":9,\"line\":{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"agent-1\",\"response\":{\"behavior\":\"allow\"}}}}\n",
        "{\"dir\":\"out\",\"t_ms\":9,\"raw\":\"not json\"}\n",
        "{\"dir\":\"exit\",\"code\":3}\n",
    ]);
    let mut player = Player::start(&recorded, &["--speed", "0"]);
    let ask = |id: &str, subtype: &str| {
        json!({
            "type": "control_request", "request_id": id, "request": { "subtype": subtype },
        })
    };
    player.send(&ask("now", "initialize"));
    assert_eq!(player.next()["response"]["request_id"], "now");
    player.send(&ask("int", "interrupt"));
    assert_eq!(player.next()["response"]["error"], "not in the recording");
    player
        .send(&json!({ "type": "user", "message": { "role": "user", "content": "other words" } }));
    assert_eq!(player.next()["request_id"], "agent-1");
    player.send(&json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": "agent-1", "response": { "behavior": "deny" },
    } }));
    assert_eq!(player.line(), "not json");
    // The recorded agent exited by itself, so the player exits too, although its client is still connected.
    assert_eq!(player.0.wait(), Some(3));
}

#[test]
fn without_its_client_it_ends_where_the_client_would_speak() {
    let recorded = recording(&[
        "{\"dir\":\"out\",\"t_ms\":0,\"line\":{\"a\":1}}\n",
        "{\"dir\":\"in\",\"t_ms\":0,\"line\":{\"type\":\"user\"}}\n",
        "{\"dir\":\"out\",\"t_ms\":0,\"line\":{\"a\":2}}\n",
    ]);
    let played = output(&recorded.file, &[]);
    assert_eq!((played.stdout.as_slice(), played.status.code()), (&b"{\"a\":1}\n"[..], Some(0)));
}

#[test]
fn time_passes_as_recorded_or_faster() {
    let recorded = recording(&[
        "{\"dir\":\"out\",\"t_ms\":1000,\"line\":1}\n",
        "{\"dir\":\"out\",\"t_ms\":1300,\"line\":2}\n",
        "{\"dir\":\"out\",\"t_ms\":60001300,\"line\":3}\n",
    ]);
    let mut player = Player::start(&recorded, &["--speed=1"]);
    assert_eq!(player.line(), "1");
    let begun = Instant::now();
    assert_eq!(player.line(), "2");
    assert!(begun.elapsed() > Duration::from_millis(250), "{:?}", begun.elapsed());
    drop(player);
    let played = output(&recorded.file, &["--speed=max"]);
    assert_eq!(played.stdout, b"1\n2\n3\n");
}

#[test]
fn what_cannot_be_played_is_told() {
    let gone = output(Path::new("/no/such/file"), &[]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8(gone.stderr).unwrap().contains("failed to open /no/such/file"));
    let empty = output(&recording(&["\n\n"]).file, &[]);
    assert!(String::from_utf8(empty.stderr).unwrap().contains("the file is empty"));
    let mixed =
        recording(&["{\"dir\":\"out\",\"t_ms\":1,\"line\":{}}\n", "\n", "{\"type\":\"user\"}\n"]);
    let mixed = output(&mixed.file, &[]);
    assert!(String::from_utf8(mixed.stderr).unwrap().contains("line 3 is not a transcript entry"));
    assert_eq!(output(Path::new("x"), &["--speed=-1"]).status.code(), Some(2));
}
