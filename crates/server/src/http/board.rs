//! The board of the unified specification (§2.2, §3): sessions as plain events, read in pages or as they
//! grow.

mod pages;
mod sessions;

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::board::BoardState;
use agentwire_protocol::{
    AgentType, Command, Json, NewSession, Prompt, SessionConfig, SessionId, SessionState,
    SessionSummary,
};
use agentwire_sessions::SessionHandle;
use agentwire_sessions::hub::StartOutcome;
use agentwire_sessions::store::Record;
use axum::body::Body;
use axum::extract::{Extension, State};
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{LARGE, PathParam, ReadBody, discard, json, object};
use super::problem::Problem;
use super::rest::{HttpResult, OnSession, end, key, session_id};
use super::{App, authorization};
use crate::tokens::{Caller, Scope};

pub(super) use self::pages::{BoardEventPage, events};
pub(crate) use self::sessions::BoardSessions;

/// How long an agent may keep working in the background after its turn without an event.
const LINGER: Duration = Duration::from_secs(60 * 60);

/// How long a session with nothing left to do may take to end on its own.
const GRACE: Duration = Duration::from_secs(30);

/// The request for a board session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BoardSessionRequest {
    /// claude, codex, gemini, acp or demo.
    #[schemars(with = "AgentType")]
    agent_id: String,
    /// A project from the settings; the session works in its directory.
    #[serde(default)]
    project_id: Option<String>,
    /// The prompt.
    prompt: String,
}

/// A board session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BoardSession {
    /// A UUID.
    id: SessionId,
    /// running, done, failed or cancelled.
    #[schemars(
        with = "String",
        extend("enum" = ["running", "done", "failed", "cancelled"])
    )]
    state: BoardState,
}

impl BoardSession {
    async fn answer(app: &App, id: &SessionId) -> HttpResult {
        let record = app.hub().record(id).await?;
        // A board session's end is reported by its events; the last one arrives when the session ends.
        let is_ended = record.summary.state == SessionState::Ended || !app.board_sessions.owns(id);
        let state = if is_ended { state(&record) } else { BoardState::Running };
        Ok(json(StatusCode::OK, &Self { id: id.clone(), state }))
    }
}

/// The state of a session. While a subagent works in the background, the session is still running.
fn state(record: &Record) -> BoardState {
    let is_idle = record.summary.state == SessionState::Idle;
    match is_idle && !record.open.agents.is_empty() {
        true => BoardState::Running,
        false => BoardState::of(&record.summary),
    }
}

/// `POST /api/sessions`
pub(super) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> HttpResult {
    authorization::need(&caller, Scope::Drive)?;
    let key = key(&headers, &format!("board/{}", caller.id()))?;
    let ReadBody { value, share } = object(&app, body, LARGE).await?;
    let BoardSessionRequest { agent_id, project_id, prompt } = value;
    let agent: AgentType = Json::of(&agent_id).read().map_err(|_| {
        Problem::invalid(format!(
            "agentId is {agent_id}; it must be one of {}",
            AgentType::NAMES.join(", ")
        ))
    })?;
    if prompt.is_empty() {
        return Err(Problem::invalid("prompt is empty"));
    }
    let project = project_id.as_ref().and_then(|id| app.setup.projects.get(id));
    let directory: &FilePath = project.unwrap_or(&app.setup.directory);
    let new = NewSession {
        prompt: Some(Prompt::text(prompt)),
        config: SessionConfig {
            project_id,
            working_directory: Some(directory.to_string_lossy().into_owned()),
            ..SessionConfig::default()
        },
        key,
        is_limited: caller.is_limited(),
        ..NewSession::of(agent)
    };
    match app.hub().start_or_continue(new, share.map(Arc::new)).await? {
        StartOutcome::Running(session) if app.board_sessions.add_owned(session.id()) => {
            let id = session.id().clone();
            drop(tokio::spawn(end_after_turn(app, session)));
            Ok(json(StatusCode::OK, &BoardSession { id, state: BoardState::Running }))
        }
        StartOutcome::Running(session) => BoardSession::answer(&app, session.id()).await,
        StartOutcome::Existing(id) => BoardSession::answer(&app, &id).await,
    }
}

/// The board has no second prompt: the session ends with its turn, once nothing works in the background.
/// Until then, requests can still be answered.
async fn end_after_turn(app: App, session: SessionHandle) {
    let is_idle =
        |summary: &SessionSummary| summary.turns > 0 && summary.state == SessionState::Idle;
    loop {
        let seen = session.until(is_idle).await.last_seq;
        let record = app.hub().record(session.id()).await;
        if !record.is_ok_and(|record| state(&record) == BoardState::Running) {
            break;
        }
        let news = session.until(|summary| summary.last_seq > seen);
        if tokio::time::timeout(LINGER, news).await.is_err() {
            break;
        }
    }
    let _ = session.send(Command::Finish).await;
    loop {
        let seen = session.summary();
        let record = app.hub().record(session.id()).await;
        let works = record.is_ok_and(|record| !record.open.agents.is_empty());
        let limit = if works || seen.state != SessionState::Idle { LINGER } else { GRACE };
        let news = session.until(|summary| summary.last_seq > seen.last_seq);
        match tokio::time::timeout(limit, news).await {
            Ok(summary) if summary.state == SessionState::Ended => break,
            // The session failed and its end could not be stored; there is nothing left to wait for.
            Ok(summary) if summary.last_seq == seen.last_seq => break,
            Ok(_) => {}
            Err(_) => {
                let _ = session.send(Command::Stop).await;
                session.ended().await;
                break;
            }
        }
    }
    app.board_sessions.remove_owned(session.id());
}

/// `GET /api/sessions/{id}`
pub(super) async fn show(State(app): State<App>, PathParam(id): PathParam<String>) -> HttpResult {
    BoardSession::answer(&app, &session_id(&id)?).await
}

/// `POST /api/sessions/{id}/cancel`
pub(super) async fn cancel(on: OnSession) -> HttpResult {
    discard(&on.app, on.body).await;
    let id = session_id(&on.id)?;
    end(&on.app, &id).await?;
    BoardSession::answer(&on.app, &id).await
}
