//! Commands that wait for room in their session. They keep their order, and none is refused because many
//! wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use agentwire_protocol::{Call, Command, SessionId};
use agentwire_sessions::SessionHandle;
use agentwire_sessions::budget::Share;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

/// Commands that wait for room. While there are any, the client's input is not read.
#[derive(Default)]
pub(super) struct CommandQueue {
    waiting: BTreeMap<SessionId, VecDeque<QueuedCommand>>,
    /// One future per session that waits for room.
    rooms: FuturesUnordered<BoxFuture<'static, SessionId>>,
}

pub(super) struct QueuedCommand {
    pub(super) handle: SessionHandle,
    pub(super) call: Option<Call>,
    pub(super) command: Box<Command>,
    /// The budget share of the message that the command came with.
    pub(super) share: Option<Arc<Share>>,
}

impl CommandQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    pub(super) fn contains(&self, session: &SessionId) -> bool {
        self.waiting.contains_key(session)
    }

    pub(super) fn push(&mut self, queued: QueuedCommand) {
        let id = queued.handle.id();
        if !self.contains(id) {
            self.wait(queued.handle.clone());
        }
        self.waiting.entry(id.clone()).or_default().push_back(queued);
    }

    /// The next command for this session. If it cannot be posted, put it back.
    pub(super) fn pop(&mut self, session: &SessionId) -> Option<QueuedCommand> {
        let queued = self.waiting.get_mut(session).and_then(VecDeque::pop_front);
        if queued.is_none() {
            self.waiting.remove(session);
        }
        queued
    }

    pub(super) fn put_back(&mut self, queued: QueuedCommand) {
        let id = queued.handle.id();
        self.wait(queued.handle.clone());
        self.waiting.entry(id.clone()).or_default().push_front(queued);
    }

    /// Waits until a session has room again.
    pub(super) async fn next_with_room(&mut self) -> SessionId {
        match self.rooms.next().await {
            Some(session) => session,
            None => std::future::pending().await,
        }
    }

    fn wait(&mut self, handle: SessionHandle) {
        let room = async move {
            handle.room().await;
            handle.id().clone()
        };
        self.rooms.push(room.boxed());
    }
}
