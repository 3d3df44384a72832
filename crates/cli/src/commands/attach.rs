//! `agentwire attach`: replays and follows a session, and answers its requests.

use agentwire_protocol::SessionState;

use crate::args::{Attach, Global};
use crate::drive::{Drive, Signals};
use crate::failure::Failure;
use crate::screen::{Screen, Shape};
use crate::source::{self, ControlPath, Events};
use crate::terminal::Terminal;

pub(crate) fn run(global: &Global, args: &Attach) -> Result<(), Failure> {
    source::open(global, &args.at, async |source| {
        let id = source.find(&args.session).await?;
        let summary = source.summary(&id).await?;
        let mut screen = Screen::new(Shape::of(args.output, Shape::Story));
        let signals = Signals::new()?;
        let reach = match summary.state {
            SessionState::Ended => None,
            SessionState::Starting
            | SessionState::Idle
            | SessionState::Working
            | SessionState::WaitingPermission
            | SessionState::WaitingQuestion
            | SessionState::Stalled => Some(source.reach(&id).await?),
        };
        let drive = match reach {
            Some(ControlPath::Server(session)) => {
                let terminal = if screen.is_seen() { Terminal::open() } else { None };
                let events = Events::Stream(session.updates_after(0));
                Drive::new(events, summary.last_seq, screen, signals).answering(*session, terminal)
            }
            not_reached => {
                if let Some(ControlPath::Not(why)) = not_reached
                    && screen.is_seen()
                {
                    screen.remark(&format!("{}; attached read-only", why.message));
                }
                let events = source.events(&id, 0, true).await?;
                Drive::new(events, summary.last_seq, screen, signals)
            }
        };
        drive.run().await.verdict
    })
}
