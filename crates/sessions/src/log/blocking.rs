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

pub(super) struct Turns {
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        let [reading, writing] = [READERS, WRITERS].map(|most| Arc::new(Semaphore::new(most)));
        Self { reading, writing }
    }
}

impl EventLog {
    /// Reads the store. The read completes even if the caller stops waiting.
    pub async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.asking(ask).await.unwrap_or_else(|error| lost(&error))
    }

    /// Changes the store: for calls that wait for other writers.
    pub async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.in_turn(&self.shared.turns.writing, change).await.unwrap_or_else(|error| lost(&error))
    }

    pub(super) fn asking<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> JoinHandle<Result<T, StoreError>> {
        self.in_turn(&self.shared.turns.reading, ask)
    }

    fn in_turn<T: Send + 'static>(
        &self,
        turns: &Arc<Semaphore>,
        ask: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> JoinHandle<Result<T, StoreError>> {
        let (store, turns) = (Arc::clone(self.store()), Arc::clone(turns));
        match Arc::clone(&turns).try_acquire_owned() {
            Ok(turn) => spawn_blocking(move || {
                let _turn = turn;
                ask(&*store)
            }),
            Err(_) => tokio::spawn(async move {
                // The semaphore is never closed.
                let turn = turns.acquire_owned().await;
                let asked = spawn_blocking(move || {
                    let _turn = turn;
                    ask(&*store)
                });
                asked.await.unwrap_or_else(|error| lost(&error))
            }),
        }
    }
}

/// The task was cancelled or panicked.
fn lost<T>(error: &JoinError) -> Result<T, StoreError> {
    Err(StoreError::Failed(format!("failed to access the store: {error}")))
}
