//! Pending replies: every call gets exactly one, and a batch gets all of its replies at once.

use std::collections::BTreeMap;

use agentwire_protocol::Json;

use crate::front::Outbox;
use crate::jsonrpc::wire::{Fault, response};

/// How many bytes of replies may wait for the rest of their batches.
const HELD_LIMIT: usize = 16 << 20;

/// The right to one reply; giving the reply consumes it.
#[derive(Debug)]
pub(super) struct Ticket {
    /// A notification has none and gets no reply.
    id: Option<Json<'static>>,
    batch: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Replies {
    open: usize,
    /// The bytes of the waiting replies.
    held: usize,
    batches: BTreeMap<u64, Batch>,
    next: u64,
}

#[derive(Debug)]
struct Batch {
    left: usize,
    replies: Vec<Json<'static>>,
}

impl Replies {
    /// How many calls and notifications are pending.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    pub(super) fn ticket(&mut self, id: Option<Json<'static>>, batch: Option<u64>) -> Ticket {
        self.open += 1;
        Ticket { id, batch }
    }

    /// A batch of which `left` messages expect a reply.
    pub(super) fn batch(&mut self, left: usize) -> u64 {
        self.next += 1;
        if left > 0 {
            self.batches.insert(self.next, Batch { left, replies: Vec::new() });
        }
        self.next
    }

    /// Whether there is room for a reply of that size. A call that only reads can be repeated.
    pub(super) fn has_room(&self, ticket: &Ticket, bytes: usize) -> bool {
        ticket.batch.is_none() || self.held == 0 || self.held + bytes <= HELD_LIMIT
    }

    pub(super) fn give(
        &mut self,
        ticket: Ticket,
        outcome: Result<Json<'static>, impl Into<Fault>>,
        out: &mut Outbox,
    ) {
        self.open = self.open.saturating_sub(1);
        let Ticket { id: Some(id), batch } = ticket else { return };
        let reply = response(&id, &outcome.map_err(Into::into));
        let Some(batch) = batch else { return out.send(reply.get()) };
        let Some(waiting) = self.batches.get_mut(&batch) else { return };
        self.held += reply.get().len();
        waiting.replies.push(reply);
        waiting.left = waiting.left.saturating_sub(1);
        if waiting.left == 0
            && let Some(done) = self.batches.remove(&batch)
        {
            let bytes: usize = done.replies.iter().map(|reply| reply.get().len()).sum();
            self.held = self.held.saturating_sub(bytes);
            out.send_json(&done.replies);
        }
    }
}
