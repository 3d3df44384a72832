//! A process and its three pipes.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use agentwire_dialects::agent::Exit;
use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::super::long_line::LongLine;
use super::super::stderr::Stderr;
use super::watch::Watch;
use crate::backlog::Backlog;
use crate::budget::{self, Pool, Share};
use crate::metrics::RunningProcessGuard;
use crate::process::{Control, LaunchFiles, Output, Process};

const READ_LIMIT: usize = 128 << 10;

/// How long to wait before a failed write of a long line to the disk is retried.
const TRY_DISK: Duration = Duration::from_millis(500);

type PendingShare = Pin<Box<dyn Future<Output = Share> + Send>>;

/// A process that runs, or that has ended but is not yet read to its end.
pub(in super::super) struct Running {
    stdin: Option<pipe::Sender>,
    outgoing: Backlog,
    /// Close stdin once everything is written.
    closes: bool,
    stdout: Option<Output>,
    stderr: Option<Output>,
    pub(in super::super) control: Control,
    pub(in super::super) said: Stderr,
    /// A line that is too long to stay in memory until it ends.
    pub(in super::super) long: Option<LongLine>,
    /// Waits for the memory that the long line needs when it is read back.
    sharing: Option<PendingShare>,
    pool: Pool,
    data_dir: PathBuf,
    exit: Option<Exit>,
    is_gone: bool,
    pub(in super::super) watch: Watch,
    /// While this is set, the process counts as running in the metrics.
    pub(in super::super) counted: Option<RunningProcessGuard>,
    _files: LaunchFiles,
}

#[derive(Debug)]
pub(in super::super) enum ProcessActivity {
    Exited(Exit),
    Gone,
    /// This many bytes are in [`SCRATCH`]; 0 means the end.
    Stdout(usize),
    Stderr(usize),
    Writable,
    /// A long line has ended, and there is memory for it.
    LongLine(Share),
    /// Time to retry the disk write of a long line.
    TryDisk,
}

impl Running {
    pub(super) fn new(
        process: Process,
        files: LaunchFiles,
        text: Option<&str>,
        closes: bool,
        data_dir: PathBuf,
        pool: Pool,
    ) -> Self {
        let mut outgoing = Backlog::new(data_dir.clone());
        outgoing.push(text.unwrap_or_default().as_bytes());
        Self {
            stdin: process.stdin,
            outgoing,
            closes,
            stdout: Some(process.stdout),
            stderr: Some(process.stderr),
            control: process.control,
            said: Stderr::default(),
            long: None,
            sharing: None,
            pool,
            data_dir,
            exit: None,
            is_gone: false,
            watch: Watch::new(Instant::now()),
            counted: None,
            _files: files,
        }
    }

    /// The next thing that happens. Cancel safe. Unless `may_gather`, nothing is read, because earlier
    /// output has not been handed to the log yet.
    pub(in super::super) async fn next(&mut self, may_gather: bool) -> ProcessActivity {
        let is_stuck = self.long.as_ref().is_some_and(LongLine::is_stuck);
        let is_complete =
            self.long.as_ref().is_some_and(|long| long.is_complete() || self.is_read());
        self.share_for_long(is_complete && may_gather);
        let may_read = may_gather && !is_complete && !is_stuck;
        let is_writing = !self.outgoing.is_empty();
        let writable = async |sender: &Option<pipe::Sender>| match sender {
            Some(sender) => drop(sender.writable().await),
            None => std::future::pending().await,
        };
        let has_exited = self.exit.is_some();
        let end = async {
            match has_exited {
                false => ProcessActivity::Exited(self.control.exited().await),
                true => {
                    self.control.gone().await;
                    ProcessActivity::Gone
                }
            }
        };
        // Deliberately not `biased`: none of these may starve another, however busy it is.
        tokio::select! {
            () = writable(&self.stdin), if is_writing => ProcessActivity::Writable,
            count = read(&mut self.stdout), if may_read => ProcessActivity::Stdout(count),
            count = read(&mut self.stderr), if may_read => ProcessActivity::Stderr(count),
            share = shared(&mut self.sharing) => ProcessActivity::LongLine(share),
            () = tokio::time::sleep(TRY_DISK), if is_stuck && !is_complete => ProcessActivity::TryDisk,
            end = end, if !self.is_gone => end,
            // The tree is gone, but its last output may not be read yet.
            else => std::future::pending().await,
        }
    }

    /// Waits for a share of the budget while a long line is complete and may be read back.
    fn share_for_long(&mut self, is_wanted: bool) {
        match self.long.as_ref().filter(|_| is_wanted) {
            Some(long) if self.sharing.is_none() => {
                let (pool, bytes) = (self.pool.clone(), budget::WORK * long.kept());
                self.sharing = Some(Box::pin(async move { pool.take(bytes).await }));
            }
            Some(_) => {}
            None => self.sharing = None,
        }
    }

    /// Takes the long line that has ended.
    pub(in super::super) fn take_long(&mut self) -> Option<LongLine> {
        self.sharing = None;
        self.long.take()
    }

    /// Moves the received part of a long line from memory to the disk. May block on the disk.
    pub(in super::super) fn write_long(&mut self) -> io::Result<()> {
        self.long.as_mut().map_or(Ok(()), |long| long.write(&self.data_dir))
    }

    pub(in super::super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// The agent has new work, so its silence is counted from now.
    pub(in super::super) fn touch(&mut self) {
        self.watch.touch(Instant::now());
    }

    pub(in super::super) fn exited(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.watch.exited(Instant::now(), self.is_gone);
        self.stdin = None;
    }

    /// The whole process tree is gone, so nothing more is written to the pipes.
    pub(in super::super) fn gone(&mut self) {
        self.is_gone = true;
        self.watch.gone();
    }

    /// Whether there is nothing left to read or wait for.
    pub(in super::super) fn is_ended(&self) -> bool {
        self.is_read() && self.long.is_none()
    }

    /// Whether the process has ended and all its output is read.
    pub(in super::super) fn is_read(&self) -> bool {
        self.is_gone && self.stdout.is_none() && self.stderr.is_none()
    }

    pub(in super::super) fn waiting(&self) -> usize {
        self.outgoing.len()
    }

    pub(in super::super) fn send(&mut self, line: &str) {
        if self.stdin.is_some() && !self.closes {
            self.outgoing.push(line.as_bytes());
            self.outgoing.push(b"\n");
            self.flush();
        }
    }

    /// Closes stdin once everything that waits is written.
    pub(in super::super) fn close_stdin(&mut self) {
        self.closes = true;
        self.flush();
    }

    /// Writes as much as the pipe accepts now.
    pub(in super::super) fn flush(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        loop {
            let written = match self.outgoing.next() {
                Ok([]) => break,
                Ok(rest) => stdin.try_write(rest),
                Err(error) => {
                    // Part of a line must never be left out.
                    tracing::error!(%error, "failed to read back the queued input of an agent");
                    self.closes = true;
                    break;
                }
            };
            match written {
                Ok(count) => self.outgoing.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The agent no longer reads. Its exit explains why.
                Err(_) => {
                    self.stdin = None;
                    break;
                }
            }
        }
        self.outgoing.clear();
        if self.closes {
            self.stdin = None;
        }
    }

    /// Records that stdout delivered `count` bytes, or ended if `count` is 0.
    pub(in super::super) fn heard(&mut self, count: usize) {
        self.watch.hear(Instant::now(), count);
        if count == 0 {
            self.stdout = None;
        }
    }

    pub(in super::super) fn close_stderr(&mut self) {
        self.stderr = None;
    }
}

std::thread_local! {
    /// One buffer for all sessions of a thread. It is filled and emptied without an await in between: the
    /// branch that completes a `select!` continues in the same poll.
    pub(in super::super) static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LIMIT]);
}

/// Reads into [`SCRATCH`]. An error counts as the end.
async fn read(output: &mut Option<Output>) -> usize {
    let Some(output) = output else { return std::future::pending().await };
    std::future::poll_fn(|context| {
        SCRATCH.with_borrow_mut(|buffer| {
            let mut buffer = ReadBuf::new(buffer);
            let read = Pin::new(&mut *output).poll_read(context, &mut buffer);
            read.map(|result| result.map_or(0, |()| buffer.filled().len()))
        })
    })
    .await
}

async fn shared(sharing: &mut Option<PendingShare>) -> Share {
    match sharing {
        Some(share) => share.await,
        None => std::future::pending().await,
    }
}
