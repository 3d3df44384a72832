//! The page at `/`: signs a browser in and lists the sessions. Its files contain no secrets and need no
//! token; it loads its data with the token, like any client.

use std::time::Instant;

use agentwire_protocol::{ErrorCode, GatewayError};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::App;
use super::body::{json, object};
use super::problem::Problem;
use super::rest::HttpResult;
use crate::tokens::{Caller, Scope};

/// Only this server's own code runs, and it can connect only to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The longest sign-in body, in bytes.
const BODY_LIMIT: usize = 1 << 10;

/// `GET /`
pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("web_page/page.html"))
}

/// `GET /page.js`
pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("web_page/page.js"))
}

/// `GET /page.css`
pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("web_page/page.css"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, text).into_response()
}

/// A browser's request to sign in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SignIn {
    /// The ticket from the address that `agentwire serve --open` opened; valid once, for 30 s.
    ticket: String,
}

/// The result of signing in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignedIn {
    /// The operator's own token.
    token: String,
}

/// A ticket with which one browser signs in as the operator; nothing if the server needs no tokens.
pub(super) fn ticket(app: &App) -> Option<String> {
    app.policy.tokens.as_ref()?;
    let operator = Caller::without_token("operator", Scope::Admin);
    app.sign_ins.issue(operator, Instant::now())
}

/// `POST /v1/sign-in`
pub(super) async fn sign_in(State(app): State<App>, body: Body) -> HttpResult {
    let Some(tokens) = &app.policy.tokens else {
        return Err(Problem::invalid("this server needs no token"));
    };
    // Without a valid ticket, every body gets the same answer.
    let request = object::<SignIn>(&app, body, BODY_LIMIT).await.ok();
    if request
        .and_then(|request| app.sign_ins.redeem(&request.value.ticket, Instant::now()))
        .is_none()
    {
        let why = "the ticket has been used or has expired";
        tracing::info!(why, "client refused");
        return Err(Problem::unauthorized(why));
    }
    let token = tokens.main().map_err(|error| {
        GatewayError::new(ErrorCode::Internal, format!("failed to read the token: {error}"))
    })?;
    Ok(json(StatusCode::OK, &SignedIn { token }))
}
