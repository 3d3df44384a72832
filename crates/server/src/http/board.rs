//! The board of the unified specification (§2.2, §3): sessions as plain events, read in pages or as they
//! grow.

mod cache;
mod pages;

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::board::BoardState;
use agentwire_protocol::{
    AgentType, Command, Json, NewSession, Prompt, SessionConfig, SessionId, SessionState,
    SessionSummary,
};
use agentwire_sessions::SessionHandle;
use agentwire_sessions::hub::Begun;
use agentwire_sessions::store::Record;
use axum::body::Body;
use axum::extract::{Extension, State};
use http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{At, LARGE, Taken, json, object, unread};
use super::problem::Problem;
use super::rest::{Answer, end, key, session_id};
use super::{App, authorization};
use crate::tokens::{Caller, Scope};

pub(crate) use self::cache::Desk;
pub(super) use self::pages::{EventPage, events};

/// How long an agent may keep working in the background after its turn without an event.
const LINGER: Duration = Duration::from_secs(60 * 60);

/// How long a session with nothing left to do may take to end on its own.
const GRACE: Duration = Duration::from_secs(30);

/// The request for a board session.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "BoardSessionRequest")]
pub(super) struct Create {
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
#[schemars(rename = "BoardSession")]
pub(super) struct Shown {
    /// A UUID.
    id: SessionId,
    /// running, done, failed or cancelled.
    #[schemars(
        with = "String",
        extend("enum" = ["running", "done", "failed", "cancelled"])
    )]
    state: BoardState,
}

impl Shown {
    async fn answer(app: &App, id: &SessionId) -> Answer {
        let record = app.hub().record(id).await?;
        // A board session's end is reported by its events; the last one arrives when the session ends.
        let is_over = record.summary.state == SessionState::Ended || !app.desk.sees_to(id);
        let state = if is_over { state(&record) } else { BoardState::Running };
        Ok(json(StatusCode::OK, &Self { id: id.clone(), state }))
    }
}

/// The state of a session. While a subagent works in the background, the session is still running.
fn state(record: &Record) -> BoardState {
    let rests = record.summary.state == SessionState::Idle;
    match rests && !record.open.agents.is_empty() {
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
) -> Answer {
    authorization::need(&caller, Scope::Drive)?;
    let key = key(&headers, &format!("board/{}", caller.id()))?;
    let Taken { value, share } = object(&app, body, LARGE).await?;
    let Create { agent_id, project_id, prompt } = value;
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
    match app.hub().begin(new, share.map(Arc::new)).await? {
        Begun::Runs(session) if app.desk.take_on(session.id()) => {
            let id = session.id().clone();
            drop(tokio::spawn(see_to_the_end(app, session)));
            Ok(json(StatusCode::OK, &Shown { id, state: BoardState::Running }))
        }
        Begun::Runs(session) => Shown::answer(&app, session.id()).await,
        Begun::Before(id) => Shown::answer(&app, &id).await,
    }
}

/// The board has no second prompt: the session ends with its turn, once nothing works in the background.
/// Until then, requests can still be answered.
async fn see_to_the_end(app: App, session: SessionHandle) {
    let rests = |summary: &SessionSummary| summary.turns > 0 && summary.state == SessionState::Idle;
    loop {
        let seen = session.until(rests).await.last_seq;
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
        let patience = if works || seen.state != SessionState::Idle { LINGER } else { GRACE };
        let news = session.until(|summary| summary.last_seq > seen.last_seq);
        match tokio::time::timeout(patience, news).await {
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
    app.desk.let_go(session.id());
}

/// `GET /api/sessions/{id}`
pub(super) async fn show(State(app): State<App>, At(id): At<String>) -> Answer {
    Shown::answer(&app, &session_id(&id)?).await
}

/// `POST /api/sessions/{id}/cancel`
pub(super) async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
    body: Body,
) -> Answer {
    authorization::need(&caller, Scope::Drive)?;
    unread(&app, body).await;
    let id = session_id(&id)?;
    end(&app, &id).await?;
    Shown::answer(&app, &id).await
}
