//! Memory for large batches, used again while a session writes a lot: memory that goes back to the system
//! in between costs a page fault for every page of the next batch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// How many buffers wait: one batch is shown to readers while one is stored and one gathers.
const KEPT: usize = 3;

/// Larger buffers go back to the system.
const LARGEST: usize = 4 << 20;

/// The buffers of one session that are free; `None` while it has little to write, and then what comes back
/// is not kept.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Option<Vec<Vec<u8>>>>);

/// Comes back when its last reader is done.
struct Lent {
    buffer: Vec<u8>,
    buffers: Arc<Buffers>,
}

impl Buffers {
    /// An empty buffer.
    fn take(&self) -> Vec<u8> {
        self.free().get_or_insert_default().pop().unwrap_or_default()
    }

    /// What `buffer` contains, which is empty afterwards.
    pub(super) fn contents(self: &Arc<Self>, buffer: &mut Vec<u8>) -> Bytes {
        if buffer.capacity() > LARGEST {
            return std::mem::take(buffer).into();
        }
        if buffer.len() < buffer.capacity() / 2 || buffer.capacity() <= super::SPARE {
            // Readers must not hold memory that they do not need.
            let contents = Bytes::copy_from_slice(buffer);
            buffer.clear();
            return contents;
        }
        let buffer = std::mem::replace(buffer, self.take());
        Bytes::from_owner(Lent { buffer, buffers: Arc::clone(self) })
    }

    /// The session has little to write.
    pub(super) fn release(&self) {
        *self.free() = None;
    }

    fn free(&self) -> MutexGuard<'_, Option<Vec<Vec<u8>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(free) = &mut *self.buffers.free()
            && free.len() < KEPT
        {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(length: usize) -> Vec<u8> {
        let mut buffer = Vec::with_capacity(length);
        buffer.resize(length, b'x');
        buffer
    }

    #[test]
    fn a_large_buffer_comes_back_when_its_last_reader_is_done() {
        let buffers = Arc::new(Buffers::default());
        let mut buffer = filled(1 << 20);
        let contents = buffers.contents(&mut buffer);
        let reader = contents.slice(1000..);
        assert_eq!((contents.len(), buffer.capacity()), (1 << 20, 0));
        drop(contents);
        assert_eq!(buffers.take().capacity(), 0, "it is still read");
        drop(reader);
        let again = buffers.take();
        assert_eq!((again.len(), again.capacity()), (0, 1 << 20));
    }

    #[test]
    fn a_quiet_session_keeps_nothing() {
        let buffers = Arc::new(Buffers::default());
        let [first, second] = [(); 2].map(|()| buffers.contents(&mut filled(1 << 20)));
        drop(first);
        buffers.release();
        drop(second);
        assert!(buffers.free().is_none());
    }

    #[test]
    fn readers_of_a_short_batch_do_not_hold_a_long_buffer() {
        let buffers = Arc::new(Buffers::default());
        let mut buffer = filled(1 << 20);
        buffer.truncate(1000);
        assert_eq!(buffers.contents(&mut buffer).len(), 1000);
        assert_eq!((buffer.len(), buffer.capacity()), (0, 1 << 20));
    }

    #[test]
    fn no_more_than_a_few_are_kept() {
        let buffers = Arc::new(Buffers::default());
        let lent: Vec<Bytes> = (0..10).map(|_| buffers.contents(&mut filled(1 << 20))).collect();
        let mut huge = filled(LARGEST + 1);
        drop((buffers.contents(&mut huge), lent));
        assert_eq!(huge.capacity(), 0);
        assert_eq!(buffers.free().as_ref().map(Vec::len), Some(KEPT));
    }
}
