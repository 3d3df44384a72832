//! Commands to sessions that run here: the next prompt, and everything else.

use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{
    Command, Configure, ErrorCode, GatewayError, Json, NewSession, SessionConfig, SessionId,
    SessionState,
};

use super::Hub;
use crate::SessionHandle;
use crate::budget::Share;
use crate::session::Client;

/// How long a large prompt may wait for the agent to accept a change while others wait for its share.
const CHANGE: Duration = Duration::from_secs(1);

const BUSY: &str =
    "the agent has not accepted the change yet, and others wait to send large messages; try again";

impl Hub {
    /// The session to continue, if it runs here and is idle.
    pub(super) fn waiting(&self, new: &NewSession) -> Option<SessionHandle> {
        let id = new.resume.as_ref().filter(|_| !new.fork)?;
        let session = self.session(id).ok()?;
        (session.summary().state == SessionState::Idle).then_some(session)
    }

    /// Gives a running session its next prompt. Its configuration stays, except for the model and the mode.
    pub(super) async fn continue_session(
        &self,
        session: SessionHandle,
        new: NewSession,
        key: Option<(String, String)>,
        share: Option<Arc<Share>>,
    ) -> Result<SessionHandle, GatewayError> {
        let (id, summary) = (session.id(), session.summary());
        if summary.agent_type != new.agent {
            let agent = summary.agent_type.as_str();
            let message = format!("session {id} belongs to {agent}; continue it with that agent");
            return Err(GatewayError::new(ErrorCode::Conflict, message));
        }
        let SessionConfig { model, approval_mode, permission_mode, .. } = new.config.clone();
        let kept = SessionConfig {
            model: model.clone(),
            approval_mode,
            permission_mode: permission_mode.clone(),
            ..SessionConfig::default()
        };
        if new.config != kept {
            let message = format!(
                "session {id} runs: only its model and its mode can be changed now; stop it first to resume \
                 it with other options"
            );
            return Err(GatewayError::new(ErrorCode::Conflict, message));
        }
        if kept != SessionConfig::default() {
            let change = Configure {
                model: model.map(Some),
                approval_mode,
                permission_mode,
                ..Configure::default()
            };
            let changed = session.send(Command::Configure(change));
            let clients = &self.shared.log.budget().clients;
            match &share {
                None => Some(changed.await),
                Some(_) => clients.unless_wanted(CHANGE, changed).await,
            }
            .unwrap_or_else(|| Err(GatewayError::new(ErrorCode::Overloaded, BUSY)))?;
        }
        let last = match new.prompt {
            Some(prompt) => Command::Prompt(prompt),
            None => Command::Configure(Configure::default()),
        };
        session.send_once(last, key, share).await?;
        Ok(session)
    }

    /// Sends a command. The error distinguishes a session that never existed from one that has ended.
    pub(super) async fn send(
        &self,
        id: &SessionId,
        client: &Client,
        command: Command,
        key: Option<(String, String)>,
        share: Option<Arc<Share>>,
    ) -> Result<Json<'static>, GatewayError> {
        let error = match self.session(id) {
            Ok(session) => return session.of_client(client).send_once(command, key, share).await,
            Err(error) => error,
        };
        let is_over = self.summary(id).await?.state == SessionState::Ended;
        let message = match is_over {
            true => format!("session {id} has ended; start a session with its id to continue"),
            false => format!("session {id} runs in another process; send commands to that process"),
        };
        Err(GatewayError::new(if is_over { ErrorCode::Conflict } else { error.code }, message))
    }
}
