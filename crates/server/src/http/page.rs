//! The page at `/`: signs a browser in, and lists what there is. Its files hold no secret and are open
//! to all; what it shows it asks for with the token, as any client does.

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
use super::rest::Answer;
use crate::tokens::{Caller, Scope};

/// Only what comes from here runs, and it reaches nobody else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The longest body by which a browser signs in.
const LIMIT: usize = 1 << 10;

/// `GET /`
pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("page/page.html"))
}

/// `GET /page.js`
pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

/// `GET /page.css`
pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page/page.css"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache"), (CONTENT_SECURITY_POLICY, POLICY)];
    (headers, text).into_response()
}

/// By what a browser signs in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SignIn {
    /// That of the address which `agentwire serve --open` opened; good once, for 30 s.
    ticket: String,
}

/// What it then comes with.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignedIn {
    /// The operator's own.
    token: String,
}

/// A ticket by which one browser signs in as the operator; none where nobody need.
pub(super) fn ticket(app: &App) -> Option<String> {
    app.entrance.tokens.as_ref()?;
    let operator = Caller::without_token("operator", Scope::Admin);
    app.sign_ins.issue(operator, Instant::now())
}

/// `POST /v1/sign-in`
pub(super) async fn sign_in(State(app): State<App>, body: Body) -> Answer {
    let Some(tokens) = &app.entrance.tokens else {
        return Err(Problem::invalid("this server asks for no token"));
    };
    // Who has no ticket hears nothing else, whatever it sent.
    let given = object::<SignIn>(&app, body, LIMIT).await.ok();
    if given.and_then(|given| app.sign_ins.redeem(&given.value.ticket, Instant::now())).is_none() {
        let why = "the ticket is used up or too old";
        tracing::info!(why, "client refused");
        return Err(Problem::unauthorized(why));
    }
    let token = tokens.main().map_err(|error| {
        GatewayError::new(ErrorCode::Internal, format!("failed to read the token: {error}"))
    })?;
    Ok(json(StatusCode::OK, &SignedIn { token }))
}
