//! Time from the start of the server until it listens, and from a request to the first event (goal 14).

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::agent;
use crate::place::Server;
use crate::report::{median, micros, time};

/// Measurements of each kind per round.
const TIMES: usize = 5;

pub async fn run(rounds: usize) {
    let (mut ready, mut program, mut first, mut bare) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut server = Server::start();
    for _ in 0..rounds * TIMES {
        // Restart over an existing log, which the first start created.
        server = server.restart();
        ready.push(micros(server.ready));
        program.push(started(env!("CARGO_BIN_EXE_agentwire"), "--version"));
        first.push(began(&server).await);
        bare.push(answered());
    }
    let [ready, program, first, bare] = [ready, program, first, bare].map(median);
    println!("Start, medians of {}:\n", rounds * TIMES);
    println!("| | time |");
    println!("|---|---|");
    println!("| `agentwire --version`, the whole process | {} |", time(program));
    println!("| start of the server → it listens | {} |", time(ready));
    println!("| the agent's own start → its first answer | {} |", time(bare));
    println!("| create → the agent's first answer, over HTTP, durable | {} |", time(first));
    println!("| of which beyond the agent's own start | {} |", time((first - bare).max(0.0)));
}

fn started(program: &str, arg: &str) -> f64 {
    let begun = Instant::now();
    let status = Command::new(program).arg(arg).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    micros(begun.elapsed())
}

/// Microseconds from the request to the first event that the agent caused.
async fn began(server: &Server) -> f64 {
    let body = json!({ "agentType": "claude", "prompt": "" }).to_string();
    let begun = Instant::now();
    let session = server.ask("POST", "/v1/sessions", &body).await;
    let id = session["id"].as_str().unwrap();
    let path = format!("/v1/sessions/{id}/events?after=1&wait=10");
    let page = server.ask("GET", &path, "").await;
    let time = micros(begun.elapsed());
    assert!(!page["events"].as_array().unwrap().is_empty());
    server.ask("POST", &format!("/v1/sessions/{id}/stop"), "{}").await;
    time
}

/// Microseconds from the start of the agent to its answer to the greeting.
fn answered() -> f64 {
    use std::io::{BufRead as _, BufReader, Write as _};
    let begun = Instant::now();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(agent::VERB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", agent::greeting()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let time = micros(begun.elapsed());
    drop(stdin);
    child.wait().unwrap();
    time
}
