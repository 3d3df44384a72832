//! A client that reconnects continues its sessions by their ids.

use agentwire_protocol::{ErrorCode, GatewayError, SessionId, SessionSummary};

use super::session::{Session, hold};
use super::{
    Code, FULL, Failure, Insights, PendingCall, Renderer, SESSION_LIMIT, SessionOp, send_error,
};
use crate::front::{GatewayCall, Outbox};

/// How many sessions may be looked up at once.
const FINDING_LIMIT: usize = 64;

impl Insights {
    /// Looks up a session that an earlier connection of this client started.
    pub(super) fn find_own(
        &mut self,
        id: SessionId,
        wanted: SessionOp,
        out: &mut Outbox,
    ) -> Result<(), Failure> {
        if let Some(held) = self.finding.get_mut(&id) {
            return hold(held, wanted);
        }
        if self.finding.len() >= FINDING_LIMIT || self.sessions.len() >= SESSION_LIMIT {
            let text = "too many sessions are being looked up; try again later";
            return Err(Failure::new(wanted.code(), text));
        }
        let call = out.call(GatewayCall::Own(id.clone()));
        self.calls.insert(call, PendingCall::Find(id.clone()));
        self.finding.insert(id, [wanted].into());
        Ok(())
    }

    /// The session belongs to this client. Its events are read again, to know what is open.
    pub(super) fn found(&mut self, id: &SessionId, summary: &SessionSummary, out: &mut Outbox) {
        let wanted = self.finding.remove(id).unwrap_or_default();
        let is_full = self.is_full();
        let renderer = Renderer::new(id.as_str(), None, self.prices.clone());
        let state = Session::earlier(summary.agent_type, renderer, summary.last_seq);
        self.sessions.insert(id.clone(), state);
        if !is_full {
            out.follow(id, 0);
        }
        for wanted in wanted {
            let done = match self.sessions.get_mut(id) {
                Some(state) if state.holds(&wanted) && is_full => {
                    Err(Failure::new(wanted.code(), FULL))
                }
                Some(state) if state.holds(&wanted) => state.hold(wanted),
                Some(_) | None => self.carry_out(id, wanted, out),
            };
            if let Err(failure) = done {
                send_error(Some(id.as_str()), &failure, out);
            }
        }
        if is_full {
            // It can be stopped, but not watched; the next message looks it up again.
            self.sessions.remove(id);
        } else {
            self.caught_up(id, 0, out);
        }
    }

    /// The session belongs to someone else, was killed, or does not exist.
    pub(super) fn not_found(&mut self, id: &SessionId, error: &GatewayError, out: &mut Outbox) {
        for wanted in self.finding.remove(id).unwrap_or_default() {
            let code = match error.code == ErrorCode::SessionNotFound {
                true => Code::SessionNotFound,
                false => wanted.code(),
            };
            send_error(Some(id.as_str()), &Failure::new(code, error.message.as_str()), out);
        }
    }

    /// The events up to that one were read again. After the last one, the open requests are shown and the
    /// held messages are handled.
    pub(super) fn caught_up(&mut self, id: &SessionId, seq: u64, out: &mut Outbox) {
        let Some(state) = self.sessions.get_mut(id) else { return };
        let Some((held, unanswerable)) = state.caught_up(seq) else { return };
        state.renderer.pause(&mut |message| out.send(message.get()));
        for request in unanswerable {
            self.refuse_request(id, request, out);
        }
        for wanted in held {
            if let Err(failure) = self.carry_out(id, wanted, out) {
                send_error(Some(id.as_str()), &failure, out);
            }
        }
    }
}
