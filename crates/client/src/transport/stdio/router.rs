//! Routes the child's lines: to a call that waits for its reply, or to the readers of a session.
//!
//! One pipe carries all sessions, so it must be read all the time. Events for a slow reader wait in a
//! bounded queue. When it is full, the reader is dropped and attaches again after the last event it has. So
//! a slow reader costs no more than the bound and delays no one else.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::{Inquiry, InquiryFrame, Json, SessionId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, OwnedMutexGuard, mpsc, oneshot};

use crate::error::{AgentError, Refusal};
use crate::event_lines::{EventLines, EventLinesBuilder};

/// How many bytes may wait for one reader; a single event always may.
pub(super) const BOUND: usize = 1 << 20;

/// How many bytes to pass on at once.
const BATCH: usize = 128 << 10;

pub(super) type CallResult = Result<Json<'static>, AgentError>;

#[derive(Debug)]
pub(super) struct Router {
    /// The lines to the child. Attach and detach are sent under the state's lock, so that readers cannot
    /// change in between.
    lines: mpsc::WeakSender<String>,
    state: Mutex<RouterState>,
}

#[derive(Debug, Default)]
struct RouterState {
    next: u64,
    /// Calls without a reply, by number.
    calls: HashMap<u64, PendingCall>,
    readers: HashMap<SessionId, Vec<Arc<Queue>>>,
    /// Why the child is gone.
    over: Option<AgentError>,
}

#[derive(Debug)]
struct PendingCall {
    reply: oneshot::Sender<CallResult>,
    attaching: Option<Attaching>,
}

/// The reader whose events follow the reply.
#[derive(Debug)]
pub(super) struct Attaching {
    pub(super) session: SessionId,
    pub(super) reader: Arc<Queue>,
    /// No other attach is sent until the reply arrives.
    pub(super) _turn: OwnedMutexGuard<()>,
}

/// The events that wait for one reader.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    wake: Notify,
}

#[derive(Debug)]
struct QueueState {
    /// The last event that was queued.
    position: u64,
    /// The child has confirmed the attach, so its events are meant for this reader.
    is_attached: bool,
    lines: VecDeque<(u64, String)>,
    bytes: usize,
    then: Option<QueueEnd>,
}

/// What follows the queued events.
#[derive(Debug)]
enum QueueEnd {
    LetGo,
    Failed(AgentError),
}

/// The part of a line that is parsed; an event has a `type`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'l> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'l, str>>,
    #[serde(default)]
    seq: Option<u64>,
    #[serde(borrow, default)]
    session_id: Option<Cow<'l, str>>,
    #[serde(borrow, default)]
    id: Option<&'l RawValue>,
    #[serde(borrow, default)]
    reply: Option<&'l RawValue>,
    /// In an event, this is a text.
    #[serde(borrow, default)]
    error: Option<&'l RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UnreadableSession {
    session_id: SessionId,
}

impl Router {
    pub(super) fn new(lines: mpsc::WeakSender<String>) -> Self {
        Self { lines, state: Mutex::default() }
    }

    /// Registers a call: its number, and the receiver of its reply.
    pub(super) fn call(
        &self,
        attaching: Option<Attaching>,
    ) -> Result<(u64, oneshot::Receiver<CallResult>), AgentError> {
        let (reply, replied) = oneshot::channel();
        let mut state = self.state();
        if let Some(over) = &state.over {
            return Err(over.clone());
        }
        state.next += 1;
        let number = state.next;
        state.calls.insert(number, PendingCall { reply, attaching });
        Ok((number, replied))
    }

    /// No one waits for that reply any more. A pending attach stays, because it blocks the next one.
    pub(super) fn forget(&self, number: u64) {
        let mut state = self.state();
        if state.calls.get(&number).is_some_and(|call| call.attaching.is_none()) {
            state.calls.remove(&number);
        }
    }

    /// Adds a reader. Also returns the event after which the child must show the session, for all its
    /// readers.
    pub(super) fn join(&self, session: &SessionId, after: u64) -> (Arc<Queue>, u64) {
        let queue = Arc::new(Queue {
            state: Mutex::new(QueueState {
                position: after,
                is_attached: false,
                lines: VecDeque::new(),
                bytes: 0,
                then: None,
            }),
            wake: Notify::new(),
        });
        let mut state = self.state();
        let readers = state.readers.entry(session.clone()).or_default();
        let least = readers.iter().map(|reader| reader.state().position).min();
        readers.push(Arc::clone(&queue));
        (queue, least.map_or(after, |least| least.min(after)))
    }

    pub(super) fn leave(&self, session: &SessionId, queue: &Arc<Queue>) {
        let mut state = self.state();
        let Some(readers) = state.readers.get_mut(session) else { return };
        readers.retain(|reader| !Arc::ptr_eq(reader, queue));
        self.detach_if_unread(&mut state, session);
    }

    /// Detaches from a session without readers. If the line cannot be sent, its events arrive and are
    /// ignored.
    fn detach_if_unread(&self, state: &mut RouterState, session: &SessionId) {
        if state.readers.get(session).is_some_and(Vec::is_empty) {
            state.readers.remove(session);
            self.detach(session);
        }
    }

    /// The same for a session that may never have had a reader.
    pub(super) fn leave_unread(&self, session: &SessionId) {
        let state = self.state();
        if !state.readers.contains_key(session) {
            self.detach(session);
        }
    }

    fn detach(&self, session: &SessionId) {
        if let Some(lines) = self.lines.upgrade() {
            let _ = lines.try_send(detach(session));
        }
    }

    pub(super) fn route(&self, text: &str) {
        // Ignore what is not a line of the protocol.
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return };
        if line.kind.is_some() {
            if let (Some(session), Some(seq)) = (line.session_id, line.seq) {
                self.event(&SessionId::from(session.as_ref()), seq, text);
            }
            return;
        }
        let number = line.id.and_then(|id| id.get().parse::<u64>().ok());
        let error = line.error.map(refusal);
        match (number, error) {
            (Some(number), error) => {
                let reply = match (error, line.reply) {
                    (Some(error), _) => Err(error),
                    (None, Some(reply)) => Ok(Json::trusted(reply.get().to_owned())),
                    (None, None) => Ok(Json::trusted("null")),
                };
                let Some(call) = self.state().calls.remove(&number) else { return };
                if let (Some(attaching), Ok(_)) = (&call.attaching, &reply) {
                    attaching.reader.attach();
                    // The reader may have left in the meantime.
                    self.leave_unread(&attaching.session);
                }
                let _ = call.reply.send(reply);
            }
            // The child cannot read the session's events now; it may later.
            (None, Some(error)) => {
                let lost =
                    error.details().and_then(|details| details.read::<UnreadableSession>().ok());
                if let Some(UnreadableSession { session_id }) = lost {
                    let readers = self.state().readers.remove(&session_id).unwrap_or_default();
                    let error = error.retryable();
                    readers.iter().for_each(|reader| reader.fail(&error));
                }
            }
            (None, None) => {}
        }
    }

    fn event(&self, session: &SessionId, seq: u64, text: &str) {
        let mut state = self.state();
        let Some(readers) = state.readers.get_mut(session) else { return };
        readers.retain(|reader| reader.push(seq, text));
        self.detach_if_unread(&mut state, session);
    }

    /// The child is gone.
    pub(super) fn end(&self, why: &AgentError) {
        let mut state = self.state();
        state.over = Some(why.clone());
        let calls: Vec<_> = state.calls.drain().collect();
        let readers: Vec<_> = state.readers.drain().collect();
        drop(state);
        for (_, call) in calls {
            let _ = call.reply.send(Err(why.clone()));
        }
        for reader in readers.iter().flat_map(|(_, readers)| readers) {
            reader.fail(why);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().over.is_some()
    }

    fn state(&self) -> MutexGuard<'_, RouterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The child now shows the session from this reader's position. Events that arrived earlier were for
    /// others.
    fn attach(&self) {
        self.state().is_attached = true;
    }

    /// Queues an event; returns whether the reader stays.
    fn push(&self, seq: u64, text: &str) -> bool {
        let mut state = self.state();
        if !state.is_attached || seq <= state.position {
            return true;
        }
        if state.bytes > 0 && state.bytes + text.len() > BOUND {
            state.then = Some(QueueEnd::LetGo);
            drop(state);
            self.wake.notify_one();
            return false;
        }
        state.position = seq;
        state.bytes += text.len();
        state.lines.push_back((seq, text.to_owned()));
        drop(state);
        self.wake.notify_one();
        true
    }

    fn fail(&self, why: &AgentError) {
        self.state().then.get_or_insert_with(|| QueueEnd::Failed(why.clone()));
        self.wake.notify_one();
    }

    /// The next events, or `None` if the reader was dropped.
    pub(super) async fn next(&self) -> Result<Option<EventLines>, AgentError> {
        loop {
            {
                let mut state = self.state();
                if !state.lines.is_empty() {
                    return Ok(Some(state.next_batch()));
                }
                match state.then.take() {
                    Some(QueueEnd::LetGo) => return Ok(None),
                    Some(QueueEnd::Failed(why)) => return Err(why),
                    None => {}
                }
            }
            self.wake.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn next_batch(&mut self) -> EventLines {
        let mut builder = EventLinesBuilder::default();
        while builder.len() < BATCH
            && let Some((seq, text)) = self.lines.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(text.len());
            builder.push(seq, &text);
        }
        builder.finish()
    }
}

fn refusal(error: &RawValue) -> AgentError {
    match serde_json::from_str::<Refusal>(error.get()) {
        Ok(refusal) => refusal.into(),
        Err(_) => AgentError::broken("the child", "it refused without a reason"),
    }
}

fn detach(session: &SessionId) -> String {
    let inquiry = Inquiry::Detach(session.clone());
    InquiryFrame { id: None, inquiry }.to_json().get().to_owned()
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
