//! The REST API for sessions.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentwire_protocol::command::{InterruptFields, QueryFields, RewindFields};
use agentwire_protocol::reply::{Nothing, SessionList};
use agentwire_protocol::{
    AgentType, Command, Configure, ErrorCode, GatewayError, Json, ListQuery, NewSession, Prompt,
    SessionChange, SessionId, SessionRequest, SessionSort, SessionState, SessionSummary,
};
use agentwire_sessions::Hub;
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::budget::Share;
use agentwire_sessions::hub::StartOutcome;
use axum::body::Body;
use axum::extract::{Extension, FromRequest, FromRequestParts as _, Request, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{LARGE, PathParam, ReadBody, SMALL, discard, json, object, query, read, text};
use super::problem::Problem;
use super::websocket_budget::SHARE_FREE_BYTES;
use super::{App, authorization};
use crate::tokens::{Caller, Scope};

/// How long to wait for the end of a session. An agent that ignores everything takes a few seconds.
const END_LIMIT: Duration = Duration::from_secs(20);

/// How often to check whether an ended session can be deleted.
const END_CHECK: Duration = Duration::from_millis(20);

/// How long the list of installed agents is cached.
const AGENTS_CACHED: Duration = Duration::from_secs(30);

pub(super) type HttpResult = Result<Response, Problem>;

/// Reads a session id, a UUID.
pub(super) fn session_id(text: &str) -> Result<SessionId, Problem> {
    match uuid::Uuid::from_str(text) {
        Ok(id) => Ok(SessionId::from(id.to_string())),
        Err(_) => {
            let message = format!("there is no session {text}: its id must be a UUID");
            Err(GatewayError::new(ErrorCode::SessionNotFound, message).into())
        }
    }
}

/// A request that changes something in one session. Its client has the scope drive; its id and its body are
/// not read yet.
pub(super) struct OnSession {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) id: String,
    pub(super) body: Body,
}

impl FromRequest<App> for OnSession {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let PathParam(id) = PathParam::from_request_parts(&mut parts, app).await?;
        let caller = parts.extensions.remove::<Caller>();
        let caller = caller.ok_or_else(|| Problem::unauthorized("the client is not known"))?;
        authorization::need(&caller, Scope::Drive)?;
        Ok(Self { app: app.clone(), caller, id, body })
    }
}

/// The response with a session's reply to a command.
pub(super) fn answered(reply: Result<Json<'static>, Problem>) -> HttpResult {
    Ok(json(StatusCode::OK, &reply?))
}

/// `POST /v1/sessions`
pub(super) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> HttpResult {
    authorization::need(&caller, Scope::Drive)?;
    let ReadBody { value: text, share } = text(&app, body, LARGE).await?;
    let request = blocking_if_long(text.len(), || SessionRequest::from_json(&text))?;
    drop(text);
    let mut new = NewSession::from(request);
    authorization::start(&caller, &new)?;
    new.key = key(&headers, caller.id())?;
    new.is_limited = caller.is_limited();
    if new.resume.is_none() {
        let directory = app.setup.directory.to_string_lossy();
        new.config.working_directory.get_or_insert_with(|| directory.into_owned());
    }
    let summary = match app.hub().start_or_continue(new, share.map(Arc::new)).await? {
        StartOutcome::Running(session) => app.hub().labelled(session.summary()).await,
        StartOutcome::Existing(id) => app.hub().summary(&id).await?,
    };
    let mut response = json(StatusCode::CREATED, &summary);
    if let Ok(place) = format!("/v1/sessions/{}", summary.id).parse() {
        response.headers_mut().insert(http::header::LOCATION, place);
    }
    Ok(response)
}

/// The idempotency key of a request, unique to its owner.
pub(super) fn key(headers: &HeaderMap, owner: &str) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| NewSession::is_key(key));
    match key {
        Some(key) => Ok(Some(Hub::key_of(owner, key))),
        None => Err(Problem::invalid(format!(
            "Idempotency-Key must be text of 1 to {} characters",
            NewSession::KEY_LIMIT
        ))),
    }
}

#[derive(Deserialize)]
struct ListFields {
    limit: Option<String>,
    after: Option<String>,
    #[serde(default)]
    live: bool,
    state: Option<SessionState>,
    agent: Option<AgentType>,
    directory: Option<String>,
    q: Option<String>,
    sort: Option<SessionSort>,
}

/// `GET /v1/sessions`
pub(super) async fn list(State(app): State<App>, uri: Uri) -> HttpResult {
    let ListFields { limit, after, live, state, agent, directory, q, sort } = query(&uri)?;
    let limit = Some(page_size(limit.as_deref(), SessionList::PAGE, SessionList::LIMIT)?);
    let query = ListQuery { live, after, limit, state, agent, directory, q, sort };
    let listed = app.hub().page(query).await?;
    Ok(json(StatusCode::OK, &listed))
}

/// The page size. Any number is clamped to `1..=most`.
pub(super) fn page_size(wanted: Option<&str>, usual: usize, most: usize) -> Result<usize, Problem> {
    let found = wanted.map(|wanted| clamped("limit", wanted, (1, most as u64))).transpose()?;
    Ok(found.and_then(|found| usize::try_from(found).ok()).unwrap_or(usual))
}

/// A whole number of a query, clamped to its range, however far outside it is.
pub(super) fn clamped(name: &str, text: &str, (least, most): (u64, u64)) -> Result<u64, Problem> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Err(Problem::invalid(format!("{name} must be a number"))),
        false if digits.len() < text.len() => Ok(least),
        false => Ok(text.parse().unwrap_or(u64::MAX).clamp(least, most)),
    }
}

/// `GET /v1/sessions/{id}`
pub(super) async fn show(State(app): State<App>, PathParam(id): PathParam<String>) -> HttpResult {
    Ok(json(StatusCode::OK, &app.hub().details(&session_id(&id)?).await?))
}

/// `DELETE /v1/sessions/{id}`
pub(super) async fn delete(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathParam(id): PathParam<String>,
) -> HttpResult {
    authorization::need(&caller, Scope::Admin)?;
    let id = session_id(&id)?;
    let started = Instant::now();
    // A running session is stopped first. Its end may take a moment to become visible everywhere.
    while end(&app, &id).await?.state != SessionState::Ended
        || app.hub().forget(vec![id.clone()]).await?.is_empty()
    {
        if started.elapsed() >= END_LIMIT {
            let message = format!("session {id} has not ended yet; try again later");
            return Err(GatewayError::new(ErrorCode::Conflict, message).into());
        }
        tokio::time::sleep(END_CHECK).await;
    }
    Ok(json(StatusCode::OK, &Nothing {}))
}

/// `PATCH /v1/sessions/{id}`
pub(super) async fn configure(on: OnSession) -> HttpResult {
    let ReadBody { value: change, share } =
        object::<SessionChange>(&on.app, on.body, SMALL).await?;
    let (labels, change) = change.split();
    authorization::configure(&on.caller, &change)?;
    let (id, labels) = (session_id(&on.id)?, labels.checked()?);
    // Labels belong to no agent: they can be changed whatever the session does.
    if change != Configure::default() || labels.is_empty() {
        send_command(&on.app, &on.caller, &id, Command::Configure(change), share).await?;
    }
    if !labels.is_empty() {
        return Ok(json(StatusCode::OK, &on.app.hub().label(&id, labels).await?));
    }
    Ok(json(StatusCode::OK, &on.app.hub().summary(&id).await?))
}

/// `POST /v1/sessions/{id}/prompt`
pub(super) async fn prompt(headers: HeaderMap, on: OnSession) -> HttpResult {
    let OnSession { app, caller, id, body } = on;
    let ReadBody { value: prompt, share } = object::<Prompt>(&app, body, LARGE).await?;
    // The prompt's own `messageId` takes precedence over the header, even over an invalid one.
    let key = if prompt.message_id.is_none() { key(&headers, caller.id())? } else { None };
    let (id, share) = (session_id(&id)?, share.map(Arc::new));
    let command = Command::Prompt(prompt);
    let reply = app.hub().send_command(&id, &caller.client(), command, key, share).await?;
    Ok(json(StatusCode::ACCEPTED, &reply))
}

/// `POST /v1/sessions/{id}/interrupt`
pub(super) async fn interrupt(on: OnSession) -> HttpResult {
    // A request that stops something is never refused for its form.
    let OnSession { app, caller, id, body } = on;
    let text =
        text(&app, body, SHARE_FREE_BYTES).await.map(|taken| taken.value).unwrap_or_default();
    let InterruptFields { cancel_queued } = read(&text).unwrap_or_default();
    let command = Command::Interrupt { cancel_queued };
    answered(send_command(&app, &caller, &session_id(&id)?, command, None).await)
}

/// `POST /v1/sessions/{id}/stop`
pub(super) async fn stop(on: OnSession) -> HttpResult {
    discard(&on.app, on.body).await;
    Ok(json(StatusCode::OK, &end(&on.app, &session_id(&on.id)?).await?))
}

/// Ends a session, waits until it has ended, and returns its summary.
pub(super) async fn end(app: &App, id: &SessionId) -> Result<SessionSummary, GatewayError> {
    let Ok(session) = app.hub().session(id) else {
        let summary = app.hub().summary(id).await?;
        if summary.state == SessionState::Ended {
            return Ok(summary);
        }
        let message = format!("session {id} runs in another process; stop it there");
        return Err(GatewayError::new(ErrorCode::Conflict, message));
    };
    match session.send(Command::Stop).await {
        // It ended on its own.
        Ok(_) | Err(GatewayError { code: ErrorCode::Conflict, .. }) => {}
        Err(error) => return Err(error),
    }
    // A session whose end cannot be stored keeps trying.
    let _ = tokio::time::timeout(END_LIMIT, session.ended()).await;
    app.hub().summary(id).await
}

/// `POST /v1/sessions/{id}/finish`
pub(super) async fn finish(on: OnSession) -> HttpResult {
    discard(&on.app, on.body).await;
    let id = session_id(&on.id)?;
    answered(send_command(&on.app, &on.caller, &id, Command::Finish, None).await)
}

/// `POST /v1/sessions/{id}/rewind`
pub(super) async fn rewind(on: OnSession) -> HttpResult {
    let ReadBody { value, share } = object(&on.app, on.body, SMALL).await?;
    let RewindFields { message_id, dry_run } = value;
    let command = Command::Rewind { message_id, dry_run };
    answered(send_command(&on.app, &on.caller, &session_id(&on.id)?, command, share).await)
}

/// The agent's answer to a query.
#[derive(Serialize, JsonSchema)]
pub(super) struct QueryResult {
    /// The result as the agent has it.
    result: Json<'static>,
}

/// `POST /v1/sessions/{id}/query`
pub(super) async fn query_agent(on: OnSession) -> HttpResult {
    let OnSession { app, caller, id, body } = on;
    let ReadBody { value, share } = object(&app, body, SMALL).await?;
    let QueryFields { method, args } = value;
    authorization::query(&caller, &method, &args)?;
    let command = Command::Query { method, args };
    let result = send_command(&app, &caller, &session_id(&id)?, command, share).await?;
    Ok(json(StatusCode::OK, &QueryResult { result }))
}

/// Sends a command to a session that runs here. The command holds the share of the body, not the request
/// that waits for the reply.
pub(super) async fn send_command(
    app: &App,
    caller: &Caller,
    id: &SessionId,
    command: Command,
    share: Option<Share>,
) -> Result<Json<'static>, Problem> {
    let share = share.map(Arc::new);
    Ok(app.hub().send_command(id, &caller.client(), command, None, share).await?)
}

/// A ticket, sent as the WebSocket subprotocol `ticket.T` next to `agentwire`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ticket {
    /// Valid once.
    ticket: String,
    /// How many seconds it is valid.
    expires_in: u64,
}

/// `POST /v1/tickets`
pub(super) async fn ticket(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> HttpResult {
    let ticket = app.tickets.issue(caller, Instant::now()).ok_or_else(|| {
        GatewayError::new(ErrorCode::Overloaded, "too many unused tickets; try again later")
    })?;
    Ok(json(StatusCode::CREATED, &Ticket { ticket, expires_in: 30 }))
}

/// `GET /v1/agents`
pub(super) async fn agents(State(app): State<App>) -> HttpResult {
    // Looking up agents starts programs, so it is done once for all callers and cached.
    let mut known = app.agents.lock().await;
    let found = match known.take() {
        Some((at, found)) if at.elapsed() < AGENTS_CACHED => (at, found),
        Some(_) | None => (Instant::now(), (app.setup.agents)().await),
    };
    let answer = json(StatusCode::OK, &found.1);
    *known = Some(found);
    Ok(answer)
}

/// The status of the server.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerStatus {
    /// The version of agentwire.
    version: &'static str,
    /// Seconds since the server started.
    uptime_seconds: u64,
    /// How many sessions run here.
    sessions: usize,
    /// How many requests are waiting for an answer.
    open_requests: u64,
    /// The scope of the client's token.
    scope: &'static str,
    /// The name of the client's token.
    name: String,
    /// How an agent's processes are contained.
    containment: ContainmentStatus,
}

/// How an agent's processes are contained.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ContainmentStatus {
    /// `namespace`: a pid namespace, in which agentwire's own files are hidden; `keeper`: a process that
    /// watches the agent's processes; `processGroup`: neither.
    kind: &'static str,
    /// Why a stronger containment is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What an agent could still circumvent.
    #[serde(skip_serializing_if = "Option::is_none")]
    caveat: Option<&'static str>,
}

/// `GET /healthz`
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /v1/status`
pub(super) async fn status(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> HttpResult {
    let running = app.hub().running();
    let open_requests = running.iter().map(|session| session.summary().open_requests).sum();
    let containment = app.hub().containment().containment();
    Ok(json(
        StatusCode::OK,
        &ServerStatus {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: app.started.elapsed().as_secs(),
            sessions: running.len(),
            open_requests,
            scope: caller.scope.as_str(),
            name: caller.name.to_string(),
            containment: ContainmentStatus {
                kind: containment.name(),
                reason: containment.reason().map(str::to_owned),
                caveat: containment.caveat(),
            },
        },
    ))
}
