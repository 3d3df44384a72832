//! `agentwire logs`: a session's log, to the present or to its end.

use agentwire_protocol::{ErrorCode, Event, GatewayError};

use crate::args::{Format, Global, Logs};
use crate::engine;
use crate::failure::Failure;
use crate::screen::{Screen, Shape};

pub(crate) fn run(global: &Global, args: &Logs) -> Result<(), Failure> {
    engine::reading(global, async |hub| {
        let id = hub.find(&args.session).await?;
        let last = hub.summary(&id).await?.last_seq;
        let mut screen = Screen::new(match (args.native, args.format) {
            (true, _) => Shape::Native,
            (false, Format::Text) => Shape::Story,
            (false, Format::Jsonl) => Shape::Events(args.profile.into()),
        });
        let mut cursor = hub.log().cursor(&id, args.after);
        let mut shown = args.after;
        'log: while args.follow || shown < last {
            let Some(batch) = cursor.next().await.map_err(|error| failed(&error))? else { break };
            for (seq, line) in batch.events() {
                if !args.follow && seq > last {
                    break 'log;
                }
                screen.event(line, read(line)?)?;
                shown = seq;
            }
            if !screen.is_idle() && screen.hand_over().await.is_err() {
                break;
            }
        }
        Ok(screen.finish().await?)
    })
}

/// An event of the log.
pub(crate) fn read(line: &[u8]) -> Result<Event<'static>, GatewayError> {
    let text = std::str::from_utf8(line).map_err(|error| failed(&error))?;
    Event::from_json(text).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> GatewayError {
    GatewayError::new(ErrorCode::Internal, format!("failed to read the log: {error}"))
}
