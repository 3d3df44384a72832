//! Bash: runs a real command in the session's directory, in its own process group.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::agent::{Agent, Halt};
use super::input::{CommandEvent, Input, spawn};
use super::json::JsonFields as _;
use super::tools::Outcome;

/// How much of each output is kept; the same as Claude.
const OUTPUT_LIMIT: usize = 30_000;

/// The default timeout of a command.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long to wait for the outputs of an ended command. A process that it left behind may hold
/// them open.
const LINGER: Duration = Duration::from_millis(200);

/// A running command. Dropping it kills its process group.
pub(super) struct RunningCommand {
    number: u64,
    group: Option<Pid>,
    exited: Option<io::Result<ExitStatus>>,
    closed: u8,
    stdout: Arc<Mutex<TruncatedOutput>>,
    stderr: Arc<Mutex<TruncatedOutput>>,
}

/// The start of an output, and the number of bytes after it.
#[derive(Default)]
struct TruncatedOutput {
    bytes: Vec<u8>,
    more: u64,
}

impl TruncatedOutput {
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes).trim_end().to_owned();
        match self.more {
            0 => text,
            more => format!("{text}\n\n... [{more} bytes truncated] ..."),
        }
    }
}

impl RunningCommand {
    pub(super) fn note(&mut self, number: u64, happened: CommandEvent) {
        if number != self.number {
            return;
        }
        match happened {
            CommandEvent::Exited(status) => self.exited = Some(status),
            CommandEvent::Closed => self.closed += 1,
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let (None, Some(group)) = (&self.exited, self.group) {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Agent {
    pub(super) fn bash(&mut self, input: &Value) -> Result<Outcome, Halt> {
        if input.at("run_in_background") == true {
            return Ok(Outcome::failed("the demo agent runs commands in the foreground only"));
        }
        let command = input.at("command").as_str().unwrap_or_default();
        let patience = input.at("timeout").as_u64().map_or(PATIENCE, Duration::from_millis);
        match self.start(command) {
            Ok(running) => self.command = Some(running),
            Err(error) => return Ok(Outcome::failed(&format!("failed to run bash: {error}"))),
        }
        // However the wait ends, the command ends with it.
        let ended = self.await_command(patience);
        let running = self.command.take();
        ended?;
        Ok(running.map_or_else(
            || Outcome::failed("the command is gone"),
            |running| outcome(&running, patience),
        ))
    }

    fn start(&mut self, command: &str) -> io::Result<RunningCommand> {
        self.commands += 1;
        let number = self.commands;
        let mut child = Command::new("bash")
            .arg("-c")
            .arg(command)
            .current_dir(&self.session.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let running = RunningCommand {
            number,
            group: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            exited: None,
            closed: 0,
            stdout: capture(child.stdout.take(), number, &self.post)?,
            stderr: capture(child.stderr.take(), number, &self.post)?,
        };
        let post = self.post.clone();
        spawn("command", move || {
            let _ = post.send(Input::Command(number, CommandEvent::Exited(child.wait())));
        })?;
        Ok(running)
    }

    fn await_command(&mut self, patience: Duration) -> Result<(), Halt> {
        let until = Instant::now().checked_add(patience);
        while self.command.as_ref().is_some_and(|running| running.exited.is_none()) {
            if !self.wait(until)? {
                return Ok(());
            }
        }
        let until = Instant::now().checked_add(LINGER);
        while self.command.as_ref().is_some_and(|running| running.closed < 2) {
            if !self.wait(until)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn outcome(running: &RunningCommand, patience: Duration) -> Outcome {
    let text = |captured: &Mutex<TruncatedOutput>| {
        captured.lock().unwrap_or_else(PoisonError::into_inner).text()
    };
    let (stdout, stderr) = (text(&running.stdout), text(&running.stderr));
    let shown: Vec<&str> =
        [stdout.as_str(), stderr.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
    let shown = shown.join("\n");
    let code = match &running.exited {
        Some(Ok(status)) => status.code().or(status.signal().map(|signal| 128 + signal)),
        Some(Err(error)) => return Outcome::failed(&format!("failed to wait for bash: {error}")),
        None => {
            let seconds = patience.as_secs_f64();
            return Outcome::failed(&format!("Command timed out after {seconds} s\n{shown}"));
        }
    };
    if code != Some(0) {
        let code = code.unwrap_or(1);
        return Outcome::failed(format!("Exit code {code}\n{shown}").trim_end());
    }
    let content =
        if shown.is_empty() { "(Bash completed with no output)".to_owned() } else { shown };
    let structured = json!({
        "stdout": stdout,
        "stderr": stderr,
        "interrupted": false,
        "isImage": false,
        "noOutputExpected": false,
    });
    Outcome::done(content, structured)
}

/// Reads an output to its end and keeps its start.
fn capture(
    output: Option<impl Read + Send + 'static>,
    number: u64,
    post: &SyncSender<Input>,
) -> io::Result<Arc<Mutex<TruncatedOutput>>> {
    let captured = Arc::new(Mutex::new(TruncatedOutput::default()));
    let (reader, post) = (Arc::clone(&captured), post.clone());
    spawn("output", move || {
        let mut chunk = [0; 8 << 10];
        if let Some(mut output) = output {
            loop {
                let read = match output.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(read) => chunk.get(..read).unwrap_or_default(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                let mut captured = reader.lock().unwrap_or_else(PoisonError::into_inner);
                let room = OUTPUT_LIMIT.saturating_sub(captured.bytes.len()).min(read.len());
                let (shown, dropped) = read.split_at(room);
                captured.bytes.extend_from_slice(shown);
                captured.more += dropped.len() as u64;
            }
        }
        let _ = post.send(Input::Command(number, CommandEvent::Closed));
    })?;
    Ok(captured)
}
