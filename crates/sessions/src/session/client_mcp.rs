//! MCP servers that the client hosts when the agent cannot reach them: the agent's messages become
//! requests, and the client's messages go to the agent through the same relay.

use agentwire_dialects::mcp;
use agentwire_protocol::event::{
    RequestKind, RequestOutcome, RequestRaised, SettledBy, Status, StatusChanged,
};
use agentwire_protocol::{Answer, Call, Command, ErrorCode, GatewayError, Json, Text};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;

use super::actor::Actor;
use super::callers::NOBODY;
use super::core::Effect;
use super::pending_request::{Asker, PendingRequest};
use crate::blocking::blocking_if_long;
use crate::bridge::RelayActivity;

/// The query with which a client's server sends a message first.
pub(super) const MCP_MESSAGE: &str = "mcpMessage";

impl Actor {
    pub(super) fn relay_activity(&mut self, activity: RelayActivity) {
        self.core.journal.tick();
        let Some(bridge) = &mut self.bridge else { return };
        match activity {
            RelayActivity::Opened { connection, to } => bridge.opened(connection, to),
            RelayActivity::Closed { connection } => {
                for request in bridge.closed(connection) {
                    self.no_longer_asked(&request, "the agent ended the MCP server");
                }
            }
            RelayActivity::Message { connection, message, room, share } => {
                self.outbox.hold_share(share);
                let size = message.get().len();
                self.load = self.load.max(size);
                blocking_if_long(size, || {
                    self.cancel(connection, &message);
                    self.raise(connection, message, room);
                });
            }
        }
    }

    /// Raises a message for a server as a request, like the agents that support client-hosted servers do.
    fn raise(&mut self, connection: u64, message: Json<'static>, room: OwnedSemaphorePermit) {
        let Some(bridge) = &mut self.bridge else { return };
        let Some(server) = bridge.server(connection).map(str::to_owned) else { return };
        let id = format!("mcp-{}", self.core.journal.last() + 1);
        bridge.raised(id.clone(), connection, room);
        let request = RequestRaised {
            name: Some(Text::from(server)),
            ..RequestRaised::new(id.as_str(), RequestKind::Mcp, Some(message))
        };
        self.core.raise_request(request, Asker::Relay);
        self.wait_for_answer(&id);
        if self.phase.is_ending() {
            self.deny_messages("the session was stopped");
        }
    }

    /// Withdraws the request that this message cancels, if it cancels one.
    fn cancel(&mut self, connection: u64, message: &Json<'_>) {
        let (Some(id), Some(bridge)) = (mcp::cancelled(message), &self.bridge) else { return };
        let requests = &self.core.state.requests;
        let is_meant = |request: &&str| {
            let input = requests.get(*request).and_then(|raised| raised.input.as_ref());
            input.and_then(mcp::awaited).is_some_and(|awaited| awaited == id)
        };
        let request = bridge.of(connection).find(is_meant).map(str::to_owned);
        if let Some(request) = request {
            self.no_longer_asked(&request, "the agent cancelled it");
        }
    }

    fn no_longer_asked(&mut self, request: &str, reason: &str) {
        if let Some(raised) = self.core.state.requests.get(request).cloned() {
            let by = SettledBy::Agent;
            self.close(&raised, RequestOutcome::Withdrawn, by, Some(reason), None);
        }
    }

    pub(super) fn settle_message(
        &mut self,
        raised: &PendingRequest,
        answer: &Answer,
    ) -> Result<(), GatewayError> {
        if let Some(bridge) = &self.bridge {
            bridge.asker(&raised.id).map_or(Ok(()), |connection| bridge.has_room(connection))?;
        }
        self.message_answered(raised, answer.clone())?;
        if matches!(answer, Answer::Deny { interrupt: true, .. }) && self.core.state.is_busy() {
            self.tape.command(
                NOBODY,
                &Command::Interrupt { cancel_queued: false },
                &mut self.core,
            )?;
            self.escalate();
        }
        Ok(())
    }

    /// Sends the agent the answer to its message. A notification has no answer.
    pub(super) fn message_answered(
        &mut self,
        raised: &PendingRequest,
        answer: Answer,
    ) -> Result<(), GatewayError> {
        let response = mcp::response(raised.input.as_ref(), answer)?;
        let Some(bridge) = &self.bridge else { return Ok(()) };
        if let (Some(response), Some(connection)) = (response, bridge.asker(&raised.id)) {
            let server = bridge.server(connection).map(str::to_owned);
            let tools = mcp::listed(raised.input.as_ref(), &response);
            self.core.effects.push(Effect::Relay(connection, response));
            // The agent may not report them on its own wire.
            if let (Some(server), Some(tools)) = (server, tools) {
                let details = Json::of(&json!({ "status": "connected", "tools": tools }));
                let change = StatusChanged::new(Status::McpServer).message(Text::from(server));
                self.core.emit(change.details(details));
            }
        }
        Ok(())
    }

    /// A client's server sends a message first. A notification goes to all relays of the server. A request
    /// must be answered once, so only the oldest relay gets it.
    pub(super) fn server_says(
        &mut self,
        call: Call,
        args: &[Json<'static>],
    ) -> Result<(), GatewayError> {
        let invalid = |message: &str| GatewayError::new(ErrorCode::InvalidMessage, message);
        let (server, message) = match args {
            [server, message] if message.get().starts_with('{') => (server, message),
            _ => return Err(invalid("mcpMessage needs a server's name and a JSON-RPC message")),
        };
        let server: String =
            server.read().map_err(|_| invalid("the server's name must be a string"))?;
        let Some(bridge) = &self.bridge else { return Ok(()) };
        let mut relays = bridge.relays(&server)?;
        if mcp::awaited(message).is_some() {
            relays.truncate(1);
        }
        relays.iter().try_for_each(|connection| bridge.has_room(*connection))?;
        let told = relays.into_iter().map(|connection| Effect::Relay(connection, message.clone()));
        self.core.effects.extend(told);
        self.core.answer(call, Ok(Json::EMPTY));
        Ok(())
    }
}
