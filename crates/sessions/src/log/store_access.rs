//! Store calls on threads that may wait for the disk.
//!
//! These threads belong to the runtime, and others need them too: a disk that hangs can block only a
//! limited number of them. Writes have their own limit, so a disk that can still be read is read.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::EventLog;
use crate::store::{Store, StoreError};

/// How many reads may run at once.
const READERS: usize = 32;

/// How many writes may run or wait at once.
const WRITERS: usize = 8;

pub(super) struct StorePermits {
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl Default for StorePermits {
    fn default() -> Self {
        let [reading, writing] = [READERS, WRITERS].map(|most| Arc::new(Semaphore::new(most)));
        Self { reading, writing }
    }
}

impl EventLog {
    /// Reads the store. The read completes even if the caller stops waiting.
    pub async fn read_store<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.start_store_read(read).await.unwrap_or_else(|error| lost(&error))
    }

    /// Changes the store: for calls that wait for other writers.
    pub async fn write_store<T: Send + 'static>(
        &self,
        change: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.with_permit(&self.shared.store_permits.writing, change)
            .await
            .unwrap_or_else(|error| lost(&error))
    }

    pub(super) fn start_store_read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> JoinHandle<Result<T, StoreError>> {
        self.with_permit(&self.shared.store_permits.reading, read)
    }

    fn with_permit<T: Send + 'static>(
        &self,
        permits: &Arc<Semaphore>,
        work: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> JoinHandle<Result<T, StoreError>> {
        let (store, permits) = (Arc::clone(self.store()), Arc::clone(permits));
        match Arc::clone(&permits).try_acquire_owned() {
            Ok(permit) => spawn_blocking(move || {
                let _permit = permit;
                work(&*store)
            }),
            Err(_) => tokio::spawn(async move {
                // The semaphore is never closed.
                let permit = permits.acquire_owned().await;
                let done = spawn_blocking(move || {
                    let _permit = permit;
                    work(&*store)
                });
                done.await.unwrap_or_else(|error| lost(&error))
            }),
        }
    }
}

/// The task was cancelled or panicked.
fn lost<T>(error: &JoinError) -> Result<T, StoreError> {
    Err(StoreError::Failed(format!("failed to access the store: {error}")))
}
