//! The child process: starts it, exchanges lines with it, and ends it without leaving anything behind.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agentwire_protocol::{Command, CommandFrame, Json, SessionId};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Launch;
use super::router::{Attaching, CallResult, Queue, Router};
use crate::error::{AgentError, AgentErrorType};
use crate::event_lines::EventLines;

/// How many lines may wait to be written.
const QUEUED_LINES: usize = 16;

/// How long the child may take to exit after its stdin closes. It stops its sessions first, which takes
/// less.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit of a reply: the child may have to ask an agent.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// How many bytes of stderr to keep.
const STDERR_BYTES: usize = 4 << 10;

/// A running child process. Dropping this closes its stdin; the child then stops its sessions and exits.
#[derive(Debug)]
pub(super) struct Child {
    pid: u32,
    router: Arc<Router>,
    lines: mpsc::Sender<String>,
    /// Held from before a reader joins until the child replies to its attach. The child may process two
    /// attaches in any order, and shows the session from where the last one says.
    turn: Arc<tokio::sync::Mutex<()>>,
    closing: CancellationToken,
    /// Waits for the child to exit.
    waiter: Mutex<Option<JoinHandle<()>>>,
    name: String,
}

/// A reader of one session.
pub(super) struct Reader {
    session: SessionId,
    queue: Arc<Queue>,
    /// Keeps the child alive while someone reads.
    child: Arc<Child>,
    is_over: bool,
}

impl Child {
    pub(super) fn start(launch: &Launch) -> Result<Self, AgentError> {
        let name = format!("{} unified", launch.program.display());
        let mut command = tokio::process::Command::new(&launch.program);
        command
            .arg("unified")
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        let failed = |why: &dyn std::fmt::Display| {
            let message = format!("failed to start {name}: {why}");
            AgentError::new(AgentErrorType::ConnectionFailed, message).with_native(why)
        };
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let (Some(stdin), Some(stdout), Some(stderr), Some(pid)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take(), child.id())
        else {
            return Err(failed(&"it has no pipes"));
        };
        let (lines, written) = mpsc::channel(QUEUED_LINES);
        let router = Arc::new(Router::new(lines.downgrade()));
        let mut writer = tokio::spawn(write(stdin, written));
        let stderr_tail = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::spawn(keep_stderr_tail(stderr, Arc::clone(&stderr_tail)));
        let closing = CancellationToken::new();
        let captured = (Arc::clone(&router), name.clone(), closing.clone());
        let waiter = tokio::spawn(async move {
            let (router, name, closing) = captured;
            let ended = async {
                read(stdout, &router).await;
                // Stdout is closed.
                tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await
            };
            let late = async {
                tokio::select! {
                    _ = &mut writer => {}
                    () = closing.cancelled() => {}
                }
                tokio::time::sleep(EXIT_TIMEOUT).await;
            };
            let ended = tokio::select! {
                ended = ended => ended.ok().and_then(Result::ok),
                () = late => None,
            };
            if ended.is_none() {
                let _ = child.kill().await;
            }
            writer.abort();
            // Its last error messages arrive at once.
            let _ = tokio::time::timeout(Duration::from_secs(1), listener).await;
            let stderr_tail = stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
            let stderr_tail = String::from_utf8_lossy(&stderr_tail).trim().to_owned();
            router.end(&exit_error(&name, ended, &stderr_tail));
        });
        let (turn, waiter) = (Arc::default(), Mutex::new(Some(waiter)));
        Ok(Self { pid, router, lines, turn, closing, waiter, name })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.router.is_over() && !self.lines.is_closed()
    }

    /// Sends a call and waits for its reply.
    pub(super) async fn call(
        &self,
        line: impl FnOnce(Json<'static>) -> String,
        attaching: Option<Attaching>,
    ) -> CallResult {
        let called = async {
            // Register the call only when it can be sent. If it cannot, the child's end says why.
            let room = self.lines.reserve().await;
            let (number, replied) = self.router.call(attaching)?;
            let _forget = ForgetOnDrop { router: &self.router, number };
            if let Ok(room) = room {
                room.send(line(Json::of(&number)));
            }
            replied.await.map_err(|_| AgentError::broken(&self.name, "it has exited"))?
        };
        tokio::time::timeout(REPLY_TIMEOUT, called).await.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Starts to read a session.
    pub(super) async fn follow(
        self: &Arc<Self>,
        session: &SessionId,
        after: u64,
    ) -> Result<Reader, AgentError> {
        let turn = tokio::time::timeout(REPLY_TIMEOUT, Arc::clone(&self.turn).lock_owned()).await;
        let turn = turn.map_err(|_| self.timed_out())?;
        let (queue, after) = self.router.join(session, after);
        let reader = Reader {
            session: session.clone(),
            queue: Arc::clone(&queue),
            child: Arc::clone(self),
            is_over: false,
        };
        let attaching = Attaching { session: session.clone(), reader: queue, _turn: turn };
        self.call(|id| attach(session, after, id), Some(attaching)).await?;
        Ok(reader)
    }

    /// Stops the events of a session that has no readers.
    pub(super) fn leave_unread(&self, session: &SessionId) {
        self.router.leave_unread(session);
    }

    /// Ends the child and waits for it.
    pub(super) async fn end(self: Arc<Self>) {
        self.closing.cancel();
        let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut waiter) = waiter else { return };
        // The writer closes stdin after all earlier lines. A child that does not read is killed.
        tokio::select! {
            _ = self.lines.send(String::new()) => {}
            _ = &mut waiter => return,
        }
        let _ = waiter.await;
    }

    fn timed_out(&self) -> AgentError {
        AgentError::timed_out(&self.name, REPLY_TIMEOUT.as_secs())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Removes a call that no one waits for.
struct ForgetOnDrop<'r> {
    router: &'r Router,
    number: u64,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.router.forget(self.number);
    }
}

impl Reader {
    /// The next events; `Ok(None)` if the reader was too slow and was dropped.
    pub(super) async fn next(&mut self) -> Option<Result<Option<EventLines>, AgentError>> {
        if self.is_over {
            return None;
        }
        let next = self.queue.next().await;
        self.is_over = !matches!(next, Ok(Some(_)));
        Some(next)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.child.router.leave(&self.session, &self.queue);
    }
}

fn attach(session: &SessionId, after: u64, id: Json<'static>) -> String {
    let session_id = Some(session.to_string());
    let frame = CommandFrame { id: Some(id), session_id, command: Command::Attach { after } };
    frame.to_json().get().to_owned()
}

/// Writes lines until all senders are gone or an empty line arrives, then closes stdin.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<String>) {
    while let Some(mut line) = lines.recv().await.filter(|line| !line.is_empty()) {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, router: &Router) {
    let mut stdout = BufReader::with_capacity(64 << 10, stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdout.read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        if let Ok(text) = std::str::from_utf8(&line) {
            router.route(text.trim_end());
        }
    }
}

/// Keeps the end of stderr.
async fn keep_stderr_tail(mut stderr: ChildStderr, stderr_tail: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let mut stderr_tail = stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        stderr_tail.extend_from_slice(chunk.get(..read).unwrap_or_default());
        let surplus = stderr_tail.len().saturating_sub(STDERR_BYTES);
        stderr_tail.drain(..surplus);
    }
}

fn exit_error(
    name: &str,
    status: Option<std::process::ExitStatus>,
    stderr_tail: &str,
) -> AgentError {
    let how = status.map_or("it was killed".to_owned(), |status| format!("it exited: {status}"));
    match stderr_tail.is_empty() {
        true => AgentError::broken(name, how),
        false => {
            AgentError::broken(name, format_args!("{how}: {stderr_tail}")).with_native(stderr_tail)
        }
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
