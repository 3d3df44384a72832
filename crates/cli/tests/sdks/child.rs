//! Runs a program with a deadline, and finds the processes it leaves.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use crate::shared::marked;

/// How long a process may outlive its client. Generous, for a loaded machine.
const SURVIVAL: Duration = Duration::from_secs(10);

const KILLED: &str = "killed at the deadline";

/// Runs a program to its end, or kills it at the deadline. An error contains all its output. The output
/// goes to a file, so that a process that still holds its pipes does not keep us waiting.
pub(crate) async fn run(
    mut command: Command,
    deadline: Duration,
    log: &Path,
) -> Result<(), String> {
    let output = File::create(log).unwrap();
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
    let mut command = tokio::process::Command::from(command);
    let mut child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("failed to start {command:?}: {error}"))?;
    let ended = match timeout(deadline, child.wait()).await {
        Ok(status) => status.unwrap().to_string(),
        Err(_) => {
            child.kill().await.unwrap();
            KILLED.to_owned()
        }
    };
    let said = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    if ended == "exit status: 0" { Ok(()) } else { Err(format!("{ended}\n{said}")) }
}

/// Waits until no process with the mark is left. Kills those that stay, and panics.
pub(crate) async fn assert_none_left(mark: &str) {
    let begun = Instant::now();
    let mut left = marked(mark);
    while !left.is_empty() && begun.elapsed() < SURVIVAL {
        tokio::time::sleep(Duration::from_millis(5)).await;
        left = marked(mark);
    }
    for (pid, _) in &left {
        let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
    }
    assert!(left.is_empty(), "left behind: {left:?}");
}
