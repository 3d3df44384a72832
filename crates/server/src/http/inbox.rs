//! The inbox: the open requests of all sessions, and the answers to them.

use agentwire_protocol::command::Behavior;
use agentwire_protocol::{Command, ErrorCode, Fields, GatewayError, Json, Settlement};
use agentwire_sessions::blocking::blocking_if_long;
use axum::body::Body;
use axum::extract::{Extension, State};
use http::{StatusCode, Uri};
use serde::Deserialize;

use super::auth::UntypedBody;
use super::body::{LARGE, PathParam, ReadBody, json, query, read, text};
use super::problem::Problem;
use super::rest::{HttpResult, answered, send_command, session_id};
use super::{App, authorization};
use crate::tokens::{Caller, Scope};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InboxQuery {
    state: Option<String>,
    session_id: Option<String>,
}

/// `GET /v1/requests`
pub(super) async fn list(State(app): State<App>, uri: Uri) -> HttpResult {
    let InboxQuery { state, session_id: of } = query(&uri)?;
    if state.as_deref().is_some_and(|state| state != "open") {
        return Err(Problem::invalid("state must be open; settled requests are in the log"));
    }
    let of = of.as_deref().map(session_id).transpose()?;
    Ok(json(StatusCode::OK, &app.hub().requests(of.as_ref()).await?))
}

/// `GET /v1/sessions/{id}/requests/{rid}`
pub(super) async fn show(
    State(app): State<App>,
    PathParam((id, request)): PathParam<(String, String)>,
) -> HttpResult {
    let id = session_id(&id)?;
    match app.hub().open_request(&id, &request).await? {
        Some(found) => Ok(json(StatusCode::OK, &found)),
        None => {
            let message = format!("session {id} has no open request {request}");
            Err(GatewayError::new(ErrorCode::RequestNotFound, message).into())
        }
    }
}

/// `POST /v1/sessions/{id}/requests/{rid}`
pub(super) async fn settle(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    untyped: Option<Extension<UntypedBody>>,
    PathParam((id, request)): PathParam<(String, String)>,
    body: Body,
) -> HttpResult {
    authorization::need(&caller, Scope::Approve)?;
    let ReadBody { value: text, share } = text(&app, body, LARGE).await?;
    let settlement = blocking_if_long(text.len(), || settlement(&text, &request));
    if untyped.is_some() {
        let denies = |it: &Settlement| it.behavior == Some(Behavior::Deny);
        if !text.is_empty() && !settlement.as_ref().is_ok_and(denies) {
            return Err(Problem::unsupported_type());
        }
    }
    let settlement = settlement?;
    drop(text);
    let settle = Command::Settle(settlement);
    answered(send_command(&app, &caller, &session_id(&id)?, settle, share).await)
}

/// The body may omit `requestId`, because the path names the request.
fn settlement(text: &str, request: &str) -> Result<Settlement, Problem> {
    let mut fields: Fields = read(text)?;
    let named = fields.entry("requestId".to_owned()).or_insert_with(|| Json::of(&request));
    if named.read::<String>().ok().as_deref() != Some(request) {
        return Err(Problem::invalid("requestId does not match the request in the path"));
    }
    Ok(Settlement::from_fields(fields)?)
}

#[cfg(test)]
mod tests {
    use super::settlement;

    #[test]
    fn an_answer_says_each_thing_once() {
        assert!(settlement(r#"{"behavior":"deny"}"#, "r").is_ok());
        assert!(settlement(r#"{"behavior":"deny","behavior":"allow"}"#, "r").is_err());
        assert!(settlement(r#"{"requestId":"r","requestId":"r","behavior":"deny"}"#, "r").is_err());
        assert!(settlement(r#"{"requestId":"s","behavior":"deny"}"#, "r").is_err());
    }
}
