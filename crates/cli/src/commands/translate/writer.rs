//! Writes to stdout. Once there is much to write, a thread does it while more is translated.

use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::print;

/// A buffer of this size shows that more than a few lines at a time are translated.
const MUCH: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Writer {
    thread: Option<Thread>,
}

struct Thread {
    /// Holds one buffer, while another is written and a third is filled.
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    handle: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Writes the buffer and empties it. An error of the thread may be reported by a later call.
    pub(super) fn write(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        if self.thread.is_none() && buffer.len() >= MUCH {
            // Without a thread, everything is written here.
            self.thread = Thread::start().ok();
        }
        let Some(thread) = &self.thread else {
            write(buffer)?;
            buffer.clear();
            return Ok(());
        };
        let length = buffer.len();
        if thread.full.send(std::mem::take(buffer)).is_err() {
            return self.finish();
        }
        *buffer = thread.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(length));
        Ok(())
    }

    /// Waits until everything is written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let Some(Thread { full, empty, handle }) = self.thread.take() else { return Ok(()) };
        drop((full, empty));
        handle.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes failed")))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // If the input fails, what was translated before it is still written.
        let _ = self.finish();
    }
}

impl Thread {
    fn start() -> io::Result<Self> {
        let (full, to_write) = sync_channel::<Vec<u8>>(1);
        let (written, empty) = sync_channel(2);
        let handle = thread::Builder::new().name("writing".to_owned()).spawn(move || {
            for mut buffer in to_write {
                write(&buffer)?;
                buffer.clear();
                // There is always room, and at the end nobody takes it.
                let _ = written.try_send(buffer);
            }
            Ok(())
        })?;
        Ok(Self { full, empty, handle })
    }
}

fn write(buffer: &[u8]) -> io::Result<()> {
    let mut stdout = print::stdout();
    stdout.write_all(buffer)?;
    stdout.flush()
}
