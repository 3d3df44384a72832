//! Usage and search over all sessions.

use std::time::Duration;

use agentwire_protocol::{SearchQuery, SearchResult, UsageBin, UsageBy, UsageQuery, UsageReport};
use axum::extract::State;
use http::{StatusCode, Uri};
use serde::Deserialize;

use super::App;
use super::body::{json, query};
use super::problem::Problem;
use super::rest::{HttpResult, page_size, session_id};

/// How long an answer may wait for the index to read new events.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct UsageFields {
    from: Option<String>,
    to: Option<String>,
    bin: Option<UsageBin>,
    by: Option<UsageBy>,
}

/// `GET /v1/usage`
pub(super) async fn usage(State(app): State<App>, uri: Uri) -> HttpResult {
    let UsageFields { from, to, bin, by } = query(&uri)?;
    let query = UsageQuery { from, to, bin, by };
    let report: UsageReport = app.hub().usage(&query, PATIENCE).await?;
    Ok(json(StatusCode::OK, &report))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchFields {
    #[serde(default)]
    q: String,
    session_id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    after: Option<String>,
    limit: Option<String>,
}

/// `GET /v1/search`
pub(super) async fn search(State(app): State<App>, uri: Uri) -> HttpResult {
    let SearchFields { q, session_id: session, kind, after, limit } = query(&uri)?;
    if let Some(kind) = kind.as_deref().filter(|kind| !SearchQuery::TYPES.contains(kind)) {
        let names = SearchQuery::TYPES.join(", ");
        return Err(Problem::invalid(format!("type: there is no {kind}; use one of {names}")));
    }
    let session_id = session.as_deref().map(session_id).transpose()?;
    let limit = Some(page_size(limit.as_deref(), SearchResult::PAGE, SearchResult::LIMIT)?);
    let query = SearchQuery { q, session_id, kind, after, limit };
    Ok(json(StatusCode::OK, &app.hub().search(query, PATIENCE).await?))
}
