//! A scripted gateway, for tests of programs that use this crate.

mod session;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::reply::{PromptResult, RequestList, SessionList};
use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Json, ListQuery, Profile, SearchResult, SessionId,
    SessionState, UsageReport,
};
use futures_util::stream;
use tokio::sync::Notify;

use self::session::{ConnectionFaults, ScriptedSession};
use super::{Call, Calling, Connection, Followed, Opening, Transport};
use crate::error::AgentError;
use crate::event_lines::EventLines;

/// How many events arrive at once.
const BATCH: usize = 16;

/// An item of a connection, and the event after which the connection continues, if it does.
type Next = (Result<Followed, AgentError>, Option<u64>);

/// A gateway that plays recorded events and records the calls it receives. Clones share one script.
///
/// Its sessions are recordings, as `agentwire export` writes them, or any other events. A session ends with
/// its recording, unless it is [live](Self::live). Calls get suitable replies; a test can script others.
///
/// ```
/// use agentwire_client::{AgentClient, EventKind, ScriptedTransport};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), agentwire_client::AgentError> {
/// let id = "11111111-1111-4111-8111-111111111111";
/// let line = |seq: u64, rest: &str| {
///     format!(r#"{{"id":"e{seq}","sessionId":"{id}","seq":{seq},"timestamp":"2026-01-02T03:04:05Z",{rest}}}"#)
/// };
/// let transcript = [
///     line(1, r#""type":"sessionStarted","agentType":"claude","config":{}"#),
///     line(2, r#""type":"textChunk","content":"Hello, ""#),
///     line(3, r#""type":"textChunk","content":"world.""#),
/// ];
/// // The connection breaks after the second event. Nobody need know.
/// let script = ScriptedTransport::new().transcript(&transcript.join("\n"))?.cut_after(2);
///
/// let session = AgentClient::over(script.clone()).attach(id).await?;
/// let mut said = String::new();
/// let mut events = session.events();
/// while let Some(event) = events.try_next().await? {
///     if let EventKind::TextChunk(chunk) = &event.kind {
///         said.push_str(&chunk.content.decode());
///     }
/// }
/// assert_eq!(said, "Hello, world.");
///
/// session.prompt("Again").await?;
/// assert_eq!(script.commands().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScriptedTransport {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<ScriptState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ScriptState {
    /// In the order in which they start.
    sessions: Vec<ScriptedSession>,
    /// Applies to each session, including those added later.
    faults: ConnectionFaults,
    started: usize,
    calls: Vec<Call>,
    /// By the name of the call.
    replies: HashMap<String, VecDeque<Result<Json<'static>, AgentError>>>,
    /// How many more connections to refuse.
    refused: usize,
    /// Every connection starts this many events early.
    rewind: u64,
    is_live: bool,
}

impl ScriptedTransport {
    /// A gateway without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the sessions of a recording: events as JSON, one per line.
    pub fn transcript(self, text: &str) -> Result<Self, AgentError> {
        {
            let mut state = self.state();
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                state.add(line)?;
            }
        }
        Ok(self)
    }

    /// Adds the sessions of a recording in a file.
    pub fn transcript_file(self, path: impl AsRef<Path>) -> Result<Self, AgentError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| {
            AgentError::invalid(format!("failed to read {}: {error}", path.display()))
        })?;
        self.transcript(&text)
    }

    /// Adds these events: any values that serialize as events.
    pub fn events<E: serde::Serialize>(
        self,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Self, AgentError> {
        for event in events {
            self.state().add(Json::of(&event).get())?;
        }
        Ok(self)
    }

    /// Sessions continue after the last given event; [`Self::push`] adds more.
    pub fn live(self) -> Self {
        self.state().is_live = true;
        self
    }

    /// Holds back what follows event `seq` until a command arrives. Each hold needs a command of its own.
    pub fn hold_after(self, seq: u64) -> Self {
        self.for_each_session(|faults| faults.hold_after(seq))
    }

    /// Breaks the connection after event `seq`, once.
    pub fn cut_after(self, seq: u64) -> Self {
        self.for_each_session(|faults| faults.cut_after(seq))
    }

    /// Removes event `seq` from the log.
    pub fn without(self, seq: u64) -> Self {
        self.for_each_session(|faults| faults.leave_out(seq))
    }

    fn for_each_session(self, change: impl Fn(&mut ConnectionFaults)) -> Self {
        {
            let mut state = self.state();
            change(&mut state.faults);
            state.sessions.iter_mut().for_each(|session| change(session.faults()));
        }
        self
    }

    /// Every connection repeats this many events.
    pub fn repeating(self, events: u64) -> Self {
        self.state().rewind = events;
        self
    }

    /// Makes the next `count` connections fail.
    pub fn refusing_connections(self, count: usize) -> Self {
        self.state().refused = count;
        self
    }

    /// The next call of this name (`start`, `list`, `show`, `requests`, or a command's name) gets this
    /// reply. Replies of several calls of this method are used in order.
    pub fn reply(self, call: &str, reply: &impl serde::Serialize) -> Self {
        self.answer(call, Ok(Json::of(reply)))
    }

    /// The next call of this name fails with this error.
    pub fn fail(self, call: &str, error: impl Into<AgentError>) -> Self {
        self.answer(call, Err(error.into()))
    }

    fn answer(self, call: &str, answer: Result<Json<'static>, AgentError>) -> Self {
        self.state().replies.entry(call.to_owned()).or_default().push_back(answer);
        self
    }

    /// Adds an event to a live session.
    pub fn push(&self, event: &impl serde::Serialize) -> Result<(), AgentError> {
        let added = self.state().add(Json::of(event).get());
        self.shared.changed.notify_waiters();
        added
    }

    /// Ends live sessions.
    pub fn finish(&self) {
        self.state().is_live = false;
        self.shared.changed.notify_waiters();
    }

    /// All calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// All commands so far, in order.
    pub fn commands(&self) -> Vec<Command> {
        let state = self.state();
        let commands = state.calls.iter().filter_map(|call| match call {
            Call::Command(_, command) => Some(command.clone()),
            _ => None,
        });
        commands.collect()
    }

    fn state(&self) -> MutexGuard<'_, ScriptState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptState {
    fn add(&mut self, line: &str) -> Result<(), AgentError> {
        let (id, seq) = session::session_and_seq(line)?;
        let at = match self.sessions.iter().position(|session| *session.id() == id) {
            Some(at) => at,
            None => {
                self.sessions.push(ScriptedSession::new(id, self.faults.clone()));
                self.sessions.len() - 1
            }
        };
        if let Some(session) = self.sessions.get_mut(at) {
            session.add(seq, line);
        }
        Ok(())
    }

    fn session(&self, id: &SessionId) -> Result<&ScriptedSession, AgentError> {
        self.sessions.iter().find(|session| session.id() == id).ok_or_else(|| {
            let message = format!("the script has no session {id}");
            GatewayError::new(ErrorCode::SessionNotFound, message).into()
        })
    }

    fn call(&mut self, call: Call) -> Result<Json<'static>, AgentError> {
        self.calls.push(call.clone());
        if let Some(answer) = self.replies.get_mut(call.name()).and_then(VecDeque::pop_front) {
            if let (Call::Command(session, _), Ok(_)) = (&call, &answer) {
                self.release(session);
            }
            return answer;
        }
        match call {
            Call::Start { request, .. } => {
                let id = match &request.session_id {
                    Some(id) => SessionId::from(id.as_str()),
                    None => {
                        let next = self.sessions.get(self.started).or(self.sessions.last());
                        self.started += 1;
                        next.map(|session| session.id().clone()).ok_or_else(|| {
                            let message = "the script has no session to start";
                            GatewayError::new(ErrorCode::StartFailed, message)
                        })?
                    }
                };
                let session = self.session(&id)?;
                Ok(Json::of(&match request.session_id {
                    Some(_) => session.resumed(self.is_live),
                    None => session.beginning(request.agent_type),
                }))
            }
            Call::List(query) => Ok(self.list(&query)),
            // The script has neither usage nor an index.
            Call::Usage(_) => {
                Ok(Json::of(&UsageReport { complete: true, ..UsageReport::default() }))
            }
            Call::Search(_) => {
                Ok(Json::of(&SearchResult { complete: true, ..SearchResult::default() }))
            }
            // The script decides what a session is called.
            Call::Label(id, _) => Ok(Json::of(&self.session(&id)?.summary(self.is_live))),
            Call::Show(id) => Ok(Json::of(&self.session(&id)?.summary(self.is_live))),
            Call::Requests(of) => {
                let fits =
                    |session: &&ScriptedSession| of.as_ref().is_none_or(|id| session.id() == id);
                let sessions = self.sessions.iter().filter(fits);
                let mut requests: Vec<_> = sessions.flat_map(ScriptedSession::requests).collect();
                requests.sort_by(|one, other| one.raised_at.cmp(&other.raised_at));
                Ok(Json::of(&RequestList { requests }))
            }
            Call::Command(session, command) => {
                self.session(&session)?;
                self.release(&session);
                Ok(match command {
                    Command::Prompt(prompt) => {
                        let message_id = prompt.message_id.unwrap_or_default();
                        Json::of(&PromptResult { message_id, repeated: false })
                    }
                    Command::Query { .. } | Command::Rewind { .. } => Json::trusted("null"),
                    Command::Queue => Json::trusted(r#"{"queued":[]}"#),
                    Command::Interrupt { .. } => Json::trusted(r#"{"stillQueued":[]}"#),
                    _ => Json::EMPTY,
                })
            }
        }
    }

    /// Sessions, newest first. Of the filters, only `live` applies.
    fn list(&self, query: &ListQuery) -> Json<'static> {
        let limit = query.limit.unwrap_or(SessionList::PAGE);
        let after = query.after.as_deref();
        let summaries = self.sessions.iter().rev().map(|session| session.summary(self.is_live));
        let mut wanted = summaries
            .skip_while(|summary| after.is_some_and(|after| summary.id.as_str() != after))
            .skip(usize::from(after.is_some()))
            .filter(|summary| !query.live || summary.state != SessionState::Ended);
        let sessions: Vec<_> = wanted.by_ref().take(limit).collect();
        let next = wanted.next().and(sessions.last()).map(|last| last.id.to_string());
        Json::of(&SessionList { sessions, next })
    }

    fn release(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id() == id) {
            session.release();
        }
    }

    /// The next item after event `after`, or `None` if the connection must wait.
    fn next(&mut self, id: &SessionId, after: u64, profile: Profile) -> Option<Next> {
        let is_live = self.is_live;
        let session = self.sessions.iter_mut().find(|session| session.id() == id)?;
        if session.cut(after) {
            let why = "it cuts the connection";
            return Some((Err(AgentError::broken("the script", why)), None));
        }
        let events = session.after(after, BATCH);
        match events.last() {
            Some((last, _)) => {
                let shown = EventLines::of(events.iter().copied()).filtered(profile);
                Some((Ok(Followed::Events(shown)), Some(*last)))
            }
            None if session.is_over(is_live) => Some((Ok(Followed::End), None)),
            None => None,
        }
    }
}

impl Transport for ScriptedTransport {
    fn name(&self) -> String {
        "the script".to_owned()
    }

    fn call(&self, call: Call) -> Calling<'_> {
        let answer = self.state().call(call);
        self.shared.changed.notify_waiters();
        Box::pin(std::future::ready(answer))
    }

    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
        let mut state = self.state();
        if state.refused > 0 {
            state.refused -= 1;
            let error = AgentError::unreachable("the script", "it refuses the connection");
            return Box::pin(std::future::ready(Err(error)));
        }
        let after = after.saturating_sub(state.rewind);
        drop(state);
        let reading = (self.clone(), session.clone(), Some(after));
        let connection: Connection = Box::pin(stream::unfold(reading, move |reading| async move {
            let (script, session, after) = reading;
            let (next, after) = script.next(&session, after?, profile).await;
            Some((next, (script, session, after)))
        }));
        Box::pin(std::future::ready(Ok(connection)))
    }
}

impl ScriptedTransport {
    async fn next(&self, session: &SessionId, after: u64, profile: Profile) -> Next {
        loop {
            let changed = self.shared.changed.notified();
            if let Some(next) = self.state().next(session, after, profile) {
                return next;
            }
            changed.await;
        }
    }
}
