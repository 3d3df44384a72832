//! `agentwire stop`: ends sessions.

use std::time::{Duration, Instant};

use agentwire_protocol::{ErrorCode, GatewayError, SessionId, SessionState};

use super::interrupt::each;
use crate::args::{Global, Sessions};
use crate::failure::Failure;
use crate::format;
use crate::source::{self, Source};

/// How long a session may take to end. Its agent gets some time to end by itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two looks at the state.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) fn run(global: &Global, args: &Sessions) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| each(source, &args.sessions, stop).await)
}

async fn stop(source: &Source, id: &SessionId) -> Result<String, Failure> {
    let short = format::short(id.as_str());
    if source.summary(id).await?.state == SessionState::Ended {
        return Ok(format!("session {short} has already ended"));
    }
    let session = source.reach(id).await?.session()?;
    session.stop().await?;
    let begun = Instant::now();
    while session.summary().await?.state != SessionState::Ended {
        if begun.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            let message =
                format!("session {short} did not end within {seconds} s; it is still stopping");
            return Err(GatewayError::new(ErrorCode::Timeout, message).into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(format!("session {short} ended"))
}
