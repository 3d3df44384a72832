//! The prompts of a session that wait for their turn.

use agentwire_protocol::command::NewText;
use agentwire_protocol::reply::PromptQueue;
use agentwire_protocol::{Command, SessionState};
use axum::extract::{Extension, FromRequest, FromRequestParts as _, Request, State};
use http::StatusCode;

use super::App;
use super::authorization;
use super::body::{LARGE, PathParam, ReadBody, json, object};
use super::problem::Problem;
use super::rest::{HttpResult, answered, send_command, session_id};
use crate::tokens::{Caller, Scope};

/// `GET /v1/sessions/{id}/queue`
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathParam(id): PathParam<String>,
) -> HttpResult {
    let id = session_id(&id)?;
    if app.hub().summary(&id).await?.state == SessionState::Ended {
        return Ok(json(StatusCode::OK, &PromptQueue::default()));
    }
    answered(send_command(&app, &caller, &id, Command::Queue, None).await)
}

/// A request about one prompt. Its client has the scope drive.
pub(super) struct OnPrompt {
    app: App,
    caller: Caller,
    session: String,
    message_id: String,
    body: axum::body::Body,
}

impl FromRequest<App> for OnPrompt {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let PathParam((session, message_id)) =
            PathParam::<(String, String)>::from_request_parts(&mut parts, app).await?;
        let caller = parts.extensions.remove::<Caller>();
        let caller = caller.ok_or_else(|| Problem::unauthorized("the client is not known"))?;
        authorization::need(&caller, Scope::Drive)?;
        Ok(Self { app: app.clone(), caller, session, message_id, body })
    }
}

/// `DELETE /v1/sessions/{id}/queue/{message}`
pub(super) async fn cancel(on: OnPrompt) -> HttpResult {
    let command = Command::Cancel { message_id: on.message_id };
    let id = session_id(&on.session)?;
    answered(send_command(&on.app, &on.caller, &id, command, None).await)
}

/// `PATCH /v1/sessions/{id}/queue/{message}`
pub(super) async fn edit(on: OnPrompt) -> HttpResult {
    let ReadBody { value, share } = object::<NewText>(&on.app, on.body, LARGE).await?;
    let command = Command::Edit { message_id: on.message_id, text: value.prompt };
    let id = session_id(&on.session)?;
    answered(send_command(&on.app, &on.caller, &id, command, share).await)
}
