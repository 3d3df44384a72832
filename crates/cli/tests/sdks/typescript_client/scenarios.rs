//! The TypeScript client in the scenarios that every client must survive.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::package::{built, source};
use crate::scenarios::{Reader, Task, play_all};
use crate::shared::SDKS;

const WAYS: [&str; 2] = ["events", "polling"];

static MODULE: OnceLock<PathBuf> = OnceLock::new();

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn the_client_survives_every_scenario() {
    if !SDKS.is_on() {
        return;
    }
    MODULE.set(built().await.join("dist/index.js")).unwrap();
    play_all(&WAYS, start).await;
}

/// Starts the client as a process, which ends with its reader.
fn start(task: Task) -> Reader {
    let Task { url, token, way, session, directory, plan } = task;
    let task = json!({
        "url": url, "token": token, "way": way, "session": session, "directory": directory,
        "plan": {
            "after": plan.after, "profile": plan.profile, "pauseAt": plan.pause_at,
            "creates": plan.creates, "prompts": plan.prompts,
        },
    });
    let mut child = tokio::process::Command::new("node")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .arg(source().join("support/reader.mjs"))
        .arg(MODULE.get().unwrap())
        .arg(task.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut input = child.stdin.take().unwrap();
    let (reports, received) = mpsc::unbounded_channel();
    let (go, mut gone) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { break };
                    let report = serde_json::from_str(&line).unwrap();
                    if reports.send(report).is_err() {
                        break;
                    }
                }
                Some(()) = gone.recv() => input.write_all(b"go\n").await.unwrap(),
            }
        }
        let _ = child.kill().await;
    });
    Reader { reports: received, go: Box::new(move || go.send(()).unwrap()) }
}
