//! Requests to the client: send, wait, withdraw.

use std::time::Instant;

use serde_json::{Value, json};

use super::agent::{Agent, Halt};
use super::json::JsonFields as _;

/// Open requests, and answers that were not taken yet.
#[derive(Default)]
pub(super) struct Requests {
    open: Vec<(String, Requester)>,
    answers: Vec<(String, ClientAnswer)>,
}

/// Who waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requester {
    Turn,
    /// A server that the client hosts, by its number. An interrupt withdraws a tool's `call`, but
    /// not the handshake.
    Server {
        number: usize,
        message: u64,
        call: bool,
    },
}

#[derive(Debug)]
pub(super) enum ClientAnswer {
    Given(Value),
    Failed(String),
    /// There is no client.
    Closed,
}

impl Agent {
    /// Sends a request; returns its id.
    pub(super) fn request(
        &mut self,
        requester: Requester,
        request: &Value,
    ) -> Result<String, Halt> {
        let id = self.session.ids.uuid().to_string();
        self.out
            .line(&json!({ "type": "control_request", "request_id": id, "request": request }))?;
        self.requests.open.push((id.clone(), requester));
        Ok(id)
    }

    /// Waits for the first answer to any of these; `None` after the timeout.
    pub(super) fn answer(
        &mut self,
        ids: &[String],
        until: Option<Instant>,
    ) -> Result<Option<(String, ClientAnswer)>, Halt> {
        loop {
            let found = self.requests.answers.iter().position(|(id, _)| ids.contains(id));
            if let Some(at) = found {
                return Ok(Some(self.requests.answers.swap_remove(at)));
            }
            if !self.listening {
                let open = &mut self.requests.open;
                let at = open.iter().position(|(id, _)| ids.contains(id));
                let id = at.map(|at| open.remove(at).0).unwrap_or_default();
                return Ok(Some((id, ClientAnswer::Closed)));
            }
            if !self.wait(until)? {
                return Ok(None);
            }
        }
    }

    /// Withdraws a request, if it is still open.
    pub(super) fn withdraw(&mut self, id: &str) -> Result<(), Halt> {
        self.requests.answers.retain(|(answered, _)| answered != id);
        let Some(at) = self.requests.open.iter().position(|(open, _)| open == id) else {
            return Ok(());
        };
        self.requests.open.remove(at);
        Ok(self.out.line(&json!({ "type": "control_cancel_request", "request_id": id }))?)
    }

    /// Withdraws all requests of the turn.
    pub(super) fn withdraw_all(&mut self) -> Result<(), Halt> {
        let of_turn = |(id, requester): &(String, Requester)| match requester {
            Requester::Turn | Requester::Server { call: true, .. } => Some(id.clone()),
            Requester::Server { call: false, .. } => None,
        };
        let ids: Vec<String> = self.requests.open.iter().filter_map(of_turn).collect();
        ids.iter().try_for_each(|id| self.withdraw(id))
    }

    /// Handles an answer. An answer to a withdrawn request is ignored.
    pub(super) fn control_response(&mut self, mut line: Value) -> Result<(), Halt> {
        let response = line.get_mut("response").map(Value::take).unwrap_or_default();
        let id = response.at("request_id").as_str().unwrap_or_default();
        let Some(at) = self.requests.open.iter().position(|(open, _)| open == id) else {
            return Ok(());
        };
        let (id, requester) = self.requests.open.remove(at);
        let answer = match response.at("subtype").as_str() {
            Some("success") => ClientAnswer::Given(response.at("response").clone()),
            _ => ClientAnswer::Failed(
                response.at("error").as_str().unwrap_or("no reason given").to_owned(),
            ),
        };
        match requester {
            Requester::Turn => {
                self.requests.answers.push((id, answer));
                Ok(())
            }
            Requester::Server { number, message, .. } => {
                self.server_answer(number, message, answer)
            }
        }
    }
}
