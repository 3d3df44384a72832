//! A gateway that is a script: for the tests of programs that use this crate.

mod script;

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::reply::{PromptResult, RequestList, SessionList};
use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Json, Profile, SessionId, SessionState,
};
use futures_util::stream;
use tokio::sync::Notify;

use self::script::{Plot, Story};
use super::{Call, Calling, Connection, Followed, Opening, Transport};
use crate::error::AgentError;
use crate::lines::EventLines;

/// How many events come at once.
const BATCH: usize = 16;

/// What a connection shows, and after which event it goes on, if it does.
type Next = (Result<Followed, AgentError>, Option<u64>);

/// A gateway that plays what it was given, and keeps what was asked of it. Clones are the same.
///
/// Its sessions are recordings, as `agentwire export` writes them, or any events. A session is over when
/// its recording is, unless it is [live](Self::live). Calls get fitting replies; what a test wants else,
/// it says.
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
    state: Mutex<State>,
    /// Something changed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they are begun.
    stories: Vec<Story>,
    /// What happens in each, in those that are yet to come as well.
    plot: Plot,
    begun: usize,
    calls: Vec<Call>,
    /// By the name of the call.
    replies: HashMap<String, VecDeque<Result<Json<'static>, AgentError>>>,
    /// So many connections are refused.
    refused: usize,
    /// Every connection begins so many events before the place asked for.
    rewind: u64,
    is_live: bool,
}

impl ScriptedTransport {
    /// A gateway with no sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the sessions of a recording: events as JSON, one a line.
    pub fn transcript(self, text: &str) -> Result<Self, AgentError> {
        {
            let mut state = self.state();
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                state.add(line)?;
            }
        }
        Ok(self)
    }

    /// With the sessions of a recording in a file.
    pub fn transcript_file(self, path: impl AsRef<Path>) -> Result<Self, AgentError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| {
            AgentError::invalid(format!("failed to read {}: {error}", path.display()))
        })?;
        self.transcript(&text)
    }

    /// With these events: anything that is written as an event.
    pub fn events<E: serde::Serialize>(
        self,
        events: impl IntoIterator<Item = E>,
    ) -> Result<Self, AgentError> {
        for event in events {
            self.state().add(Json::of(&event).get())?;
        }
        Ok(self)
    }

    /// Sessions go on when all that was given was shown: more may be [pushed](Self::push).
    pub fn live(self) -> Self {
        self.state().is_live = true;
        self
    }

    /// What comes after that event is shown only once a command has come. Said several times, each wants a
    /// command of its own.
    pub fn hold_after(self, seq: u64) -> Self {
        self.each(|plot| plot.hold_after(seq))
    }

    /// The connection breaks after that event, once.
    pub fn cut_after(self, seq: u64) -> Self {
        self.each(|plot| plot.cut_after(seq))
    }

    /// The log has no such event.
    pub fn without(self, seq: u64) -> Self {
        self.each(|plot| plot.leave_out(seq))
    }

    fn each(self, change: impl Fn(&mut Plot)) -> Self {
        {
            let mut state = self.state();
            change(&mut state.plot);
            state.stories.iter_mut().for_each(|story| change(story.plot()));
        }
        self
    }

    /// Every connection shows so many events again that were shown before.
    pub fn repeating(self, events: u64) -> Self {
        self.state().rewind = events;
        self
    }

    /// The next so many connections fail.
    pub fn refusing_connections(self, count: usize) -> Self {
        self.state().refused = count;
        self
    }

    /// The next call of that name (`start`, `list`, `show`, `requests`, or that of a command) is answered
    /// so. Said several times, one after the other.
    pub fn reply(self, call: &str, reply: &impl serde::Serialize) -> Self {
        self.answer(call, Ok(Json::of(reply)))
    }

    /// The next call of that name fails so.
    pub fn fail(self, call: &str, error: impl Into<AgentError>) -> Self {
        self.answer(call, Err(error.into()))
    }

    fn answer(self, call: &str, answer: Result<Json<'static>, AgentError>) -> Self {
        self.state().replies.entry(call.to_owned()).or_default().push_back(answer);
        self
    }

    /// Adds an event to a session that runs.
    pub fn push(&self, event: &impl serde::Serialize) -> Result<(), AgentError> {
        let added = self.state().add(Json::of(event).get());
        self.shared.changed.notify_waiters();
        added
    }

    /// What is live goes on no longer.
    pub fn finish(&self) {
        self.state().is_live = false;
        self.shared.changed.notify_waiters();
    }

    /// All that was asked, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// What was wanted of sessions, in order.
    pub fn commands(&self) -> Vec<Command> {
        let state = self.state();
        let commands = state.calls.iter().filter_map(|call| match call {
            Call::Command(_, command) => Some(command.clone()),
            Call::Start { .. } | Call::List { .. } | Call::Show(_) | Call::Requests(_) => None,
        });
        commands.collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, line: &str) -> Result<(), AgentError> {
        let (session, seq) = script::place(line)?;
        let at = match self.stories.iter().position(|story| *story.id() == session) {
            Some(at) => at,
            None => {
                self.stories.push(Story::new(session, self.plot.clone()));
                self.stories.len() - 1
            }
        };
        if let Some(story) = self.stories.get_mut(at) {
            story.add(seq, line);
        }
        Ok(())
    }

    fn story(&self, id: &SessionId) -> Result<&Story, AgentError> {
        self.stories.iter().find(|story| story.id() == id).ok_or_else(|| {
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
                        let next = self.stories.get(self.begun).or(self.stories.last());
                        self.begun += 1;
                        next.map(|story| story.id().clone()).ok_or_else(|| {
                            let message = "the script has no session to begin";
                            GatewayError::new(ErrorCode::StartFailed, message)
                        })?
                    }
                };
                let story = self.story(&id)?;
                Ok(Json::of(&match request.session_id {
                    Some(_) => story.resumed(self.is_live),
                    None => story.beginning(request.agent_type),
                }))
            }
            Call::List { only_live, after, limit } => {
                Ok(self.list(only_live, after.as_ref(), limit))
            }
            Call::Show(id) => Ok(Json::of(&self.story(&id)?.summary(self.is_live))),
            Call::Requests(of) => {
                let fits = |story: &&Story| of.as_ref().is_none_or(|id| story.id() == id);
                let stories = self.stories.iter().filter(fits);
                let mut requests: Vec<_> = stories.flat_map(Story::requests).collect();
                requests.sort_by(|one, other| one.raised_at.cmp(&other.raised_at));
                Ok(Json::of(&RequestList { requests }))
            }
            Call::Command(session, command) => {
                self.story(&session)?;
                self.release(&session);
                Ok(match command {
                    Command::Prompt(prompt) => {
                        let message_id = prompt.message_id.unwrap_or_default();
                        Json::of(&PromptResult { message_id, repeated: false })
                    }
                    Command::Query { .. } | Command::Rewind { .. } => Json::trusted("null"),
                    Command::Interrupt { .. } => Json::trusted(r#"{"stillQueued":[]}"#),
                    Command::Stop
                    | Command::Finish
                    | Command::Settle(_)
                    | Command::Configure(_)
                    | Command::Start(_)
                    | Command::Attach { .. } => Json::EMPTY,
                })
            }
        }
    }

    /// A page of sessions, newest first.
    fn list(&self, only_live: bool, after: Option<&SessionId>, limit: usize) -> Json<'static> {
        let summaries = self.stories.iter().rev().map(|story| story.summary(self.is_live));
        let mut wanted = summaries
            .skip_while(|summary| after.is_some_and(|after| summary.id != *after))
            .skip(usize::from(after.is_some()))
            .filter(|summary| !only_live || summary.state != SessionState::Ended);
        let sessions: Vec<_> = wanted.by_ref().take(limit).collect();
        let next = wanted.next().and(sessions.last()).map(|last| last.id.clone());
        Json::of(&SessionList { sessions, next })
    }

    fn release(&mut self, session: &SessionId) {
        if let Some(story) = self.stories.iter_mut().find(|story| story.id() == session) {
            story.release();
        }
    }

    /// What a connection shows next, after that event, and where it goes on; nothing if it must wait.
    fn next(&mut self, session: &SessionId, after: u64, profile: Profile) -> Option<Next> {
        let is_live = self.is_live;
        let story = self.stories.iter_mut().find(|story| story.id() == session)?;
        if story.cut(after) {
            let why = "it cuts the connection";
            return Some((Err(AgentError::broken("the script", why)), None));
        }
        let events = story.after(after, BATCH);
        match events.last() {
            Some((last, _)) => {
                let shown = EventLines::of(events.iter().copied()).shown(profile);
                Some((Ok(Followed::Events(shown)), Some(*last)))
            }
            None if story.is_over(is_live) => Some((Ok(Followed::End), None)),
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
