//! Streams of a session: updates as exact bytes, typed events, and batches of events.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agentwire_protocol::Profile;
use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::error::{AgentError, AgentErrorType, Gap};
use crate::event::Event;
use crate::event_lines::EventLines;
use crate::follow::{BufferedUpdate, FollowPlan, UpdateSender, follow};
use crate::session::Session;

/// How many updates may wait for the reader, in addition to the limit in bytes.
const UPDATES: usize = 256;

/// A batch is complete at this many bytes.
const BATCH: usize = 256 << 10;

/// An item of [`Updates`].
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The next events: none missing, none repeated.
    Events(EventLines),
    /// The connection broke. The stream reconnects and continues at its position.
    Lost(AgentError),
    /// The connection is restored.
    Back,
    /// Events that cannot be read.
    Gap(Gap),
}

/// A session's events in the gateway's exact bytes, over connections that may break.
///
/// ```rust,no_run
/// use agentwire_client::{AgentError, Session, Update};
///
/// async fn watch(session: &Session) -> Result<(), AgentError> {
///     let mut updates = session.updates();
///     while let Some(update) = updates.try_next().await? {
///         match update {
///             Update::Events(lines) => lines.iter().for_each(|(_, json)| println!("{json}")),
///             Update::Lost(error) => println!("reconnecting: {error}"),
///             Update::Back => println!("reconnected"),
///             Update::Gap(gap) => println!("{gap}"),
///         }
///     }
///     Ok(())
/// }
/// ```
///
/// The first read opens the connection. The stream ends when the session has ended and everything was read;
/// an error is its last item. Dropping it closes its connection.
#[must_use = "a stream does nothing until it is read"]
pub struct Updates {
    /// Until the first read.
    plan: Option<FollowPlan>,
    updates: Option<mpsc::Receiver<BufferedUpdate>>,
    task: Option<Task>,
    room: Arc<Semaphore>,
    size: usize,
    /// The buffer space of the update that is being read.
    held: Option<OwnedSemaphorePermit>,
    position: u64,
    up_to: Option<u64>,
    cancelled: Vec<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// Aborts the task on drop.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Updates {
    pub(crate) fn new(plan: FollowPlan, buffer: usize) -> Self {
        let size = buffer.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            position: plan.after,
            up_to: None,
            plan: Some(plan),
            updates: None,
            task: None,
            room: Arc::new(Semaphore::new(size)),
            size,
            held: None,
            cancelled: Vec::new(),
        }
    }

    /// Ends the stream after event `seq`.
    pub fn up_to(mut self, seq: u64) -> Self {
        self.up_to = Some(seq);
        self.plan(|plan| plan.up_to = Some(seq))
    }

    /// Uses this profile; call it before the first read. `core` leaves events out, and in a session that
    /// has not ended, a gap looks the same as those.
    pub fn profile(self, profile: Profile) -> Self {
        self.plan(|plan| plan.profile = profile)
    }

    /// Ends the stream when this token, or another given before, is cancelled. The session continues.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.cancelled.push(Box::pin(token.cancelled_owned()));
        self
    }

    /// Whether a token is cancelled; if so, the stream is over.
    fn poll_cancelled(&mut self, context: &mut Context<'_>) -> bool {
        let is_cancelled =
            self.cancelled.iter_mut().any(|token| token.as_mut().poll(context).is_ready());
        if is_cancelled {
            // A completed future must not be polled again.
            (self.cancelled, self.up_to) = (Vec::new(), Some(0));
            self.end();
        }
        is_cancelled
    }

    fn plan(mut self, change: impl FnOnce(&mut FollowPlan)) -> Self {
        if let Some(plan) = &mut self.plan {
            change(plan);
        }
        self
    }

    /// The number of the last event that was read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many bytes of the buffer hold unread events or the batch being read. One more batch may wait for
    /// space. A batch larger than the buffer counts as the whole buffer.
    pub fn buffered_bytes(&self) -> usize {
        self.size.saturating_sub(self.room.available_permits())
    }

    /// The next update, or `None` at the end. It is cancel-safe: dropping the future loses nothing.
    pub async fn try_next(&mut self) -> Result<Option<Update>, AgentError> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    fn begin(&mut self) {
        let Some(plan) = self.plan.take() else { return };
        let (updates, read) = mpsc::channel(UPDATES);
        let sender = UpdateSender { updates, room: Arc::clone(&self.room), size: self.size };
        self.task = Some(Task(tokio::spawn(follow(plan, sender))));
        self.updates = Some(read);
    }

    fn end(&mut self) {
        (self.plan, self.updates, self.task, self.held) = (None, None, None, None);
    }

    /// The task is done. If it panicked, returns an error.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<AgentError>> {
        let Some(Task(task)) = &mut self.task else { return Poll::Ready(None) };
        let ended = ready!(Pin::new(task).poll(context));
        self.end();
        let fault = ended.err().filter(JoinError::is_panic);
        Poll::Ready(fault.map(|fault| {
            let message = format!("failed to follow the session: {fault}");
            AgentError::new(AgentErrorType::Unknown, message)
        }))
    }
}

impl Stream for Updates {
    type Item = Result<Update, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.held = None;
        if self.poll_cancelled(context) || self.up_to.is_some_and(|last| self.position >= last) {
            self.end();
            return Poll::Ready(None);
        }
        self.begin();
        let Some(updates) = &mut self.updates else { return Poll::Ready(None) };
        let Some(BufferedUpdate { update, room }) = ready!(updates.poll_recv(context)) else {
            return self.poll_end(context).map(|fault| fault.map(Err));
        };
        self.held = room;
        let mut update = update;
        if let Ok(Update::Events(lines)) = &mut update {
            if let Some(last) = self.up_to.filter(|last| lines.last() > *last) {
                let count = lines.numbers().take_while(|seq| *seq <= last).count();
                *lines = lines.slice(0, count);
            }
            self.position = lines.last().max(self.position);
        }
        if let Ok(Update::Gap(Gap::Forgotten { from, .. })) = &update {
            self.position = from - 1;
        }
        Poll::Ready(Some(update))
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").field("position", &self.position).finish_non_exhaustive()
    }
}

/// A session's events, over connections that may break: none missing, none repeated.
///
/// The first read opens the connection. The stream ends when the session has ended and everything was read.
/// Dropping it closes its connection; the session continues.
///
/// Missing events ([`AgentError::gap`]) and events that cannot be parsed are errors after which the stream
/// continues. Any other error is its last item. Lost and restored connections are visible only in
/// [`Session::updates`].
#[must_use = "a stream does nothing until it is read"]
#[derive(Debug)]
pub struct EventStream {
    updates: Updates,
    session: Session,
    current: Option<(EventLines, usize)>,
}

impl EventStream {
    pub(crate) fn new(updates: Updates, session: Session) -> Self {
        Self { updates, session, current: None }
    }

    /// Ends the stream after event `seq`.
    pub fn up_to(mut self, seq: u64) -> Self {
        self.updates = self.updates.up_to(seq);
        self
    }

    /// Uses this profile; call it before the first read. `core` leaves events out, and in a session that
    /// has not ended, a gap looks the same as those.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.updates = self.updates.profile(profile);
        self
    }

    /// Ends the stream when this token, or another given before, is cancelled. The session continues.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.updates = self.updates.cancelled_by(token);
        self
    }

    /// Groups events: each batch holds those that arrive within `flush` of its first.
    ///
    /// ```rust,standalone_crate
    /// # use std::time::Duration;
    /// # use agentwire_client::{AgentType, SessionRequest};
    /// # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
    /// # let gateway = agentwire_client::InProcessTransport::with_settings(trial.settings()).await?;
    /// # let client = agentwire_client::AgentClient::over(gateway);
    /// let session = client.create(SessionRequest::new(AgentType::Demo, "/repeat 50 word ")).await?;
    /// let mut batches = session.events().batches(Duration::from_millis(20));
    /// while let Some(events) = batches.try_next().await? {
    ///     // Draw once for all of them.
    ///     if events.iter().any(|event| event.ends_turn()) {
    ///         break;
    ///     }
    /// }
    /// # client.close().await;
    /// # Ok::<_, agentwire_client::AgentError>(()) }) }
    /// ```
    pub fn batches(self, flush: Duration) -> Batches {
        Batches { events: self, flush, gathered: Vec::new(), bytes: 0, due: None, then: None }
    }

    /// How many bytes of events wait for the reader; see [`Updates::buffered_bytes`].
    pub fn buffered_bytes(&self) -> usize {
        self.updates.buffered_bytes()
    }

    /// The next event, or `None` once the session has ended. It is cancel-safe: dropping the future loses
    /// nothing.
    pub async fn try_next(&mut self) -> Result<Option<Event>, AgentError> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }
}

impl Stream for EventStream {
    type Item = Result<Event, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.current.is_some() && this.updates.poll_cancelled(context) {
            this.current = None;
        }
        loop {
            if let Some((lines, at)) = &mut this.current
                && let Some((_, raw)) = lines.get(*at)
            {
                *at += 1;
                let event = Event::read(&raw, &this.session);
                if let Ok(event) = &event {
                    this.session.apply(event);
                }
                return Poll::Ready(Some(event));
            }
            this.current = None;
            match ready!(Pin::new(&mut this.updates).poll_next(context)) {
                Some(Ok(Update::Events(lines))) => this.current = Some((lines, 0)),
                Some(Ok(Update::Lost(_) | Update::Back)) => {}
                Some(Ok(Update::Gap(gap))) => {
                    if let Gap::Forgotten { from, .. } = gap {
                        this.session.forget(from);
                    }
                    return Poll::Ready(Some(Err(this.session.with_agent(gap.into()))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(this.session.with_agent(error)))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// A session's events in batches; see [`EventStream::batches`].
#[must_use = "a stream does nothing until it is read"]
#[derive(Debug)]
pub struct Batches {
    events: EventStream,
    flush: Duration,
    gathered: Vec<Event>,
    bytes: usize,
    due: Option<Pin<Box<Sleep>>>,
    /// What follows the collected events: an error, or the end.
    then: Option<Option<AgentError>>,
}

impl Batches {
    /// The next batch, or `None` once the session has ended. It is cancel-safe: dropping the future loses
    /// nothing.
    pub async fn try_next(&mut self) -> Result<Option<Vec<Event>>, AgentError> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }

    fn flush(&mut self) -> Poll<Option<Result<Vec<Event>, AgentError>>> {
        (self.bytes, self.due) = (0, None);
        Poll::Ready(Some(Ok(std::mem::take(&mut self.gathered))))
    }
}

impl Stream for Batches {
    type Item = Result<Vec<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(then) = this.then.take() {
                if !this.gathered.is_empty() {
                    this.then = Some(then);
                    return this.flush();
                }
                return Poll::Ready(then.map(Err));
            }
            match Pin::new(&mut this.events).poll_next(context) {
                Poll::Ready(Some(Ok(event))) => {
                    this.bytes += event.raw().len();
                    this.gathered.push(event);
                    if this.bytes >= BATCH {
                        return this.flush();
                    }
                    let flush = this.flush;
                    this.due.get_or_insert_with(|| Box::pin(tokio::time::sleep(flush)));
                }
                Poll::Ready(Some(Err(error))) => this.then = Some(Some(error)),
                Poll::Ready(None) => this.then = Some(None),
                Poll::Pending => {
                    let due = this.due.as_mut().map(|due| due.as_mut().poll(context));
                    return match due {
                        Some(Poll::Ready(())) => this.flush(),
                        Some(Poll::Pending) | None => Poll::Pending,
                    };
                }
            }
        }
    }
}
