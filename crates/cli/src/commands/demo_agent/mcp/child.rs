//! An MCP server that we start, over its pipes.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::commands::demo_agent::input::{Input, QUEUE, lines, spawn};
use crate::commands::demo_agent::json::JsonFields as _;

/// Dropping it kills the server's process group.
pub(super) struct Child {
    process: process::Child,
    /// Messages for the writer thread, so that a server that does not read blocks nothing else.
    messages: SyncSender<String>,
}

impl Child {
    pub(super) fn start(
        config: &Value,
        directory: &Path,
        number: usize,
        post: &SyncSender<Input>,
    ) -> io::Result<Self> {
        let program = config.at("command").as_str().unwrap_or_default();
        let args = config.at("args").as_array().into_iter().flatten().filter_map(Value::as_str);
        let env = config.at("env").as_object().into_iter().flatten();
        let mut process = Command::new(program)
            .args(args)
            .envs(env.filter_map(|(name, value)| Some((name, value.as_str()?))))
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("failed to start {program:?}: {error}"))
            })?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let (messages, outgoing) = sync_channel::<String>(QUEUE);
        // From here on, dropping it on an error ends the process.
        let child = Self { process, messages };
        spawn("server in", move || {
            let Some(mut stdin) = stdin else { return };
            for message in outgoing {
                if stdin.write_all(message.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                    return;
                }
            }
        })?;
        let post = post.clone();
        spawn("server out", move || {
            if let Some(stdout) = stdout {
                lines(stdout, |line| post.send(Input::Server(number, line)).is_ok());
            }
            let _ = post.send(Input::ServerEnd(number));
        })?;
        Ok(child)
    }

    /// Whether the message was accepted.
    pub(super) fn send(&self, message: &Value) -> bool {
        self.messages.try_send(format!("{message}\n")).is_ok()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let group = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}
