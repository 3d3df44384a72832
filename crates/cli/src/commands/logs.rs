//! `agentwire logs`: prints a session's log, so far or until its end.

use agentwire_protocol::{ErrorCode, Event, GatewayError};

use crate::args::{Global, Logs};
use crate::failure::Failure;
use crate::print;
use crate::screen::{Screen, Shape};
use crate::source::{self, EventUpdate};

pub(crate) fn run(global: &Global, args: &Logs) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| {
        let id = source.find(&args.session).await?;
        let last = source.summary(&id).await?.last_seq;
        let mut screen = Screen::new(match args.native {
            true => Shape::Native,
            false => Shape::of(args.output, Shape::Story),
        });
        let mut events = source.events(&id, args.after, args.follow).await?;
        let mut shown = args.after;
        'log: while args.follow || shown < last {
            let batch = match events.next().await? {
                Some(EventUpdate::Events(batch)) => batch,
                Some(EventUpdate::Lost(why)) => {
                    print::error(&format!("{why}; reconnecting"));
                    continue;
                }
                Some(EventUpdate::Back) => {
                    print::note("agentwire: reconnected");
                    continue;
                }
                None => break,
            };
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

/// Parses an event of the log.
pub(crate) fn read(line: &[u8]) -> Result<Event<'static>, GatewayError> {
    let text = std::str::from_utf8(line).map_err(|error| failed(&error))?;
    Event::from_json(text).map_err(|error| failed(&error))
}

fn failed(error: &dyn std::fmt::Display) -> GatewayError {
    GatewayError::new(ErrorCode::Internal, format!("failed to read the log: {error}"))
}
