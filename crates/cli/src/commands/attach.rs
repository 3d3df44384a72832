//! `agentwire attach`: a session watched, from its beginning to its end.

use agentwire_protocol::SessionState;

use crate::args::{Attach, Global};
use crate::drive::{Drive, Signals};
use crate::engine;
use crate::failure::Failure;
use crate::screen::{Screen, Shape};

pub(crate) fn run(global: &Global, args: &Attach) -> Result<(), Failure> {
    engine::reading(global, async |hub| {
        let id = hub.find(&args.session).await?;
        let runs = hub.summary(&id).await?.state != SessionState::Ended;
        let mut screen = Screen::new(Shape::Story);
        if runs && screen.is_seen() {
            screen.remark("this session runs in another process: watch it here, answer it there");
        }
        let cursor = hub.log().cursor(&id, 0);
        Drive::new(cursor, screen, Signals::new()?).run().await
    })
}
