//! Whom a line of the child is for: a call that waits for its reply, or those who read a session.
//!
//! One pipe carries all sessions, so it must always be read. What one reader does not take is kept for it
//! up to a bound; beyond that it is let go, and asks again for what comes after the last it has taken. So
//! a slow reader costs no more than the bound, and holds up nobody.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::{ErrorCode, GatewayError, Inquiry, InquiryFrame, Json, SessionId};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::error::AgentError;
use crate::lines::{EventLines, Gathering};

/// How much may wait for one reader; one event always may.
pub(super) const BOUND: usize = 1 << 20;

/// How much is handed on at once.
const HANDED: usize = 128 << 10;

pub(super) type Reply = Result<Json<'static>, AgentError>;

#[derive(Debug)]
pub(super) struct Router {
    /// The way to the child. What is to be said of readers is said while no other can come or go.
    lines: mpsc::WeakSender<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Calls without a reply, by their number.
    calls: HashMap<u64, Pending>,
    readers: HashMap<SessionId, Vec<Arc<Queue>>>,
    /// Why there is no more.
    over: Option<AgentError>,
}

#[derive(Debug)]
struct Pending {
    reply: oneshot::Sender<Reply>,
    /// The reader whose events follow upon the reply.
    reader: Option<Arc<Queue>>,
}

/// What waits for one reader.
#[derive(Debug)]
pub(super) struct Queue {
    inner: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug)]
struct Waiting {
    /// The last event that was queued.
    position: u64,
    /// The child has said that it shows the events after the place asked for.
    is_attached: bool,
    lines: VecDeque<(u64, String)>,
    bytes: usize,
    then: Option<Then>,
}

/// What comes after what waits.
#[derive(Debug)]
enum Then {
    LetGo,
    Failed(AgentError),
}

/// A line of the child: an event has a `type`.
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
    /// Of an event, in words.
    #[serde(borrow, default)]
    error: Option<&'l RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lost {
    session_id: SessionId,
}

impl Router {
    pub(super) fn new(lines: mpsc::WeakSender<String>) -> Self {
        Self { lines, state: Mutex::default() }
    }

    /// A new call: its number, and where its reply comes.
    pub(super) fn call(
        &self,
        reader: Option<Arc<Queue>>,
    ) -> Result<(u64, oneshot::Receiver<Reply>), AgentError> {
        let (reply, replied) = oneshot::channel();
        let mut state = self.state();
        if let Some(over) = &state.over {
            return Err(over.clone());
        }
        state.next += 1;
        let number = state.next;
        state.calls.insert(number, Pending { reply, reader });
        Ok((number, replied))
    }

    /// Nobody waits for that reply any more.
    pub(super) fn forget(&self, number: u64) {
        self.state().calls.remove(&number);
    }

    /// A new reader of a session, and the event after which the child must show it for the sake of all its
    /// readers.
    pub(super) fn join(&self, session: &SessionId, after: u64) -> (Arc<Queue>, u64) {
        let queue = Arc::new(Queue {
            inner: Mutex::new(Waiting {
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
        let least = readers.iter().map(|reader| reader.inner().position).min();
        readers.push(Arc::clone(&queue));
        (queue, least.map_or(after, |least| least.min(after)))
    }

    /// Takes a reader away.
    pub(super) fn leave(&self, session: &SessionId, queue: &Arc<Queue>) {
        let mut state = self.state();
        let Some(readers) = state.readers.get_mut(session) else { return };
        readers.retain(|reader| !Arc::ptr_eq(reader, queue));
        self.tidy(&mut state, session);
    }

    /// Wants no more of a session that nobody reads. Where there is no room to say so, its events come in
    /// vain, and are nobody's.
    fn tidy(&self, state: &mut State, session: &SessionId) {
        if state.readers.get(session).is_some_and(Vec::is_empty) {
            state.readers.remove(session);
            if let Some(lines) = self.lines.upgrade() {
                let _ = lines.try_send(detach(session));
            }
        }
    }

    pub(super) fn is_read(&self, session: &SessionId) -> bool {
        self.state().readers.contains_key(session)
    }

    /// Gives a line to whom it is for.
    pub(super) fn line(&self, text: &str) {
        // What is no line of ours is nobody's.
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return };
        if line.kind.is_some() {
            if let (Some(session), Some(seq)) = (line.session_id, line.seq) {
                self.event(&SessionId::from(session.as_ref()), seq, text);
            }
            return;
        }
        let number = line.id.and_then(|id| id.get().parse::<u64>().ok());
        let error = line.error.map(|error| {
            serde_json::from_str::<GatewayError>(error.get()).unwrap_or_else(|_| {
                GatewayError::new(ErrorCode::Internal, "it refused without words")
            })
        });
        match (number, error) {
            (Some(number), error) => {
                let reply = match (error, line.reply) {
                    (Some(error), _) => Err(error.into()),
                    (None, Some(reply)) => Ok(Json::checked(reply.get().to_owned())),
                    (None, None) => Ok(Json::checked("null")),
                };
                if let Some(call) = self.state().calls.remove(&number) {
                    if let (Some(reader), Ok(_)) = (call.reader, &reply) {
                        reader.attach();
                    }
                    let _ = call.reply.send(reply);
                }
            }
            // The events of a session cannot be read; they may be later.
            (None, Some(error)) => {
                let lost = error.details.as_ref().and_then(|details| details.read::<Lost>().ok());
                if let Some(Lost { session_id }) = lost {
                    let readers = self.state().readers.remove(&session_id).unwrap_or_default();
                    let error = AgentError::from(error).retryable();
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
        self.tidy(&mut state, session);
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The child shows the session from where it was asked to: what came before is of an earlier showing.
    fn attach(&self) {
        self.inner().is_attached = true;
    }

    /// Keeps an event for its reader; says whether the reader is to have more.
    fn push(&self, seq: u64, text: &str) -> bool {
        let mut waiting = self.inner();
        if !waiting.is_attached || seq <= waiting.position {
            return true;
        }
        if waiting.bytes > 0 && waiting.bytes + text.len() > BOUND {
            waiting.then = Some(Then::LetGo);
            drop(waiting);
            self.wake.notify_one();
            return false;
        }
        waiting.position = seq;
        waiting.bytes += text.len();
        waiting.lines.push_back((seq, text.to_owned()));
        drop(waiting);
        self.wake.notify_one();
        true
    }

    fn fail(&self, why: &AgentError) {
        self.inner().then.get_or_insert_with(|| Then::Failed(why.clone()));
        self.wake.notify_one();
    }

    /// What waits, or what comes next; nothing but that if the reader was let go.
    pub(super) async fn next(&self) -> Result<Option<EventLines>, AgentError> {
        loop {
            {
                let mut waiting = self.inner();
                if !waiting.lines.is_empty() {
                    return Ok(Some(waiting.take()));
                }
                match waiting.then.take() {
                    Some(Then::LetGo) => return Ok(None),
                    Some(Then::Failed(why)) => return Err(why),
                    None => {}
                }
            }
            self.wake.notified().await;
        }
    }

    fn inner(&self) -> MutexGuard<'_, Waiting> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self) -> EventLines {
        let mut gathered = Gathering::default();
        while gathered.len() < HANDED
            && let Some((seq, text)) = self.lines.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(text.len());
            gathered.push(seq, &text);
        }
        gathered.take()
    }
}

/// Show no more of that session.
pub(super) fn detach(session: &SessionId) -> String {
    let inquiry = Inquiry::Detach(session.clone());
    InquiryFrame { id: None, inquiry }.to_json().get().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, padding: usize) -> String {
        format!(
            r#"{{"id":"e","sessionId":"s","seq":{seq},"type":"turnFailed","error":"words","pad":"{}"}}"#,
            "x".repeat(padding)
        )
    }

    fn router() -> (Router, mpsc::Sender<String>, mpsc::Receiver<String>) {
        let (lines, said) = mpsc::channel(4);
        (Router::new(lines.downgrade()), lines, said)
    }

    #[tokio::test]
    async fn a_slow_reader_is_let_go_and_the_others_read_on() {
        let (router, _lines, mut said) = router();
        let session = SessionId::from("s");
        let (slow, after) = router.join(&session, 0);
        assert_eq!(after, 0);
        let (quick, _) = router.join(&session, 0);
        // What comes before the child has said so is not for them.
        router.line(&event(7, 0));
        for reader in [&slow, &quick] {
            let (number, _replied) = router.call(Some(Arc::clone(reader))).unwrap();
            router.line(&format!(r#"{{"id":{number},"reply":{{}}}}"#));
        }
        let mut seq = 0;
        let mut read = 0;
        while slow.inner().then.is_none() {
            seq += 1;
            router.line(&event(seq, 100_000));
            let lines = quick.next().await.unwrap().unwrap();
            assert_eq!(lines.first(), read + 1);
            read = lines.last();
        }
        assert_eq!(read, seq);
        assert!(slow.inner().bytes <= BOUND);
        // A third wants to read from the beginning: the child must show it from there.
        assert_eq!(router.join(&session, 0).1, 0);
        let mut last = 0;
        while let Some(lines) = slow.next().await.unwrap() {
            assert_eq!(lines.first(), last + 1);
            last = lines.last();
        }
        assert_eq!(last, seq - 1);
        assert!(said.try_recv().is_err());
    }

    #[tokio::test]
    async fn when_the_last_reader_is_let_go_the_child_is_told() {
        let (router, _lines, mut said) = router();
        let session = SessionId::from("s");
        let (queue, _) = router.join(&session, 0);
        queue.attach();
        router.line(&event(1, BOUND));
        assert!(said.try_recv().is_err());
        router.line(&event(2, 1));
        assert_eq!(said.try_recv().unwrap(), r#"{"command":"detach","sessionId":"s"}"#);
        assert!(!router.is_read(&session));
        assert_eq!(queue.next().await.unwrap().map(|lines| lines.last()), Some(1));
        assert_eq!(queue.next().await, Ok(None));
        router.leave(&session, &queue);
        assert!(said.try_recv().is_err());
    }

    #[tokio::test]
    async fn the_end_is_told_to_all() {
        let (router, _lines, _said) = router();
        let session = SessionId::from("s");
        let (queue, _) = router.join(&session, 0);
        let (_, replied) = router.call(None).unwrap();
        let why = AgentError::broken("x", "gone");
        router.end(&why);
        assert_eq!(replied.await.unwrap(), Err(why.clone()));
        assert_eq!(queue.next().await, Err(why.clone()));
        assert_eq!(router.call(None).map(drop), Err(why));
    }
}
