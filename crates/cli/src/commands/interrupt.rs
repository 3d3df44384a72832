//! `agentwire interrupt`: interrupts the current turns of sessions.

use agentwire_protocol::{ErrorCode, GatewayError, SessionId, SessionState};

use crate::args::{Global, Sessions};
use crate::failure::Failure;
use crate::source::{self, Source};
use crate::{format, print};

pub(crate) fn run(global: &Global, args: &Sessions) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| each(source, &args.sessions, interrupt).await)
}

async fn interrupt(source: &Source, id: &SessionId) -> Result<String, Failure> {
    let short = format::short(id.as_str());
    let state = source.summary(id).await?.state;
    if state == SessionState::Ended {
        let message = format!("session {short} has ended; nothing to interrupt");
        return Err(GatewayError::new(ErrorCode::Conflict, message).into());
    }
    source.reach(id).await?.session()?.interrupt().await?;
    Ok(match state == SessionState::Idle {
        true => format!("session {short} was idle"),
        false => format!("session {short} interrupted"),
    })
}

/// Applies `work` to each session. All ids are resolved first. A failure for one session does not
/// stop the others.
pub(super) async fn each(
    source: &Source,
    beginnings: &[String],
    work: impl AsyncFn(&Source, &SessionId) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let mut ids = Vec::new();
    for beginning in beginnings {
        let id = source.find(beginning).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let mut failed = None;
    for id in &ids {
        match work(source, id).await {
            Ok(done) => print::done(&done),
            Err(failure) => {
                if let Some(before) = failed.replace(failure) {
                    before.report();
                }
            }
        }
    }
    failed.map_or(Ok(()), Err)
}
