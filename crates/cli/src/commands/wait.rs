//! `agentwire wait`: waits until sessions are idle, end or have a request, whichever process runs
//! them.

use std::io::Write as _;
use std::time::Duration;

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{SessionId, SessionState, SessionSummary};
use agentwire_sessions::store::Batch;
use serde_json::json;
use tokio::task::JoinSet;

use crate::args::{Global, Wait, WaitFor};
use crate::commands::ls;
use crate::failure::Failure;
use crate::format;
use crate::print;
use crate::source::{self, EventUpdate, Source};

/// How long to wait before asking an unreachable server again.
const AGAIN: Duration = Duration::from_secs(1);

enum Outcome {
    Reached(SessionSummary),
    Failed(SessionSummary, String),
}

pub(crate) fn run(global: &Global, args: &Wait) -> Result<(), Failure> {
    let outcomes = source::open(global, &args.at, async |source| {
        let mut ids = Vec::new();
        for session in &args.sessions {
            ids.push(source.find(session).await?);
        }
        match args.timeout {
            None => all(source, &ids, args.what).await,
            Some(time) => match tokio::time::timeout(time, all(source, &ids, args.what)).await {
                Ok(outcomes) => outcomes,
                Err(_) => timed_out(source, &ids, time.as_secs_f64()).await,
            },
        }
    })?;
    let mut failed = false;
    let mut sessions = Vec::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Reached(session) => sessions.push(session),
            Outcome::Failed(session, why) => {
                failed = true;
                print::error(&format!("session {} {why}", format::short(session.id.as_str())));
                sessions.push(session);
            }
        }
    }
    if args.json {
        print::json(&json!({ "sessions": sessions }))?;
    } else {
        for session in &sessions {
            writeln!(print::stdout(), "{}  {}", session.id, ls::state(session))?;
        }
    }
    if failed { Err(Failure::Exit(1)) } else { Ok(()) }
}

async fn all(source: &Source, ids: &[SessionId], what: WaitFor) -> Result<Vec<Outcome>, Failure> {
    let mut waits = JoinSet::new();
    for (place, id) in ids.iter().enumerate() {
        let (source, id) = (source.clone(), id.clone());
        waits.spawn(async move { (place, one(&source, &id, what).await) });
    }
    let mut outcomes = waits.join_all().await;
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Follows the log from its start; only the log says how the last turn ended.
async fn one(source: &Source, id: &SessionId, what: WaitFor) -> Result<Outcome, Failure> {
    let mut events = source.events(id, 0, true).await?;
    let mut turn_failed = false;
    let mut over = false;
    let mut session = source.summary(id).await?;
    loop {
        let mut is_known = true;
        if over {
            session = source.summary(id).await?;
        } else if events.position() >= session.last_seq {
            // The server may be down; the event stream reconnects.
            let present = source.present(id).await?;
            is_known = present.is_some();
            session = present.unwrap_or(session);
        }
        if over || (is_known && events.position() >= session.last_seq) {
            if let Some(outcome) = judge(&session, what, turn_failed) {
                return Ok(outcome);
            }
            if over {
                let why = "was lost: its process is gone";
                return Ok(Outcome::Failed(session, why.to_owned()));
            }
        }
        let seen = tokio::select! {
            seen = events.next() => seen?,
            () = tokio::time::sleep(AGAIN), if !is_known => continue,
        };
        match seen {
            Some(EventUpdate::Events(batch)) => {
                turn_failed = last_turn_failed(&batch).unwrap_or(turn_failed);
            }
            Some(EventUpdate::Lost(_) | EventUpdate::Back) => {}
            None => over = true,
        }
    }
}

/// The outcome, or `None` while the session can still reach it.
fn judge(session: &SessionSummary, what: WaitFor, turn_failed: bool) -> Option<Outcome> {
    let ended = session.state == SessionState::Ended;
    let reached = match what {
        WaitFor::Ended => ended,
        WaitFor::Idle => ended || session.state == SessionState::Idle,
        WaitFor::Request => match session.state {
            SessionState::WaitingPermission | SessionState::WaitingQuestion => {
                return Some(Outcome::Reached(session.clone()));
            }
            SessionState::Ended => {
                let why = "has ended and has no pending request".to_owned();
                return Some(Outcome::Failed(session.clone(), why));
            }
            SessionState::Starting
            | SessionState::Idle
            | SessionState::Working
            | SessionState::Stalled => false,
        },
    };
    if !reached {
        return None;
    }
    let error = session.error.as_deref().map(format::line);
    let broken = match session.reason {
        Some(SessionEndReason::Failed) => Some("failed".to_owned()),
        Some(SessionEndReason::Timeout) => Some("timed out".to_owned()),
        Some(SessionEndReason::Completed | SessionEndReason::Cancelled) | None => None,
    };
    Some(match (broken, turn_failed) {
        (Some(broken), _) => {
            let why = error.map(|error| format!("{broken}: {error}")).unwrap_or(broken);
            Outcome::Failed(session.clone(), why)
        }
        (None, true) => Outcome::Failed(session.clone(), "failed in its last turn".to_owned()),
        (None, false) => Outcome::Reached(session.clone()),
    })
}

async fn timed_out(
    source: &Source,
    ids: &[SessionId],
    seconds: f64,
) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for id in ids {
        let session = source.summary(id).await?;
        let why =
            format!("did not reach that state within {seconds} s (state: {})", ls::state(&session));
        outcomes.push(Outcome::Failed(session, why));
    }
    Ok(outcomes)
}

/// Whether the last turn in these events failed; `None` if they have no turn.
fn last_turn_failed(batch: &Batch) -> Option<bool> {
    let tells = |line: &[u8]| match kind(line)? {
        b"turnStarted" | b"turnCompleted" => Some(false),
        b"turnFailed" => Some(true),
        _ => None,
    };
    batch.events().filter_map(|(_, line)| tells(line)).last()
}

/// The type of an event without parsing all of it. No text of the agent comes before the type.
fn kind(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = b"\"type\":\"";
    let start = memchr::memmem::find(line, KEY)? + KEY.len();
    let rest = line.get(start..)?;
    rest.get(..memchr::memchr(b'"', rest)?)
}
