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
use crate::metrics::Counted;
use crate::process::{Control, LaunchFiles, Output, Process};

/// How much is read at once.
const READ_LIMIT: usize = 128 << 10;

/// How long to wait before a disk that took no part of a long line is tried again.
const TRY_DISK: Duration = Duration::from_millis(500);

/// A share of the budget that is waited for.
type Sharing = Pin<Box<dyn Future<Output = Share> + Send>>;

/// A process that runs, or has ended and is not yet read to its end.
pub(in super::super) struct Running {
    stdin: Option<pipe::Sender>,
    outgoing: Backlog,
    /// stdin is closed once all is written.
    closes: bool,
    stdout: Option<Output>,
    stderr: Option<Output>,
    pub(in super::super) control: Control,
    pub(in super::super) said: Stderr,
    /// A line that is too long to be held in memory until it ends.
    pub(in super::super) long: Option<LongLine>,
    /// Waits for the memory that such a line needs when it is read back.
    sharing: Option<Sharing>,
    pool: Pool,
    data_dir: PathBuf,
    exit: Option<Exit>,
    is_gone: bool,
    pub(in super::super) watch: Watch,
    /// As long as it is here, it is counted as running.
    pub(in super::super) counted: Option<Counted>,
    _files: LaunchFiles,
}

/// What happened to a process.
#[derive(Debug)]
pub(in super::super) enum Happening {
    Exited(Exit),
    Gone,
    /// So many bytes are in [`SCRATCH`]; none is the end.
    Stdout(usize),
    Stderr(usize),
    Writable,
    /// A long line has ended, and there is memory for it.
    LongLine(Share),
    /// The disk that took no part of a long line is to be tried again.
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

    /// The next that happens. Cancelling it loses nothing. Unless `may_gather`, nothing is read: what it
    /// said before is not handed to the log yet.
    pub(in super::super) async fn next(&mut self, may_gather: bool) -> Happening {
        let is_stuck = self.long.as_ref().is_some_and(LongLine::is_stuck);
        let is_whole = self.long.as_ref().is_some_and(|long| long.is_whole() || self.is_read());
        self.share_for_long(is_whole && may_gather);
        let may_read = may_gather && !is_whole && !is_stuck;
        let is_writing = !self.outgoing.is_empty();
        let writable = async |sender: &Option<pipe::Sender>| match sender {
            Some(sender) => drop(sender.writable().await),
            None => std::future::pending().await,
        };
        let has_exited = self.exit.is_some();
        let end = async {
            match has_exited {
                false => Happening::Exited(self.control.exited().await),
                true => {
                    self.control.gone().await;
                    Happening::Gone
                }
            }
        };
        // In no order: none of these may keep another waiting, however fast it comes.
        tokio::select! {
            () = writable(&self.stdin), if is_writing => Happening::Writable,
            count = read(&mut self.stdout), if may_read => Happening::Stdout(count),
            count = read(&mut self.stderr), if may_read => Happening::Stderr(count),
            share = shared(&mut self.sharing) => Happening::LongLine(share),
            () = tokio::time::sleep(TRY_DISK), if is_stuck && !is_whole => Happening::TryDisk,
            end = end, if !self.is_gone => end,
            // It is gone, and its last words may not be read yet.
            else => std::future::pending().await,
        }
    }

    /// Waits for a share of the budget while a long line is whole and may be read back.
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

    /// The long line that has ended.
    pub(in super::super) fn take_long(&mut self) -> Option<LongLine> {
        self.sharing = None;
        self.long.take()
    }

    /// Brings what has come of a long line out of memory. It may wait for the disk.
    pub(in super::super) fn write_long(&mut self) -> io::Result<()> {
        self.long.as_mut().map_or(Ok(()), |long| long.write(&self.data_dir))
    }

    /// How it ended, if it has.
    pub(in super::super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// It has something new to do: its silence counts from here.
    pub(in super::super) fn touch(&mut self) {
        self.watch.touch(Instant::now());
    }

    /// Takes note of the process's end.
    pub(in super::super) fn exited(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.watch.exited(Instant::now(), self.is_gone);
        self.stdin = None;
    }

    /// The whole tree is gone: what is in the pipes is all that will be.
    pub(in super::super) fn gone(&mut self) {
        self.is_gone = true;
        self.watch.gone();
    }

    /// Whether there is nothing left to read or to wait for.
    pub(in super::super) fn is_over(&self) -> bool {
        self.is_read() && self.long.is_none()
    }

    /// Whether it has ended, and all that it said is read.
    pub(in super::super) fn is_read(&self) -> bool {
        self.is_gone && self.stdout.is_none() && self.stderr.is_none()
    }

    /// How many bytes wait to be written.
    pub(in super::super) fn waiting(&self) -> usize {
        self.outgoing.len()
    }

    /// Queues a line.
    pub(in super::super) fn send(&mut self, line: &str) {
        if self.stdin.is_some() && !self.closes {
            self.outgoing.push(line.as_bytes());
            self.outgoing.push(b"\n");
            self.flush();
        }
    }

    /// Closes stdin once all that waits is written.
    pub(in super::super) fn close_stdin(&mut self) {
        self.closes = true;
        self.flush();
    }

    /// Writes what the pipe takes now.
    pub(in super::super) fn flush(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        loop {
            let written = match self.outgoing.next() {
                Ok([]) => break,
                Ok(rest) => stdin.try_write(rest),
                Err(error) => {
                    // A part of a line must not be left out.
                    tracing::error!(%error, "what waits for an agent cannot be read back");
                    self.closes = true;
                    break;
                }
            };
            match written {
                Ok(count) => self.outgoing.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It reads no more: its exit tells the rest.
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

    /// stdout has said something, or is at its end.
    pub(in super::super) fn heard(&mut self, count: usize) {
        self.watch.hear(Instant::now(), count);
        if count == 0 {
            self.stdout = None;
        }
    }

    /// stderr is at its end.
    pub(in super::super) fn close_stderr(&mut self) {
        self.stderr = None;
    }
}

std::thread_local! {
    /// One buffer for all sessions of a thread. It is filled and emptied without anything being awaited
    /// in between: what completes a `select!` runs on in the same poll.
    pub(in super::super) static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LIMIT]);
}

/// Reads into [`SCRATCH`]. An error is an end.
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

async fn shared(sharing: &mut Option<Sharing>) -> Share {
    match sharing {
        Some(share) => share.await,
        None => std::future::pending().await,
    }
}
