//! The watch of all sessions on one connection. It reads the next change only while the client reads.

use agentwire_protocol::{GatewayError, Json};
use agentwire_sessions::Hub;
use agentwire_sessions::hub::Watcher;
use futures_util::future::{BoxFuture, FutureExt as _};

type NextChange = (Watcher, Result<Json<'static>, GatewayError>);

/// The changes that a client watches, if it does.
#[derive(Default)]
pub(super) struct WatchedChanges {
    reading: Option<BoxFuture<'static, NextChange>>,
}

impl WatchedChanges {
    /// Starts to watch, from the cursor if it is given.
    pub(super) fn start(&mut self, hub: &Hub, after: Option<String>) {
        let hub = hub.clone();
        let reading = async move { read(hub.watch(after.as_deref()).await).await };
        self.reading = Some(reading.boxed());
    }

    pub(super) fn stop(&mut self) {
        self.reading = None;
    }

    /// The next change. After an error there are no more.
    pub(super) async fn next(&mut self) -> Result<Json<'static>, GatewayError> {
        let Some(reading) = &mut self.reading else { return std::future::pending().await };
        let (watcher, change) = reading.await;
        self.reading = change.is_ok().then(|| read(watcher).boxed());
        change
    }
}

async fn read(mut watcher: Watcher) -> NextChange {
    let change = watcher.next().await.map(|change| Json::of(&change));
    (watcher, change)
}
