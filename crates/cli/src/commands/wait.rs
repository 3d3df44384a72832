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

struct Outcome {
    session: SessionSummary,
    /// Why it did not succeed, if it did not.
    failure: Option<String>,
}

impl Outcome {
    fn failed(session: SessionSummary, why: impl Into<String>) -> Self {
        Self { session, failure: Some(why.into()) }
    }
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
    for Outcome { session, failure } in &outcomes {
        if let Some(why) = failure {
            print::error(&format!("session {} {why}", format::short(session.id.as_str())));
        }
    }
    let has_failed = outcomes.iter().any(|outcome| outcome.failure.is_some());
    let sessions: Vec<_> = outcomes.into_iter().map(|outcome| outcome.session).collect();
    if args.json {
        print::json(&json!({ "sessions": sessions }))?;
    } else {
        for session in &sessions {
            writeln!(print::stdout(), "{}  {}", session.id, ls::state(session))?;
        }
    }
    if has_failed { Err(Failure::Exit(1)) } else { Ok(()) }
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
                return Ok(Outcome::failed(session, "was lost: its process is gone"));
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
                return Some(Outcome { session: session.clone(), failure: None });
            }
            SessionState::Ended => {
                let why = "has ended and has no pending request";
                return Some(Outcome::failed(session.clone(), why));
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
    let error = session.error.as_deref().map(|error| format!(": {}", format::line(error)));
    let broken = |how: &str| Some(format!("{how}{}", error.unwrap_or_default()));
    let failure = match session.reason {
        Some(SessionEndReason::Failed) => broken("failed"),
        Some(SessionEndReason::Timeout) => broken("timed out"),
        Some(SessionEndReason::Completed | SessionEndReason::Cancelled) | None => {
            turn_failed.then(|| "failed in its last turn".to_owned())
        }
    };
    Some(Outcome { session: session.clone(), failure })
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
        outcomes.push(Outcome::failed(session, why));
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
