//! `agentwire prune`: deletes old sessions, and the demo agent's conversations with them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use agentwire_dialects::program;
use agentwire_dialects::program::DefaultCommand;
use agentwire_protocol::{ErrorCode, GatewayError, SessionState, SessionSummary};
use agentwire_sessions::Hub;
use agentwire_sessions::store::Filter;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _};
use serde_json::json;
use uuid::Uuid;

use crate::args::{Global, Prune};
use crate::engine;
use crate::failure::Failure;
use crate::format;
use crate::print::{self, Progress};

pub(crate) fn run(global: &Global, args: &Prune) -> Result<(), Failure> {
    if std::env::var_os("AGENTWIRE_URL").is_some_and(|url| !url.is_empty()) {
        let message = "prune deletes sessions on this machine, but AGENTWIRE_URL names a server; unset \
                       it, or run prune on that machine";
        return Err(GatewayError::new(ErrorCode::Unsupported, message).into());
    }
    engine::reading(global, async |hub| {
        let old = old(hub, args).await?;
        let bytes = size(hub, &old).await?;
        let room = format::bytes(bytes);
        let total = format::count(old.len() as u64, "session");
        if !args.json {
            list(&old)?;
        }
        let wanted = match (args.dry_run || old.is_empty(), args.yes) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => {
                let asked = print::ask(&format!("delete {total}, {room}?"))?;
                asked.ok_or_else(|| {
                    let message =
                        "cannot ask for confirmation without a terminal; add --yes to delete them, or --dry-run";
                    GatewayError::new(ErrorCode::InvalidMessage, message)
                })?
            }
        };
        let pruned = if wanted { forget(hub, &old).await? } else { 0 };
        if args.json {
            return Ok(print::json(&json!({"sessions": old, "bytes": bytes, "pruned": pruned}))?);
        }
        print::note(&match (wanted, old.is_empty()) {
            (true, _) => format!("deleted {}, {room}", format::count(pruned, "session")),
            (false, true) => "nothing to delete".to_owned(),
            (false, false) if args.dry_run => format!("would delete {total}, {room}"),
            (false, false) => "nothing deleted".to_owned(),
        });
        Ok(())
    })
}

/// The ended sessions that neither age nor number keeps.
async fn old(hub: &Hub, args: &Prune) -> Result<Vec<SessionSummary>, Failure> {
    let before = match (args.older_than, args.keep) {
        (Some(age), _) => Some(ago(age)?),
        (None, None) => Some(ago(30.days())?),
        (None, Some(_)) => None,
    };
    let all = hub.sessions(Filter::default()).await?;
    let over = all.into_iter().filter(|session| session.state == SessionState::Ended);
    Ok(over
        .skip(args.keep.unwrap_or(0))
        .filter(|session| {
            let last = session.updated_at.parse::<Timestamp>();
            before.is_none_or(|before| last.is_ok_and(|last| last < before))
        })
        .collect())
}

fn ago(age: Span) -> Result<Timestamp, GatewayError> {
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    now.checked_sub(age).map(|then| then.timestamp()).map_err(|error| {
        GatewayError::new(
            ErrorCode::InvalidMessage,
            format!("--older-than is out of range: {error}"),
        )
    })
}

/// The size of their logs and conversations.
async fn size(hub: &Hub, sessions: &[SessionSummary]) -> Result<u64, Failure> {
    let mut progress = Progress::new();
    let mut bytes = 0;
    for (number, session) in (1..).zip(sessions) {
        let mut cursor = hub.events(&session.id, 0).await?;
        while cursor.position() < session.last_seq
            && let Some(batch) = cursor.next().await?
        {
            bytes += batch.lines.len() as u64;
        }
        let conversation = conversation(&hub.settings().data_dir, session);
        bytes += conversation.and_then(|path| path.metadata().ok()).map_or(0, |file| file.len());
        progress.show(&format!("measured {number} of {} sessions", sessions.len()));
    }
    progress.clear();
    Ok(bytes)
}

fn list(sessions: &[SessionSummary]) -> Result<(), Failure> {
    let mut out = print::stdout();
    for session in sessions {
        let title = format::line(session.title.as_deref().unwrap_or_default());
        let columns = print::columns().map_or(usize::MAX, |columns| columns.saturating_sub(52));
        writeln!(
            out,
            "{}  {}  {:>4}  {}",
            session.id.as_str(),
            format::pad(session.agent_type.as_str(), 6),
            format::age(&session.updated_at),
            format::cut(&title, columns)
        )?;
    }
    Ok(())
}

/// Deletes them; returns how many. A session that was resumed meanwhile stays.
async fn forget(hub: &Hub, sessions: &[SessionSummary]) -> Result<u64, Failure> {
    let ids = sessions.iter().map(|session| session.id.clone()).collect();
    let gone = hub.forget(ids).await?;
    for session in sessions.iter().filter(|session| gone.contains(&session.id)) {
        if let Some(path) = conversation(&hub.settings().data_dir, session) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    print::note(&format!("failed to remove {}: {error}", path.display()));
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(gone.len() as u64)
}

/// The file of a built-in agent's conversation.
fn conversation(data_dir: &Path, session: &SessionSummary) -> Option<PathBuf> {
    // Only a UUID is a safe file name.
    let id = Uuid::try_parse(session.native_session_id.as_deref()?).ok()?;
    match program(session.agent_type).command {
        DefaultCommand::BuiltIn { state, .. } => {
            Some(data_dir.join(state).join(format!("{id}.jsonl")))
        }
        DefaultCommand::Named(_) | DefaultCommand::None => None,
    }
}
