//! A client that sends far more at once than any queue holds, and then closes its input.

use serde_json::{Value, json};

use crate::every_front::program::start;
use crate::recording::DEMO;
use crate::shared::{Ended, Program};
use crate::speaker::front;

const PROMPTS: usize = 3000;

fn read(program: &mut Program) -> Vec<Value> {
    let lines = std::iter::from_fn(|| program.line());
    lines.map(|line| serde_json::from_str(&line).expect("a line is JSON")).collect()
}

/// Asserts that the agent worked on every prompt.
fn is_all(said: impl Iterator<Item = String>) {
    let text: String = said.collect();
    let missing: Vec<usize> =
        (0..PROMPTS).filter(|number| !text.contains(&format!("<{number}>"))).collect();
    assert!(missing.is_empty(), "{} were never worked on: {missing:?}", missing.len());
}

#[test]
fn claude() {
    let mut program = start(front("claude").args, DEMO);
    let prompt = |number: usize| {
        let message = json!({ "role": "user", "content": format!("/say <{number}>") });
        json!({ "type": "user", "message": message }).to_string() + "\n"
    };
    program.pour((0..PROMPTS).map(prompt).collect());
    let said = read(&mut program);
    let blocks = said.iter().filter_map(|frame| frame["message"]["content"][0]["text"].as_str());
    is_all(blocks.map(str::to_owned));
    assert_eq!(program.end_alone(), Ended { code: Some(0), stderr: String::new() });
}

#[test]
fn unified() {
    let mut program = start(front("unified").args, DEMO);
    program.say(json!({ "id": "s", "command": "start", "agentType": "demo", "prompt": "" }));
    let started: Value = serde_json::from_str(&program.line().expect("a reply")).expect("JSON");
    let session = &started["reply"]["id"];
    let prompt = |number: usize| {
        let prompt = format!("/say <{number}>");
        json!({ "id": number, "command": "prompt", "sessionId": session, "prompt": prompt })
            .to_string()
            + "\n"
    };
    let pouring = program.pour_on((0..PROMPTS).map(prompt).collect());
    // Once its input ends, the program exits within seconds, so everything must be done before that.
    let last = format!("<{}>", PROMPTS - 1);
    let (mut said, mut replies, mut is_done) = (Vec::new(), 0, false);
    while !is_done || replies < PROMPTS {
        let line = program.line().expect("it continues");
        let frame: Value = serde_json::from_str(&line).expect("a line is JSON");
        is_done |= frame["content"].as_str().is_some_and(|text| text.contains(&last));
        replies += usize::from(frame["reply"]["messageId"].is_string());
        said.push(frame);
    }
    drop(pouring.join().expect("it listens"));
    said.extend(read(&mut program));
    let replies = said.iter().filter(|frame| frame["reply"]["messageId"].is_string()).count();
    assert_eq!(replies, PROMPTS);
    let chunks = said.iter().filter(|frame| frame["type"] == "textChunk");
    is_all(chunks.filter_map(|frame| frame["content"].as_str().map(str::to_owned)));
    assert_eq!(program.end_alone(), Ended { code: Some(0), stderr: String::new() });
}
