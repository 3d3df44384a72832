//! Passes a front's calls to the hub or to a session, and the replies back.

use agentwire_dialects::front::{GatewayCall, GatewayReply};
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, SessionId};
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::hub::message_of;
use agentwire_sessions::session::Client;
use agentwire_sessions::{Hub, SessionHandle};
use futures_util::future::FutureExt;
use tokio::task::{self, JoinError};

use super::command_queue::QueuedCommand;
use super::hub_calls::{self, FinishedCall};
use super::{Closing, DelayedReply, OPEN_CALLS, Phase, Pump};

impl Pump<'_> {
    fn client(&self) -> Client {
        Client { name: self.terms.client.clone(), is_limited: self.terms.is_limited }
    }

    pub(super) fn dispatch(&mut self, call: Call, ask: GatewayCall) {
        if let Err(error) = (self.terms.may)(&ask) {
            return self.front.on_reply(call, Err(error), &mut self.out);
        }
        let hub = self.hub.clone();
        match ask {
            GatewayCall::Command(session, command) => match hub.session(&session) {
                Ok(session) => {
                    let session = session.of_client(&self.client());
                    self.post(Some(call), session, command);
                }
                Err(error) => match message_of(&command) {
                    None => self.front.on_reply(call, Err(error), &mut self.out),
                    id => drop(
                        self.spawn(call, hub_calls::not_running(hub, call, session, id, error)),
                    ),
                },
            },
            _ if self.open() >= OPEN_CALLS => {
                let error = GatewayError::new(ErrorCode::Overloaded, "too many calls are open");
                self.front.on_reply(call, Err(error), &mut self.out);
            }
            GatewayCall::Start(mut new) => {
                new.key = new.key.map(|key| Hub::key_of(&self.terms.keys, &key));
                new.is_limited = self.terms.is_limited;
                new.client = self.terms.client.as_deref().map(str::to_owned);
                let share = self.share.clone();
                self.spawn(call, hub_calls::start(hub, call, *new, share));
            }
            GatewayCall::Session(id) => drop(self.spawn(call, hub_calls::session(hub, call, id))),
            GatewayCall::Own(id) => {
                let client = self.terms.client.clone();
                self.spawn(call, hub_calls::own_session(hub, call, id, client));
            }
            GatewayCall::Query(look) => {
                self.pages.push_back((call, hub_calls::query(hub, call, look).boxed()));
            }
            GatewayCall::Sessions { limit } => {
                self.pages.push_back((call, hub_calls::sessions(hub, call, limit).boxed()));
            }
            GatewayCall::Events { session, after, limit } => {
                let page = hub_calls::events(hub, call, session, after, limit);
                self.pages.push_back((call, page.boxed()));
            }
        }
    }

    /// Posts a command to a session, once there is room. Commands keep their order, except those that may
    /// overtake waiting ones.
    pub(super) fn post(&mut self, call: Option<Call>, handle: SessionHandle, command: Command) {
        let message_id = message_of(&command);
        let waits =
            self.queue.contains(handle.id()) && !agentwire_sessions::session::overtakes(&command);
        let waiting = match waits {
            true => Box::new(command),
            false => match handle.post(command, self.share.clone()) {
                Ok(answer) => {
                    return self.await_reply(call, handle.id().clone(), message_id, answer);
                }
                Err(command) => command,
            },
        };
        let share = self.share.clone();
        self.queue.push(QueuedCommand { handle, call, command: waiting, share });
    }

    /// The session has room again for waiting commands.
    pub(super) fn post_waiting(&mut self, session: &SessionId) {
        while let Some(QueuedCommand { handle, call, command, share }) = self.queue.pop(session) {
            let message_id = message_of(&command);
            match handle.post(*command, share.clone()) {
                Ok(answer) => self.await_reply(call, session.clone(), message_id, answer),
                Err(command) => {
                    return self.queue.put_back(QueuedCommand { handle, call, command, share });
                }
            }
        }
    }

    fn await_reply(
        &mut self,
        call: Option<Call>,
        session: SessionId,
        message_id: Option<String>,
        answer: impl Future<Output = agentwire_sessions::session::CommandReply> + Send + 'static,
    ) {
        let hub = self.hub.clone();
        self.commands.push(hub_calls::command(hub, call, session, message_id, answer).boxed());
    }

    pub(super) fn next_page(&mut self) {
        if self.page_task.is_none()
            && let Some((call, page)) = self.pages.pop_front()
        {
            self.page_task = Some(self.spawn(call, page));
        }
    }

    fn spawn(
        &mut self,
        call: Call,
        work: impl Future<Output = FinishedCall> + Send + 'static,
    ) -> task::Id {
        let id = self.calls.spawn(work).id();
        self.calls_by_task.insert(id, call);
        id
    }

    pub(super) fn finish_task(&mut self, ended: Result<(task::Id, FinishedCall), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let call = self.calls_by_task.remove(&id);
        self.page_task.take_if(|page| *page == id);
        match ended {
            Ok((_, finished)) => self.finish_call(finished),
            Err(error) => {
                tracing::error!(%error, "a call failed");
                let Some(call) = call else { return };
                let error =
                    GatewayError::new(ErrorCode::Internal, "agentwire failed to process this call");
                self.front.on_reply(call, Err(error), &mut self.out);
            }
        }
    }

    pub(super) fn finish_call(&mut self, finished: FinishedCall) {
        let FinishedCall { call, reply, started, after, shares } = finished;
        let Some(call) = call else {
            if let Err(error) = reply {
                tracing::debug!(%error.message, "failed to end a session");
            }
            return;
        };
        if let Some(handle) = started {
            let id = handle.id().clone();
            let mut reply = reply;
            // If the session is already watched, events before its new start may not be shown yet.
            if let (Ok(GatewayReply::Started { after, .. }), Some(shown)) =
                (&mut reply, self.watched.shown(&id))
            {
                *after = shown.min(*after);
            }
            if let Closing::Finish { .. } = self.terms.closing {
                self.own_sessions.insert(id.clone(), handle.clone());
            }
            self.front.on_reply(call, reply, &mut self.out);
            match self.phase {
                Phase::Open => {}
                Phase::Closed => self.out.finish(&id),
                Phase::Stopping => self.post(None, handle, Command::Stop),
            }
            return;
        }
        if shares.is_some() {
            self.page_shares = shares;
            let size = match &reply {
                Ok(GatewayReply::Events { events, .. }) => events.get().len(),
                Ok(_) | Err(_) => 0,
            };
            return blocking_if_long(size, || self.front.on_reply(call, reply, &mut self.out));
        }
        match after {
            Some((session, until)) if self.watched.shown(&session).is_some_and(|at| at < until) => {
                self.delayed.push(DelayedReply { session, until, call, reply });
            }
            Some(_) | None => self.front.on_reply(call, reply, &mut self.out),
        }
    }
}
